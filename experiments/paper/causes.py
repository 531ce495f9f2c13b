"""Experiments on the differences from the paper, and the causes for each cell."""

from __future__ import annotations

import numpy as np

from ..results import mean_and_error, measured, number
from ..tables import simulation_name, size_of
from .columns import Column, excess
from .document import Block, Grid, Heading
from .prose import prose
from .published import ERRORS, REAL
from .studies import NOISES, SHORT_N, SHORT_P, SIMULATION_GRIDS

#: An excess over the Bayes error above this means that the structure was not found.
MISSED = 0.1
#: The paper's error counts as reached if it is at most this far from those of the experiments.
NEAR = 0.01


class Causes:
    """The experiments on the causes of differences, by source."""

    def __init__(self, found: dict[str, Column]) -> None:
        self.simulated = {s: column for s, column in found.items() if column.errors("3-NN")}
        self.real = {s: column for s, column in found.items() if column.errors("1-NN")}

    def blocks(self) -> list[Block]:
        if not self.simulated:
            return []
        return [
            Heading("What can explain a difference"),
            *prose("causes"),
            self._generators(),
            *prose("apart"),
            self._apart(),
        ]

    def _generators(self) -> Grid:
        head = ["3-NN", "the paper's", *(f"noise {noise}" for noise in NOISES), "standardised"]
        rows = []
        for source, column in self.simulated.items():
            plain, scaled = self._with_noise(source), _means(column, "standardised")
            numbers = [ERRORS[source, "kNN"], *plain, *scaled[:1]]
            plane = (number(*excess(column, "3-NN", key)) for key in ("error", "margin_error"))
            rows.append([source, *map(number, numbers), *plane])
        return Grid([*head, "plane, excess", "10-NN there"], rows)

    def _apart(self) -> Grid:
        rows, ways = [], [way for group in _WAYS.values() for way in group]
        for source, column in (self.simulated | self.real).items():
            for name in SIMULATION_GRIDS:
                apart = [self._error(column, f"{name}, {how}") for how in ways]
                if not np.isnan(apart).all():
                    paper = ERRORS.get((source, name), np.nan)
                    rows.append([source, name, *map(number, (paper, *apart))])
        return Grid(["", "", "the paper's", *ways], rows)

    def why(self, source: str, line: str, column: Column) -> str:
        """The letters of the causes of a cell's difference, with the errors of the experiments."""
        if source in REAL:
            return self._of_real(source, line, column)
        if line == "kNN":
            return self._of_generator(source)
        if line == "sDist":
            return self._of_sdist(source, column)
        return self._of_rival(source, line)

    def _of_generator(self, source: str) -> str:
        means = self._with_noise(source)
        if not len(means):
            return "G"
        told = ", ".join(f"{mean:.3f} with noise {noise}" for mean, noise in zip(means, NOISES))
        return f"G: {told}"

    def _of_sdist(self, source: str, column: Column) -> str:
        mean = excess(column, "sDist", "error")[0]
        if mean < ERRORS[source, "sDist"] - ERRORS[source, "Bayes"]:
            letter = excess(column, "sDist, to the letter", "error")[0]
            return "R" + ("" if np.isnan(letter) else f": {letter:.3f} to the letter")
        reasons = []
        if source in self.simulated:
            plane = excess(self.simulated[source], "3-NN", "error")[0]
            reasons.append(f"K: {plane:.3f} on the plane")
        bayes = column.bayes()
        above = [error - bayes[r] for r, error in column.errors("sDist").items()]
        missed = sum(value > MISSED for value in above)
        if missed:
            reasons.append(f"F: above {MISSED} in {missed} of {len(above)} repeats")
        return "; ".join(reasons) or "K"

    def _of_rival(self, source: str, line: str) -> str:
        """The experiment on the cell's own source, or on the source of the nearest size."""
        kind, (n, p) = source.split(", N")[0], size_of(source)
        near = simulation_name(kind, min(n, SHORT_N), min(p, SHORT_P))
        column = self.simulated.get(near)
        told = self._told_apart(column, line)
        if column is None or not told:
            return "S, O, T"
        if near != source:
            return f"{told} (with N {min(n, SHORT_N)}, p {min(p, SHORT_P)})"
        errors = [self._error(column, f"{line}, {way}") for ways in _WAYS.values() for way in ways]
        paper = ERRORS[source, line]
        reached = np.nanmin(errors) - NEAR <= paper <= np.nanmax(errors) + NEAR
        return told if reached else f"{told}; G: none of them has {paper:.3f}"

    def _told_apart(self, column: Column | None, line: str) -> str:
        """The errors of a rival with another scaling, number of steps or ridge."""
        parts = []
        for letter, ways in _WAYS.items():
            errors = [] if column is None else [self._error(column, f"{line}, {h}") for h in ways]
            if errors and not np.isnan(errors).any():
                told = ", ".join(f"{error:.3f} {way}" for error, way in zip(errors, ways))
                parts.append(f"{letter}: {told}")
        return "; ".join(parts)

    def _of_real(self, source: str, line: str, column: Column) -> str:
        found = self.real.get(source)
        if line == "kNN" and found is not None:
            plain, one = (self._error(found, m) for m in ("kNN, as they are", "1-NN"))
            return f"P: {plain:.3f} as they are, {one:.3f} with one neighbour"
        parts = [self._told_apart(found, line)]
        if line == "sDist":
            letter = self._error(column, "sDist, to the letter")
            parts.append("" if np.isnan(letter) else f"R: {letter:.3f} to the letter")
        more = self._error(column, "kNN") - ERRORS[source, "kNN"]
        parts.append("P" if np.isnan(more) else f"P: kNN {more:+.3f} too")
        return "; ".join(part for part in parts if part)

    def _with_noise(self, source: str) -> list[float]:
        return _means(self.simulated[source], "errors") if source in self.simulated else []

    def _error(self, column: Column, method: str) -> float:
        return mean_and_error(column.errors(method).values())[0]


#: The variants of the rivals, by the letter of the cause. O belongs to LMNN, T to PGDM.
_WAYS = {
    "S": ("as they are", "standardised"),
    "O": ("one step", "at its optimum"),
    "T": ("without ridge",),
}


def _means(column: Column, key: str) -> list[float]:
    """The means over the repeats of a list with one value for each deviation of the noise."""
    lists = list(measured(column.rows["3-NN"], key).values())
    return [float(mean) for mean in np.mean(lists, axis=0)] if lists else []
