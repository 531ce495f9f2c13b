"""Fits that are stopped go on, and end with the model that they would have had."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

import metricboost
from metricboost import SDist, SDistClassifier, SDistClassifierCV
from metricboost.boosting.loop import BoostingOptions
from metricboost.datasets import make_double_ring
from metricboost.engines import get_engine
from metricboost.errors import CheckpointError, FitInterrupted
from metricboost.storage import archive
from metricboost.training.checkpoints import Checkpoints, FitFile
from metricboost.training.learn import learn
from metricboost.training.options import LearningOptions
from metricboost.training.run import Run

ENGINES = ["numpy", "native", "torch"]
SETTINGS = {"max_iter": 12, "n_averaged": 2, "refresh_every": 3, "random_state": 0}


class Stop(Exception):
    """Raised where a test wants a fit to stop."""


class OftenWriting(SDist):
    """Writes its checkpoints after every attempt, not every few seconds."""

    def _run(self) -> Run:
        return replace(super()._run(), write_every=0.0)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C raises ``KeyboardInterrupt`` even if the tests were started with Ctrl-C ignored.

    A shell starts background jobs so, as in ``nohup make test &``.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


#: Does for a script what the fixture does for this process.
INTERRUPTIBLE = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"


@pytest.fixture(scope="module")
def table() -> tuple[Any, Any]:
    return make_double_ring(200, 20, random_state=0)[:2]


def options(**changes: Any) -> LearningOptions:
    boosting = BoostingOptions(
        max_iter=14, n_neighbors=10, n_nonzero=4, learning_rate=0.1, subsample=0.5,
        max_features=None, refresh_every=4, oob_gate=0.0, seed=0,
    )  # fmt: skip
    return LearningOptions(
        boosting=replace(boosting, **changes), max_degree=2, screen_pairs="auto", prune=None,
        complexity_penalty=0.0, standardize=True, init="zero",
    )  # fmt: skip


def same(found: Any, expected: Any) -> bool:
    """Every number of two models, bit for bit."""
    return all(
        getattr(found.metric_, name).tobytes() == getattr(expected.metric_, name).tobytes()
        for name in ("components", "center", "scale", "term_center", "term_scale", "diagonal")
    ) and (found.metric_.columns == expected.metric_.columns
           and found.path_.tobytes() == expected.path_.tobytes())  # fmt: skip


# --- going on


@pytest.mark.parametrize("max_features", [None, "sqrt"])
@pytest.mark.parametrize("name", ENGINES)
def test_cut_after_any_attempt(name: str, max_features: Any, table: Any, tmp_path: Path) -> None:
    """The same steps, bit for bit, wherever a fit was cut."""
    if name == "torch":
        pytest.importorskip("torch")
    X, y = table
    engine, labels, weight = get_engine(name), (y == y.max()).astype(np.intp), np.ones(len(y))
    settings = options(max_features=max_features)
    expected = learn(X, labels, weight, engine, settings)
    assert sum(step.refreshed for step in expected.path.steps) >= 2
    for cut in (1, 3, 4, 5, 11, 14):  # a step that refreshes is the fourth
        kept = Checkpoints.of(tmp_path / str(cut), X, write_every=0.0)

        def stop(attempt: int, _: Any, cut: int = cut) -> None:
            if attempt == cut + 1:  # what this attempt did is not written
                raise Stop

        if cut < 14:
            with pytest.raises(Stop):
                learn(X, labels, weight, engine, settings, stop, checkpoints=kept)
        found = learn(X, labels, weight, engine, settings, checkpoints=kept)
        assert found.factor.matrix.tobytes() == expected.factor.matrix.tobytes()
        for a, b in zip(found.path.steps, expected.path.steps, strict=True):
            assert (a.attempt, a.weight, a.loss, a.refreshed) == (
                b.attempt, b.weight, b.loss, b.refreshed,
            )  # fmt: skip
            assert a.xi.tobytes() == b.xi.tobytes()


SCRIPT = """
import sys
from dataclasses import replace
import metricboost
from metricboost.datasets import make_double_ring

class SDistClassifier(metricboost.SDistClassifier):
    def _run(self):
        return replace(super()._run(), write_every=0.0)

engine, directory, output = sys.argv[1:]
X, y = make_double_ring(1000, 30, random_state=0)[:2]
model = SDistClassifier(
    engine=engine, max_iter=40, n_averaged=2, refresh_every=4, random_state=0,
    checkpoint=directory or None,
).fit(X, y)
model.save(output)
"""


def killed_and_resumed(engine: str, seconds: float, folder: Path) -> tuple[bytes, bool]:
    """The bytes of the model, and whether the first process was killed before it ended."""
    script, output, kept = folder / "fit.py", folder / "model.mbz", folder / "kept"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), engine, str(kept), str(output)]
    first = subprocess.Popen(command)
    start, died = time.monotonic(), False
    while not kept.exists() and first.poll() is None:
        time.sleep(0.002)
    try:
        first.wait(seconds)
    except subprocess.TimeoutExpired:
        first.send_signal(signal.SIGKILL)
        first.wait()
        died = True
    assert time.monotonic() - start < 120
    subprocess.run(command, check=True, timeout=120)
    return output.read_bytes(), died


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="POSIX")
@pytest.mark.parametrize("engine", ["native", pytest.param("numpy", marks=pytest.mark.slow)])
def test_killed_at_a_random_moment(engine: str, tmp_path: Path) -> None:
    """The file of the model has the same bytes (``make soak`` does this 200 times)."""
    script, whole = tmp_path / "fit.py", tmp_path / "whole.mbz"
    script.write_text(SCRIPT)
    subprocess.run([sys.executable, str(script), engine, "", str(whole)], check=True)
    found, died = killed_and_resumed(engine, random.uniform(0.0, 0.4), tmp_path)
    assert died
    assert found == whole.read_bytes()


def test_what_a_killed_fit_was_writing_is_removed(table: Any, tmp_path: Path) -> None:
    """A half-written file is removed once it is too old to belong to a process that still runs."""
    old, new = (tmp_path / f".{name}.unfinished" for name in ("old", "new"))
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    one_file(tmp_path, table)
    assert not old.exists()
    assert new.exists()


def test_searches_and_clones_do_not_meet(table: Any, tmp_path: Path) -> None:
    """Every fit of a grid has a file of its own, and the model is that without checkpoints."""
    X, y = table
    grid = {"max_degree": [1, 2], "learning_rate": [0.1, 0.2]}
    found, expected = (
        GridSearchCV(SDist(checkpoint=kept, **SETTINGS), grid, cv=2, scoring=_first).fit(X, y)
        for kept in (tmp_path, None)
    )
    assert same(found.best_estimator_, expected.best_estimator_)
    # 4 settings, 2 folds, 2 averaged fits; and the two of the best
    assert len(list(tmp_path.glob("*.checkpoint"))) == 4 * 2 * 2 + 2
    again = SDist(checkpoint=tmp_path, **SETTINGS, **found.best_params_).fit(X, y)
    assert same(again, expected.best_estimator_)


def _first(model: Any, X: Any, y: Any) -> float:
    return float(len(model.metric_.columns))


def test_a_search_of_our_own(table: Any, tmp_path: Path) -> None:
    X, y = table
    given = {"param_grid": {"max_degree": [1, 2]}, "cv": 2, "random_state": 0, "n_jobs": 2}
    base = SDistClassifier(**{**SETTINGS, "random_state": None})
    expected = SDistClassifierCV(base, **given).fit(X, y)
    for _ in range(2):  # once written, once read
        found = SDistClassifierCV(base, checkpoint=tmp_path, **given).fit(X, y)
        assert np.array_equal(found.predict_proba(X), expected.predict_proba(X))
    assert len(list(tmp_path.glob("*.checkpoint"))) == 4


def test_on_a_cluster(table: Any, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    da = pytest.importorskip("dask.array")
    from metricboost.dask import SDist as OnCluster

    X, y = table
    dX = da.from_array(X, chunks=(100, 20))
    given = {"max_iter": 8, "n_averaged": 1, "refresh_every": 3, "random_state": 0, "prune": None}
    with distributed.Client(processes=False, n_workers=1, dashboard_address=None) as client:
        expected = OnCluster(client=client, **given).fit(dX, y)
        model = OnCluster(client=client, checkpoint=tmp_path, **given)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(FitFile, "__call__", _write_and_stop)
            with pytest.raises(Stop):
                model.fit(dX, y)
        assert same(model.fit(dX, y), expected)


def _write_and_stop(self: Any, attempt: int, path: Any) -> None:
    self.write(path)
    if attempt == 5:
        raise Stop


# --- what is refused, and what is not there


def one_file(directory: Path, table: Any) -> Path:
    OftenWriting(**{**SETTINGS, "n_averaged": 1}, checkpoint=directory).fit(*table)
    (file,) = directory.glob("*.checkpoint")
    return file


def rewritten(file: Path, change: Any) -> None:
    content, arrays = archive.read(file, 2**30)
    change(content["fit"])
    kept = {"fit": content["fit"], "path": content["path"]}
    archive.write(file, kept, arrays)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda fit: fit.update(version="0.0.1"), "the version is 0.1.0 here and 0.0.1 there"),
        (lambda fit: fit.update(table="other"), "the table differs"),
        (lambda fit: fit.update(labels="other"), "the labels differ"),
        (lambda fit: fit["parameters"].update(max_iter=99), "max_iter is 12 here and 99 there"),
        (lambda fit: fit.update(engine="other"), "here and other there"),
    ],
)
def test_another_fits_checkpoint_is_refused(
    change: Any, said: str, table: Any, tmp_path: Path
) -> None:
    rewritten(one_file(tmp_path, table), change)
    with pytest.raises(CheckpointError, match=said):
        one_file(tmp_path, table)


def test_a_damaged_file_costs_what_it_had(table: Any, tmp_path: Path) -> None:
    expected = SDist(**{**SETTINGS, "n_averaged": 1}).fit(*table)
    file = one_file(tmp_path, table)
    for content in (b"", b"nothing", file.read_bytes()[:-50]):
        file.write_bytes(content)
        with pytest.warns(UserWarning, match="begins anew"):
            found = OftenWriting(**{**SETTINGS, "n_averaged": 1}, checkpoint=tmp_path).fit(*table)
        assert same(found, expected)


@pytest.mark.parametrize("where", ["taken", "taken/below", "a" * 300, "zero\0"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_no_place_to_write_costs_the_checkpoint_alone(
    where: str, n_jobs: int, table: Any, tmp_path: Path
) -> None:
    """One warning for all fits and threads, again in the next fit, at the line that called it."""
    (tmp_path / "taken").write_text("")
    expected = SDist(**SETTINGS).fit(*table)
    for _ in range(2):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            model = OftenWriting(**SETTINGS, checkpoint=f"{tmp_path}/{where}", n_jobs=n_jobs)
            assert same(model.fit(*table), expected)
        assert [str(w.message)[:27] for w in heard] == ["No checkpoint can be writte"]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_full_disk_costs_the_checkpoint_alone(n_jobs: int, table: Any, tmp_path: Path) -> None:
    """The disk is a file system with room for one page."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(tmp_path)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs the right to mount")
    try:
        with pytest.warns(
            UserWarning, match="No checkpoint can be written.*No space left"
        ) as heard:
            found = OftenWriting(**SETTINGS, checkpoint=tmp_path, n_jobs=n_jobs).fit(*table)
        assert len(heard) == 1
        assert not list(tmp_path.glob(".*unfinished"))
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
    assert same(found, SDist(**SETTINGS).fit(*table))


# --- Ctrl-C


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_stops_after_the_step(n_jobs: int, table: Any, tmp_path: Path) -> None:
    """Every fit ends after its step, with everything written, in this thread or in others."""
    X, y = table
    expected = SDist(**SETTINGS).fit(X, y)
    write, wrote = FitFile.write, []

    def press(self: Any, path: Any) -> None:
        write(self, path)
        wrote.append(path.n_attempts)
        if len(wrote) == 5:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FitFile, "write", press)
        attempt = 6 if n_jobs == 1 else r"\d+"
        with pytest.raises(FitInterrupted, match=rf"Stopped after attempt {attempt}\. .*fit again"):
            OftenWriting(**SETTINGS, n_jobs=n_jobs, checkpoint=tmp_path).fit(X, y)
    assert n_jobs == 1 or len(list(tmp_path.glob("*.checkpoint"))) == 2
    assert signal.getsignal(signal.SIGINT) is before
    assert same(SDist(**SETTINGS, checkpoint=tmp_path).fit(X, y), expected)


def test_ctrl_c_that_is_ignored_stays_ignored(table: Any, tmp_path: Path) -> None:
    """A fit in the background, where Ctrl-C is ignored, is not stopped by it."""
    X, y = table
    write = FitFile.write

    def press(self: Any, path: Any) -> None:
        write(self, path)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(FitFile, "write", press)
            found = OftenWriting(**SETTINGS, checkpoint=tmp_path).fit(X, y)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert same(found, SDist(**SETTINGS).fit(X, y))


IN_THREADS = f"""
import sys
from metricboost import SDist
from metricboost.datasets import make_double_ring
from metricboost.errors import FitInterrupted
if __name__ == "__main__":
    {INTERRUPTIBLE}
    X, y = make_double_ring(600, 60, random_state=0)[:2]
    model = SDist(max_iter=200_000, n_averaged=2, oob_gate=None, random_state=0, n_jobs=2,
                  checkpoint=sys.argv[1] or None)
    try:
        print("fitting", flush=True)
        model.fit(X, y)
    except FitInterrupted as stopped:
        print(stopped)
        sys.exit(130)
    except KeyboardInterrupt:
        print("at once")
        sys.exit(131)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="POSIX")
@pytest.mark.parametrize("keeps", [True, False])
def test_ctrl_c_with_threads(keeps: bool, tmp_path: Path) -> None:
    """All threads end after their step, and one line is the only output."""
    script, kept = tmp_path / "fit.py", tmp_path / "kept"
    script.write_text(IN_THREADS)
    command = [sys.executable, str(script), str(kept) if keeps else ""]
    fit = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert fit.stdout is not None
    assert fit.stdout.readline() == "fitting\n"
    while keeps and not kept.exists() and fit.poll() is None:
        time.sleep(0.01)
    time.sleep(0.3)
    fit.send_signal(signal.SIGINT)
    said, complained = fit.communicate(timeout=120)
    assert complained == ""
    assert fit.returncode == (130 if keeps else 131)
    assert said.startswith("Stopped " if keeps else "at once")
    assert said.count("\n") == 1


def test_a_seed_is_needed(table: Any, tmp_path: Path) -> None:
    for model in (SDist(checkpoint=tmp_path), SDistClassifierCV(checkpoint=tmp_path)):
        with pytest.raises(ValueError, match="checkpoint needs random_state to be a number"):
            model.fit(*table)


def test_attempts_without_a_step_are_kept(table: Any, tmp_path: Path) -> None:
    """Attempts that the gate has rejected are not made again."""
    X, y = table
    labels, weight, kept = (y == y.max()).astype(np.intp), np.ones(len(y)), []
    settings, engine = options(oob_gate=1e9, max_iter=9), get_engine("numpy")

    def watch(attempt: int, _: Any) -> None:
        kept.append(attempt)

    for _ in range(2):
        where = Checkpoints.of(tmp_path, X, write_every=0.0)
        learn(X, labels, weight, engine, settings, watch, checkpoints=where)
    assert kept == list(range(1, 10))


def test_a_large_start_is_not_written(table: Any, tmp_path: Path) -> None:
    """The start has a number for every pair of columns, and follows from the parameters."""
    X = np.random.default_rng(0).normal(size=(40, 400))
    model = SDist(init="identity", n_averaged=1, max_iter=3, random_state=0, checkpoint=tmp_path)
    expected = SDist(**{**model.get_params(), "checkpoint": None}).fit(X, np.arange(40) % 2)
    for _ in range(2):
        assert same(model.fit(X, np.arange(40) % 2), expected)
    (file,) = tmp_path.glob("*.checkpoint")
    assert file.stat().st_size < 100_000


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    X, y = make_double_ring(300, 20, random_state=0)[:2]
    header = ",".join(["y", *(f"x{j}" for j in range(X.shape[1]))])
    np.savetxt(tmp_path / "data.csv", np.c_[y, X], delimiter=",", header=header, comments="")
    return tmp_path / "data.csv"


def command(csv: Path, *more: str, kept: str = "kept") -> list[str]:
    program = [sys.executable, "-c", f"{INTERRUPTIBLE}; from metricboost.cli import main; main()"]
    where = str(csv.parent / kept)
    return [*program, "fit", str(csv), "--target", "y", *more, "--checkpoint", where]


def test_the_command(csv: Path) -> None:
    """After Ctrl-C it prints one line and exits with 130. The next run goes on from there.

    Another seed is refused.
    """
    pytest.importorskip("typer")
    folder = csv.parent
    first = subprocess.Popen(
        command(csv, "-o", str(folder / "a.mbz")), stderr=subprocess.PIPE, text=True
    )
    while not list(folder.glob("kept/*.checkpoint")) and first.poll() is None:
        time.sleep(0.01)
    first.send_signal(signal.SIGINT)
    said = first.communicate(timeout=120)[1]
    assert first.returncode == 130, said
    assert said.startswith("Stopped ")  # after a step, or between two fits
    assert said.count("\n") == 1
    subprocess.run(command(csv, "-o", str(folder / "a.mbz")), check=True, capture_output=True)
    # A directory that cannot be written costs the checkpoint, but not the model.
    unusable = command(csv, "-o", str(folder / "b.mbz"), kept="data.csv")
    done = subprocess.run(unusable, capture_output=True, text=True)
    assert done.returncode == 0
    assert "No checkpoint can be written" in done.stderr
    assert (folder / "a.mbz").read_bytes() == (folder / "b.mbz").read_bytes()
    refused = subprocess.run(command(csv, "--seed", "3"), capture_output=True, text=True)
    assert refused.returncode == 1
    assert "seed is 3 here and 0 there" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_model_file_says_nothing_of_checkpoints(table: Any, tmp_path: Path) -> None:
    model = SDist(**SETTINGS, checkpoint=tmp_path / "elsewhere").fit(*table)
    model.save(tmp_path / "model.mbz")
    content, _ = archive.read(tmp_path / "model.mbz", 2**30)
    assert "elsewhere" not in json.dumps(content)
    assert metricboost.load(tmp_path / "model.mbz").checkpoint is None
