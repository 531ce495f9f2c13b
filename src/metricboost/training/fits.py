"""Several fits over one table, each without one fold of the rows, and their average metric.

The fits give three results:

- *One metric*: the average of the metrics of the fits. A column that only one fit chose has a small
  weight in the average.
- *Stability*: the share of the fits that use a variable. The stability determines the number of
  variables to which each fit is pruned. Stability is not evidence against noise: the fits share
  most of their rows, so a noise column that one fit chose is often chosen by other fits too.
- *Evidence out of fold*: each row can be classified by a metric that was learned without the row.
  Variants, readouts and calibrations are chosen by this evidence (``choosing``), and never by the
  training error.

The metrics of single folds, which are scored out of fold, and the final metric are pruned by the
same method (``CrossFit.pruned``), so that the scores apply to the final metric.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from .._typing import Data, Float, Index
from ..boosting.scaling import Scaling
from ..boosting.terms import Candidates
from ..engines import Engine
from ..inputs import Imputation
from ..model import (
    Factor,
    Plain,
    SparseMetric,
    Term,
    assembled,
    averaged,
    best_step,
    ordered_by_weight,
)
from .learn import Fold, Learned
from .plain_places import PlainPlaces
from .pruning import heaviest, keep_only
from .spreads import Spread, Spreads

#: Columns that only one of the pruned fits uses are dropped from the average if the other columns
#: have at least this share of the weight of the fits. With a smaller share, the final metric would
#: differ too much from the metrics that were scored out of fold (``experiments.honesty`` measures
#: the effect).
AGREED = 0.9


@dataclass(frozen=True)
class Variant:
    """One way to derive a metric from the fits. A variant needs no further fit.

    Attributes
    ----------
    share : float
        The share of the plain distance, from 0 to 1.
    recurrences : int
        Each fit is pruned to as many variables as occur in at least this number of fits.
    size : int or None
        The largest number of variables of each fit. None sets no limit.
    steps : int or None
        The number of accepted steps after which the path of each fit is cut.
    penalty : float or None
        The penalty of the paper's criterion by which the path of each fit is cut. If ``steps`` and
        ``penalty`` are None, each fit is cut at its own best step.
    """

    share: float = 0.0
    recurrences: int = 1
    size: int | None = None
    steps: int | None = None
    penalty: float | None = None


@dataclass(frozen=True)
class CrossFit:
    """The fits over the rows of a pool.

    Attributes
    ----------
    X, labels, weight, n_classes
        The rows of the pool.
    engine : Engine
    folds : list of Fold
    scaling : Scaling
        The scaling computed from all rows.
    one_fit : bool
        Whether all folds have the same fit, which learned from all rows.
    sampled : bool
        Whether the fits learned from samples. All fits then have the moments of their terms over
        all rows.
    spreads : Spreads
        The total variances of the rows under metrics of the fits.
    plain_places : PlainPlaces
        The positions of the rows under the plain distance, for tables with more columns than rows.
    """

    X: Data
    labels: Index
    weight: Float
    n_classes: int
    engine: Engine
    folds: list[Fold]
    scaling: Scaling
    one_fit: bool = False
    sampled: bool = False
    spreads: Spreads = field(default_factory=Spreads)
    plain_places: PlainPlaces = field(default_factory=PlainPlaces)

    @property
    def fits(self) -> list[Learned]:
        """The distinct fits: one for each fold, or a single fit for all folds."""
        return list({id(fold.learned): fold.learned for fold in self.folds}.values())

    def fold_metrics(self, variant: Variant) -> list[SparseMetric]:
        """The metric of each fold, which was learned without the rows that the fold leaves out."""
        made = dict(zip(map(id, self.fits), self.fit_metrics(variant)))
        return [made[id(fold.learned)] for fold in self.folds]

    def fit_metrics(self, variant: Variant) -> list[SparseMetric]:
        """The metric of each fit."""
        return [
            self._assembled(fit, factor, variant.share, self.spreads.of(fit, self.X))
            for fit, factor in zip(self.fits, self.pruned(variant))
        ]

    def pruned(self, variant: Variant) -> list[Factor]:
        """The factor of each fit on the terms of the heaviest columns of the fit.

        A fit must not be pruned to the columns that recur in the other fits, because the other fits
        learned from the rows that this fit leaves out. Only the number of columns depends on the
        other fits.
        """
        sizes = [variant.size] if variant.size is not None else []
        if variant.recurrences > 1:
            sizes.append(max(1, len(self.recurring(variant))))
        size = min(sizes) if sizes else None
        return [_heaviest(_cut(fit, variant), fit.terms, size) for fit in self.fits]

    def recurring(self, variant: Variant) -> set[int]:
        """The columns that at least ``variant.recurrences`` fits use."""
        return _used_by([(fit, _cut(fit, variant)) for fit in self.fits], variant.recurrences)

    def metric(
        self,
        variant: Variant,
        names: Sequence[str] | None = None,
        imputation: Imputation | None = None,
        most: int | None = None,
    ) -> SparseMetric:
        """The average of the metrics of the fits. Its terms are standardised with all rows.

        ``most`` is the largest number of variables of the average. It replaces ``variant.size``.
        """
        parts = self._agreed(variant if most is None else replace(variant, size=None))
        terms = sorted({fit.terms[t] for fit, factor in parts for t in factor.index}, key=order)
        moments = self.moments(terms)
        unit = [
            (_over(terms, fit, factor), self.spreads.of(fit, self.X).total(factor))
            for fit, factor in parts
        ]
        whole = _heaviest(Factor(*averaged(unit)), terms, most)
        learned = replace(self.fits[0], terms=terms, moments=moments, scaling=self.scaling)
        spread = Spread(learned, self.X)
        metric = ordered_by_weight(self._assembled(learned, whole, variant.share, spread))
        return metric.replaced(
            feature_names=names, imputation=imputation, gamma=metric.median_gamma(self.X),
            stability=self._stability(metric.columns, variant),
        )  # fmt: skip

    def _agreed(self, variant: Variant) -> list[tuple[Learned, Factor]]:
        """The factors that are averaged.

        If the variant prunes the fits, columns that only one fit uses are dropped. They stay if the
        other columns have less than the share ``AGREED`` of the weight.
        """
        parts = [(fit, own) for fit, own in zip(self.fits, self.pruned(variant)) if len(own.index)]
        if variant.recurrences == 1 and variant.size is None:
            return parts
        columns = _used_by(parts, 2)
        agreed = [(fit, _only(factor, fit.terms, columns)) for fit, factor in parts]
        shares = [new.weights().sum() / old.weights().sum()
                  for (_, new), (_, old) in zip(agreed, parts)]  # fmt: skip
        if not shares or np.mean(shares) < AGREED:
            return parts
        return [(fit, factor) for fit, factor in agreed if len(factor.index)]

    def moments(self, terms: Sequence[Term]) -> Float:
        """The mean and deviation of each term over all rows. A start metric keeps its constants."""
        if self.one_fit or self.sampled:
            known = {t: m for fit in self.fits for t, m in zip(fit.terms, fit.moments)}
            return np.array([known[term] for term in terms]).reshape(-1, 2)
        degree = max((len(term) for term in terms), default=1)
        used = sorted({column for term in terms for column in term})
        inside = {column: i for i, column in enumerate(used)}
        own_columns = replace(self.scaling, kept=np.array(used, dtype=np.intp))
        candidates = Candidates(self.engine.table(own_columns.transposed(self.X)), degree)
        own = [tuple(inside[column] for column in term) for term in terms]
        candidates.add(own)
        moments = candidates.moments(np.array([candidates.number(t) for t in own], dtype=np.intp))
        given = {fit.terms[t]: fit.moments[t] for fit in self.fits for t in fit.path.start.index}
        for i, term in enumerate(terms):
            moments[i] = given.get(term, moments[i])
        return moments

    @staticmethod
    def _assembled(fit: Learned, factor: Factor, share: float, spread: Spread) -> SparseMetric:
        """``(1 - share) W + share I``; the plain distance alone if the factor has no terms."""
        share = share if len(factor.index) else 1.0
        return assembled(
            [fit.terms[t] for t in factor.index], factor.matrix, fit.moments[factor.index],
            spread.total(factor) if share < 1 else 1.0, share,
            Plain(fit.scaling.plain, spread.plain() if share > 0 else None), fit.scaling,
        )  # fmt: skip

    def _stability(self, terms: Sequence[Term], variant: Variant) -> Float:
        """The share of the fits that use each term."""
        uses: Counter[Term] = Counter()
        for fit in self.fits:
            uses.update(fit.terms[t] for t in _cut(fit, variant).index)
        return np.array([uses[term] / len(self.fits) for term in terms])


def _cut(fit: Learned, variant: Variant) -> Factor:
    """The factor of a fit at the step where the variant cuts the path.

    A fit without an accepted step has the factor of the start metric, which is empty for a start
    from zero.
    """
    if fit.best_iter == 0:
        return fit.path.factor(0)
    if variant.steps is not None:
        return fit.path.factor(min(variant.steps, len(fit.path)))
    if variant.penalty is not None:
        return fit.path.factor(best_step(fit.path, variant.penalty))
    return fit.factor


def _used_by(parts: Sequence[tuple[Learned, Factor]], least: int) -> set[int]:
    """The columns that occur in at least ``least`` factors (in all, if there are fewer factors)."""
    uses: Counter[int] = Counter()
    for fit, factor in parts:
        uses.update({column for t in factor.index for column in fit.terms[t]})
    return {column for column, count in uses.items() if count >= min(least, len(parts))}


def _only(factor: Factor, terms: Sequence[Term], columns: set[int]) -> Factor:
    keep = np.array([set(terms[t]) <= columns for t in factor.index], dtype=bool)
    return factor.restricted(keep).reduced() if keep.any() else Factor.empty()


def _heaviest(factor: Factor, terms: Sequence[Term], size: int | None) -> Factor:
    """W on the terms of its ``size`` heaviest columns. With None W is unchanged."""
    if size is None or not len(factor.index):
        return factor
    return keep_only(factor, terms, heaviest(factor, terms, size))


def _over(terms: Sequence[Term], fit: Learned, factor: Factor) -> Factor:
    """The factor of a fit, with the terms numbered as in the list ``terms``."""
    place = {term: i for i, term in enumerate(terms)}
    own = np.array([place[fit.terms[t]] for t in factor.index], dtype=np.intp)
    by_number = np.argsort(own)
    return Factor(own[by_number], factor.matrix[by_number])


def order(term: Term) -> tuple[int, Term]:
    """The sort key of terms: columns first, then products of two columns, and so on."""
    return len(term), term
