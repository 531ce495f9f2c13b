"""The cells of each table and figure of the paper, in full and in the short form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ..models import APART, default_settings
from ..results import Cell
from ..rivals import GRIDS
from ..tables import PURE, SIMULATED, SIZES, simulation_name, size_of
from .protocol import REFINED, TO_THE_LETTER
from .published import REAL

#: The paper's number of steps.
PAPERS_M = {"Ionosphere": 100, "SECOM": 500, "Madelon": 500}
#: The grids of the rivals in the simulations. The scaling of the columns is tuned too.
SIMULATION_GRIDS: dict[str, dict[str, list[Any]]] = {
    "PGDM": {"diagonal": [False, True], "regularization": [0.1, 1.0, 10.0, 100.0]},
    "LMNN": {"n_neighbors": [1, 3, 5], "max_iter": [1, 3, 500]},
    "SMLsm": {"penalty": [0.6, 0.3, 0.1, 0.03]},
    "NCA": {"estimator__n_components": [2, 5, 10]},
}
#: Rivals are tuned on this number of rows of the largest simulations and fitted on all rows.
TUNING_ROWS = 1000
#: Repeats of slow methods.
FEW, FEWER = 5, 3
#: The short form: the largest N and p of a simulation, rows of a real table, steps.
SHORT_N, SHORT_P, SHORT_ROWS, SHORT_M = 500, 500, 300, 100

SIMULATION_METHODS = (
    "kNN", "kNN, standardised", "PGDM", "LMNN", "SMLsm", "NCA", "LightGBM", "sDist",
    "sDist, to the letter", "sDist, defaults", "sDist, tuned",
)  # fmt: skip
PURE_METHODS = (
    "kNN", "kNN, standardised", "NCA", "LightGBM", "screening + logistic", "screening + 10-NN",
    "L1 logistic, all pairs", "sDist", "sDist, defaults", "sDist without screening",
)  # fmt: skip
REAL_METHODS = (
    "kNN", "PGDM", "LMNN", "SMLsm", "SMLsm, columns", "SMLlp", "SMLlp, dominant", "BoostMetric",
    "NCA", "LightGBM", "sDist", "sDist, to the letter", "sDist, defaults", "sDist, tuned",
)  # fmt: skip
#: Lines of table 3 whose cells are those of the quality study, with their models there.
SHARED = {
    "kNN": "3-NN",
    "LightGBM": "LightGBM",
    "sDist, defaults": "defaults",
    "sDist, tuned": "tuned",
}
#: Other deviations of the columns of noise. The tables have 0.5.
NOISES = (0.25, 0.5, 1.0)
#: Figure 4: one parameter, or two, on a grid around the paper's choice.
REFRESHES = (5, 10, 25, 50, 100, None)
BAGS = (0.1, 0.3, 0.5, 0.7, 1.0)
SPARSITIES = (0.05, 0.1, 0.2)
#: Figure 5.
NEIGHBORS = (1, 3, 5, 7, 9, 11, 15, 19, 25)
#: Figure 6.
PATH_SOURCES = ("double ring, N 500, p 500", "XOR, N 500, p 500", "Madelon")


@dataclass(frozen=True)
class Extent:
    """How many repeats are run, and whether in the short form."""

    repeats: int = 20
    short: bool = False

    def few(self) -> int:
        return min(self.repeats, FEW)

    def rows(self) -> dict[str, Any]:
        return {"rows": SHORT_ROWS} if self.short else {}


def simulation(study: str, kind: str, extent: Extent) -> Iterator[Cell]:
    for n, p in SIZES:
        if not extent.short or (n <= SHORT_N and p <= SHORT_P):
            yield from _column(study, simulation_name(kind, n, p), n, p, extent)


def _column(study: str, source: str, n: int, p: int, extent: Extent) -> Iterator[Cell]:
    for method in SIMULATION_METHODS:
        if method == "sDist, to the letter" and n == 5000:
            continue  # hours
        for repeat in range(_repeats(method, n, p, extent)):
            settings = _simulation_settings(method, n, extent)
            yield Cell(study, source, method, repeat, settings, "test error")


def _repeats(method: str, n: int, p: int, extent: Extent) -> int:
    """The repeats of a method on a simulation: fewer if the method is slow."""
    if method == "sDist, to the letter" or (method == "sDist, tuned" and n == 5000):
        return min(extent.repeats, FEWER)
    slow = method in SIMULATION_GRIDS and (n == 5000 or p > 50)
    return extent.few() if slow else extent.repeats


def _simulation_settings(method: str, n: int, extent: Extent) -> dict[str, Any]:
    if method not in SIMULATION_GRIDS:
        return _short(method, default_settings(method), extent)
    settings: dict[str, Any] = {"grid": SIMULATION_GRIDS[method], "scaling": "tuned"}
    if n > TUNING_ROWS:
        settings["tuning_rows"] = TUNING_ROWS
    return _short(method, settings, extent)


def _short(method: str, settings: dict[str, Any], extent: Extent) -> dict[str, Any]:
    """The short form: only the last value of every grid, and few steps to the letter."""
    if not extent.short:
        return settings
    if method in GRIDS:
        grid = {key: values[-1:] for key, values in settings["grid"].items()}
        return {**settings, "grid": grid}
    if method == "sDist, to the letter":
        return {**settings, "max_iter": SHORT_M}
    return settings


def causes(extent: Extent) -> Iterator[Cell]:
    """Experiments on what may explain a difference: the generator, the scaling, early stopping."""
    for source in SIMULATED:
        n, p = size_of(source)
        if extent.short and (n, p) != (SHORT_N, 50):
            continue
        for repeat in range(extent.repeats):
            yield Cell(
                "paper/causes", source, "3-NN", repeat, {"noises": list(NOISES)}, "generator"
            )
        if n <= SHORT_N and p <= SHORT_P:
            for method, settings in _rivals_apart(n, extent):
                for repeat in range(extent.few()):
                    yield Cell("paper/causes", source, method, repeat, settings, "test error")
    for source in REAL:
        for method in _apart_on(source, extent):
            settings = default_settings(method) | extent.rows()
            few = source != "Ionosphere" and method in APART
            for repeat in range(extent.few() if few else extent.repeats):
                yield Cell("paper/causes", source, method, repeat, settings, "test error")


def _apart_on(source: str, extent: Extent) -> list[str]:
    """The models for a real table: nearest neighbours, and rivals if they are fast enough."""
    tried = ["kNN, as they are", "1-NN"]
    if extent.short:
        return tried
    return tried + [m for m, (name, _) in APART.items() if source == "Ionosphere" or name == "LMNN"]


def _rivals_apart(n: int, extent: Extent) -> Iterator[tuple[str, dict[str, Any]]]:
    """Rivals with a fixed scaling, and LMNN stopped early or not at all."""
    for method, (name, changed) in APART.items():
        settings = _simulation_settings(name, n, extent)
        grid = settings["grid"] | changed.get("grid", {})
        yield method, settings | changed | {"grid": grid}


def pure(extent: Extent) -> Iterator[Cell]:
    for source in PURE:
        for method in PURE_METHODS:
            if method == "NCA":
                settings = _simulation_settings("NCA", 500, extent)
            else:
                settings = _short(method, default_settings(method), extent)
            for repeat in range(extent.repeats):
                yield Cell("paper/pure", source, method, repeat, settings, "test error")


def real(extent: Extent) -> Iterator[Cell]:
    for source in REAL:
        for method in REAL_METHODS:
            if method in SHARED:
                model = SHARED[method]
                settings = default_settings(model) | extent.rows()
                for repeat in range(extent.repeats):
                    yield Cell("quality", source, model, repeat, settings)
                continue
            settings = _short(method, default_settings(method), extent) | extent.rows()
            if method == "sDist, to the letter" and not extent.short:
                settings["max_iter"] = PAPERS_M[source]
            slow = method in GRIDS or method == "sDist, to the letter"
            few = slow and source != "Ionosphere"
            for repeat in range(extent.few() if few else extent.repeats):
                yield Cell("paper/table3", source, method, repeat, settings)


def line_of(cell: Cell) -> str:
    """The line of a table that a cell belongs to."""
    if cell.experiment != "quality":
        return cell.model
    return next(line for line, model in SHARED.items() if model == cell.model)


def _one_path(parameters: dict[str, Any], rho: float, max_iter: int) -> dict[str, Any]:
    """Settings without any tuning."""
    return {
        "parameters": parameters,
        "rhos": [rho],
        "complexity_penalties": [0.001],
        "max_iter": max_iter,
    }


def figure1(extent: Extent) -> Iterator[Cell]:
    settings = _one_path(REFINED, 0.5, 2000)
    yield Cell("paper/figure1", "XOR on a tilted plane", "sDist", 0, settings, "tilted plane")


def figure2(extent: Extent) -> Iterator[Cell]:
    for source in PURE:
        if source.endswith("p 50"):
            yield Cell(
                "paper/figure2", source, "sDist", 0, _one_path(REFINED, 0.2, 2000), "surfaces"
            )


def figure4(extent: Extent) -> Iterator[Cell]:
    steps = SHORT_M if extent.short else PAPERS_M["Madelon"]

    def cells(name: str, changed: dict[str, Any], rho: float = 0.05) -> Iterator[Cell]:
        settings = _one_path(TO_THE_LETTER | changed, rho, steps) | extent.rows()
        for repeat in range(extent.few()):
            yield Cell("paper/figure4", "Madelon", name, repeat, settings, "cross-validated")

    for every in REFRESHES:
        yield from cells(f"refresh {every or 'never'}", {"refresh_every": every})
    for rho in SPARSITIES:
        for share in BAGS:
            yield from cells(f"rho {rho}, eta {share}", {"subsample": share}, rho)


def figure5(extent: Extent) -> Iterator[Cell]:
    for name, parameters in (("to the letter", TO_THE_LETTER), ("refined", REFINED)):
        settings = _one_path(parameters, 0.1, PAPERS_M["Ionosphere"]) | {"ks": list(NEIGHBORS)}
        for repeat in range(extent.repeats):
            yield Cell("paper/figure5", "Ionosphere", name, repeat, settings, "cross-validated")


def figure6(extent: Extent) -> Iterator[Cell]:
    steps = SHORT_M if extent.short else 500
    for source in PATH_SOURCES:
        rows = extent.rows() if source in REAL else {}
        for name, parameters in (("to the letter", TO_THE_LETTER), ("refined", REFINED)):
            often = parameters | {"refresh_every": 10 if name == "to the letter" else 2}
            settings = _one_path(often, 0.05, steps) | rows
            for repeat in range(extent.few()):
                yield Cell("paper/figure6", source, name, repeat, settings, "path")


#: The names on the command line.
STUDIES: dict[str, Callable[[Extent], Iterator[Cell]]] = {
    "table1": lambda extent: simulation("paper/table1", "double ring", extent),
    "table2": lambda extent: simulation("paper/table2", "XOR", extent),
    "causes": causes,
    "pure": pure,
    "table3": real,
    "figure1": figure1,
    "figure2": figure2,
    "figure3": real,  # variables and times of table 3
    "figure4": figure4,
    "figure5": figure5,
    "figure6": figure6,
}


def cells_of(names: list[str], extent: Extent) -> list[Cell]:
    """All cells of some tables and figures. The first repeats of all cells come first."""
    found = dict.fromkeys(cell for name in names for cell in STUDIES[name](extent))
    return sorted(found, key=lambda cell: cell.seed // FEW)
