"""The start of boosting: the zero metric, the identity, or a given matrix or metric."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._typing import Float
from ..model import Factor, SparseMetric
from .scaling import Scaling
from .terms import Candidates

Init = str | SparseMetric | Float


def start_scaling(scaling: Scaling, init: Init) -> Scaling:
    """The scaling of the fit, given the start metric.

    The columns that a start metric uses are scaled with the constants of that metric.
    """
    if not isinstance(init, SparseMetric):
        return scaling
    used = sorted({j for term in init.columns for j in term})
    center, scale = scaling.center.copy(), scaling.scale.copy()
    center[used], scale[used] = init.center[used], init.scale[used]
    return replace(scaling, center=center, scale=scale, clip=init.clip)


def start_factor(candidates: Candidates, scaling: Scaling, init: Init) -> Factor:
    """A factor of W_0 over the candidates. The terms of a start metric become candidates."""
    if isinstance(init, SparseMetric):
        return _from_metric(candidates, scaling, init)
    if isinstance(init, np.ndarray):
        return _from_matrix(init[np.ix_(scaling.kept, scaling.kept)])
    return Factor.identity(len(scaling.plain)) if init == "identity" else Factor.empty()


def _from_matrix(W: Float) -> Factor:
    """A factor of W on the columns with a positive diagonal entry."""
    used = np.flatnonzero(W.diagonal() > 0)
    if not len(used):
        return Factor.empty()
    values, vectors = np.linalg.eigh(W[np.ix_(used, used)])
    real = values > values[-1] * len(values) * np.finfo(float).eps
    return Factor(used, vectors[:, real] * np.sqrt(values[real])).reduced()


def _from_metric(candidates: Candidates, scaling: Scaling, init: SparseMetric) -> Factor:
    place = {int(column): i for i, column in enumerate(scaling.kept)}
    known = [t for t, term in enumerate(init.columns) if all(j in place for j in term)]
    terms = [tuple(sorted(place[j] for j in init.columns[t])) for t in known]
    candidates.add(terms)
    index = np.array([candidates.number(term) for term in terms], dtype=np.intp)
    moments = np.stack([init.term_center, init.term_scale], axis=1)[known]
    weighted = np.flatnonzero(init.diagonal)
    alone = np.zeros((len(init.columns), len(weighted)))
    alone[weighted, np.arange(len(weighted))] = np.sqrt(init.diagonal[weighted])
    factor = np.hstack([init.components.T, alone])[known]
    # The scale of a column is folded into W. The centre is not needed: distances depend on
    # differences only.
    column = index < candidates.n_columns
    factor[column] /= moments[column, 1, None]
    candidates.fix_moments(index[~column], moments[~column])
    order = np.argsort(index)
    return Factor(index[order], factor[order]).reduced()
