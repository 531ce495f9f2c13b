"""The displays of rows: the embedding and the surface."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from display_tools import (
    ALL,
    SMALL,
    drawn,
    figures_closed,
    legend_texts,
    metric_of_columns,
    named_wine,
    named_xor,
    points,
    render_all,
    sorted_rows,
)
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgba
from numpy.testing import assert_allclose, assert_array_equal

from metricboost import SDistClassifier
from metricboost.inspection import EmbeddingDisplay, SurfaceDisplay, explain_model
from metricboost.inspection.displays._drawing import percent


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


# --- the embedding


def test_coordinates_keep_distances(model, xor):
    """If all directions of the embedding are drawn, distances between points are exact."""
    metric = metric_of_columns(8, diagonal=[4.0, 1.0, 0.5, 0, 0, 0, 0, 0])
    X, y = xor
    display = EmbeddingDisplay.from_estimator(metric, X, y, n_dimensions=3)
    gaps = display.coordinates[:100] - display.coordinates[100:]
    assert_allclose(np.linalg.norm(gaps, axis=1), metric.pair_distance(X[:100], X[100:]))
    assert_allclose(display.variance_shares.sum(), 1)
    assert display.ax_.name == "3d"


def test_points_in_their_classes(model, xor):
    """Every row is one point, and every class has a colour, a marker and a line in the legend."""
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
    """The axes have the shares of the principal directions of the embedding."""
    display = EmbeddingDisplay.from_estimator(three, *wine)
    variances = np.linalg.svd(three.transform(wine[0]) - three.transform(wine[0]).mean(axis=0))[1]
    shares = variances**2 / (variances**2).sum()
    assert_allclose(display.variance_shares, shares[:2])
    assert percent(shares[1]) in display.ax_.get_ylabel()
    assert len(legend_texts(display.ax_)) == 3


def test_predicted_classes(model, xor):
    """Without y, the points have their predicted classes."""
    display = EmbeddingDisplay.from_estimator(model, xor[0])
    assert display.rows.predicted
    assert_array_equal(display.rows.names[display.rows.codes], model.predict(xor[0]))
    assert display.ax_.get_legend().get_title().get_text() == "predicted class"


@RENDERED
def test_other_labels_than_the_models(model, xor):
    """Labels need not be classes of the model. They may begin with an underscore and be many."""
    batches = np.array([f"_{i % 40}" for i in range(200)])
    display = EmbeddingDisplay.from_estimator(model, xor[0], batches)
    assert legend_texts(display.ax_) == sorted(set(batches))


@pytest.mark.parametrize("n_dimensions", [2, 3])
def test_one_direction(n_dimensions):
    """A single direction has a strip for every class, with the rows at different heights."""
    metric = metric_of_columns(1)
    x = np.random.default_rng(0).standard_normal(120)
    X, y = pd.DataFrame({"only": x}), np.abs(x) > 0.7
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
    """Equal rows have one direction, with coordinates of zero."""
    display = EmbeddingDisplay.from_estimator(metric_of_columns(3), np.full((rows, 3), 1e6))
    assert_array_equal(display.coordinates, np.zeros((rows, 1)))
    empty = metric_of_columns(3, diagonal=np.zeros(3))
    assert EmbeddingDisplay.from_estimator(empty, np.ones((rows, 3))).coordinates.shape == (rows, 1)


def test_embeddings_that_cannot_be_drawn(model, xor):
    """The error says what to do."""
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
    """The grid has the probabilities of the model, with the other columns at their medians."""
    X, y = xor
    display = SurfaceDisplay.from_estimator(
        model, X, y, features=("income", "rate"), grid_resolution=9
    )
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
    """The height is the first principal direction of the embedded grid, as in the paper."""
    X, y = xor
    display = SurfaceDisplay.from_estimator(
        model, X, y, features=(0, 1), grid_resolution=7, kind="surface"
    )
    assert display.ax_.name == "3d"
    assert display.height.shape == (7, 7)
    a, b = display.values
    # The model has learned the product of the two columns, so opposite corners are equally high.
    product = np.outer(a - a.mean(), b - b.mean())
    assert abs(np.corrcoef(product.ravel(), display.height.ravel())[0, 1]) > 0.9


def test_default_features(three, wine):
    """By default, the features have the largest weight in terms without other variables."""
    explained = explain_model(three.model_)
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
    """Features may be numbers of columns."""
    display = SurfaceDisplay.from_estimator(
        model, xor[0], features=[2, np.int64(0)], grid_resolution=4
    )
    assert display.features == ("height", "age")
    assert display.rows.predicted


@RENDERED
@pytest.mark.parametrize("kind", ["contour", "surface"])
def test_more_than_two_classes(three, wine, kind):
    """The regions of the predicted classes have names."""
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
    """One feature has curves of the probabilities, which sum to 1."""
    display = SurfaceDisplay.from_estimator(three, wine[0], features="proline", grid_resolution=6)
    curves = [line.get_ydata() for line in display.ax_.lines[::2]]
    assert_allclose(np.sum(curves, axis=0), 1)
    assert_allclose(np.transpose(curves), display.probabilities)
    with pytest.raises(ValueError, match="kind='surface' needs two features"):
        display.plot(kind="surface")


BAD_FEATURES = [
    (("age", "incme"), "'incme', which is not a column: did you mean 'income'"),
    (
        ("age", "???"),
        "'\\?\\?\\?', which is not a column: the columns are 'age', 'income'.* and 3 more",
    ),
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
    """The error names the parameter, the wrong value and the columns."""
    with pytest.raises(ValueError, match=f"features.*{message}"):
        SurfaceDisplay.from_estimator(model, xor[0], features=features)


def test_surfaces_that_cannot_be_drawn(model, xor):
    """The error says what to do."""
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
    """A column of one row has a range of the grid, and only classes of the rows are drawn."""
    display = drawn(SurfaceDisplay, model, xor[0][:1], xor[1][:1])
    assert all(np.ptp(values) > 0 for values in display.values)
    assert legend_texts(display.ax_) == [xor[1][0]]
    drawn(EmbeddingDisplay, model, xor[0][:1], xor[1][:1])


@pytest.fixture(scope="module")
def gaps(xor):
    """A table with missing values. In one column most of them belong to one class."""
    X, y = xor
    rng = np.random.default_rng(0)
    missing = rng.random(X.shape) < 0.05
    missing[:, 2] |= (y == "yes") & (rng.random(len(y)) < 0.5)
    X = X.mask(missing)
    return SDistClassifier(missing="impute", **SMALL).fit(X, y), X, y


@RENDERED
@pytest.mark.parametrize("display", ALL)
def test_missing_values(display, gaps):
    """Probabilities are computed with imputed values. Rows with missing values are not points."""
    found = drawn(display, *gaps)
    if display is SurfaceDisplay:
        assert np.isfinite(found.probabilities).all()
        assert np.isnan(found.points).any()


def test_a_column_that_is_missing_altogether(gaps):
    """A column without values is held at the median of the training rows, and cannot be drawn."""
    model, X, _ = gaps
    X = X.assign(rate=np.nan)
    assert np.isfinite(SurfaceDisplay.from_estimator(model, X, features=(0, 1)).probabilities).all()
    with pytest.raises(ValueError, match="no value in column 'rate'"):
        SurfaceDisplay.from_estimator(model, X, features=("age", "rate"))
