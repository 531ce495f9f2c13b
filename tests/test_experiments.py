"""The experiments: cells, the runner, the study of the paper, and the pages."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

pytest.importorskip("experiments", reason="an installed package has no experiments")
pytest.importorskip("matplotlib")

from experiments.measures import error_of_split
from experiments.models import APART, MODELS, default_settings
from experiments.pages import TABLES, generated, outdated
from experiments.pages.generating import TABLE, pages
from experiments.pages.shown import Shown
from experiments.paper import studies
from experiments.paper.causes import Causes
from experiments.paper.columns import OURS, columns, excess
from experiments.paper.document import Grid, Heading, Paragraph, Picture, markdown
from experiments.paper.page import blocks
from experiments.paper.prose import paragraphs
from experiments.paper.protocol import PENALTIES, REFINED, TO_THE_LETTER, PaperSDist
from experiments.paper.published import ERRORS, SECONDS
from experiments.paper.published import REAL as PAPER_REAL
from experiments.paper.studies import STUDIES, Extent, cells_of, line_of
from experiments.quality import STUDY, TableSet, selected
from experiments.results import RESULTS, Cell, Results, code, mean_and_error, measured, record
from experiments.rivals import TunedOnSome, tuned_rival
from experiments.runner import run_cells
from experiments.tables import NAMES, REAL, SIMULATED, is_collected, load
from metricboost import SDist

ROOT = Path(__file__).parent.parent
PAPER = Path(os.environ.get("METRICBOOST_DATA", "")).parent / "paper" / "sdist.tex"
SOURCE = "XOR, N 100, p 50"
TABLES_OF_PAPER = ["table1", "table2", "pure", "table3"]


def cell(model="kNN", seed=0, table=SOURCE, **settings):
    return Cell("some", table, model, seed, {**default_settings(model), **settings})


@cache
def at_hand(table):
    """Asked once: without a network this takes seconds."""
    try:
        return load(table, 0)
    except OSError:
        return None


# --- results


def test_a_result_of_other_settings_is_no_result(tmp_path):
    known = Results(tmp_path)
    known.add(cell(), {"status": "ok", "error": 0.25})
    assert known.missing([cell()], 10) == []
    assert known.missing([cell(scaling="standard")], 10) == [cell(scaling="standard")]
    known.add(cell(scaling="standard"), {"status": "ok", "error": 0.3})
    assert known.row(cell())["error"] == 0.3


def test_changed_defaults_are_other_settings(monkeypatch):
    """A default of the estimator that changes reopens its cells, and no others."""
    before = cells_of(["table2"], Extent(1, True))

    class Changed(type(MODELS["defaults"]({}))):
        def __init__(self, max_iter=76, random_state=None):
            super().__init__(max_iter=max_iter, random_state=random_state)

    monkeypatch.setitem(MODELS, "sDist, defaults", lambda settings: Changed(random_state=0))
    after = cells_of(["table2"], Extent(1, True))
    differ = {a.model for a, b in zip(before, after) if a.fingerprint != b.fingerprint}
    assert differ == {"sDist, defaults"}


def test_a_cell_names_the_code_that_measured_it(tmp_path):
    known = Results(tmp_path)
    known.add(cell(), {"status": "ok", "error": np.float64(0.25), "list": np.arange(3)})
    (line,) = known.path("some").read_text().splitlines()
    assert json.loads(line) == {
        "table": SOURCE, "model": "kNN", "seed": 0, "settings": cell().fingerprint,
        "status": "ok", "error": 0.25, "list": [0, 1, 2], "code": code(),
    }  # fmt: skip
    assert re.match(r"\d+\.\d+\.\d+", code())


@pytest.mark.parametrize("path", sorted(RESULTS.rglob("*.jsonl")), ids=lambda path: path.stem)
def test_every_result_names_its_code(path):
    """One line for each cell, in order, so that a change of one is a change of one line."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert all(row["code"] for row in rows)
    keys = [(row["table"], row["model"], row.get("seed", -1)) for row in rows]
    assert keys == sorted(set(keys))


def test_an_unfinished_line_is_no_result(tmp_path):
    known = Results(tmp_path)
    for seed in range(2):
        known.add(cell(seed=seed), {"status": "ok", "error": seed})
    path = known.path("some")
    path.write_text(path.read_text()[:-20])
    again = Results(tmp_path)
    assert again.missing([cell(), cell(seed=1)], 10) == [cell(seed=1)]
    again.add(cell(seed=1), {"status": "ok", "error": 0.5})
    assert [row["error"] for row in Results(tmp_path).rows([cell(), cell(seed=1)])] == [0, 0.5]
    again.tidy("some")
    assert len(path.read_text().splitlines()) == 2


def test_a_summary_stands_until_as_many_splits_are_measured(tmp_path):
    known = Results(tmp_path)
    summary = {"table": SOURCE, "model": "kNN", "status": "ok", "splits": 2, "code": "old"}
    known.path("some").write_text(json.dumps(summary | {"error": 0.4, "error s.e.": 0.1}) + "\n")
    shown = Shown(known)
    assert shown.value("some", SOURCE, "kNN").text() == "0.400 (0.100)"
    assert shown.measured_with() == "*Measured with old.*"
    known.add(cell(), {"status": "ok", "error": 0.1})
    assert shown.value("some", SOURCE, "kNN").text() == "0.400 (0.100)"
    known.add(cell(seed=1), {"status": "ok", "error": 0.2})
    assert shown.value("some", SOURCE, "kNN").text() == "0.150 (0.050)"
    assert shown.measured_with() == f"*Measured with {' and '.join(sorted(['old', code()]))}.*"


def test_a_command_keeps_what_it_has_measured(tmp_path, monkeypatch):
    monkeypatch.setenv("METRICBOOST_RESULTS", str(tmp_path))
    record("times", "a table", "a model", seconds=1.5)
    record("times", "a table", "a model", seconds=2.5)
    assert Shown(Results()).value("times", "a table", "a model", "seconds").plain(".1f") == "2.5"


def test_means_need_two_values_for_a_standard_error():
    assert np.isnan(mean_and_error([])[0])
    assert mean_and_error([0.5])[0] == 0.5
    assert np.isnan(mean_and_error([0.5])[1])
    assert measured([{"status": "timeout", "seed": 0}]) == {}


# --- the runner


def test_only_what_is_missing_is_measured(tmp_path):
    cells, known = [cell(seed=seed) for seed in range(3)], Results(tmp_path)
    known.add(cells[1], {"status": "ok", "error": 0.123})
    told = []
    run_cells(
        known.missing(cells, 100), known, error_of_split, jobs=2,
        tell=lambda *event: told.append(event),
    )  # fmt: skip
    rows = Results(tmp_path).rows(cells)
    assert [row["status"] for row in rows] == ["ok"] * 3
    assert rows[1]["error"] == 0.123
    assert sorted(one.seed for one, *_ in told) == [0, 2]
    assert Results(tmp_path).missing(cells, 100) == []


def test_failures_and_timeouts_are_recorded(tmp_path):
    wrong, known = cell(table="no such table"), Results(tmp_path)
    slow = [cell("sDist, to the letter", seed, max_iter=100_000) for seed in range(3)]
    run_cells([wrong, *slow], known, error_of_split, jobs=1, limit=1, give_up=1)
    rows = Results(tmp_path).rows([wrong, *slow])
    assert [row["status"] for row in rows] == ["failed", "timeout", "timeout", "timeout"]
    assert "no such table" in rows[0]["message"]
    assert rows[2]["message"] == "as others before it"
    # More time is another chance. What failed is tried again anyway.
    assert Results(tmp_path).missing([wrong, *slow], 1) == [wrong]
    assert len(Results(tmp_path).missing([wrong, *slow], 2)) == 4


SCRIPT = """
import sys
from pathlib import Path
from experiments.measures import error_of_split
from experiments.results import Cell, Results
from experiments.runner import measure_missing

def main():
    cells = [Cell("some", "XOR, N 5000, p 500", "kNN, standardised", seed) for seed in range(6)]
    measure_missing(cells, Results(Path(sys.argv[1])), error_of_split)

if __name__ == "__main__":
    main()
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="POSIX")
@pytest.mark.slow
def test_killed_and_started_again_it_has_the_same_results(tmp_path):
    script = tmp_path / "study.py"
    script.write_text(SCRIPT)

    def start(folder):
        command, environment = [sys.executable, str(script), str(folder)], dict(os.environ)
        paths = [str(ROOT), *filter(None, [environment.get("PYTHONPATH")])]
        environment["PYTHONPATH"] = os.pathsep.join(paths)
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)

    def errors(folder):
        return [row["error"] for row in Results(folder).of("some").values()]

    first = start(tmp_path / "cut")
    assert first.stdout.readline() == "6 cells, 6 to measure\n"
    for _ in range(3):
        first.stdout.readline()
    first.send_signal(signal.SIGKILL)
    first.wait()
    first.stdout.close()
    kept = errors(tmp_path / "cut")
    assert 3 <= len(kept) < 6
    told = start(tmp_path / "cut").communicate(timeout=120)[0]
    assert told.startswith(f"6 cells, {6 - len(kept)} to measure")
    assert errors(tmp_path / "cut")[: len(kept)] == kept
    assert len(errors(tmp_path / "cut")) == 6


# --- tables, models, the protocol of the paper


@pytest.mark.parametrize("table", ["double ring, N 100, p 50", "XOR, N 100, p 50"])
def test_best_rule_on_the_test_rows(table):
    found = [load(table, seed) for seed in range(8)]
    errors = [split.test_bayes_error for split in found]
    assert abs(np.mean(errors) - found[0].bayes_error) < 4 * np.std(errors) / np.sqrt(8)
    assert found[0].X_train.shape == (100, 50)
    assert found[0].X_test.shape == (2000, 50)


@pytest.mark.parametrize("table", REAL)
def test_shapes_are_those_of_the_tables(table):
    split = at_hand(table)
    if split is None:
        pytest.skip(f"{table} is not at hand")
    assert split.X_train.shape == (REAL[table].rows, REAL[table].columns)
    assert len(np.unique(split.y_train)) == REAL[table].classes


@pytest.mark.parametrize("name", STUDY)
def test_sets_have_known_tables_and_models(name):
    chosen = STUDY[name]
    assert {table for table in chosen.tables if not is_collected(table)} <= set(NAMES)
    assert chosen.reference in chosen.models
    cells = list(selected(TableSet(chosen.tables, chosen.models, seeds=(0, 7))))
    assert {one.seed for one in cells[: len(cells) // 2]} == {0, 1, 2, 3, 4}
    for one in cells:
        json.dumps(dict(one.settings))  # plain values


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
        ours = [(ERRORS[source, method], SECONDS[source, method]) for source in PAPER_REAL]
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
    assert model.details(split)["margin_error"] < error + 0.02


def test_rivals_choose_the_scaling_and_tune_on_some_rows():
    split = load("double ring, N 500, p 50", 0)
    search = tuned_rival("PGDM", {"regularization": [0.1, 1.0]}, "tuned")
    assert set(search.param_grid) == {"metric__regularization", "scale"}
    model = TunedOnSome(search, 200).fit(split.X_train, split.y_train)
    assert set(model.best_params_) == {"metric__regularization", "scale"}
    assert model.best_estimator_[-1].n_samples_fit_ == 500
    np.testing.assert_array_equal(np.unique(model.predict(split.X_test)), [0, 1])


#: Not measured here: what takes long, what other packages or data are needed for, and models that
#: differ by one parameter from one that is measured.
MEASURED = (
    "defaults", "3-NN", "kNN", "1-NN", "sDist", "sDist, to the letter", "screening + logistic",
    "L1 logistic", "RBF-SVM", "LightGBM", "scikit-learn NCA", "PGDM", "LMNN", "SMLsm",
    "SMLlp, dominant", "BoostMetric", "NCA", next(iter(APART)),
)  # fmt: skip


@pytest.mark.parametrize("model", MEASURED)
def test_models_are_measured(model):
    """On a small table, with everything that tables and figures read."""
    if at_hand("Ionosphere") is None:
        pytest.skip("Ionosphere is not at hand")
    if model == "LightGBM":
        pytest.importorskip("lightgbm")
    settings = default_settings(model)
    if "max_iter" in settings:
        settings |= {"max_iter": 20, "rhos": [0.1]}
    row = error_of_split(Cell("", "Ionosphere", model, 0, settings | {"rows": 90}))
    assert 0 <= row["error"] <= 0.6
    if "sDist" in model or model in studies.SIMULATION_GRIDS:
        assert 0 < row["variables"] <= 33
        assert row["rank"] >= 1


# --- the page of the paper


def filled(tmp_path, value=lambda one: 0.2 + one.seed / 100):
    """Made-up results of all tables."""
    extent, lines = Extent(3), {}
    for one in cells_of(TABLES_OF_PAPER, extent):
        row = {"table": one.table, "model": one.model, "seed": one.seed, "status": "ok"}
        row |= {"settings": one.fingerprint, "error": value(one), "bayes_error": 0.15}
        row |= {"variables": 5, "margin_error": value(one) - 0.01, "cpu_seconds": 1.0}
        lines.setdefault(one.experiment, []).append(json.dumps(row | {"code": "made up"}))
    for experiment, rows in lines.items():
        path = Results(tmp_path).path(experiment)
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(rows) + "\n")
    return extent, Results(tmp_path)


def page_of(names, extent, known):
    return markdown(blocks(names, extent, known), "p")


def test_page_has_every_cell_beside_the_papers(tmp_path):
    extent, known = filled(tmp_path)
    text = page_of(TABLES_OF_PAPER, extent, known)
    for (source, method), value in ERRORS.items():
        if method != "Bayes":
            assert f"/ {value:.3f} / " in text, (source, method)
    assert text.count("0.210 (0.006) / ") >= 5 * 18
    assert "+0.067" in text  # 0.210 against the paper's 0.143
    # 0.210 (0.006) - 0.15 is within the paper's 0.083 in one cell, and in no other.
    assert "one standard error of ours: sDist 1 of 18;" in text
    assert "7% of SECOM's rows are failures" in text
    assert "|  | made up |\n| --- | --- |\n| table1 |" in text


def test_excess_and_verdicts_are_paired(tmp_path):
    extent, known = filled(tmp_path, lambda one: 0.151 if one.model == "sDist" else 0.3)
    assert "sDist 18 of 18" in page_of(["table1", "table2"], extent, known)
    column = columns(cells_of(["table1"], extent), known)["double ring, N 100, p 50"]
    mean, error = excess(column, "sDist", "error")
    assert (round(mean, 6), error) == (0.001, 0.0)
    assert len(OURS) == 4


def test_what_was_not_measured_says_why(tmp_path):
    extent, known = filled(tmp_path)
    rows = known.of("paper/table1")
    for one in cells_of(["table1"], extent):
        if one.model == "LMNN":
            rows[one.key] |= {"status": "timeout", "limit": 5}
        if one.model == "SMLsm":
            del rows[one.key]
    text = page_of(["table1"], extent, known)
    assert "| LMNN | 3 timeout / 0.230 | " in text
    assert "| SMLsm | not measured / 0.222 | " in text


def test_cells_of_older_settings_are_named(tmp_path):
    extent, known = filled(tmp_path)
    assert "Parameters of these methods have changed" not in page_of(["table1"], extent, known)
    for key, row in known.of("paper/table1").items():
        if key[1] == "sDist, defaults":
            row["settings"] = "others"
    told = "have changed since their cells were measured: sDist, defaults."
    assert told in page_of(["table1"], extent, known)


def test_page_is_written_without_the_real_tables(tmp_path, monkeypatch):
    monkeypatch.setattr("experiments.tables.load", None)
    extent, known = filled(tmp_path)
    text = page_of(["table3", "figure3"], extent, known)
    assert "### Madelon, 1820 x 500 training rows\n" in text
    assert "![Figure 3." in text
    for one in cells_of(["table3"], extent):
        known.row(one)["status"] = "failed"
    assert "| sDist, defaults | 3 failed |" in page_of(["table3"], extent, known)


def test_figure_without_its_cells_says_so(tmp_path):
    text = page_of(["table1", "figure1", "figure4"], *filled(tmp_path))
    assert text.count("Not measured, or not all of it.") == 2


def test_page_as_markdown():
    content = [
        Heading("A title", 1), Paragraph("**bold**"), Grid(["", "x"], [["row", "**1**"]]),
        Picture("one", "<svg/>", "It"),
    ]  # fmt: skip
    assert markdown(content, "page") == (
        "# A title\n\n**bold**\n\n|  | x |\n| --- | --- |\n| row | **1** |\n\n"
        "![It](page/one.svg)\n\n*It*\n"
    )


@pytest.mark.parametrize("names", [["table1"], ["table1", "causes"]])
def test_every_difference_has_letters_that_are_explained(tmp_path, names):
    letters = {text[2] for text in paragraphs("reasons")}
    text = page_of(names, *filled(tmp_path))
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
    rows = known.of("paper/causes")
    for one in cells_of(["causes"], extent):
        row = {"status": "ok", "seed": one.seed, "settings": one.fingerprint}
        if one.model == "3-NN":
            row |= {"errors": [0.3, 0.4, 0.5], "standardised": [0.3] * 3, "bayes_error": 0.15}
            rows[one.key] = row | {"error": 0.18, "margin_error": 0.16}
        elif one.model in values:
            rows[one.key] = row | {"error": values[one.model]}
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


def test_extents():
    full, short = Extent(20), Extent(1, True)
    for name, cells in STUDIES.items():
        assert list(cells(full)), name
        assert list(cells(short)), name
    assert len({one.table for one in STUDIES["table1"](full)}) == 9
    sdist = [one for one in cells_of(["table1", "table2"], full) if one.model == "sDist"]
    assert len(sdist) == 18 * 20
    assert {one.table for one in STUDIES["table1"](short)} == {
        f"double ring, N {n}, p {p}" for n in (100, 500) for p in (50, 500)
    }
    assert all(one.settings["rows"] == 300 for one in STUDIES["table3"](short))
    cells = cells_of(list(STUDIES), full)
    for one in cells:
        json.dumps(dict(one.settings))  # plain values
        assert line_of(one)
    assert len({(one.experiment, *one.key) for one in cells}) == len(cells)


def test_few_repeats_of_everything_come_first():
    repeats = [one.seed for one in cells_of(["table1", "table2"], Extent(20))]
    assert max(repeats[: repeats.index(5)]) == 4


def reproduce(*arguments):
    command = [sys.executable, "-m", "experiments.paper", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=ROOT)


@pytest.mark.slow
def test_the_command_draws_the_surfaces(tmp_path):
    """Figures 1 and 2: only the two informative columns, the parabola and the saddle."""
    options = ("--fast", "--results", tmp_path / "results", "--output", tmp_path)
    done = reproduce("figure1", "figure2", *options)
    assert done.returncode == 0, done.stderr
    for name in ("reproduction.md", "reproduction/figure2.svg"):
        assert (tmp_path / name).stat().st_size > 1000
    rows = {key[0]: row for key, row in Results(tmp_path / "results").of("paper/figure2").items()}
    assert shape_of(np.array(rows["pure double ring, N 500, p 50"]["last"])) == "bowl"
    assert shape_of(np.array(rows["pure XOR, N 500, p 50"]["last"])) == "saddle"
    assert "3 cells, 0 to measure" in reproduce("figure1", "figure2", *options).stdout


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


def test_the_command_refuses_what_is_not_there(tmp_path):
    done = reproduce("table9", "--results", tmp_path)
    assert done.returncode == 2
    assert "'table9' is not a table or figure: choose from table1" in done.stderr
    done = reproduce("table1", "--no-run", "--results", tmp_path, "--output", tmp_path)
    assert done.returncode == 1
    assert "No cell is measured yet" in done.stderr


# --- the pages


def test_the_pages_are_up_to_date_with_the_results():
    if not (ROOT / "docs").is_dir():
        pytest.skip("an installed package has no docs")
    old = [page.relative_to(ROOT).as_posix() for page in outdated(Results(RESULTS))]
    assert old == [], "make pages"


def test_the_page_of_the_paper_is_up_to_date_with_the_results():
    """Without the sentence about changed parameters: it depends on the installed versions."""
    if not (ROOT / "docs").is_dir():
        pytest.skip("an installed package has no docs")
    new = markdown(blocks(list(STUDIES), Extent(20), Results(RESULTS)), "reproduction")
    old = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert (
        old.partition("Parameters of these methods")[0]
        == new.partition("Parameters of these methods")[0]
    ), "make pages"


def test_every_table_is_on_a_page():
    named = {
        match[2] for page in pages() for match in TABLE.finditer(page.read_text(encoding="utf-8"))
    }
    assert named == set(TABLES)


def test_tables_and_values_come_from_the_results(tmp_path):
    known = Results(tmp_path)
    for model, error in (("metric-learn 0.7.0", 0.2), ("metricboost", 0.1)):
        for seed in range(2):
            known.add(Cell("lmnn", "Ionosphere", model, seed), {"status": "ok", "error": error})
        row = {"status": "ok", "seconds": 2.0, "cpu_seconds": 3.0, "objective": 7.0}
        known.add(Cell("lmnn", "Madelon", model, 0), row)
    value = "Error <!-- value: lmnn; Ionosphere; metricboost; error; .2f -->0.9<!-- end -->."
    text = f"<!-- table: lmnn -->\nold\n<!-- end -->\n\n{value}\n"
    new = generated(text, known)
    assert "| Madelon, 1820 x 500: seconds (CPU seconds) | 2.0 (3.0) | 2.0 (3.0) |" in new
    assert "| 0.200 (0.000) | 0.100 (0.000) |" in new
    assert f"*Measured with {code()}.*" in new
    assert "error; .2f -->0.10<!-- end -->." in new
    assert generated(new, known) == new
    with pytest.raises(ValueError, match="No result for"):
        generated(value.replace("metricboost", "nobody"), known)
