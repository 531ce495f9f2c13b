"""The command, as people run it: results, exit codes, and no tracebacks."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from itertools import product

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("typer")

from typer.testing import CliRunner  # noqa: E402

from metricboost import SDistClassifier, load, save  # noqa: E402
from metricboost.cli.app import app  # noqa: E402
from metricboost.datasets import make_xor  # noqa: E402


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if code == 0 and result.exit_code != 0:
        raise AssertionError(result.output) from result.exception
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table with an id, text and gaps, and a model of it."""
    path = tmp_path_factory.mktemp("cli")
    X, y = make_xor(n_samples=260, n_features=12, informative=2, random_state=0)
    random = np.random.default_rng(0)
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(12)])
    frame.insert(0, "id", range(260))
    frame["city"] = random.choice(["Rome", "Oslo"], 260)
    frame.loc[::10, "g4"] = np.nan
    frame["outcome"] = np.where(y == 1, "ill", "well")
    frame[:160].to_csv(path / "train.csv", index=False)
    frame[160:].to_csv(path / "test.csv", index=False)
    result = run("fit", path / "train.csv", "--target", "outcome", "-o", path / "model.mbz")
    (path / "said.txt").write_text(result.output)
    return path


def test_fit_says_what_it_found(folder):
    said = (folder / "said.txt").read_text()
    assert "160 rows, 13 columns; classes ill" in said
    assert "interaction" in said
    assert "errors out of fold" in said
    assert "plain nearest neighbours" in said
    assert "Column 'id' looks like an identifier" in " ".join(said.split())
    assert "Use --keep id" in " ".join(said.split())
    assert load(folder / "model.mbz").target_ == "outcome"


def test_fit_for_machines(folder, tmp_path):
    arguments = "fit", folder / "train.csv", "-t", "outcome", "--json", "-o", tmp_path / "m.mbz"
    content = json.loads(run(*arguments).stdout)
    assert content["rows"] == 160
    assert content["classes"].keys() == {"ill", "well"}
    assert 0 <= content["error_out_of_fold"] < 0.5
    assert content["problems"][0]["column"] == "id"


def test_fit_on_noise_says_so_first(tmp_path):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(80, 30)), columns=[f"c{j}" for j in range(30)]).assign(
        y=np.arange(80) % 2
    )
    frame.to_csv(tmp_path / "noise.csv", index=False)
    arguments = "fit", tmp_path / "noise.csv", "-t", "y", "-o", tmp_path / "m.mbz"
    said = run(*arguments)
    assert said.stdout.startswith("The model is no better than guessing")
    assert said.output.count("no better than guessing") == 1
    explained = run("explain", tmp_path / "m.mbz").stdout
    assert explained.startswith("The model is no better than guessing")
    content = json.loads(run(*arguments, "--json").stdout)
    assert content["better_than_guessing"] is False
    assert content["gain_over_guessing"] < 2


def test_quiet(folder, tmp_path):
    arguments = "fit", folder / "train.csv", "-t", "outcome", "-q", "-o", tmp_path / "m.mbz"
    assert run(*arguments).output == ""


def test_tune(folder, tmp_path):
    out = tmp_path / "m.mbz"
    arguments = "--n-iter", 1, "--cv", 2, "--jobs", 1, "--json", "-o", out, "--scoring", "roc_auc"
    content = json.loads(run("tune", folder / "train.csv", "-t", "outcome", *arguments).stdout)
    assert "max_degree" in content["best_params"]
    predicted = run("predict", out, folder / "test.csv").stdout
    assert predicted.startswith("prediction,p(ill),p(well)")


def test_predict(folder, tmp_path):
    model = load(folder / "model.mbz")
    test = pd.read_csv(folder / "test.csv")
    expected = model.predict_proba(test)
    whole = run("predict", folder / "model.mbz", folder / "test.csv", "--copy", "id").stdout
    (tmp_path / "out.csv").write_text(whole)
    found = pd.read_csv(tmp_path / "out.csv")
    assert found["id"].tolist() == test["id"].tolist()
    np.testing.assert_allclose(found["p(ill)"], expected[:, 0], atol=1e-6)
    assert found["prediction"].tolist() == model.predict(test).tolist()


def test_predict_in_chunks_is_the_same(folder, tmp_path):
    for name in ("whole.csv", "parts.csv"):
        rows = 7 if name == "parts.csv" else 10_000
        arguments = "-o", tmp_path / name, "--rows", rows
        result = run("predict", folder / "model.mbz", folder / "test.csv", *arguments)
        assert "100 rows classified" in result.output
        assert "errors on the 100 rows whose outcome is known" in result.output
    assert (tmp_path / "whole.csv").read_bytes() == (tmp_path / "parts.csv").read_bytes()


def test_predict_does_not_need_the_target(folder, tmp_path):
    test = pd.read_csv(folder / "test.csv", dtype=str)
    test["id"] = [f"{i:05}" for i in range(100)]
    test.loc[3, "outcome"], test.loc[60, "outcome"] = "zzz", "xxx"
    test.to_csv(tmp_path / "odd.csv", index=False)
    out = tmp_path / "out.csv"
    arguments = folder / "model.mbz", tmp_path / "odd.csv", "-o", out, "--copy", "id"
    said = run("predict", *arguments, "--rows", 50)
    assert said.stderr.count("warning") == 1
    assert "such as 'zzz'" in " ".join(said.stderr.split())
    assert "errors on the 98 rows" in said.output
    assert pd.read_csv(out, dtype=str)["id"].tolist() == test["id"].tolist()


def test_explain_a_row_with_gaps(folder):
    arguments = "explain", folder / "model.mbz", "--data", folder / "train.csv", "--row", 0
    json.loads(run(*arguments, "--json").stdout)
    assert "nan" not in run(*arguments).output


@pytest.mark.parametrize("rows", [8, 50, 10_000])
def test_texts_among_numbers(folder, tmp_path, rows):
    """What is said does not depend on the rows of a chunk, and explain says the same."""
    table = pd.read_csv(folder / "test.csv", dtype=str)
    data, model, out = tmp_path / "t.csv", folder / "model.mbz", tmp_path / "o.csv"
    table.assign(g3=np.where(table.index < 50, table["g3"], "broken")).to_csv(data, index=False)
    said = run("predict", model, data, "-o", out, "--rows", rows).stderr
    assert said.count("warning") == 1
    assert "Column 'g3' has 50 texts such as 'broken' among its numbers" in " ".join(said.split())
    assert run("explain", model, "--data", data).stderr == said
    table.assign(g3="broken").to_csv(data, index=False)
    out.unlink()
    refused = run("predict", model, data, "-o", out, "--rows", rows, code=1).stderr
    assert "Column 'g3' held numbers in training, but here it holds only texts" in refused
    assert run("explain", model, "--data", data, code=1).stderr == refused
    assert not out.exists()


def test_predict_a_file_with_decimal_commas(folder, tmp_path):
    """Also where no number of a chunk tells the mark."""
    table = pd.read_csv(folder / "test.csv").sort_values("g1", ascending=False)[::5]
    options = {"index": False, "float_format": "%.3f"}
    table.to_csv(tmp_path / "point.csv", **options)
    table.to_csv(tmp_path / "comma.csv", sep=";", decimal=",", **options)
    train = pd.read_csv(folder / "train.csv")
    train.to_csv(tmp_path / "train.csv", sep=";", decimal=",", **options)
    comma = tmp_path / "comma.mbz"
    run("fit", tmp_path / "train.csv", "-t", "outcome", "-o", comma, "-q")
    for model, rows in product((folder / "model.mbz", comma), (2, 10_000)):
        for name in ("point", "comma"):
            arguments = "-o", tmp_path / f"{name}.txt", "--rows", rows
            said = run("predict", model, tmp_path / f"{name}.csv", *arguments).output
            assert "warning" not in said
        assert (tmp_path / "point.txt").read_text() == (tmp_path / "comma.txt").read_text()


def test_predict_to_parquet(folder, tmp_path):
    pytest.importorskip("pyarrow")
    out = tmp_path / "out.parquet"
    run("predict", folder / "model.mbz", folder / "test.csv", "-o", out, "--rows", 30, "--quiet")
    assert len(pd.read_parquet(out)) == 100


@pytest.mark.parametrize(("name", "parted_by"), [("o", ","), ("o.TXT", ","), ("o.tsv", "\t")])
def test_predict_to_text(folder, tmp_path, name, parted_by):
    run("predict", folder / "model.mbz", folder / "test.csv", "-o", tmp_path / name)
    assert (tmp_path / name).read_text().startswith(f"prediction{parted_by}p(ill){parted_by}")


def test_memory_of_predictions_does_not_grow_with_the_file(folder, tmp_path):
    header, *lines = (folder / "test.csv").read_text().splitlines()
    out, peaks = tmp_path / "out.csv", []
    for copies in (20, 80):
        path = tmp_path / "large.csv"
        path.write_text("\n".join([header, *lines * copies]) + "\n")
        tracemalloc.start()
        run("predict", folder / "model.mbz", path, "-o", out, "--rows", 1000, "--quiet")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert len(out.read_text().splitlines()) == 100 * copies + 1
    assert peaks[1] < 1.2 * peaks[0]


def test_explain(folder):
    said = run("explain", folder / "model.mbz").output
    assert "Weight of the metric by kind of term" in said
    content = json.loads(run("explain", folder / "model.mbz", "--json").stdout)
    assert abs(sum(term["share"] for term in content["terms"]) - 1) < 1e-9
    arguments = "explain", folder / "model.mbz", "--data", folder / "test.csv", "--row", 3
    said = run(*arguments, "--row", 5).output
    assert "Row 3 is classified as" in said
    assert "Row 5 is classified as" in said
    content = json.loads(run(*arguments, "--json").stdout)
    near = content["rows"][0]["neighbors"][0]
    assert abs(sum(near["contributions"].values()) - near["squared_distance"]) < 1e-9


def test_report(folder, tmp_path):
    out = tmp_path / "report.html"
    result = run("report", folder / "model.mbz", "--data", folder / "test.csv", "-o", out)
    assert "report.html written" in " ".join(result.output.split())
    assert "<h1>outcome: model</h1>" in out.read_text()
    run("report", folder / "model.mbz", "-o", out, "--title", "Mine", "--quiet")
    assert "<h1>Mine</h1>" in out.read_text()


def test_report_on_rows_of_one_class(folder, tmp_path):
    pd.read_csv(folder / "test.csv")[:1].to_csv(tmp_path / "one.csv", index=False)
    arguments = "--data", tmp_path / "one.csv", "-o", tmp_path / "report.html"
    assert run("report", folder / "model.mbz", *arguments).stderr == ""


@pytest.mark.parametrize(("kept", "scored"), [(50, True), (0, False)])
def test_report_on_classes_the_model_does_not_know(folder, tmp_path, kept, scored):
    test = pd.read_csv(folder / "test.csv")
    test.loc[kept:, "outcome"] = "zzz"
    test.to_csv(tmp_path / "odd.csv", index=False)
    out = tmp_path / "report.html"
    said = run("report", folder / "model.mbz", "--data", tmp_path / "odd.csv", "-o", out).stderr
    assert said.count("warning") == 1
    assert "such as 'zzz'. Rows of these classes are not scored" in " ".join(said.split())
    assert ("Other scores on these 50 rows" in out.read_text()) == scored


def test_bench(folder):
    arguments = "bench", folder / "train.csv", "-t", "outcome", "--splits", 2, "--json"
    content = json.loads(run(*arguments).stdout)
    names = {row["model"] for row in content["tables"][0]["results"]}
    assert {"metricboost", "3 nearest neighbours", "gradient boosting"} <= names


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["fit", "nothing.csv", "-t", "y"], 2, "no file"),
        (["fit", "train.csv", "-t", "outcom"], 2, "Did you mean 'outcome'"),
        (["fit", "train.csv", "-t", "outcome", "--drop", "cty"], 2, "Did you mean 'city'"),
        (["fit", "train.csv", "-t", "outcome", "-o", "no/where/m.mbz"], 2, "there is no folder"),
        (["fit", "train.csv", "-t", "g0"], 1, "offers no regression"),
        (["fit", "train.csv"], 2, "--target"),
        (["fit", "train.csv", "-t", "outcome", "--seed", "-1"], 2, "seed"),
        (["fit", "model.mbz", "-t", "y", "-o", "new.mbz"], 1, "unknown ending"),
        (["fit", "train.csv", "-t", "outcome", "-o", "train.csv"], 2, "would be overwritten"),
        (["predict", "model.mbz", "test.csv", "-o", "test.csv"], 2, "would be overwritten"),
        (["predict", "model.mbz", "test.csv", "-o", "/dev/null"], 2, "is not a file"),
        (["predict", "model.mbz", "clash.csv", "--copy", "prediction"], 2, "column of this name"),
        (["predict", "model.mbz", "empty.csv"], 1, "has no rows"),
        (["fit", "."], 2, "--target"),
        (["predict", "train.csv", "test.csv"], 1, "is not a model file"),
        (["predict", "metric.mbz", "test.csv"], 1, "was saved in Python"),
        (["predict", "model.mbz", "other.csv"], 1, "lacks columns"),
        (["predict", "model.mbz", "test.csv", "--copy", "Id"], 2, "Did you mean 'id'"),
        (["predict", "model.mbz", "test.csv", "--json"], 2, "--output"),
        (["predict", "no_rows.mbz", "test.csv"], 1, "without its training rows"),
        (["explain", "model.mbz", "--row", "3"], 2, "--data"),
        (["explain", "model.mbz", "--data", "test.csv", "--row", "100"], 2, "rows 0 to 99"),
        (["report", "model.mbz", "--data", "dates.csv"], 1, "lacks columns"),
        (["tune", "train.csv", "-t", "outcome", "--scoring", "nope"], 2, "--scoring nope: give"),
        (["tune", "train.csv", "-t", "outcome", "--cv", "500"], 2, "--cv 500: the largest class"),
        (["tune", "train.csv", "-t", "g0"], 1, "offers no regression"),
        (["fit", "train.csv", "-t", "outcome", "--drop", "outcome"], 2, "cannot be dropped"),
        (["bench", "train.csv", "-t", "outcome", "--drop", "outcome"], 2, "cannot be dropped"),
        (["predict", "nothing.mbz", "test.csv", "-o", "z.xlsx"], 2, "are not written"),
        (["predict", "nothing.mbz", "test.csv", "-o", "z.csv.gz"], 2, "are not written"),
        (["tune", "train.csv", "-t", "outcome", "--jobs", "0"], 2, "--jobs 0"),
        (["fit", "dates.csv", "-t", "outcome"], 1, "holds dates"),
        (["bench", "train.csv"], 2, "--target"),
        (["nonsense"], 2, "No such command"),
    ],
)
def test_mistakes(folder, monkeypatch, arguments, code, message):
    monkeypatch.chdir(folder)
    if not (folder / "other.csv").exists():
        X, y = make_xor(n_samples=60, n_features=3, informative=2, random_state=0)
        save(SDistClassifier(random_state=0, max_iter=5).fit(X, y).metric_, "metric.mbz")
        load("model.mbz").save("no_rows.mbz", rows=False)
        (folder / "other.csv").write_text("a,b\n1,2\n")
        (folder / "empty.csv").write_text((folder / "test.csv").read_text().split("\n")[0] + "\n")
        (folder / "dates.csv").write_text("day,outcome\n2024-01-02,a\n2024-02-03,b\n")
    said = " ".join(run(*arguments, code=code).output.split())
    assert message in said


def test_help_and_version():
    assert "fit" in run("--help").output
    assert run("--version").output.strip() == __import__("metricboost").__version__
    done = subprocess.run([sys.executable, "-c", "from metricboost.cli import main; main()"],
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 2  # no command at all
    assert "Usage" in done.stdout + done.stderr
