"""Tables as they come: a generator of bad ones, for the estimators and for the command.

Every case ends in a result, with finite numbers and without a warning of NumPy's, or in one error
of a type that is documented (docs/reliability.md). ``tests/test_bad_tables.py`` tries some, and
``tests/soak.py bad`` ten thousand.
"""

from __future__ import annotations

import contextlib
import signal
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from scipy import sparse

from metricboost import SDist, SDistClassifier, SDistClassifierCV
from metricboost.tables import TableClassifier

#: The errors that ``fit`` and what follows it may raise.
DOCUMENTED = (ValueError, TypeError)
#: Seconds a case may take.
LIMIT = 60

NUMBERS = ("normal", "normal", "normal", "constant", "binary", "integers", "small", "large",
           "huge", "tiny", "outlier", "far", "ties", "denormal")  # fmt: skip
OTHERS = ("nan", "all nan", "inf", "text", "mixed", "dates", "category", "bool", "none", "bytes",
          "numeric text", "comma text", "yes text", "large whole", "complex", "objects",
          "nullable", "lists")  # fmt: skip
LABELS = ("two", "two", "two", "two", "three", "text", "bool", "rare", "one", "all different",
          "nan", "none", "floats", "short", "two columns", "mixed", "empty text")  # fmt: skip
CONTAINERS = ("frame", "frame", "array", "array", "fortran", "float32", "objects", "list", "sparse",
              "readonly", "reversed", "masked", "series", "one row", "3D")  # fmt: skip


def _column(kind: str, n: int, rng: np.random.Generator) -> Any:
    """Some values, of one of the kinds above."""
    x = rng.normal(size=n)
    spread = {"small": 1e-150, "large": 1e150, "huge": 1e307, "tiny": 1e-300, "denormal": 5e-324}
    if kind in spread:
        return x * spread[kind]
    made: dict[str, Any] = {
        "normal": lambda: x,
        "constant": lambda: np.full(n, 7.0),
        "binary": lambda: (x > 0).astype(float),
        "integers": lambda: rng.integers(-(2**62), 2**62, n),
        "outlier": lambda: np.where(np.arange(n) == 0, 1e18, x),
        "far": lambda: np.where(np.arange(n) == n // 2, -1e200, x),
        "ties": lambda: np.round(x),
        "nan": lambda: np.where(x > 0.5, np.nan, x),
        "all nan": lambda: np.full(n, np.nan),
        "inf": lambda: np.where(x > 1, np.inf, x),
        "text": lambda: [f"word {i % 5}" for i in range(n)],
        "mixed": lambda: np.array([i if i % 2 else "a" for i in range(n)], dtype=object),
        "dates": lambda: pd.date_range("2020-01-01", periods=n),
        "category": lambda: pd.Categorical(["low", "high"] * (n // 2) + ["low"] * (n % 2)),
        "bool": lambda: x > 0,
        "none": lambda: np.array([None if v > 0.5 else v for v in x], dtype=object),
        "bytes": lambda: np.array([b"raw"] * n, dtype=object),
        "numeric text": lambda: [f"{v:.3f}" for v in x],
        "comma text": lambda: [f"{v:.3f}".replace(".", ",") for v in x],
        "yes text": lambda: np.where(x > 0, "TRUE", "false"),
        "large whole": lambda: np.array([10**25 + i for i in range(n)], dtype=object),
        "complex": lambda: x + 1j,
        "objects": lambda: np.array([object()] * n, dtype=object),
        "nullable": lambda: pd.array([None if v > 1 else 1 for v in x], dtype="Int64"),
        "lists": lambda: pd.Series([[1, 2]] * n, dtype=object),
    }
    return made[kind]()


def _labels(kind: str, n: int, rng: np.random.Generator) -> Any:
    code = rng.integers(0, 2, n)
    made: dict[str, Any] = {
        "two": lambda: code,
        "three": lambda: rng.integers(0, 3, n),
        "text": lambda: np.where(code == 1, "yes", "no"),
        "bool": lambda: code == 1,
        "rare": lambda: (np.arange(n) < 2).astype(int),
        "one": lambda: np.zeros(n),
        "all different": lambda: np.arange(n),
        "nan": lambda: np.where(np.arange(n) == 1, np.nan, code.astype(float)),
        "none": lambda: np.array([None if i == 1 else int(c) for i, c in enumerate(code)], object),
        "floats": lambda: rng.normal(size=n),
        "short": lambda: code[:-1],
        "two columns": lambda: np.c_[code, code],
        "mixed": lambda: np.array(["a" if c else 1 for c in code], dtype=object),
        "empty text": lambda: np.where(code == 1, "", "no"),
    }
    return made[kind]()


def _contained(kind: str, frame: pd.DataFrame) -> Any:
    """The table as users have it; where that cannot be, as it is."""
    if kind == "frame":
        return frame
    if kind == "objects":
        return frame.to_numpy(dtype=object)
    if kind == "list":
        return frame.to_numpy(dtype=object).tolist()
    if kind == "series":
        return frame.iloc[:, 0] if frame.shape[1] else frame
    if kind == "one row":
        return frame.iloc[0] if len(frame) else frame
    if any(np.issubdtype(np.asarray(frame.iloc[:0, j]).dtype, np.complexfloating)
           for j in range(frame.shape[1])):  # fmt: skip
        return frame.to_numpy()
    try:
        array = frame.to_numpy(dtype=np.float64)
    except (ValueError, TypeError):
        return frame.to_numpy()
    with np.errstate(over="ignore", under="ignore"):
        made: dict[str, Any] = {
            "array": lambda: array,
            "fortran": lambda: np.asfortranarray(array),
            "float32": lambda: array.astype(np.float32),
            "sparse": lambda: sparse.csr_matrix(array),
            "readonly": lambda: _readonly(array),
            "reversed": lambda: array[::-1, ::-1],
            "masked": lambda: np.ma.masked_invalid(array),
            "3D": lambda: array[None],
        }
        return made[kind]()


def _readonly(array: Any) -> Any:
    array.flags.writeable = False
    return array


@st.composite
def tables(draw: Any) -> dict[str, Any]:
    """What a table is made of, small enough to print."""
    clean = draw(st.integers(0, 3)) > 0  # what fails at the door hides what is behind it
    kinds = st.sampled_from(NUMBERS if clean else NUMBERS + OTHERS)
    n = draw(st.sampled_from([4, 5, 8, 13, 25, 40] if clean else [0, 1, 2, 3, 4, 25]))
    columns = draw(st.lists(kinds, min_size=0 if not clean else 1, max_size=7))
    return {
        "n": n,
        "columns": columns,
        "twice": draw(st.sampled_from([None, None, None, "rows", "columns", "names"])),
        "labels": draw(st.sampled_from(LABELS[:8] if clean else LABELS)),
        "container": draw(st.sampled_from(CONTAINERS[:11] if clean else CONTAINERS)),
        "seed": draw(st.integers(0, 2**16)),
    }


@st.composite
def cases(draw: Any) -> dict[str, Any]:
    """A table, and an estimator with parameters."""
    parameters = {
        "max_iter": draw(st.sampled_from([1, 3])),
        "n_averaged": draw(st.sampled_from([1, 1, 2])),
        "standardize": draw(st.sampled_from([True, True, True, False])),
        "missing": draw(st.sampled_from(["error", "impute"])),
        "max_degree": draw(st.sampled_from([1, 2, 3])),
        "clip": draw(st.sampled_from([3.0, None, 1e300])),
        "init": draw(st.sampled_from(["zero", "zero", "identity"])),
        "oob_gate": draw(st.sampled_from([2.0, None])),
        "engine": draw(st.sampled_from(["auto", "numpy"])),
        "class_weight": draw(st.sampled_from([None, None, "balanced"])),
    }
    return {
        "table": draw(tables()),
        "kind": draw(st.sampled_from(["SDist", "SDistClassifier", "SDistClassifierCV", "table"])),
        "parameters": parameters,
        "weights": draw(
            st.sampled_from([None, None, None, "some zero", "all zero", "negative", "huge", "tiny"])
        ),
    }


def frame_of(table: dict[str, Any]) -> tuple[pd.DataFrame, Any]:
    """The columns and the labels."""
    rng, n = np.random.default_rng(table["seed"]), table["n"]
    with np.errstate(all="ignore"):
        columns = [_column(kind, n, rng) for kind in table["columns"]]
        labels = _labels(table["labels"], n, rng)
    frame = pd.DataFrame({f"c{j}": column for j, column in enumerate(columns)}, index=range(n))
    if table["twice"] == "rows" and n:
        frame = frame.iloc[np.zeros(n, dtype=int)]
    elif table["twice"] == "columns" and frame.shape[1]:
        frame["again"] = frame.iloc[:, 0].to_numpy()
    elif table["twice"] == "names":
        frame.columns = ["same"] * frame.shape[1]
    return frame, labels


def _estimator(case: dict[str, Any]) -> Any:
    given = {**case["parameters"], "random_state": 0}
    if case["kind"] == "SDist":
        return SDist(**given)
    if case["kind"] == "SDistClassifierCV":
        base = SDistClassifier(**{**given, "n_averaged": 1})
        grid = {"max_degree": [given["max_degree"]]}
        return SDistClassifierCV(base, param_grid=grid, cv=2, random_state=0)
    return SDistClassifier(**given)


def _weights(kind: str | None, n: int) -> Any:
    made = {"some zero": np.arange(n) % 3, "all zero": np.zeros(n), "negative": -np.ones(n),
            "huge": np.full(n, 1e308), "tiny": np.geomspace(1e-320, 1.0, n)}  # fmt: skip
    return None if kind is None else made[kind]


def outcome(case: dict[str, Any]) -> str:
    """Fit, and predict; what came of it. Anything that is not documented is raised."""
    frame, y = frame_of(case["table"])
    with quiet():
        try:
            if case["kind"] == "table":
                whole = frame.assign(target=pd.Series(list(y)[: len(frame)], index=frame.index))
                model = TableClassifier(_estimator(case)).fit(whole, "target")
                found = model.predict_proba(whole)
            else:
                X = _contained(case["table"]["container"], frame)
                model = _estimator(case)
                model.fit(X, y, sample_weight=_weights(case["weights"], case["table"]["n"]))
                found = model.transform(X) if case["kind"] == "SDist" else model.predict_proba(X)
        except DOCUMENTED as error:
            if not str(error).strip():
                raise AssertionError("an error that says nothing") from error
            return type(error).__name__
    assert np.isfinite(np.asarray(found)).all(), "a result that is not finite"
    return "a result"


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Warnings of NumPy's are errors; those of ours are meant."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        yield


@contextlib.contextmanager
def within(seconds: int) -> Iterator[None]:
    """A case that hangs is ended."""

    def end(*_: Any) -> None:
        raise TimeoutError(f"longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


# --- files, for the command


@st.composite
def files(draw: Any) -> dict[str, Any]:
    """A file, its name and what is asked of it."""
    return {
        "table": draw(tables()),
        "format": draw(st.sampled_from(["csv", "csv", "csv", "parquet", "feather", "npz"])),
        "spoiled": draw(
            st.sampled_from([None, None, None, "cut", "empty", "binary", "no header", "semicolons",
                             "short lines", "latin", "wrong ending", "not there", "directory"])
        ),
        "target": draw(st.sampled_from(["target", "target", "target", "c0", "nowhere", ""])),
        "more": draw(st.sampled_from([[], [], ["--balanced"], ["--drop", "c0"], ["--keep", "c1"],
                                      ["--drop", "nothing"], ["--no-rows"], ["--json"]])),
    }  # fmt: skip


def written(file: dict[str, Any], folder: Path) -> Path:
    """The file, as far as its format can hold the table."""
    frame, y = frame_of(file["table"])
    frame = frame.reset_index(drop=True)
    frame["target"] = pd.Series([str(v) for v in np.asarray(y, dtype=object).ravel()])
    path = folder / f"data.{file['format']}"
    with contextlib.suppress(Exception):  # formats refuse some of it, and then there is a CSV
        if file["format"] == "parquet":
            frame.to_parquet(path)
        elif file["format"] == "feather":
            frame.to_feather(path)
        elif file["format"] == "npz":
            arrays = {str(name): frame[name].to_numpy() for name in frame.columns}
            np.savez(path, **arrays)
    if not path.exists():
        path = folder / "data.csv"
        frame.to_csv(path, index=False)
    return _spoiled(file["spoiled"], path)


def _spoiled(how: str | None, path: Path) -> Path:
    content = path.read_bytes()
    if how == "not there":
        return path.with_name("nothing.csv")
    if how == "directory":
        return path.parent
    if how == "wrong ending":
        return path.rename(path.with_suffix(".xyz"))
    made = {
        "cut": content[: len(content) // 2],
        "empty": b"",
        "binary": bytes(range(256)) * 20,
        "no header": content.split(b"\n", 1)[-1],
        "semicolons": content.replace(b",", b";"),
        "short lines": content.replace(b",", b"", 7),
        "latin": content + b"\xe4\xf6\n",
    }
    path.write_bytes(made.get(how or "", content))
    return path


def arguments(file: dict[str, Any], folder: Path) -> list[str]:
    data = written(file, folder)
    return ["fit", str(data), "--target", file["target"], "-o", str(folder / "m.mbz"),
            *file["more"]]  # fmt: skip


def summary(found: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in found.most_common())
