"""The studies: cells, the runner, the protocol, the page and the command."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

pytest.importorskip("matplotlib")

from metricboost import SDist
from metricboost.studies import _experiments, _prose
from metricboost.studies._causes import Causes
from metricboost.studies._cells import Cell, read, write
from metricboost.studies._columns import OURS, columns, excess
from metricboost.studies._document import Grid, Heading, Paragraph, Picture, markdown, page
from metricboost.studies._experiments import EXPERIMENTS, Extent, cells_of
from metricboost.studies._methods import APART, METHODS, TunedOnSome, default_settings, tuned_rival
from metricboost.studies._page import blocks
from metricboost.studies._protocol import PENALTIES, REFINED, TO_THE_LETTER, PaperSDist
from metricboost.studies._published import ERRORS, SECONDS
from metricboost.studies._results import Results, mean_and_error, measured
from metricboost.studies._running import run_cells
from metricboost.studies._sources import REAL, SHAPES, SIMULATED, load
from metricboost.studies._tasks import measure

PAPER = Path(os.environ.get("METRICBOOST_DATA", "")).parent / "paper" / "sdist.tex"
SOURCE = "XOR, N 100, p 50"


def cell(method="kNN", repeat=0, source=SOURCE, **settings):
    settings = {**default_settings(method), **settings}
    return Cell("table2", "test error", method, source, repeat, settings)


@cache
def at_hand(source):
    """Asked once: where there is no network, that takes seconds."""
    try:
        return load(source, 0)
    except OSError:
        return None


# --- cells


def test_other_settings_are_another_file():
    one, same, other = cell(), cell(), cell(scaling="standard")
    assert one.path(Path("r")) == same.path(Path("r"))
    assert one.path(Path("r")) != other.path(Path("r"))
    assert one.path(Path("r")).parent == other.path(Path("r")).parent


def test_changed_defaults_are_another_cell(monkeypatch):
    """A default of the estimator that changes makes new cells of it, and of nothing else."""
    before = cells_of(["table2"], Extent(1, True))

    class Changed(METHODS["sDist, defaults"]({}).__class__):
        def __init__(self, max_iter=76, random_state=None):
            super().__init__(max_iter=max_iter, random_state=random_state)

    changed = {**METHODS, "sDist, defaults": lambda settings: Changed(random_state=0)}
    monkeypatch.setattr("metricboost.studies._methods.METHODS", changed)
    after = cells_of(["table2"], Extent(1, True))
    differ = {a.method for a, b in zip(before, after) if a.fingerprint != b.fingerprint}
    assert differ == {"sDist, defaults"}


def test_file_is_whole_or_not_there(tmp_path):
    write(cell(), tmp_path, {"status": "ok", "error": np.float64(0.25), "list": np.arange(3)})
    row = read(cell(), tmp_path)
    assert row == {
        "study": "table2", "method": "kNN", "source": SOURCE, "repeat": 0, "status": "ok",
        "error": 0.25, "list": [0, 1, 2],
    }  # fmt: skip
    cell().path(tmp_path).write_text('{"status": "o')
    assert read(cell(), tmp_path) is None
    assert [path.name for path in cell().path(tmp_path).parent.iterdir()] == [
        cell().path(tmp_path).name
    ]


def test_packing_keeps_every_row(tmp_path):
    cells = [cell(repeat=r) for r in range(3)] + [cell("LightGBM", repeat=r) for r in range(2)]
    for one in cells:
        write(one, tmp_path, {"status": "ok", "error": one.repeat / 10})
    write(cells[-1], tmp_path, {"status": "failed", "message": "no"})
    known = Results(tmp_path)
    before = known.rows(cells)
    known.pack(cells)
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["table2.json"]
    assert Results(tmp_path).rows(cells) == before
    # What failed is not packed: it is tried again.
    assert Results(tmp_path).missing(cells, 10) == [cells[-1]]
    # A later run adds to what is packed.
    more = cell(repeat=7)
    write(more, tmp_path, {"status": "ok", "error": 0.5})
    Results(tmp_path).pack([more])
    assert Results(tmp_path).rows([*cells[:-1], more])[-1]["error"] == 0.5


# --- the runner


def test_only_what_is_missing_is_measured(tmp_path):
    cells = [cell(repeat=r) for r in range(3)]
    write(cells[1], tmp_path, {"status": "ok", "error": 0.123})
    todo = Results(tmp_path).missing(cells, 100)
    told = []
    run_cells(todo, tmp_path, measure, jobs=2, tell=lambda *event: told.append(event))
    rows = Results(tmp_path).rows(cells)
    assert [row["status"] for row in rows] == ["ok"] * 3
    assert rows[1]["error"] == 0.123
    assert sorted(one.repeat for one, *_ in told) == [0, 2]
    assert Results(tmp_path).missing(cells, 100) == []


def test_failures_and_timeouts_are_recorded(tmp_path):
    wrong = Cell("table2", "test error", "kNN", "no such source", 0, {"scaling": "none"})
    slow = [cell("sDist, to the letter", repeat=r, max_iter=100_000) for r in range(3)]
    run_cells([wrong, *slow], tmp_path, measure, jobs=1, limit=1, give_up=1)
    rows = Results(tmp_path).rows([wrong, *slow])
    assert [row["status"] for row in rows] == ["failed", "timeout", "timeout", "timeout"]
    assert "no such source" in rows[0]["message"]
    assert rows[2]["message"] == "as others before it"
    # More time is another chance; a failure is one anyway.
    assert Results(tmp_path).missing([wrong, *slow], 1) == [wrong]
    assert len(Results(tmp_path).missing([wrong, *slow], 2)) == 4


SCRIPT = """
import sys
from pathlib import Path
from metricboost.studies._document import write_page
from metricboost.studies._experiments import Extent, cells_of
from metricboost.studies._page import blocks
from metricboost.studies._results import Results
from metricboost.studies._running import run_cells
from metricboost.studies._tasks import measure

def main():
    folder, extent = Path(sys.argv[1]), Extent(3, True)
    quick = ("kNN", "sDist, defaults")
    cells = [c for c in cells_of(["table2"], extent) if c.method in quick]
    cells = [c for c in cells if c.source.endswith("N 100, p 50")]
    known = Results(folder / "results")
    todo = known.missing(cells, 100)
    print(len(todo), flush=True)
    tell = lambda cell, row, done, total: print(done, flush=True)
    run_cells(todo, known.folder, measure, jobs=2, limit=100, tell=tell)
    known.pack(cells)
    write_page(blocks(["table2"], extent, known), folder, "page")

if __name__ == "__main__":
    main()
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="POSIX")
def test_killed_and_restarted_gives_the_same_page(tmp_path):
    script = tmp_path / "study.py"
    script.write_text(SCRIPT)

    def start(folder):
        command = [sys.executable, str(script), str(folder)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert start(whole).communicate(timeout=120)[0].startswith("6")
    first = start(cut)
    while int(first.stdout.readline()) != 3:  # the third cell has ended
        pass
    first.send_signal(signal.SIGKILL)
    first.wait()
    first.stdout.close()
    time.sleep(3)  # cells that were under way may still write their files
    left = int(start(cut).communicate(timeout=120)[0].split()[0])
    assert 0 < left <= 6 - 3
    for name in ("page.md", "page.html"):
        assert (cut / name).read_text() == (whole / name).read_text()


# --- sources, methods, protocol


@pytest.mark.parametrize("source", ["double ring, N 100, p 50", "XOR, N 100, p 50"])
def test_best_rule_on_the_test_rows(source):
    found = [load(source, seed) for seed in range(8)]
    errors = [split.test_bayes_error for split in found]
    assert abs(np.mean(errors) - found[0].bayes_error) < 4 * np.std(errors) / np.sqrt(8)
    assert found[0].X_train.shape == (100, 50)
    assert found[0].X_test.shape == (2000, 50)


@pytest.mark.skipif(not PAPER.exists(), reason="the paper is not at hand")
def test_published_numbers_are_the_papers():
    """Read from the paper's source: every error and every second."""
    lines = PAPER.read_text().splitlines()
    starts = [i for i, line in enumerate(lines) if line.strip().startswith(r"$k$NN &")]
    assert len(starts) == 3
    methods = ("kNN", "PGDM", "LMNN", "SMLsm", "sDist")
    number = re.compile(r"(?<![\w.])\d+\.\d+")
    for start, kind in zip(starts[:2], ("double ring", "XOR")):
        sources = [source for source in SIMULATED if source.startswith(kind)]
        for i, method in enumerate((*methods, "Bayes")):
            printed = [float(text) for text in number.findall(lines[start + i])]
            assert printed == [ERRORS[source, method] for source in sources]
    for i, method in enumerate(methods):
        printed = [float(text) for text in number.findall(lines[starts[2] + i])]
        ours = [(ERRORS[source, method], SECONDS[source, method]) for source in REAL]
        assert printed == [value for pair in ours for value in pair]


def test_one_path_serves_all_penalties():
    """The metric where lambda_C stops a path is that of a fit with this lambda_C."""
    split = load("XOR, N 100, p 50", 0)
    for penalty in PENALTIES:
        protocol = PaperSDist(
            TO_THE_LETTER, max_iter=60, max_candidates=None, rhos=[0.2],
            complexity_penalties=[penalty],
        ).fit(split.X_train, split.y_train)  # fmt: skip
        plain = SDist(
            max_iter=60, n_nonzero=0.2, complexity_penalty=penalty, random_state=0, **TO_THE_LETTER
        ).fit(split.X_train, split.y_train)
        assert protocol.n_steps_ == plain.best_iter_
        # `SDist` scales its metric; no neighbour depends on it.
        one, other = (m.metric_.pairwise_distance(split.X_test[:50]) for m in (protocol, plain))
        np.testing.assert_allclose(one / one.max(), other / other.max(), rtol=1e-8, atol=1e-10)


def test_protocol_chooses_by_the_error_of_the_folds():
    split = load("XOR, N 500, p 50", 0)
    model = PaperSDist(REFINED, max_iter=100).fit(split.X_train, split.y_train)
    assert model.rho_ in (0.05, 0.1, 0.2)
    assert model.complexity_penalty_ in PENALTIES
    error = np.mean(model.predict(split.X_test) != split.y_test)
    near = KNeighborsClassifier(3).fit(split.X_train, split.y_train)
    assert error < np.mean(near.predict(split.X_test) != split.y_test) - 0.05
    margin = np.mean(model.predict_by_margin(split.X_test) != split.y_test)
    assert margin < error + 0.02


def test_rivals_choose_the_scaling_and_tune_on_some_rows():
    split = load("double ring, N 500, p 50", 0)
    search = tuned_rival("PGDM", {"regularization": [0.1, 1.0]}, "tuned")
    assert set(search.param_grid) == {"metric__regularization", "scale"}
    model = TunedOnSome(search, 200).fit(split.X_train, split.y_train)
    assert set(model.best_params_) == {"metric__regularization", "scale"}
    assert model.best_estimator_[-1].n_samples_fit_ == 500
    np.testing.assert_array_equal(np.unique(model.predict(split.X_test)), [0, 1])


#: Not measured here: what takes long, and all but one of the rivals with one thing changed.
LEFT_OUT = ("sDist, tuned", "L1 logistic, all pairs", "SMLlp", *list(APART)[1:])


@pytest.mark.parametrize("method", [method for method in METHODS if method not in LEFT_OUT])
def test_every_method_measures(method, tmp_path):
    """On a small table, with everything that tables and figures read."""
    settings = default_settings(method)
    if "max_iter" in settings:
        settings |= {"max_iter": 20, "rhos": [0.1]}
    one = Cell("table3", "test error", method, "Ionosphere", 0, settings | {"rows": 90})
    if at_hand("Ionosphere") is None:
        pytest.skip("Ionosphere is not at hand")
    measure(one, tmp_path, 100)
    row = read(one, tmp_path)
    assert row["status"] == "ok", row
    assert 0 <= row["error"] <= 0.6
    if method.startswith("sDist") or method in _experiments.SIMULATION_GRIDS:
        assert 0 < row["variables"] <= 33
        assert row["rank"] >= 1


# --- the page


def filled(tmp_path, value=lambda one: 0.2 + one.repeat / 100):
    """Made-up results of all tables."""
    extent = Extent(3)
    for one in cells_of(["table1", "table2", "pure", "table3"], extent):
        row = {"status": "ok", "error": value(one), "bayes_error": 0.15, "cpu_seconds": 1.0}
        row |= {"variables": 5, "margin_error": value(one) - 0.01}
        write(one, tmp_path, row)
    return extent, Results(tmp_path)


def test_page_has_every_cell_beside_the_papers(tmp_path):
    extent, known = filled(tmp_path)
    text = markdown(blocks(["table1", "table2", "pure", "table3"], extent, known), "p")
    for (source, method), value in ERRORS.items():
        if method != "Bayes":
            assert f"/ {value:.3f} / " in text, (source, method)
    assert text.count("0.210 (0.006) / ") >= 5 * 18
    assert "+0.067" in text  # 0.210 against the paper's 0.143
    # 0.210 (0.006) - 0.15 is within the paper's 0.083 in one cell, and in no other.
    assert "one standard error of ours: sDist 1 of 18;" in text
    assert "SECOM has 7% failures" in text


def test_excess_and_verdicts_are_paired(tmp_path):
    value = lambda one: 0.151 if one.method == "sDist" else 0.3  # noqa: E731
    extent, known = filled(tmp_path, value)
    text = markdown(blocks(["table1", "table2"], extent, known), "p")
    assert "sDist 18 of 18" in text
    column = columns(cells_of(["table1"], extent), known)["double ring, N 100, p 50"]
    mean, error = excess(column, "sDist", "error")
    assert (round(mean, 6), error) == (0.001, 0.0)
    assert len(OURS) == 4


def test_what_was_not_measured_says_why(tmp_path):
    extent, known = filled(tmp_path)
    for one in cells_of(["table1"], extent):
        if one.method == "LMNN":
            write(one, tmp_path, {"status": "timeout", "limit": 5})
        if one.method == "SMLsm":
            one.path(tmp_path).unlink()
    text = markdown(blocks(["table1"], extent, known), "p")
    assert "| LMNN | 3 timeout / 0.230 | " in text
    assert "| SMLsm | not measured / 0.222 | " in text


def test_page_is_written_without_the_real_tables(tmp_path, monkeypatch):
    monkeypatch.setattr("metricboost.studies._sources.SOURCES", {})
    extent, known = filled(tmp_path)
    text = markdown(blocks(["table3", "figure3"], extent, known), "p")
    assert "### Madelon, 1820 x 500 training rows\n" in text
    assert "![Figure 3." in text
    for one in cells_of(["table3"], extent):
        write(one, tmp_path, {"status": "failed", "message": "no such table"})
    text = markdown(blocks(["table3"], extent, known), "p")
    assert "| sDist, defaults | 3 failed |" in text


@pytest.mark.parametrize("source", SHAPES)
def test_shapes_are_those_of_the_tables(source):
    if at_hand(source) is None:
        pytest.skip(f"{source} is not at hand")
    assert at_hand(source).X_train.shape == SHAPES[source]


def test_figure_without_its_cells_says_so(tmp_path):
    text = markdown(blocks(["table1", "figure1", "figure4"], *filled(tmp_path)), "p")
    assert text.count("Not measured, or not all of it.") == 2


def test_page_is_one_file_that_fetches_nothing(tmp_path):
    svg = '<?xml version="1.0"?>\n<svg><path id="a"/><use href="#a"/></svg>\n'
    content = [
        Heading("A <title>", 1), Paragraph("**bold** `code` & more"),
        Grid(["", "x"], [["row", "**1**"]]), Picture("one", svg, "It"), Picture("two", svg, "It"),
    ]  # fmt: skip
    text = page(content)
    assert "<h1>A &lt;title&gt;</h1>" in text
    assert "<strong>bold</strong> <code>code</code> &amp; more" in text
    assert 'id="one-a"' in text
    assert 'href="#two-a"' in text
    assert not re.search(r'(src|href)="(?!#)', text)
    assert "![It](page/one.svg)" in markdown(content, "page")


@pytest.mark.parametrize("names", [["table1"], ["table1", "causes"]])
def test_every_difference_has_letters_that_are_explained(tmp_path, names):
    letters = {text[2] for text in _prose.paragraphs("reasons")}
    extent, known = filled(tmp_path)
    text = markdown(blocks(names, extent, known), "p")
    told = text.partition("## Where we differ")[2].partition("## ")[0]
    reasons = [line.split("|")[-2] for line in told.splitlines() if line.startswith("| double")]
    assert len(reasons) > 20
    for reason in reasons:
        assert set(re.findall(r"\b[A-Z]\b", reason.partition("(")[0])) <= letters
        assert re.search(r"\b[A-Z]\b", reason)


def test_causes_are_told_by_their_numbers(tmp_path):
    extent, known = filled(tmp_path)
    source = "double ring, N 500, p 500"
    values = {
        "PGDM, as they are": 0.4, "PGDM, standardised": 0.2,
        "LMNN, as they are": 0.45, "LMNN, standardised": 0.35,
        "LMNN, one step": 0.31, "LMNN, at its optimum": 0.49,
        "kNN, as they are": 0.16, "1-NN": 0.14,
    }  # fmt: skip
    for one in cells_of(["causes"], extent):
        if one.method == "3-NN":
            row = {"errors": [0.3, 0.4, 0.5], "standardised": [0.3] * 3, "bayes_error": 0.15}
            write(one, tmp_path, {"status": "ok", "error": 0.18, "margin_error": 0.16, **row})
        elif one.method in values:
            write(one, tmp_path, {"status": "ok", "error": values[one.method]})
    causes = Causes(columns(cells_of(["causes"], extent), known))
    column = columns(cells_of(["table1"], extent), known)[source]
    assert causes.why(source, "kNN", column) == (
        "G: 0.300 with noise 0.25, 0.400 with noise 0.5, 0.500 with noise 1.0"
    )
    assert causes.why(source, "PGDM", column) == "S: 0.400 as they are, 0.200 standardised"
    assert causes.why(source, "LMNN", column).endswith("at its optimum; G: none of them has 0.291")
    assert causes.why("double ring, N 5000, p 1000", "LMNN", column) == (
        "S: 0.450 as they are, 0.350 standardised; O: 0.310 one step, 0.490 at its optimum "
        "(with N 500, p 500)"
    )
    assert causes.why(source, "sDist", column).startswith("K: 0.030 on the plane")
    column = columns(cells_of(["table3"], extent), known)["Ionosphere"]
    assert causes.why("Ionosphere", "kNN", column) == (
        "P: 0.160 as they are, 0.140 with one neighbour"
    )
    assert causes.why("Ionosphere", "PGDM", column) == (
        "S: 0.400 as they are, 0.200 standardised; P: kNN +0.080 too"
    )
    assert causes.why("Ionosphere", "sDist", column) == "R: 0.210 to the letter; P: kNN +0.080 too"


def test_means_need_two_values_for_a_standard_error():
    assert np.isnan(mean_and_error([])[0])
    assert mean_and_error([0.5])[0] == 0.5
    assert np.isnan(mean_and_error([0.5])[1])
    assert measured([{"status": "timeout", "repeat": 0}]) == {}


# --- experiments and the command


def test_extents():
    full, short = Extent(20), Extent(1, True)
    for name, cells in EXPERIMENTS.items():
        assert list(cells(full)), name
        assert list(cells(short)), name
    sources = {one.source for one in EXPERIMENTS["table1"](full)}
    assert len(sources) == 9
    sdist = [one for one in cells_of(["table1", "table2"], full) if one.method == "sDist"]
    assert len(sdist) == 18 * 20
    assert {one.source for one in EXPERIMENTS["table1"](short)} == {
        f"double ring, N {n}, p {p}" for n in (100, 500) for p in (50, 500)
    }
    assert all(one.settings["rows"] == 300 for one in EXPERIMENTS["table3"](short))
    for one in cells_of(list(EXPERIMENTS), full):
        json.dumps(dict(one.settings))  # plain values


def test_few_repeats_of_everything_come_first():
    repeats = [one.repeat for one in cells_of(["table1", "table2"], Extent(20))]
    assert max(repeats[: repeats.index(5)]) == 4


def reproduce(*arguments):
    run = "from metricboost.cli import main; main()"
    command = [sys.executable, "-c", run, "reproduce", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


@pytest.mark.slow
def test_command_draws_the_surfaces(tmp_path):
    """Figures 1 and 2: only the two informative columns, the parabola and the saddle."""
    options = ("--fast", "--results", tmp_path / "results", "--output", tmp_path)
    done = reproduce("figure1", "figure2", *options)
    assert done.returncode == 0, done.stderr
    for name in ("reproduction.md", "reproduction.html", "reproduction/figure2.svg"):
        assert (tmp_path / name).stat().st_size > 1000
    packed = json.loads((tmp_path / "results" / "figure2.json").read_text())
    rows = {row["source"]: row for row in packed.values()}
    ring = np.array(rows["pure double ring, N 500, p 50"]["last"])
    saddle = np.array(rows["pure XOR, N 500, p 50"]["last"])
    assert shape_of(ring) == "bowl"
    assert shape_of(saddle) == "saddle"
    again = reproduce("figure1", "figure2", *options)
    assert "3 cells, 0 to measure" in again.stdout


def shape_of(surface):
    """A bowl rises to all four corners and sides; a saddle to two opposite corners only."""
    c = len(surface) // 2
    centre = surface[c, c]
    corners = np.array([surface[0, 0], surface[-1, -1], surface[0, -1], surface[-1, 0]]) - centre
    sides = np.array([surface[0, c], surface[-1, c], surface[c, 0], surface[c, -1]]) - centre
    if np.ptp(np.sign([*corners, *sides])) == 0:
        return "bowl"
    one, other = np.sign(corners[:2]), np.sign(corners[2:])
    saddle = one[0] == one[1] and other[0] == other[1] and one[0] != other[0]
    return "saddle" if saddle else "neither"


def test_command_refuses_what_is_not_there(tmp_path):
    done = reproduce("table9", "--results", tmp_path)
    assert done.returncode == 2
    assert "table9" in done.stderr
    assert "figure6" in done.stderr
    done = reproduce("table1", "--no-run", "--results", tmp_path, "--output", tmp_path)
    assert done.returncode == 2
    assert "No cell is measured yet" in done.stderr
