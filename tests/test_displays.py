"""The displays: they draw what the model says, and unusual models draw without complaint."""

from __future__ import annotations

import doctest
import inspect
import subprocess
import sys
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
from display_tools import (
    ALL,
    OF_METRIC,
    OF_MODEL,
    SMALL,
    drawn,
    figures_closed,
    legend_texts,
    metric_of_columns,
    named_wine,
    named_xor,
    points,
    render_all,
)
from matplotlib import pyplot as plt
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from metricboost import SDist, SDistClassifier, SDistClassifierCV, load
from metricboost.inspection import (
    EmbeddingDisplay,
    ImportanceDisplay,
    InteractionDisplay,
    MetricMatrixDisplay,
    PathDisplay,
    SurfaceDisplay,
    explain_model,
)
from metricboost.inspection.displays._drawing import fitting, fitting_term, percent
from metricboost.tables import TableClassifier

QUIET = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(autouse=True)
def _closed():
    with figures_closed():
        yield


@pytest.fixture
def _rendered(_closed):
    yield
    render_all()


RENDERED = pytest.mark.usefixtures("_rendered")


@pytest.fixture(scope="module")
def xor():
    return named_xor()


@pytest.fixture(scope="module")
def model(xor):
    return SDistClassifier(**SMALL).fit(*xor)


@pytest.fixture(scope="module")
def wine():
    return named_wine()


@pytest.fixture(scope="module")
def three(wine):
    return SDistClassifier(**SMALL).fit(*wine)


# --- all displays


@pytest.mark.parametrize("display", ALL)
def test_scikit_learns_form(display, model, xor):
    """``from_estimator`` draws, and ``plot`` draws the same data again on other axes."""
    first = drawn(display, model, *xor)
    assert isinstance(first, display)
    assert first.figure_ is plt.figure(plt.get_fignums()[-1])
    before = dict(vars(first))
    figure, ax = plt.subplots()
    assert first.plot(ax=ax) is first
    assert first.figure_ is figure
    assert first.ax_ is ax or first.ax_ in ax.child_axes
    for name in set(before) - {"figure_"}:
        if not name.endswith("_"):
            assert vars(first)[name] is before[name]
    n_figures = len(plt.get_fignums())
    drawn(display, model, *xor, ax=ax)
    assert len(plt.get_fignums()) == n_figures


@pytest.mark.parametrize("display", ALL)
def test_one_order_of_parameters(display):
    """``from_estimator`` takes estimator, X and y. All other parameters are given by name."""
    parameters = inspect.signature(display.from_estimator).parameters.values()
    positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert positional == (["estimator"] if display in OF_MODEL else ["estimator", "X", "y"])
    data = list(inspect.signature(display).parameters.values())
    assert data
    assert all(p.kind is p.KEYWORD_ONLY for p in data)
    plot = inspect.signature(display.plot).parameters.values()
    assert [p.name for p in plot if p.kind is p.POSITIONAL_OR_KEYWORD] == ["self", "ax"]


@pytest.fixture(scope="module")
def search(xor):
    return SDistClassifierCV(
        SDistClassifier(**SMALL), param_grid={"max_degree": [2]}, cv=2, n_blended=1, random_state=0
    ).fit(*xor)


@RENDERED
@pytest.mark.parametrize("display", ALL)
def test_of_a_search(display, search, xor):
    """A display draws the best model of a search."""
    found = drawn(display, search, *xor)
    if display is PathDisplay:
        assert_array_equal(found.path, search.best_estimator_.path_)
    elif display is SurfaceDisplay:
        assert_allclose(found.probabilities.sum(axis=2), 1)


@pytest.mark.parametrize("display", ALL)
def test_of_a_loaded_model(display, model, xor, tmp_path):
    """A loaded model has everything that a display draws."""
    model.save(tmp_path / "model.mbz")
    found = drawn(display, load(tmp_path / "model.mbz"), *xor)
    assert set(vars(found)) == set(vars(drawn(display, model, *xor)))


def test_of_a_model_without_its_rows(model, xor, tmp_path):
    """A model without its training rows embeds, and its points have no classes."""
    model.save(tmp_path / "model.mbz", rows=False)
    bare = load(tmp_path / "model.mbz")
    found = EmbeddingDisplay.from_estimator(bare, xor[0])
    assert found.rows is None
    assert found.ax_.get_legend() is None
    with pytest.raises(ValueError, match="rows=False"):
        SurfaceDisplay.from_estimator(bare, xor[0])


@pytest.mark.parametrize("display", OF_MODEL)
def test_of_the_fitted_model(display, model):
    """The model without its estimator gives the same picture."""
    first, second = drawn(display, model), drawn(display, model.model_)
    for name in set(vars(first)) - {"positions"}:
        if not name.endswith("_"):
            assert_array_equal(vars(first)[name], vars(second)[name])


def test_of_a_table_classifier(wine):
    """An embedding takes rows of the original table, and a surface takes encoded rows."""
    frame = wine[0].iloc[:, :4].assign(target=wine[1])
    model = TableClassifier(SDistClassifier(missing="impute", **SMALL)).fit(frame, "target")
    for display in OF_MODEL:
        assert drawn(display, model).figure_
    assert ImportanceDisplay.from_estimator(model).stability_ax_ is not None
    assert len(EmbeddingDisplay.from_estimator(model, frame).coordinates) == len(frame)
    with pytest.raises(TypeError, match=r"TableClassifier, give its model_, and encoded\(X\)"):
        SurfaceDisplay.from_estimator(model, frame)
    rows = model.encoded(frame)
    assert drawn(SurfaceDisplay, model.model_, rows).classes.tolist() == model.classes_.tolist()


@pytest.mark.parametrize("display", [*OF_MODEL, EmbeddingDisplay])
def test_of_a_transformer(display, xor):
    """SDist does not predict, so only the surface cannot be drawn."""
    sdist = SDist(max_iter=4, n_averaged=1, random_state=0).fit(*xor)
    found = drawn(display, sdist, xor[0])
    if display is EmbeddingDisplay:
        assert found.rows is None


@pytest.mark.parametrize("display", OF_METRIC)
def test_of_a_metric(display, model):
    """The picture of a metric is that of its estimator, except for the stability."""
    mine, other = drawn(display, model.metric_), drawn(display, model)
    if display is MetricMatrixDisplay:
        assert_array_equal(mine.matrix, other.matrix)
    else:
        assert [v.share for v in mine.variables] == [v.share for v in other.variables]


@RENDERED
@pytest.mark.parametrize("display", OF_METRIC)
def test_metrics_without_weight(display):
    """Under a metric without weight all rows are equal, and the title says so."""
    for n_columns in (1, 3):
        metric = metric_of_columns(n_columns, diagonal=np.zeros(n_columns))
        assert drawn(display, metric).ax_.get_title()


@pytest.mark.parametrize("display", ALL)
def test_models_that_cannot_be_drawn(display, model, xor):
    """The error names the object and says what to do."""
    with pytest.raises(TypeError, match=r"Pipeline.*last step"):
        drawn(display, make_pipeline(model), *xor)
    with pytest.raises(NotFittedError):
        drawn(display, SDistClassifier(), *xor)
    with pytest.raises(NotFittedError):
        drawn(display, SDistClassifierCV(), *xor)


def test_what_a_metric_does_not_have(model, xor):
    """A metric has no path and no predictions, and SDist has no predictions."""
    with pytest.raises(TypeError, match=r"SparseMetric.*no path.*estimator"):
        PathDisplay.from_estimator(model.metric_)
    with pytest.raises(TypeError, match=r"SparseMetric.*no predict_proba"):
        SurfaceDisplay.from_estimator(model.metric_, xor[0])
    sdist = SDist(max_iter=2, n_averaged=1, random_state=0).fit(*xor)
    with pytest.raises(TypeError, match=r"SDist,.*no predict_proba.*SDistClassifier"):
        SurfaceDisplay.from_estimator(sdist, xor[0])


COUNTS = [
    (ImportanceDisplay, "max_variables"),
    (InteractionDisplay, "max_links"),
    (MetricMatrixDisplay, "max_terms"),
]


@pytest.mark.parametrize(("display", "name"), COUNTS)
@pytest.mark.parametrize("value", [0, -1, 2.0, True, "all", None])
def test_counts(display, name, value, model):
    """The error has the name and the value of the parameter."""
    with pytest.raises(ValueError, match=f"{name}={value!r} must be an integer of at least 1"):
        display.from_estimator(model, **{name: value})


@pytest.mark.parametrize("display", ALL)
def test_without_matplotlib(display, model, xor, monkeypatch):
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot")
    with pytest.raises(ImportError, match=r'pip install "metricboost\[plot\]"'):
        drawn(display, model, *xor)


def test_matplotlib_is_imported_only_to_draw():
    """``metricboost.inspection`` can be imported without matplotlib."""
    code = "import metricboost.inspection, sys; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# --- labels


def test_long_names_keep_their_ends():
    """Labels have one line, and a dollar does not begin a formula."""
    assert fitting("age") == "age"
    assert fitting("a\n b") == "a b"
    assert fitting("sensor_number_1_of_machine_17_left", 15) == "sensor_…17_left"
    assert len(fitting("x" * 100)) == 28
    assert fitting("$a$") == r"\$a\$"
    assert fitting_term("age*income^2") == "age*income^2"
    assert fitting_term("a" * 40 + "*" + "b" * 40).count("…") == 2


def test_percent():
    """A positive share does not read as 0%, and a share below 1 does not read as 100%."""
    assert [percent(s) for s in (0, 0.001, 0.3, 0.999, 1)] == ["0%", "<1%", "30%", ">99%", "100%"]


# --- the path


def test_path_lines(model):
    """The lines are the losses and the terms of every fit, and circles mark the refreshes."""
    display = PathDisplay.from_estimator(model)
    assert_array_equal(display.path, model.path_)
    lines = iter(display.ax_.lines)
    for fit, terms in zip(np.unique(model.path_["fit"]), display.terms_ax_.lines):
        own = model.path_[model.path_["fit"] == fit]
        loss, marks = next(lines), next(lines)
        assert_array_equal(loss.get_xdata(), np.arange(1, len(own) + 1))
        assert_array_equal(loss.get_ydata(), own["loss"])
        assert_array_equal(marks.get_ydata(), own["loss"][own["refreshed"]])
        assert_array_equal(terms.get_ydata(), own["terms"])
    assert "2 averaged fits" in display.ax_.get_title()
    assert model.path_["refreshed"].any()
    assert "jumps" in legend_texts(display.ax_)[0]


def test_path_without_refreshes(model):
    """Without refreshes there are no marks and no legend. A single fit is not called an average."""
    path = model.path_[:5].copy()
    display = PathDisplay(path=path).plot()
    assert display.ax_.get_legend() is None
    assert display.ax_.get_title() == "Path of boosting"
    assert display.ax_.get_yscale() == "linear"
    path["loss"] = [1e5, 1e3, 10, 5, 1]
    assert PathDisplay(path=path).plot().ax_.get_yscale() == "log"


@RENDERED
@QUIET
def test_path_without_steps(xor):
    """The title says that no step was accepted."""
    nothing = SDistClassifier(oob_gate=1e6, **SMALL).fit(*xor)
    assert not len(nothing.path_)
    title = PathDisplay.from_estimator(nothing).ax_.get_title()
    assert "nothing was learned" in title


# --- importance


def bars(display):
    """The widths of the two parts of the bars, and the starts of the second parts."""
    alone, together = display.ax_.containers
    widths = [[bar.get_width() for bar in part] for part in (alone, together)]
    return *widths, [bar.get_x() for bar in together]


def test_bars_are_shares(three):
    """The bars are those of ``explain_model``, with names and stabilities, the largest on top."""
    display = ImportanceDisplay.from_estimator(three)
    expected = explain_model(three.model_).variables
    assert display.variables == expected
    alone, together, starts = bars(display)
    assert alone == starts == [variable.alone for variable in expected]
    assert_allclose(together, [variable.together for variable in expected], atol=1e-12)
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert names == [fitting(variable.name) for variable in expected]
    beside = [label.get_text() for label in display.stability_ax_.get_yticklabels()]
    assert beside == [percent(variable.stability) for variable in expected]
    assert display.ax_.get_ylim()[0] > display.ax_.get_ylim()[1]
    assert legend_texts(display.ax_) == ["alone", "in interactions"]


def test_the_heaviest_variables(three):
    """The title has the number of all variables and the share of the variables that are drawn."""
    display = ImportanceDisplay.from_estimator(three, max_variables=2)
    every = explain_model(three.model_).variables
    assert display.variables == every[:2]
    share = percent(every[0].share + every[1].share)
    assert display.ax_.get_title() == f"2 of {len(every)} variables, {share} of the weight"


def test_a_metric_has_no_stability_of_variables(model):
    """A metric alone has no stability of variables, so there is no axis beside the bars."""
    assert ImportanceDisplay.from_estimator(model.metric_).stability_ax_ is None


def test_a_thousand_variables():
    """Of variables with equal shares, the first twenty are drawn."""
    display = ImportanceDisplay.from_estimator(metric_of_columns(1000))
    assert [variable.name for variable in display.variables] == [f"x{j}" for j in range(20)]
    assert "20 of 1000 variables, 2% of the weight" in display.ax_.get_title()


# --- nothing learned, one variable


@pytest.fixture(scope="module")
def plain(xor):
    """A model whose metric is the plain distance on all columns."""
    return SDistClassifier(start_share=1.0, **SMALL).fit(*xor)


@pytest.mark.parametrize("display", [ImportanceDisplay, InteractionDisplay])
def test_nothing_learned(display, plain):
    """The title says that nothing was learned."""
    assert plain.start_share_ == 1
    found = drawn(display, plain)
    assert "nothing was learned" in found.ax_.get_title()
    assert len(found.variables) == 8


@RENDERED
@pytest.mark.parametrize("display", ALL)
def test_nothing_learned_draws(display, plain, xor):
    drawn(display, plain, *xor)


def test_a_share_of_the_plain_distance(xor):
    """The title has the share of the plain distance, because most small bars come from it."""
    half = SDistClassifier(start_share=0.5, **SMALL).fit(*xor)
    assert "50% is the plain distance" in ImportanceDisplay.from_estimator(half).ax_.get_title()


@pytest.fixture(scope="module")
def single():
    """A table with one column, whose square decides the class."""
    x = np.random.default_rng(0).standard_normal(120)
    X = pd.DataFrame({"only": x})
    return SDistClassifier(**SMALL).fit(X, np.abs(x) > 0.7), X, np.abs(x) > 0.7


@RENDERED
@pytest.mark.parametrize("display", ALL)
def test_one_variable(display, single):
    found = drawn(display, *single)
    if display is InteractionDisplay:
        assert found.ax_.get_title() == "No interactions"
        assert [variable.name for variable in found.variables] == ["only"]
    if display is SurfaceDisplay:
        assert found.features == ("only",)
        assert found.probabilities.shape == (8, 2)
        assert "median" not in found.ax_.get_title()


# --- interactions


def test_links_are_those_of_the_explanation(three):
    """The links with the largest shares are drawn between their variables, the largest widest."""
    display = InteractionDisplay.from_estimator(three, max_links=5)
    every = explain_model(three.model_).links
    assert display.links == every[:5]
    assert display.ax_.get_title().startswith(f"The heaviest 5 of {len(every)} interactions")
    place = {v.name: at for v, at in zip(display.variables, display.positions)}
    assert set(place) == {name for link in every[:5] for name in (link.a, link.b)}
    lines = display.ax_.lines[::-1]  # the largest share is drawn last
    for link, line in zip(display.links, lines, strict=True):
        ends = np.column_stack(line.get_data())[[0, -1]]
        assert_allclose(ends, [place[link.a], place[link.b]], atol=1e-12)
    widths = [line.get_linewidth() for line in lines]
    assert widths == sorted(widths, reverse=True)


def test_nodes_are_sized_by_share(three):
    """The sizes of nodes are proportional to shares, and the names stand beside the circle."""
    display = InteractionDisplay.from_estimator(three)
    places, _ = points(display.ax_)
    assert_allclose(places, display.positions)
    assert_allclose(np.hypot(*display.positions.T), 1)
    shares = np.array([variable.share for variable in display.variables])
    sizes = display.ax_.collections[-1].get_sizes()
    assert_allclose((sizes - 15) / (sizes.max() - 15), shares / shares.max())
    assert [text.get_text() for text in display.ax_.texts] == [
        fitting(variable.name, 22) for variable in display.variables
    ]
    assert display.variables[0].share == shares.max()


def test_no_interactions():
    """The variables with the largest shares are drawn, and the title says that none interact."""
    display = InteractionDisplay.from_estimator(metric_of_columns(5))
    assert display.ax_.get_title() == "No interactions"
    assert len(display.variables) == 5
    assert not display.ax_.lines
    many = InteractionDisplay.from_estimator(metric_of_columns(1000))
    assert many.ax_.get_title() == "No interactions: 20 of 1000 variables"


# --- the matrix


def test_matrix_is_the_metrics(three):
    """The matrix has the heaviest terms in order, their names, and a colour map centred at 0."""
    display = MetricMatrixDisplay.from_estimator(three, max_terms=6)
    metric = three.metric_
    shown = [metric.columns.index(term.columns) for term in metric.terms[:6]]
    assert_allclose(display.matrix, metric.matrix()[np.ix_(shown, shown)], atol=1e-15)
    assert display.names == [term.name for term in metric.terms[:6]]
    for labels in (display.ax_.get_xticklabels(), display.ax_.get_yticklabels()):
        assert [label.get_text() for label in labels] == list(map(fitting_term, display.names))
    low, high = display.image_.get_clim()
    assert -low == high == np.abs(display.matrix).max()
    assert_array_equal(display.image_.get_array(), display.matrix)
    assert f"6 of {display.n_terms} terms" in display.ax_.get_title()


def test_matrix_of_many_terms():
    """Only a part of W is computed, because W over all terms would take 800 MB."""
    display = MetricMatrixDisplay.from_estimator(metric_of_columns(10_000))
    assert_array_equal(display.matrix, np.eye(30))
    assert display.share == pytest.approx(0.003)


def test_small_matrices_have_their_numbers():
    """The cells of a small matrix have numbers, and rounding errors read as 0."""
    metric = metric_of_columns(2, components=[[1.0, 1e-20]], diagonal=[0.0, 0.25])
    display = MetricMatrixDisplay.from_estimator(metric)
    assert [text.get_text() for text in display.ax_.texts] == ["1", "0", "0", "0.25"]
    assert display.ax_.get_title() == "W over all 2 terms"


# --- documentation


@pytest.mark.parametrize(
    "name", ["_path", "_importance", "_interaction", "_embedding", "_surface", "_matrix"]
)
def test_examples_run(name):
    """The examples in the docstrings run and give the results that they show."""
    result = doctest.testmod(import_module(f"metricboost.inspection.displays.{name}"))
    assert result.attempted > 0
    assert result.failed == 0
