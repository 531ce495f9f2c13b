"""The displays: what they draw is what the model says, and odd models draw without complaint."""

from __future__ import annotations

import doctest
import subprocess
import sys
import warnings
from importlib import import_module
from itertools import product

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import pyplot as plt
from matplotlib.collections import PathCollection
from matplotlib.colors import to_rgba
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from metricboost import SDist, SDistClassifier, SDistClassifierCV, SparseMetric, load
from metricboost.datasets import make_xor
from metricboost.inspection import (
    EmbeddingDisplay,
    ImportanceDisplay,
    InteractionDisplay,
    MetricMatrixDisplay,
    PathDisplay,
    SurfaceDisplay,
    explain_model,
)
from metricboost.inspection.displays._circle import circle_order, crossings
from metricboost.inspection.displays._drawing import fitting, fitting_term, percent

OF_MODEL = [PathDisplay, ImportanceDisplay, InteractionDisplay, MetricMatrixDisplay]
OF_METRIC = [ImportanceDisplay, InteractionDisplay, MetricMatrixDisplay]
ALL = [*OF_MODEL, EmbeddingDisplay, SurfaceDisplay]
PROPERTY = settings(max_examples=40, deadline=None)
QUIET = pytest.mark.filterwarnings("ignore::UserWarning")
SMALL = {"max_iter": 25, "n_averaged": 2, "random_state": 0}
NAMES = ["age", "income", "height", "weight", "rate", "_score", "cost in $ or $$", "x" * 60]


@pytest.fixture(autouse=True)
def _closed():
    """No figure outlives its test."""
    yield
    plt.close("all")


@pytest.fixture
def _rendered(_closed):
    """What matplotlib notices only when it draws, such as letters that it lacks, is an error."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number in plt.get_fignums():
            plt.figure(number).canvas.draw()


RENDERED = pytest.mark.usefixtures("_rendered")


@pytest.fixture(scope="module")
def xor():
    """Two classes, an interaction of two named columns among eight."""
    X, y, info = make_xor(200, 8, informative=2, return_info=True, random_state=0)
    order = [*info.informative, *(j for j in range(8) if j not in info.informative)]
    return pd.DataFrame(X[:, order], columns=NAMES), np.array(["no", "yes"])[y]


@pytest.fixture(scope="module")
def model(xor):
    return SDistClassifier(**SMALL).fit(*xor)


@pytest.fixture(scope="module")
def wine():
    data = load_wine(as_frame=True)
    return data.data, data.target_names[data.target]


@pytest.fixture(scope="module")
def three(wine):
    """Three classes."""
    return SDistClassifier(**SMALL).fit(*wine)


def metric_of_columns(n_columns, **changes):
    """A metric on plain columns, of weight 1 each."""
    zeros, ones = np.zeros(n_columns), np.ones(n_columns)
    columns = [(j,) for j in range(n_columns)]
    arguments = {"components": np.empty((0, n_columns)), "diagonal": ones, **changes}
    factor = arguments.pop("components")
    return SparseMetric(columns, factor, zeros, ones, zeros, ones, **arguments)


def drawn(display, model, X=None, y=None, **options):
    """Any display of a model."""
    if display is EmbeddingDisplay:
        return display.from_estimator(model, X, y, **options)
    if display is SurfaceDisplay:
        return display.from_estimator(model, X, y=y, grid_resolution=8, **options)
    return display.from_estimator(model, **options)


def points(ax):
    """All points of the scatter plots of axes, with their colours."""
    parts = [part for part in ax.collections if isinstance(part, PathCollection)]
    places = np.vstack([part.get_offsets() for part in parts])
    colours = np.vstack([np.repeat(p.get_facecolor(), len(p.get_offsets()), 0) for p in parts])
    return places, colours


def sorted_rows(rows):
    return rows[np.lexsort(np.asarray(rows).T)]


def legend_texts(ax):
    return [text.get_text().lstrip("\N{WORD JOINER}") for text in ax.get_legend().get_texts()]


# --- what all have in common


@pytest.mark.parametrize("display", ALL)
def test_scikit_learns_form(display, model, xor):
    """from_estimator draws; plot draws again, elsewhere, from the same data."""
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


@pytest.fixture(scope="module")
def search(xor):
    return SDistClassifierCV(
        SDistClassifier(**SMALL), param_grid={"max_degree": [2]}, cv=2, n_blended=1, random_state=0
    ).fit(*xor)


@RENDERED
@pytest.mark.parametrize("display", ALL)
def test_of_a_search(display, search, xor):
    """The best model is drawn."""
    found = drawn(display, search, *xor)
    if display is PathDisplay:
        assert_array_equal(found.path, search.best_estimator_.path_)
    elif display is SurfaceDisplay:
        assert_allclose(found.probabilities.sum(axis=2), 1)


@pytest.mark.parametrize("display", ALL)
def test_of_a_loaded_model(display, model, xor, tmp_path):
    """A file keeps all that is drawn."""
    model.save(tmp_path / "model.mbz")
    found = drawn(display, load(tmp_path / "model.mbz"), *xor)
    assert set(vars(found)) == set(vars(drawn(display, model, *xor)))


def test_of_a_model_without_its_rows(model, xor, tmp_path):
    """It embeds, uncoloured where it cannot predict."""
    model.save(tmp_path / "model.mbz", rows=False)
    bare = load(tmp_path / "model.mbz")
    found = EmbeddingDisplay.from_estimator(bare, xor[0])
    assert found.rows is None
    assert found.ax_.get_legend() is None
    with pytest.raises(ValueError, match="rows=False"):
        SurfaceDisplay.from_estimator(bare, xor[0])


@pytest.mark.parametrize("display", [*OF_MODEL, EmbeddingDisplay])
def test_of_a_transformer(display, xor):
    """SDist has no predictions, and all but the surface without them."""
    sdist = SDist(max_iter=4, n_averaged=1, random_state=0).fit(*xor)
    found = drawn(display, sdist, xor[0])
    if display is EmbeddingDisplay:
        assert found.rows is None


@pytest.mark.parametrize("display", OF_METRIC)
def test_of_a_metric(display, model):
    """The same picture as of its estimator, but for the stability."""
    mine, other = drawn(display, model.metric_), drawn(display, model)
    if display is MetricMatrixDisplay:
        assert_array_equal(mine.matrix, other.matrix)
    else:
        assert [v.share for v in mine.variables] == [v.share for v in other.variables]


@RENDERED
@pytest.mark.parametrize("display", OF_METRIC)
def test_metrics_without_weight(display):
    """All rows are alike, and there is a picture that says so."""
    for n_columns in (1, 3):
        metric = metric_of_columns(n_columns, diagonal=np.zeros(n_columns))
        assert drawn(display, metric).ax_.get_title()


@pytest.mark.parametrize("display", ALL)
def test_models_that_cannot_be_drawn(display, model, xor):
    """They are named, with what to do."""
    with pytest.raises(TypeError, match=r"Pipeline.*last step"):
        drawn(display, make_pipeline(model), *xor)
    with pytest.raises(NotFittedError):
        drawn(display, SDistClassifier(), *xor)
    with pytest.raises(NotFittedError):
        drawn(display, SDistClassifierCV(), *xor)


def test_what_a_metric_does_not_have(model, xor):
    """No path and no predictions."""
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
    """The parameter and its value are in the message."""
    with pytest.raises(ValueError, match=f"{name}={value!r} must be an integer of at least 1"):
        display.from_estimator(model, **{name: value})


@pytest.mark.parametrize("display", ALL)
def test_without_matplotlib(display, model, xor, monkeypatch):
    """What to install is in the message."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot")
    with pytest.raises(ImportError, match=r'pip install "metricboost\[plot\]"'):
        drawn(display, model, *xor)


def test_matplotlib_is_imported_only_to_draw():
    """Inspection alone does not need it."""
    code = "import metricboost.inspection, sys; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# --- words


def test_long_names_keep_their_ends():
    """In one line; a dollar is not the start of a formula."""
    assert fitting("age") == "age"
    assert fitting("a\n b") == "a b"
    assert fitting("sensor_number_1_of_machine_17_left", 15) == "sensor_…17_left"
    assert len(fitting("x" * 100)) == 28
    assert fitting("$a$") == r"\$a\$"
    assert fitting_term("age*income^2") == "age*income^2"
    assert fitting_term("a" * 40 + "*" + "b" * 40).count("…") == 2


def test_percent():
    """What is there is never 0%, and a part is never all."""
    assert [percent(s) for s in (0, 0.001, 0.3, 0.999, 1)] == ["0%", "<1%", "30%", ">99%", "100%"]


# --- the path


def test_path_lines(model):
    """Losses, terms and refreshes of every fit."""
    display = PathDisplay.from_estimator(model)
    assert display.path is model.path_
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
    """Nothing is marked, nothing explained; one fit is not an average."""
    path = model.path_[:5].copy()
    display = PathDisplay(path).plot()
    assert display.ax_.get_legend() is None
    assert display.ax_.get_title() == "Path of boosting"
    assert display.ax_.get_yscale() == "linear"
    path["loss"] = [1e5, 1e3, 10, 5, 1]
    assert PathDisplay(path).plot().ax_.get_yscale() == "log"


@RENDERED
@QUIET
def test_path_without_steps(xor):
    """The title says what happened."""
    nothing = SDistClassifier(oob_gate=1e6, **SMALL).fit(*xor)
    assert not len(nothing.path_)
    title = PathDisplay.from_estimator(nothing).ax_.get_title()
    assert "nothing was learned" in title


# --- importance


def bars(display):
    """The widths of the bars' two parts, and where the second begins."""
    alone, together = display.ax_.containers
    widths = [[bar.get_width() for bar in part] for part in (alone, together)]
    return *widths, [bar.get_x() for bar in together]


def test_bars_are_shares(three):
    """As explain_model says, with stabilities and names beside them, the heaviest on top."""
    display = ImportanceDisplay.from_estimator(three)
    expected = explain_model(three).variables
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
    """How many there are, and what those that are drawn weigh, is in the title."""
    display = ImportanceDisplay.from_estimator(three, max_variables=2)
    every = explain_model(three).variables
    assert display.variables == every[:2]
    share = percent(every[0].share + every[1].share)
    assert display.ax_.get_title() == f"2 of {len(every)} variables, {share} of the weight"


def test_a_metric_has_no_stability_of_variables(model):
    """Nothing stands beside the bars then."""
    assert ImportanceDisplay.from_estimator(model.metric_).stability_ax_ is None


def test_a_thousand_variables():
    """The first twenty of those that weigh the same."""
    display = ImportanceDisplay.from_estimator(metric_of_columns(1000))
    assert [variable.name for variable in display.variables] == [f"x{j}" for j in range(20)]
    assert "20 of 1000 variables, 2% of the weight" in display.ax_.get_title()


# --- nothing learned, one variable


@pytest.fixture(scope="module")
def plain(xor):
    """The plain distance on all columns."""
    return SDistClassifier(start_share=1.0, **SMALL).fit(*xor)


@pytest.mark.parametrize("display", [ImportanceDisplay, InteractionDisplay])
def test_nothing_learned(display, plain):
    """The title says so."""
    assert plain.start_share_ == 1
    found = drawn(display, plain)
    assert "nothing was learned" in found.ax_.get_title()
    assert len(found.variables) == 8


@RENDERED
@pytest.mark.parametrize("display", ALL)
def test_nothing_learned_draws(display, plain, xor):
    drawn(display, plain, *xor)


def test_a_share_of_the_plain_distance(xor):
    """It is in the title, because it makes up most small bars."""
    half = SDistClassifier(start_share=0.5, **SMALL).fit(*xor)
    assert "50% is the plain distance" in ImportanceDisplay.from_estimator(half).ax_.get_title()


@pytest.fixture(scope="module")
def single():
    """A single column, of which the square matters."""
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
    """The heaviest, between the places of their variables, the widest line for the heaviest."""
    display = InteractionDisplay.from_estimator(three, max_links=5)
    every = explain_model(three).links
    assert display.links == every[:5]
    assert display.ax_.get_title().startswith(f"The heaviest 5 of {len(every)} interactions")
    place = {v.name: at for v, at in zip(display.variables, display.positions)}
    assert set(place) == {name for link in every[:5] for name in (link.a, link.b)}
    lines = display.ax_.lines[::-1]  # the heaviest is drawn last
    for link, line in zip(display.links, lines, strict=True):
        ends = np.column_stack(line.get_data())[[0, -1]]
        assert_allclose(ends, [place[link.a], place[link.b]], atol=1e-12)
    widths = [line.get_linewidth() for line in lines]
    assert widths == sorted(widths, reverse=True)


def test_nodes_are_sized_by_share(three):
    """And named beside the circle."""
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
    """The variables are drawn, some of many, and the title says why there are no lines."""
    display = InteractionDisplay.from_estimator(metric_of_columns(5))
    assert display.ax_.get_title() == "No interactions"
    assert len(display.variables) == 5
    assert not display.ax_.lines
    many = InteractionDisplay.from_estimator(metric_of_columns(1000))
    assert many.ax_.get_title() == "No interactions: 20 of 1000 variables"


NETWORKS = st.integers(2, 12).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.lists(
            st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda p: p[0] < p[1]),
            unique=True, max_size=20,
        ),
    )
)  # fmt: skip


@given(NETWORKS)
@PROPERTY
def test_no_node_can_move_to_fewer_crossings(network):
    """The order has all nodes, and none has a better place (after rounds enough)."""
    n_nodes, links = network
    order = circle_order(n_nodes, links)
    assert sorted(order) == list(range(n_nodes))
    least = crossings(order, links)
    for node, place in product(range(n_nodes), repeat=2):
        others = [other for other in order if other != node]
        assert least <= crossings([*others[:place], node, *others[place:]], links)


def test_orders_without_crossings():
    """Rings, stars, trees and parts apart are drawn as such, however they are numbered."""
    rng = np.random.default_rng(0)
    ring = [(i, (i + 1) % 9) for i in range(9)]
    star = [(0, i) for i in range(1, 9)]
    tree = [((i - 1) // 2, i) for i in range(1, 15)]
    apart = [(i, i + 1) for i in range(0, 40, 2)]
    for links in (ring, star, tree, apart):
        n_nodes = 1 + max(max(link) for link in links)
        number = rng.permutation(n_nodes)
        renamed = [(int(number[a]), int(number[b])) for a, b in links]
        assert crossings(circle_order(n_nodes, renamed), renamed) == 0


def test_crossings_by_hand():
    """A square's diagonals cross once, its sides never."""
    assert crossings([0, 1, 2, 3], [(0, 2), (1, 3)]) == 1
    assert crossings([0, 1, 2, 3], [(0, 1), (1, 2), (2, 3), (0, 3)]) == 0
    assert crossings([0, 2, 1, 3], [(0, 2), (1, 3)]) == 0


def test_networks_too_large_to_sift():
    """They come in some order, at once."""
    assert sorted(circle_order(500, [(i, 499 - i) for i in range(250)])) == list(range(500))


# --- the embedding


def test_coordinates_keep_distances(model, xor):
    """All of them, where the embedding has no more directions than are drawn."""
    metric = metric_of_columns(8, diagonal=[4.0, 1.0, 0.5, 0, 0, 0, 0, 0])
    X, y = xor
    display = EmbeddingDisplay.from_estimator(metric, X, y, n_dimensions=3)
    gaps = display.coordinates[:100] - display.coordinates[100:]
    assert_allclose(np.linalg.norm(gaps, axis=1), metric.pair_distance(X[:100], X[100:]))
    assert_allclose(display.variance_shares.sum(), 1)
    assert display.ax_.name == "3d"


def test_points_in_their_classes(model, xor):
    """Every row once, a colour and a marker for each class, in the legend under its name."""
    display = EmbeddingDisplay.from_estimator(model, *xor)
    places, colours = points(display.ax_)
    assert_allclose(sorted_rows(places), sorted_rows(display.coordinates))
    assert legend_texts(display.ax_) == ["no", "yes"]
    assert display.ax_.get_legend().get_title().get_text() == "class"
    assert display.rows.names[display.rows.codes].tolist() == xor[1].tolist()
    own = display.coordinates[xor[1] == "yes"]
    blue = to_rgba("#0072B2", 0.8)
    assert_allclose(sorted_rows(places[(colours != blue).any(axis=1)]), sorted_rows(own))
    shapes = {part.get_paths()[0].vertices.tobytes() for part in display.ax_.collections}
    assert len(shapes) == 2


def test_shares_of_variance(three, wine):
    """On the axes, as of the principal directions of the embedding."""
    display = EmbeddingDisplay.from_estimator(three, *wine)
    variances = np.linalg.svd(three.transform(wine[0]) - three.transform(wine[0]).mean(axis=0))[1]
    shares = variances**2 / (variances**2).sum()
    assert_allclose(display.variance_shares, shares[:2])
    assert percent(shares[1]) in display.ax_.get_ylabel()
    assert len(legend_texts(display.ax_)) == 3


def test_predicted_classes(model, xor):
    """Where there are no others."""
    display = EmbeddingDisplay.from_estimator(model, xor[0])
    assert display.rows.predicted
    assert_array_equal(display.rows.names[display.rows.codes], model.predict(xor[0]))
    assert display.ax_.get_legend().get_title().get_text() == "predicted class"


@RENDERED
def test_other_labels_than_the_models(model, xor):
    """Batches, say: also those that begin with an underscore or are many."""
    batches = np.array([f"_{i % 40}" for i in range(200)])
    display = EmbeddingDisplay.from_estimator(model, xor[0], batches)
    assert legend_texts(display.ax_) == sorted(set(batches))


@QUIET
@pytest.mark.parametrize("n_dimensions", [2, 3])
def test_one_direction(n_dimensions, single):
    """A strip for each class, the rows spread over it."""
    metric = metric_of_columns(1)
    X, y = single[1:]
    display = EmbeddingDisplay.from_estimator(metric, X, y, n_dimensions=n_dimensions)
    assert display.coordinates.shape == (120, 1)
    places, _ = points(display.ax_)
    assert_array_equal(
        np.round(places[:, 1]).astype(bool), np.abs(places[:, 0] + X["only"].mean()) > 0.7
    )
    assert "100%" in display.ax_.get_xlabel()
    assert EmbeddingDisplay.from_estimator(metric, X).rows is None


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_rows_that_are_alike(rows):
    """One direction, in which nothing happens."""
    display = EmbeddingDisplay.from_estimator(metric_of_columns(3), np.full((rows, 3), 1e6))
    assert_array_equal(display.coordinates, np.zeros((rows, 1)))
    empty = metric_of_columns(3, diagonal=np.zeros(3))
    assert EmbeddingDisplay.from_estimator(empty, np.ones((rows, 3))).coordinates.shape == (rows, 1)


def test_embeddings_that_cannot_be_drawn(model, xor):
    """Each with what to do."""
    X, y = xor
    with pytest.raises(ValueError, match="n_dimensions=4 must be 2 or 3"):
        EmbeddingDisplay.from_estimator(model, X, y, n_dimensions=4)
    with pytest.raises(ValueError, match="y has 199 labels, but X has 200 rows"):
        EmbeddingDisplay.from_estimator(model, X, y[1:])
    with pytest.raises(ValueError, match="every row needs a label"):
        EmbeddingDisplay.from_estimator(model, X, np.full(200, np.nan))
    with pytest.raises(ValueError, match="no rows"):
        EmbeddingDisplay.from_estimator(model.metric_, np.empty((0, 8)))
    with pytest.raises(ValueError, match=r"1 of 200 rows, the first of them row 7.*impute"):
        EmbeddingDisplay.from_estimator(metric_of_columns(8), X.replace(X.iloc[7, 0], np.nan))
    with pytest.raises(ValueError, match=r'ax is flat.*projection="3d"'):
        EmbeddingDisplay.from_estimator(model, X, y, n_dimensions=3, ax=plt.subplots()[1])


# --- the surface


def test_surface_is_the_models_prediction(model, xor):
    """At every place of the grid, with the other columns at their medians."""
    X, y = xor
    display = SurfaceDisplay.from_estimator(model, X, ("income", "rate"), y, grid_resolution=9)
    rows = pd.DataFrame([X.median()] * 81, columns=X.columns)
    rows["income"] = np.repeat(display.values[0], 9)
    rows["rate"] = np.tile(display.values[1], 9)
    assert_allclose(display.probabilities.reshape(81, 2), model.predict_proba(rows))
    assert_array_equal(display.points, X[["income", "rate"]])
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("income", "rate")
    assert display.ax_.get_title().endswith("the other 6 variables at their medians")
    low, high = X["rate"].min(), X["rate"].max()
    assert display.values[1][0] < low
    assert display.values[1][-1] > high
    places, _ = points(display.ax_)
    assert_allclose(sorted_rows(places), sorted_rows(display.points))


def test_the_surfaces_height(model, xor):
    """The paper's figure: the first principal direction of the embedded grid."""
    X, y = xor
    display = SurfaceDisplay.from_estimator(model, X, (0, 1), y, grid_resolution=7, kind="surface")
    assert display.ax_.name == "3d"
    assert display.height.shape == (7, 7)
    a, b = display.values
    # The product of the two columns is what was learned: opposite corners are at one height.
    product = np.outer(a - a.mean(), b - b.mean())
    assert abs(np.corrcoef(product.ravel(), display.height.ravel())[0, 1]) > 0.9


def test_default_features(three, wine):
    """The pair that weighs most by itself."""
    explained = explain_model(three)
    alone = {variable.name: variable.alone for variable in explained.variables}
    links = {frozenset((link.a, link.b)): link.share for link in explained.links}
    found = drawn(SurfaceDisplay, three, *wine).features
    weight = {
        (a, b): alone[a] + alone[b] + links.get(frozenset((a, b)), 0)
        for a, b in product(alone, repeat=2)
        if a != b
    }
    assert_allclose(weight[found], max(weight.values()))


def test_features_by_number(model, xor):
    """Of the columns, in their order."""
    display = SurfaceDisplay.from_estimator(model, xor[0], [2, np.int64(0)], grid_resolution=4)
    assert display.features == ("height", "age")
    assert display.rows.predicted


@RENDERED
@pytest.mark.parametrize("kind", ["contour", "surface"])
def test_more_than_two_classes(three, wine, kind):
    """Regions of the predicted classes, which are named."""
    display = drawn(SurfaceDisplay, three, *wine, kind=kind)
    assert display.probabilities.shape == (8, 8, 3)
    shown = {three.classes_[c] for c in np.unique(display.probabilities.argmax(axis=2))}
    if kind == "contour":
        assert {text.get_text() for text in display.ax_.texts} == shown
        assert legend_texts(display.ax_) == list(three.classes_)
    else:
        assert set(legend_texts(display.ax_)) == shown
    assert display.ax_.get_title().startswith("Predicted class over")


@RENDERED
def test_one_feature(three, wine):
    """Curves of the probabilities, which sum to 1."""
    display = SurfaceDisplay.from_estimator(three, wine[0], "proline", grid_resolution=6)
    curves = [line.get_ydata() for line in display.ax_.lines[::2]]
    assert_allclose(np.sum(curves, axis=0), 1)
    assert_allclose(np.transpose(curves), display.probabilities)
    with pytest.raises(ValueError, match="kind='surface' needs two features"):
        display.plot(kind="surface")


BAD_FEATURES = [
    (("age", "incme"), "'incme', which is no column: did you mean 'income'"),
    (("age", "???"), "'\\?\\?\\?', which is no column: there are 'age', 'income'.* and 3 more"),
    ((0, 8), "8: give names, or numbers from 0 to 7"),
    ((0, -1), "-1: give names"),
    ((0, 1.5), "1.5: give names"),
    (2.5, "2.5: give names"),
    ((0, "age"), "two different variables"),
    ((0, 1, 2), "two different variables"),
    ((), "two different variables"),
]


@pytest.mark.parametrize(("features", "message"), BAD_FEATURES)
def test_impossible_features(features, message, model, xor):
    """The parameter, what is wrong with it, and what there is."""
    with pytest.raises(ValueError, match=f"features.*{message}"):
        SurfaceDisplay.from_estimator(model, xor[0], features)


def test_surfaces_that_cannot_be_drawn(model, xor):
    """Each with what to do."""
    X, y = xor
    with pytest.raises(ValueError, match="grid_resolution=1 must be an integer of at least 2"):
        SurfaceDisplay.from_estimator(model, X, grid_resolution=1)
    with pytest.raises(ValueError, match=r"label 'maybe'.*\['no', 'yes'\]"):
        drawn(SurfaceDisplay, model, X, np.where(y == "no", y, "maybe"))
    display = drawn(SurfaceDisplay, model, X)
    with pytest.raises(ValueError, match="kind='heap' must be one of 'contour', 'surface'"):
        display.plot(kind="heap")
    with pytest.raises(ValueError, match=r'ax is flat.*projection="3d"'):
        display.plot(ax=plt.subplots()[1], kind="surface")
    with pytest.raises(ValueError, match="Input X contains NaN in column 'age'"):
        drawn(SurfaceDisplay, model, X.assign(age=np.nan))


def test_a_few_rows(model, xor):
    """One row has no range; classes that do not occur are not drawn."""
    display = drawn(SurfaceDisplay, model, xor[0][:1], xor[1][:1])
    assert all(np.ptp(values) > 0 for values in display.values)
    assert legend_texts(display.ax_) == [xor[1][0]]
    drawn(EmbeddingDisplay, model, xor[0][:1], xor[1][:1])


@pytest.fixture(scope="module")
def gaps(xor):
    """Missing values, those of one column mostly in one class."""
    X, y = xor
    rng = np.random.default_rng(0)
    missing = rng.random(X.shape) < 0.05
    missing[:, 2] |= (y == "yes") & (rng.random(len(y)) < 0.5)
    X = X.mask(missing)
    return SDistClassifier(missing="impute", **SMALL).fit(X, y), X, y


@RENDERED
@pytest.mark.parametrize("display", ALL)
def test_missing_values(display, gaps):
    """They are imputed as in the model; rows without a place are no points."""
    found = drawn(display, *gaps)
    if display is SurfaceDisplay:
        assert np.isfinite(found.probabilities).all()
        assert np.isnan(found.points).any()


def test_a_column_that_is_missing_altogether(gaps):
    """Held at the model's median, not drawn."""
    model, X, _ = gaps
    X = X.assign(rate=np.nan)
    assert np.isfinite(SurfaceDisplay.from_estimator(model, X, (0, 1)).probabilities).all()
    with pytest.raises(ValueError, match="no value in column 'rate'"):
        SurfaceDisplay.from_estimator(model, X, ("age", "rate"))


# --- the matrix


def test_matrix_is_the_metrics(three):
    """Over the heaviest terms in their order, with their names, and 0 in the middle."""
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
    """W over all of them would have 800 MB."""
    display = MetricMatrixDisplay.from_estimator(metric_of_columns(10_000))
    assert_array_equal(display.matrix, np.eye(30))
    assert display.share == pytest.approx(0.003)


def test_small_matrices_have_their_numbers():
    """Rounding errors are 0."""
    metric = metric_of_columns(2, components=[[1.0, 1e-20]], diagonal=[0.0, 0.25])
    display = MetricMatrixDisplay.from_estimator(metric)
    assert [text.get_text() for text in display.ax_.texts] == ["1", "0", "0", "0.25"]
    assert display.ax_.get_title() == "W over all 2 terms"


# --- documentation


@pytest.mark.parametrize(
    "name", ["_path", "_importance", "_interaction", "_embedding", "_surface", "_matrix"]
)
def test_examples_run(name):
    """The examples in the docstrings are true."""
    result = doctest.testmod(import_module(f"metricboost.inspection.displays.{name}"))
    assert result.attempted > 0
    assert result.failed == 0
