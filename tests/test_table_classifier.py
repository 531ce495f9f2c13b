"""``TableClassifier``: a scikit-learn classifier for tables with names, text and gaps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

from mixed_table import mixed  # noqa: E402
from sklearn.base import clone, is_classifier  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score  # noqa: E402

from metricboost import SDistClassifier, SDistClassifierCV, load  # noqa: E402
from metricboost.errors import ModelFileError, TableError  # noqa: E402
from metricboost.storage import read, write  # noqa: E402
from metricboost.tables import TableClassifier, read_table  # noqa: E402
from metricboost.tables.targets import codes_of, labels_of  # noqa: E402


def quick(**parameters):
    """A model whose fit takes little time."""
    given = {"missing": "impute", "max_iter": 5, "n_averaged": 1, "random_state": 0}
    return SDistClassifier(**{**given, **parameters})


@pytest.fixture(scope="module")
def fitted():
    return TableClassifier().fit(mixed(300), "outcome")


def test_a_model_of_a_table(fitted):
    frame = mixed(300, seed=1)
    assert fitted.score(mixed(300)) > 0.75
    assert set(fitted.predict(frame)) == {"ill", "well"}
    np.testing.assert_allclose(fitted.predict_proba(frame).sum(axis=1), 1)
    assert len(fitted.explain(frame.head(2))) == 2
    assert fitted.explain().terms == fitted.model_.explain().terms
    assert fitted.transform(frame).shape[0] == 300


@pytest.mark.parametrize("wrong", [0, -1, "a", 2.5])
def test_neighbours_of_an_explanation(fitted, wrong):
    with pytest.raises(ValueError, match=f"n_neighbors={wrong!r} must be an integer, 1 or more"):
        fitted.explain(mixed(2), n_neighbors=wrong)


def test_the_model_that_is_given_stays_as_it_is():
    given = quick()
    one, other = (TableClassifier(given).fit(mixed(seed=s), "outcome") for s in (0, 1))
    assert one.model_ is not other.model_
    assert not hasattr(given, "classes_")


def test_targets_that_look_missing(tmp_path):
    rows = [f"{i % 7}.5,{(i * 3) % 5}.25,{'+-'[i % 2]}" for i in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,y", *rows, "1,2,", "3,4,NA"]))
    model = TableClassifier(quick()).fit(read_table(tmp_path / "t.csv"), "y")
    assert model.classes_.tolist() == ["+", "-"]
    assert model.model_.class_count_.tolist() == [30, 30]


@pytest.mark.parametrize("search", [False, True])
def test_neighbours_have_the_row_numbers_of_the_table(search, tmp_path):
    """Rows without a label are left out of the fit, but they count."""
    frame = mixed()
    frame.loc[:9, "outcome"] = None
    frame.index = frame.index + 1000  # row numbers are positions, not the index
    model = SDistClassifier(missing="impute", random_state=0)
    if search:
        base, grid = quick(), {"max_degree": [2]}
        model = SDistClassifierCV(base, param_grid=grid, cv=2, random_state=0)
    model = TableClassifier(model).fit(frame, "outcome")
    model.save(tmp_path / "m.mbz")
    for one in (model, load(tmp_path / "m.mbz")):
        neighbors = one.explain(frame.iloc[[40]])[0].neighbors
        nearest = min(neighbors, key=lambda neighbor: neighbor.squared_distance)
        assert nearest.squared_distance == 0
        for neighbor in neighbors:
            assert frame["outcome"].iloc[neighbor.row] == neighbor.label
        rows = one.encoded(frame.iloc[[nearest.row, 40]])
        assert one.model_.pair_distance(rows[:1], rows[1:])[0] == 0


@pytest.mark.parametrize(
    ("classes", "labels", "expected"),
    [
        ([False, True], ["true", "False", "maybe", 5, None], [1, 0, -1, -1, -1]),
        ([0, 1], ["0", 1.0, 1.4, "x", "1.0"], [0, 1, -1, -1, 1]),
        (["01", "1", "x"], ["01", 1, 1.0, "x", "2"], [0, 1, 1, 2, -1]),
    ],
)
def test_labels_are_compared_exactly(classes, labels, expected):
    found = codes_of(pd.Series(labels, dtype=object), np.array(classes))
    assert found.tolist() == expected


def test_targets():
    frame = mixed()
    with pytest.raises(TableError, match="Did you mean 'outcome'"):
        TableClassifier().fit(frame, "Outcome")
    with pytest.raises(TableError, match="offers no regression"):
        TableClassifier().fit(frame, "g0")
    with pytest.raises(TableError, match="only one class, ill"):
        TableClassifier().fit(frame.assign(outcome="ill"), "outcome")
    with pytest.raises(TableError, match="'outcome' is empty in every row"):
        TableClassifier().fit(frame.assign(outcome=None), "outcome")
    with pytest.raises(TableError, match="cannot be dropped"):
        TableClassifier(drop=["outcome"]).fit(frame, "outcome")


@pytest.mark.parametrize("labels", [[0, 1], [True, False], ["a", "b"], [0.0, 1.0]])
def test_targets_of_any_kind(labels):
    frame = mixed()
    frame["outcome"] = np.where(frame["outcome"] == "ill", labels[0], labels[1])
    model = TableClassifier(quick()).fit(frame, "outcome")
    assert 0 <= model.score(frame) <= 1
    assert set(model.predict(frame)) <= set(labels)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["1", "100000000000000000000", "200000000000000000000"], None),
        (["9007199254740992", "9007199254740993", "3.0"],
         ["3", "9007199254740992", "9007199254740993"]),
        (["1", "18446744073709551615"], None),
        (np.array([1, 2**64 - 1], dtype=np.uint64), ["1", "18446744073709551615"]),
        (["9007199254740992", "9007199254740993"], [9007199254740992, 9007199254740993]),
        (["3.0", "4"], [3, 4]),
    ],
)  # fmt: skip
def test_large_numbers_stay_the_classes_they_are(labels, expected):
    values = pd.Series(np.repeat(labels, 3))
    classes, codes = np.unique(labels_of(values, "t"), return_inverse=True)
    assert classes.tolist() == (labels if expected is None else expected)
    assert codes_of(values, classes).tolist() == codes.tolist()


def test_rows_without_a_target():
    frame = mixed()
    frame.loc[:9, "outcome"] = None
    model = TableClassifier(quick()).fit(frame, "outcome")
    assert model.model_.class_count_.sum() == 110
    assert model.problems_[0].kind == "target"
    rows, y = model.labelled(frame)
    assert len(rows) == len(y) == 110
    odd = frame.assign(outcome=frame["outcome"].where(frame.index != 50, "dead"))
    with pytest.warns(UserWarning, match="does not know, such as 'dead'. Rows of these"):
        assert len(model.labelled(odd)[0]) == 109
    with pytest.warns(UserWarning, match="not scored"):
        assert model.score(odd) == model.score(frame.drop(index=50))
    with (
        pytest.warns(UserWarning, match="not scored"),
        pytest.raises(TableError, match="so there is nothing to score"),
    ):
        model.score(frame.assign(outcome="dead"))
    with pytest.raises(TableError, match=r"no column 'outcome'.* It is the target"):
        model.score(frame.drop(columns="outcome"))


@pytest.mark.parametrize(
    ("table", "advice"),
    [
        ("parts.csv", "a str: read the file with metricboost.tables.read_table"),
        (np.ones((3, 2)), "a ndarray: make a table with pandas.DataFrame"),
        ({"a": [1, 2]}, "a dict: make a table with pandas.DataFrame"),
    ],
)
def test_tables_that_are_no_frames(fitted, table, advice):
    for call in (
        lambda: TableClassifier().fit(table, "result"),
        lambda: fitted.predict(table),
        lambda: fitted.score(table),
        lambda: fitted.report(table),
    ):
        with pytest.raises(TypeError, match=advice):
            call()


def test_a_frame_of_polars(fitted):
    polars = pytest.importorskip("polars")
    frame = mixed()
    table = polars.DataFrame(frame.to_dict("list"), strict=False)
    np.testing.assert_array_equal(fitted.predict_proba(table), fitted.predict_proba(frame))
    assert fitted.score(table) == fitted.score(frame)


def test_what_is_not_fitted(tmp_path):
    model = TableClassifier()
    for call in (model.predict, model.predict_proba, model.transform, model.score, model.explain,
                 model.report, model.encoded, model.labelled):  # fmt: skip
        with pytest.raises(NotFittedError, match="not fitted yet"):
            call(mixed())
    with pytest.raises(NotFittedError):
        model.save(tmp_path / "m.mbz")


# As an estimator of scikit-learn


def test_clone_and_parameters():
    given = TableClassifier(quick(), drop=["city"], keep="patient_id")
    model = clone(given.fit(mixed(), "outcome"))
    assert not hasattr(model, "model_")
    assert (model.drop, model.keep) == (["city"], "patient_id")
    assert model.get_params()["model__max_iter"] == 5
    model.set_params(drop=(), model__max_iter=6).fit(mixed(), "outcome")
    assert model.model_.max_iter == 6
    assert "city=Oslo" in model.encoder_.features_
    assert TableClassifier(drop="city").drop == "city"


def test_fitted_attributes(fitted):
    frame = mixed().drop(columns="outcome")
    assert is_classifier(fitted)
    assert fitted.feature_names_in_.tolist() == frame.columns.tolist()
    assert fitted.n_features_in_ == frame.shape[1]
    assert fitted.classes_.tolist() == ["ill", "well"]
    assert fitted.metric_ is fitted.model_.metric_


def test_labels_beside_the_table(fitted):
    """They give the same model as the target column."""
    frame = mixed(300)
    X, y = frame.drop(columns="outcome"), frame["outcome"]
    for labels in (y, y.to_numpy(), y.tolist()):
        model = TableClassifier().fit(X, labels)
        np.testing.assert_array_equal(model.predict_proba(X), fitted.predict_proba(frame))
        assert model.target_ == ("outcome" if labels is y else None)
        assert model.score(X, labels) == fitted.score(frame)
    with pytest.raises(TableError, match="labels that have no name"):
        model.score(frame)
    assert model.score(frame, "outcome") == fitted.score(frame)


def test_labels_that_cannot_be_used():
    frame = mixed()
    with pytest.raises(ValueError, match="120 rows, but y has 100 labels"):
        TableClassifier().fit(frame, frame["outcome"][:100].to_numpy())
    with pytest.raises(TableError, match="give y='outcome' or drop the column"):
        TableClassifier().fit(frame, frame["outcome"])  # the target would be among the columns
    with pytest.raises(ValueError, match="requires y to be passed"):
        TableClassifier().fit(frame, None)


def test_text_labels_stay_texts():
    frame = mixed().drop(columns="outcome")
    labels = np.where(mixed()["outcome"] == "ill", "1", "0")
    model = TableClassifier(quick())
    assert model.fit(frame, labels).classes_.tolist() == ["0", "1"]
    assert model.fit(frame, labels.astype(int)).classes_.tolist() == [0, 1]
    assert model.fit(frame.assign(y=labels), "y").classes_.tolist() == [0, 1]  # as from a file


@pytest.mark.parametrize("scoring", [None, "accuracy", "roc_auc", "neg_log_loss"])
def test_cross_validation(scoring):
    frame = mixed(200)
    X, y = frame.drop(columns="outcome"), frame["outcome"]
    scores = cross_val_score(TableClassifier(quick()), X, y, cv=3, scoring=scoring)
    assert np.isfinite(scores).all()
    if scoring is None:
        predicted = cross_val_predict(TableClassifier(quick()), X, y, cv=3)
        assert np.mean(predicted == y) == pytest.approx(scores.mean(), abs=0.01)


def test_a_search_over_the_inner_model():
    frame = mixed(200)
    X, y = frame.drop(columns="outcome"), frame["outcome"]
    grid = {"model__max_degree": [1, 2], "drop": [(), "city"]}
    search = GridSearchCV(TableClassifier(quick()), grid, cv=2).fit(X, y)
    assert search.best_params_["model__max_degree"] in (1, 2)
    assert search.predict(X).shape == (200,)


# Model files


def test_saved_with_rows(fitted, tmp_path):
    fitted.save(tmp_path / "m.mbz")
    other = load(tmp_path / "m.mbz")
    frame = mixed(100, seed=2)
    np.testing.assert_array_equal(other.predict_proba(frame), fitted.predict_proba(frame))
    assert other.problems_ == fitted.problems_
    assert other.target_ == "outcome"
    assert other.feature_names_in_.tolist() == fitted.feature_names_in_.tolist()
    assert other.score(frame) == fitted.score(frame)
    other.save(tmp_path / "again.mbz")
    assert (tmp_path / "again.mbz").read_bytes() == (tmp_path / "m.mbz").read_bytes()


def test_saved_without_rows(fitted, tmp_path):
    fitted.save(tmp_path / "m.mbz", rows=False)
    other = load(tmp_path / "m.mbz")
    frame = mixed(100, seed=2)
    np.testing.assert_array_equal(other.transform(frame), fitted.transform(frame))
    # Coefficients of a linear readout are computed from the rows.
    expected = [replace(term, coefficients=None) for term in fitted.explain().terms]
    assert other.explain().terms == expected
    with pytest.raises(ValueError, match="without its training rows"):
        other.predict(frame)


def test_a_loaded_model_can_be_fitted_again(fitted, tmp_path):
    frame = mixed(300)
    given = TableClassifier(drop=["city"]).fit(frame, "outcome")
    given.save(tmp_path / "m.mbz")
    again = clone(load(tmp_path / "m.mbz")).fit(frame, "outcome")
    assert list(again.drop) == ["city"]
    np.testing.assert_array_equal(again.predict_proba(frame), given.predict_proba(frame))


def test_labels_without_a_name_are_saved(tmp_path):
    frame = mixed()
    labels = frame.pop("outcome").to_numpy()
    TableClassifier(quick()).fit(frame, labels).save(tmp_path / "m.mbz")
    assert load(tmp_path / "m.mbz").target_ is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"columns": None}, "columns of the table are not a list"),
        ({"columns": [{"name": "a"}]}, "lack decimal, kind, levels, name"),
        ({"columns": [{"name": "a", "kind": "date", "levels": [], "decimal": "."}]}, "are wrong"),
        ({"columns": [{"name": "a", "kind": "number", "levels": [1], "decimal": "."}]}, "levels"),
        ({"columns": [{"name": "a", "kind": "number", "levels": [], "decimal": "."}]},
         "are not those of the model"),
        ({"problems": [{"kind": "levels", "column": 1, "message": "x"}]}, "are not texts"),
        ({"target": 5}, "target is not a text"),
    ],
)  # fmt: skip
def test_files_that_hold_no_classifier(fitted, tmp_path, change, message):
    fitted.save(tmp_path / "m.mbz")
    saved = read(tmp_path / "m.mbz")
    write(replace(saved, more={**saved.more, **change}), tmp_path / "m.mbz")
    with pytest.raises(ModelFileError, match=message):
        load(tmp_path / "m.mbz")
    write(replace(saved, part=None), tmp_path / "m.mbz")
    with pytest.raises(ModelFileError, match="must hold one of SDistClassifier"):
        load(tmp_path / "m.mbz")


# The report


def test_a_report_shows_the_problems_and_parameters(fitted):
    page = fitted.report(mixed(40, seed=3)).html
    assert "looks like an identifier" in page
    assert "max_degree" in page
    X = mixed(40, seed=3).drop(columns="outcome")
    told = "Other scores on these 40 rows"
    assert told not in fitted.report(X).html
    assert told in fitted.report(X, mixed(40, seed=3)["outcome"].to_numpy()).html
