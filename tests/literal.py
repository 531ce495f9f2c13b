"""A literal implementation of sDist as in the paper: slow, explicit, independent of the package.

All objects of the paper are arrays: the candidate columns, the matrices D_i, A_m and W_m, and all
pairwise distances. From the package only ``Draws`` is used, which draws the bags and panels. The
options are read by name. It is meant for about 60 rows and about 70 candidates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from literal_screening import SCREENING_MARGIN, SCREENING_MARGIN_BEFORE_GATE, screened_pairs

from metricboost.boosting.draws import Draws

Term = tuple[int, ...]
Array = npt.NDArray[Any]

MAX_GAIN = 10.0
PATIENCE, PATIENCE_WITH_PANELS = 10, 30
N_STARTS = 5
SMALL = 64
PER_START = 1.5
POWER_ITERATIONS = 50
POWER_TOLERANCE = 1e-4
RECURRENCES = 2
HARM = 3.0


# --- the feature map


class FeatureMap:
    """The candidates in order of creation: tuples with their standardised columns."""

    def __init__(self, X: Array) -> None:
        self.X = X
        self.terms: list[Term] = []
        self.columns: list[Array] = []
        for j in range(X.shape[1]):
            self.terms.append((j,))
            self.columns.append(X[:, j].copy())

    def add(self, term: Term) -> None:
        """Append a standardised product. A product that does not vary is a column of zeros."""
        if term in self.terms:
            return
        raw = self._product(term)
        mean, deviation = raw.mean(), raw.std()
        constant = deviation <= 1e-10 * np.abs(raw).max()
        self.terms.append(term)
        self.columns.append(np.zeros(len(raw)) if constant else (raw - mean) / deviation)

    def set_constants(self, term: Term, center: float, scale: float) -> None:
        """Set the mean and deviation of a term to those of a start metric."""
        self.columns[self.terms.index(term)] = (self._product(term) - center) / scale

    def expand(self, new: Sequence[int], selected: Sequence[int], max_degree: int) -> None:
        """``S (x) A``: the products of new and selected terms, up to the largest degree."""
        for a in new:
            for s in selected:
                product = tuple(sorted(self.terms[a] + self.terms[s]))
                if len(product) <= max_degree:
                    self.add(product)

    def phi(self) -> Array:
        return np.stack(self.columns, axis=1)

    def _product(self, term: Term) -> Array:
        raw = np.ones(len(self.X))
        for j in term:
            raw = raw * self.X[:, j]
        return raw


def standardized(X: Array, standardize: bool) -> tuple[Array, Array, list[int]]:
    """Return (centre, scale, columns that vary)."""
    p = X.shape[1]
    varies = [j for j in range(p) if X[:, j].max() > X[:, j].min()]
    center, scale = np.zeros(p), np.ones(p)
    if standardize:
        center = X.mean(axis=0)
        scale[varies] = X[:, varies].std(axis=0)
    return center, scale, varies


# --- neighbours and information matrices


def squared_distances(phi: Array, W: Array | None = None) -> Array:
    """``(phi_i - phi_j)' W (phi_i - phi_j)`` for all pairs. Without W, the Euclidean distances."""
    n = len(phi)
    d = np.zeros((n, n))
    for i in range(n):
        difference = phi[i] - phi
        d[i] = ((difference if W is None else difference @ W) * difference).sum(axis=1)
    return d


def by_distance(d: Array, i: int) -> list[int]:
    """All other rows, ordered by distance, and then by row number."""
    return sorted((j for j in range(len(d)) if j != i), key=lambda j: (d[i, j], j))


def neighbours(d: Array, labels: Array, k: int) -> tuple[list[list[int]], list[list[int]]]:
    """(same, other): the nearest rows of the own and of all other classes, by full sorting.

    The lists are as long as the largest class allows.
    """
    counts = [int((labels == c).sum()) for c in set(labels.tolist())]
    k_same, k_other = min(k, max(counts) - 1), min(k, len(d) - min(counts))
    same, other = [], []
    for i in range(len(d)):
        order = by_distance(d, i)
        same.append(in_turn([j for j in order if labels[j] == labels[i]], k_same))
        other.append(in_turn([j for j in order if labels[j] != labels[i]], k_other))
    return same, other


def in_turn(rows: list[int], size: int) -> list[int]:
    """The first ``k`` of the rows. If there are fewer, the rows are repeated cyclically."""
    return [rows[place % len(rows)] for place in range(size)]


def class_lists(d: Array, labels: Array, k: int) -> list[list[list[int]]]:
    """For every row, its nearest rows in each class, with the length the largest class allows."""
    classes = sorted(set(labels.tolist()))
    largest = max(int((labels == c).sum()) for c in classes)
    lists = []
    for i in range(len(d)):
        order = by_distance(d, i)
        sizes = [min(k, largest - (labels[i] == c)) for c in classes]
        near = [in_turn([j for j in order if labels[j] == c], n) for c, n in zip(classes, sizes)]
        lists.append(near)
    return lists


#: The parts of the margins: for every row, lists of neighbours and the factors of their means.
Parts = list[list[tuple[float, list[int]]]]


def common_parts(same: Sequence[Sequence[int]], other: Sequence[Sequence[int]]) -> Parts:
    """The lists of ``m_i``: mean squared distance to ``other`` minus that to ``same``."""
    return [[(1.0, list(o)), (-1.0, list(s))] for s, o in zip(same, other)]


def coded_parts(lists: list[list[list[int]]], labels: Array) -> Parts:
    """The lists of ``y'f / K``, times the constant that the package omits."""
    n_classes = len(lists[0])
    scale = coded_scale(n_classes)
    factors = [[scale * a for a in coded_factors(int(own), n_classes)] for own in labels]
    return [list(zip(f, near)) for f, near in zip(factors, lists)]


def coded_factors(own: int, n_classes: int) -> list[float]:
    """The factor of each d_l in ``y'f / K``.

    Here ``f_c = (mean of d_l over l other than c) - d_c``.
    """
    factors = [0.0] * n_classes
    for c in range(n_classes):
        y_c = 1.0 if c == own else -1 / (n_classes - 1)
        for other in range(n_classes):
            in_f = -1.0 if other == c else 1 / (n_classes - 1)
            factors[other] += y_c * in_f / n_classes
    return factors


def coded_scale(n_classes: int) -> float:
    """The margin of the package (f of the own class) divided by the margin of the paper."""
    return n_classes - 1.0


def matrices(phi: Array, parts: Parts) -> Array:
    """The matrix D_i of every row, n x p_m x p_m. The margin of row i is ``<D_i, W>``."""
    D = np.zeros((len(phi), phi.shape[1], phi.shape[1]))
    for i, lists in enumerate(parts):
        for factor, rows in lists:
            differences = phi[i] - phi[rows]
            D[i] += factor * (differences.T @ differences) / len(rows)
    return D


def information_matrices(
    phi: Array, same: Sequence[Sequence[int]], other: Sequence[Sequence[int]]
) -> Array:
    """The matrix D_i of every row, from its two lists."""
    return matrices(phi, common_parts(same, other))


# --- Algorithm 2


def leading(A: Array) -> tuple[float, Array]:
    """The largest eigenvalue and its unit eigenvector."""
    values, vectors = np.linalg.eigh(A)
    return float(values[-1]), vectors[:, -1]


def power_support(A: Array, start: int, kappa: int, first_shift: float) -> list[int]:
    """The support at the end of the truncated power iterations from one start."""
    xi = np.zeros(len(A))
    xi[start] = 1.0
    value, shift, support = float(A[start, start]), 0.0, [start]
    for _ in range(POWER_ITERATIONS):
        image = A @ xi + shift * xi
        kept = sorted(np.argsort(-np.abs(image), kind="stable")[:kappa].tolist())
        if kept == support:
            break
        new = np.zeros(len(A))
        new[kept] = image[kept]
        length = float(np.linalg.norm(new))
        new /= length if length > 0 else 1.0
        new_value = float(new @ A @ new)
        if new_value < value:
            shift = max(10 * shift, first_shift)
            continue
        rests = new_value <= value + POWER_TOLERANCE * abs(value)
        xi, value, support = new, new_value, kept
        if rests:
            break
    return support


def truncated_power_method(A: Array, kappa: int) -> tuple[list[int], Array]:
    """Support and values of xi: the best result over all starts."""
    kappa = min(kappa, len(A))
    starts = np.argsort(-np.diag(A), kind="stable")[:N_STARTS].tolist()
    if kappa == 1:
        return [starts[0]], np.ones(1)
    first_shift = 0.1 * max(np.abs(np.diag(A)[starts]).max(), np.abs(A[:, starts]).max())
    best: tuple[float, list[int], Array] | None = None
    for support in sorted({tuple(power_support(A, s, kappa, first_shift)) for s in starts}):
        value, xi = leading(A[np.ix_(support, support)])
        if best is None or value > best[0]:
            best = value, list(support), xi
    assert best is not None
    _, support, xi = best
    real = [c for c in range(len(xi)) if abs(xi[c]) > 1e-12]
    return [support[c] for c in real], xi[real]


def shortlist(A: Array, kappa: int) -> list[int]:
    """The places of a large panel among which a step chooses: the starts, and places near them.

    Near a start are the 1.5 kappa places with the largest entries in its row of A.
    """
    starts = np.argsort(-np.diag(A), kind="stable")[:N_STARTS].tolist()
    if kappa == 1:
        return sorted(starts)
    size = round(PER_START * kappa)
    near = [np.argsort(-np.abs(A[start]), kind="stable")[:size].tolist() for start in starts]
    return sorted({*starts, *(place for places in near for place in places)})


# --- the step weight


def step_weight(u: Array, gain: Array) -> float:
    """``argmin_w sum u exp(-w gain)`` on [0, bound], by bisection in extended precision."""
    u, gain = u.astype(np.longdouble), gain.astype(np.longdouble)
    slope = (u * gain).sum()
    if slope <= 0:
        return 0.0

    def falls(w: Any) -> bool:  # the common factor exp(w * min gain) does not change the sign
        return bool((u * gain * np.exp(w * (gain.min() - gain))).sum() > 0)

    low, high = np.longdouble(0), MAX_GAIN * u.sum() / slope
    if falls(high):
        return float(high)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if falls(middle) else (low, middle)
    return float(low)


# --- the gate


def edge_list(
    same: Sequence[Sequence[int]], other: Sequence[Sequence[int]]
) -> list[tuple[int, int, float]]:
    """Return (i, j, +1/k or -1/k) for every edge of the neighbour graph."""
    return edges_of(common_parts(same, other))


def edges_of(parts: Parts) -> list[tuple[int, int, float]]:
    """Return (i, j, factor in the margin of i) for every edge of the neighbour graph."""
    return [
        (i, j, factor / len(rows))
        for i, lists in enumerate(parts)
        for factor, rows in lists
        for j in rows
    ]


def edge_shares(z: Array, edges: Sequence[tuple[int, int, float]], weight: Array) -> Array:
    """The share of each row in the gain: the sum over all edges from or to the row."""
    shares = np.zeros(len(z))
    for i, j, sign in edges:
        gain = weight[i] * sign * (z[i] - z[j]) ** 2
        shares[i] += gain
        shares[j] += gain
    return shares


def gate_statistic(z: Array, edges: Sequence[tuple[int, int, float]], weight: Array) -> float:
    """The gain divided by the deviation of the shares of the rows."""
    gain = math.fsum(weight[i] * sign * (z[i] - z[j]) ** 2 for i, j, sign in edges)
    h = edge_shares(z, edges, weight)
    deviation = math.sqrt(math.fsum((h - h.mean()) ** 2))
    if deviation == 0:
        return math.inf if gain > 0 else -math.inf
    return gain / deviation


def truncations(kappa: int) -> list[int]:
    """The numbers of entries to try: 1 to 8, then each larger by a half, and the full size."""
    sizes = [size for size in (1, 2, 3, 4, 5, 6, 7, 8) if size < kappa]
    while sizes and sizes[-1] >= 8 and math.floor(1.5 * sizes[-1]) < kappa:
        sizes.append(math.floor(1.5 * sizes[-1]))
    return [*sizes, kappa]


def trimmed(
    A: Array,
    support: list[int],
    xi: Array,
    phi: Array,
    edges: Sequence[tuple[int, int, float]],
    weight: Array,
) -> tuple[float, list[int], Array]:
    """Trim xi to the number of largest entries with the largest statistic."""
    order = sorted(range(len(xi)), key=lambda c: (-abs(xi[c]), c))
    best: tuple[float, list[int], Array] | None = None
    for size in truncations(len(xi)):
        kept = sorted(support[c] for c in order[:size])
        values = leading(A[np.ix_(kept, kept)])[1]
        t = gate_statistic(phi[:, kept] @ values, edges, weight)
        if best is None or t > best[0]:
            best = t, kept, values
    assert best is not None
    return best


# --- complexity


def eigenvalues(S: Array) -> Array:
    """Eigenvalues of a symmetric matrix by Jacobi rotations, in the precision of the matrix."""
    S = S.copy()
    for _ in range(30):
        off = S - np.diag(np.diag(S))
        if np.abs(off).max(initial=0.0) <= np.finfo(S.dtype).eps * np.abs(S).max() * 1e-3:
            break
        for a in range(len(S) - 1):
            for b in range(a + 1, len(S)):
                _rotate(S, a, b)
    return np.diag(S)


def _rotate(S: Array, a: int, b: int) -> None:
    """One Jacobi rotation, which sets ``S[a, b]`` to zero."""
    if abs(S[a, b]) <= np.finfo(S.dtype).eps ** 2 * (abs(S[a, a]) + abs(S[b, b])):
        S[a, b] = S[b, a] = 0
        return
    theta = (S[b, b] - S[a, a]) / (2 * S[a, b])
    t = (1 if theta >= 0 else -1) / (abs(theta) + np.sqrt(theta * theta + 1))
    c = 1 / np.sqrt(t * t + 1)
    s = t * c
    S[[a, b]] = c * S[a] - s * S[b], s * S[a] + c * S[b]
    S[:, [a, b]] = np.stack([c * S[:, a] - s * S[:, b], s * S[:, a] + c * S[:, b]], axis=1)


def trace_of_root(W: Array) -> float:
    """C_m: the trace of the symmetric square root of W."""
    used = np.flatnonzero(np.diag(W) > 0)
    if not len(used):
        return 0.0
    values = eigenvalues(W[np.ix_(used, used)].astype(np.longdouble))
    return float(np.sqrt(np.maximum(values, 0)).sum())


# --- Algorithm 1


@dataclass
class Attempt:
    """One attempted step, with all intermediate results."""

    panel: list[int]
    chosen: list[int]  # the panel, or the shortlist of a large panel
    u: Array  # all rows: exp(-m_i) times the sample weight
    A: Array  # on the panel, over the bag
    support: list[int]  # candidate numbers
    xi: Array
    t: float
    gain: Array
    w: float
    accepted: bool


@dataclass
class Accepted:
    """The state after an accepted step."""

    attempt: int
    support: list[int]
    xi: Array
    w: float
    W: Array  # in extended precision, over the candidates before the step
    margins: Array
    loss: float
    refreshed: bool
    n_selected: int
    n_candidates: int


@dataclass
class LiteralFit:
    """The results of a fit. Terms are tuples of numbers of the kept columns."""

    kept: list[int]
    features: FeatureMap
    start: Array
    attempts: list[Attempt] = field(default_factory=list)
    margins: list[Array] = field(default_factory=list)  # before every attempt
    steps: list[Accepted] = field(default_factory=list)
    best: int = 0
    final: dict[tuple[Term, Term], float] = field(default_factory=dict)

    def metric(self, m: int) -> Array:
        return self.steps[m - 1].W if m else self.start

    def original(self, number: int) -> Term:
        """A candidate as column numbers of the whole table."""
        return tuple(self.kept[j] for j in self.features.terms[number])


def learn(X: Array, labels: Array, sample_weight: Array, options: Any) -> LiteralFit:
    """The whole method: scale, start, screen, boost, stop, prune."""
    center, scale, kept = standardized(X, options.standardize)
    if hasattr(options.init, "components"):
        used = sorted({j for term in options.init.columns for j in term})
        center[used], scale[used] = options.init.center[used], options.init.scale[used]
    features = FeatureMap((X[:, kept] - center[kept]) / scale[kept])
    start, selected = start_metric(features, kept, options.init)
    if options.max_degree > 1 and options.screen_pairs != 0:
        auto = options.screen_pairs == "auto"
        n_pairs = len(kept) if auto else options.screen_pairs
        margin = SCREENING_MARGIN
        if options.boosting.oob_gate is not None and len(set(labels.tolist())) == 2:
            margin = SCREENING_MARGIN_BEFORE_GATE
        for _, pair in screened_pairs(features.X, labels, n_pairs, margin):
            features.add(pair)
    fit = LiteralFit(kept, features, _padded(start, len(features.terms)))
    boost(fit, selected, labels, sample_weight, options.boosting, options.max_degree)
    fit.best = stop(fit, options.complexity_penalty)
    fit.final = final_metric(fit, selected, options.prune, labels)
    return fit


def start_metric(features: FeatureMap, kept: list[int], init: Any) -> tuple[Array, list[int]]:
    """W_0 over the candidates, and the terms it uses."""
    p = len(features.terms)
    if hasattr(init, "components"):
        return _start_from_terms(features, kept, init)
    if isinstance(init, str):
        W = (np.eye(p) if init == "identity" else np.zeros((p, p))).astype(np.longdouble)
    else:
        W = np.asarray(init)[np.ix_(kept, kept)].astype(np.longdouble)
    return W, np.flatnonzero(np.diag(W) > 0).tolist()


def _start_from_terms(features: FeatureMap, kept: list[int], init: Any) -> tuple[Array, list[int]]:
    """A start metric. Its terms become candidates, and its products keep their constants.

    Columns are not scaled again. The scale of a column in the metric is folded into W.
    """
    numbers: list[int] = []
    factor = init.components.astype(np.longdouble)
    for t, columns in enumerate(init.columns):
        term = tuple(sorted(kept.index(j) for j in columns))
        features.add(term)
        if len(term) == 1:
            factor[:, t] /= init.term_scale[t]
        else:
            features.set_constants(term, init.term_center[t], init.term_scale[t])
        numbers.append(features.terms.index(term))
    W = np.zeros((len(features.terms),) * 2, dtype=np.longdouble)
    W[np.ix_(numbers, numbers)] = factor.T @ factor
    return W, sorted(numbers)


def _padded(W: Array, size: int) -> Array:
    """``I_m' W I_m``: W with zeros for the candidates that were added later."""
    grown = np.zeros((size, size), dtype=W.dtype)
    grown[: len(W), : len(W)] = W
    return grown


def boost(
    fit: LiteralFit,
    start_terms: list[int],
    labels: Array,
    sample_weight: Array,
    options: Any,
    max_degree: int,
) -> None:
    """Algorithm 1, step 2. The comments are the letters of the paper."""
    draws = Draws(options.seed, len(labels), options.subsample, options.max_features)
    features, W, selected = fit.features, fit.start, list(start_terms)
    parts = current_parts(features, W, labels, options)
    patience = PATIENCE if options.max_features is None else PATIENCE_WITH_PANELS
    last_accepted = 0
    for number in range(1, options.max_iter + 1):
        in_bag, panel = draws(number, len(features.terms))
        phi = features.phi()
        W = _padded(W, len(features.terms))
        D = matrices(phi, parts)  # a
        margins = np.einsum("iab,ab->i", D, W.astype(float))
        u = sample_weight * np.exp(-margins)
        step = attempt_step(D, phi, panel.tolist(), in_bag, u, edges_of(parts), options)
        fit.attempts.append(step)
        fit.margins.append(margins)
        if step.accepted:
            last_accepted = number
            full = np.zeros(len(features.terms), dtype=np.longdouble)
            full[step.support] = step.xi
            W = W + np.longdouble(step.w) * np.outer(full, full)  # g
            selected += [a for a in step.support if a not in selected]
            features.expand(step.support, selected, max_degree)  # d
            refreshed = bool(options.refresh_every) and (
                (len(fit.steps) + 1) % options.refresh_every == 0
            )
            if refreshed:
                parts = current_parts(features, W, labels, options)
                D = matrices(phi, parts)
            after = np.einsum("iab,ab->i", D, W.astype(float))
            loss = math.fsum(sample_weight * np.exp(-after))  # f
            fit.steps.append(
                Accepted(number, step.support, step.xi, step.w, W, after, loss, refreshed,
                         len(selected), len(features.terms))
            )  # fmt: skip
        if number - last_accepted >= patience:
            break


def current_parts(features: FeatureMap, W: Array, labels: Array, options: Any) -> Parts:
    """The neighbours under W (Euclidean if W is zero), as parts of margins."""
    d = squared_distances(features.X)
    if W.any():
        d = squared_distances(features.phi()[:, : len(W)], W.astype(float))
    if options.multiclass == "coded":
        return coded_parts(class_lists(d, labels, options.n_neighbors), labels)
    return common_parts(*neighbours(d, labels, options.n_neighbors))


def attempt_step(
    D: Array,
    phi: Array,
    panel: list[int],
    in_bag: Array,
    u: Array,
    edges: Sequence[tuple[int, int, float]],
    options: Any,
) -> Attempt:
    """Letters b to e: A_m over the bag, xi, the gate, the gain and the weight."""
    A = np.zeros((len(panel), len(panel)))
    for i in np.flatnonzero(in_bag):
        A += u[i] * D[i][np.ix_(panel, panel)]  # b
    kappa = nonzeros(options.n_nonzero, len(panel))
    places = list(range(len(panel))) if len(panel) <= SMALL else shortlist(A, kappa)
    found, xi = truncated_power_method(A[np.ix_(places, places)], kappa)  # c
    support = [places[c] for c in found]
    t = math.inf
    if options.oob_gate is not None and not in_bag.all():
        left_out = np.where(in_bag, 0.0, u)
        t, support, xi = trimmed(A, support, xi, phi[:, panel], edges, left_out)
    numbers = [panel[c] for c in support]
    gain = np.array([xi @ D_i[np.ix_(numbers, numbers)] @ xi for D_i in D])
    w = options.learning_rate * step_weight(u[in_bag], gain[in_bag])  # e
    accepted = w > 0 and (options.oob_gate is None or t > options.oob_gate)
    chosen = [panel[c] for c in places]
    return Attempt(panel, chosen, u, A, numbers, xi, t, gain, w, accepted)


def nonzeros(n_nonzero: int | float, panel: int) -> int:
    """kappa, or the share rho of the panel."""
    if isinstance(n_nonzero, int):
        return min(n_nonzero, panel)
    return max(1, round(n_nonzero * panel))


# --- the end: stop and prune


def stop(fit: LiteralFit, penalty: float) -> int:
    """Step 3: the m that minimises loss + penalty * C_m over states with the same refreshes."""
    if penalty == 0:
        return len(fit.steps)
    numbers = [m for m, step in enumerate(fit.steps, 1) if step.refreshed]
    numbers = numbers or list(range(1, len(fit.steps) + 1))
    criterion = {
        m: fit.steps[m - 1].loss + penalty * trace_of_root(fit.steps[m - 1].W) for m in numbers
    }
    return min(criterion, key=lambda m: (criterion[m], m), default=0)


def final_metric(
    fit: LiteralFit, start_terms: list[int], prune: int | str | None, labels: Array
) -> dict[tuple[Term, Term], float]:
    """The nonzero entries of the chosen and pruned W, by pairs of terms in the original columns."""
    W = fit.metric(fit.best)
    if not W.any():
        return {((j,), (j,)): 1.0 for j in fit.kept}
    used = np.flatnonzero(np.diag(W) > 0).tolist()
    terms = {t: set(fit.features.terms[t]) for t in used}
    if prune is None or fit.best == 0:
        kept = used
    else:
        columns = _staying(fit, start_terms, prune, W, terms)
        kept = [t for t in used if terms[t] <= columns] or used
        if prune == "auto" and _harms(fit, used, kept, W, labels):
            kept = used
    return {
        (fit.original(a), fit.original(b)): float(W[a, b]) for a in kept for b in kept if W[a, b]
    }


def _harms(fit: LiteralFit, used: list[int], kept: list[int], W: Array, labels: Array) -> bool:
    """Whether W on the kept terms has a clearly larger leave-one-out error than the whole W."""
    before, after = (
        squared_distances(fit.features.phi()[:, t], W[np.ix_(t, t)].astype(float))
        for t in (used, kept)
    )
    return harm(before, after, labels) > HARM


def harm(before: Array, after: Array, labels: Array) -> float:
    """The increase of the leave-one-out error in standard errors. Each error is at its best k."""
    rise = leave_one_out_errors(after, labels) - leave_one_out_errors(before, labels)
    if not rise.any():
        return 0.0
    error = math.sqrt(((rise - rise.mean()) ** 2).mean() / len(rise))
    return float(rise.mean()) / error if error > 0 else math.copysign(math.inf, rise.mean())


def leave_one_out_errors(d: Array, labels: Array) -> Array:
    """The leave-one-out error of each row: 1 if the margin misclassifies the row.

    The number of neighbours is the k in 3, 5, 10, 20 with the fewest errors. If the own class is
    tied with other classes (t classes in total), the error is 1 - 1/t.
    """
    errors = []
    for k in (3, 5, 10, 20):
        wrong = np.zeros(len(d))
        for i in range(len(d)):
            near = {
                c: np.mean(sorted(d[i, j] for j in np.flatnonzero(labels == c) if j != i)[:k])
                for c in set(labels.tolist())
            }
            nearest = [c for c in near if near[c] == min(near.values())]
            wrong[i] = 1 - 1 / len(nearest) if labels[i] in nearest else 1
        errors.append(wrong)
    return min(errors, key=lambda wrong: float(wrong.mean()))


def _staying(
    fit: LiteralFit, start_terms: list[int], prune: int | str, W: Array, terms: dict[int, set[int]]
) -> set[int]:
    """The columns that remain after pruning."""
    every = {j for columns in terms.values() for j in columns}
    if prune == "auto":
        uses = [
            {j for t in step.support for j in fit.features.terms[t]}
            for step in fit.steps[: fit.best]
        ]
        from_start = {j for t in start_terms for j in fit.features.terms[t]}
        return {j for j in every if sum(j in use for use in uses) >= RECURRENCES} | from_start
    share = {
        j: math.fsum(W[t, t] / len(columns) for t, columns in terms.items() if j in columns)
        for j in every
    }
    return set(sorted(every, key=lambda j: (-share[j], j))[: int(prune)])
