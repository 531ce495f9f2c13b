"""The matrix A_m of a step, on the candidates among which the step chooses.

The paper's ``A_m = sum_i r_i D_i`` is a sum over edges (i, j) of the neighbour graph,
``sum s_ij (phi_i - phi_j)(phi_i - phi_j)'`` with ``s_ij = u_i / k`` towards the other class and
``-u_i / k`` towards the own class. So ``A = Phi' L Phi`` with the Laplacian
``L = diag(deg) - S - S'``, and the matrices D_i are not needed.

On a small panel A is computed in full. On a large panel A is computed on a shortlist: the
candidates with the largest diagonal entries, from which the power method starts, and the candidates
with the largest entries in the rows of A at these starts. The first iteration of the power method
has these rows as its result. Later iterations rarely need other candidates.
"""

from __future__ import annotations

import numpy as np

from .._rounding import largest
from .._typing import Float, Index
from .sparse_eigen import N_STARTS
from .state import State, Weights
from .terms import Candidates

#: A is computed in full for panels of at most SMALL candidates.
SMALL = 64
#: The passes over a panel with at most this share of the candidates compute the values of its terms
#: and keep none of them. Passes over a larger panel use the kept values of all candidates.
FEW = 0.25
#: The number of candidates on the shortlist for each start, in multiples of kappa.
PER_START = 1.5


def step_matrix(
    state: State, weights: Weights, candidates: Candidates, panel: Index, kappa: int
) -> tuple[Index, Float]:
    """The candidates among which a step chooses, and the matrix ``A_m`` on them.

    Computing A on q candidates costs O(n q (q + k)), and a shortlist costs two passes over the
    panel.
    """
    chosen = panel if len(panel) <= SMALL else shortlist(state, weights, candidates, panel, kappa)
    return chosen, weights.bag.form(state.table.columns(candidates.terms(chosen)))


def shortlist(
    state: State, weights: Weights, candidates: Candidates, panel: Index, kappa: int
) -> Index:
    """The candidates of a large panel that may have entries in xi, in ascending order."""
    few = len(panel) <= FEW * len(candidates)
    terms = candidates.terms(panel) if few else candidates.every()
    own = np.arange(len(panel)) if few else panel
    sweeps = state.sweeps_of_one_step() if few else state.sweeps
    diagonal = state.diagonal(weights, terms, sweeps)[own]
    starts = largest(diagonal[None, :], N_STARTS)[0]
    chosen = np.zeros(len(panel), dtype=bool)
    chosen[starts] = True
    if kappa > 1:
        rows = np.abs(state.rows(weights, terms, own[starts], sweeps))
        chosen[largest(rows[:, own], min(round(PER_START * kappa), len(panel)))] = True
    found: Index = panel[chosen]
    return found
