"""Model files: what comes back is what was saved, and nothing else gets in."""

from __future__ import annotations

import io
import json
import os
import pickle
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

import metricboost
from metricboost import (
    ModelFileError,
    SDist,
    SDistClassifier,
    SDistClassifierCV,
    SparseMetric,
    load,
)
from metricboost.datasets import make_xor
from metricboost.persistence import archive


def table(n_rows=120, n_features=6, missing=False):
    X, y = make_xor(n_samples=n_rows, n_features=n_features, informative=2, random_state=0)
    if missing:
        X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    return X, np.array(["no", "yes"])[y]


def classifier(**given):
    return SDistClassifier(**{"max_iter": 20, "random_state": 0, **given})


MODELS = {
    "defaults": classifier(),
    "one fit": classifier(n_averaged=1),
    "imputing": classifier(missing="impute"),
    "all columns": classifier(start_share=0.5),
    "plain": classifier(start_share=1.0),
    "kernel": classifier(classifier="kernel"),
    "mixture": classifier(classifier="mixture"),
    "votes": classifier(classifier="knn", class_weight={"no": 1, "yes": 2.5}),
    "a start": classifier(init=np.eye(6)),
    "samples": classifier(max_rows=100, max_references=100, n_averaged=1),
    "search": SDistClassifierCV(classifier(), {"max_degree": [1, 2]}, cv=3, random_state=0),
    "one model": SDistClassifierCV(
        classifier(), {"clip": [2.0]}, cv=3, n_blended=1, random_state=0
    ),
}


@pytest.fixture(params=MODELS, scope="module")
def fitted(request):
    model = MODELS[request.param]
    X, y = table(missing=request.param == "imputing")
    return model.fit(X, y), X


def test_a_loaded_model_is_the_same(fitted, tmp_path):
    model, X = fitted
    model.save(tmp_path / "model.mbz")
    other = load(tmp_path / "model.mbz")
    assert type(other) is type(model)
    np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(other.predict(X), model.predict(X))
    np.testing.assert_array_equal(other.transform(X), model.transform(X))
    np.testing.assert_array_equal(other.feature_importances_, model.feature_importances_)
    np.testing.assert_array_equal(other.stability_, model.stability_)
    np.testing.assert_array_equal(other.class_count_, model.class_count_)
    assert other.metric_.terms == model.metric_.terms
    for a, b in zip(other.kneighbors(X, 3), model.kneighbors(X, 3)):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(other.staged_predict(X), model.staged_predict(X), strict=True):
        np.testing.assert_array_equal(a, b)


def test_saving_again_gives_the_same_bytes(fitted, tmp_path):
    model, _ = fitted
    model.save(tmp_path / "a.mbz")
    load(tmp_path / "a.mbz").save(tmp_path / "b.mbz")
    assert (tmp_path / "a.mbz").read_bytes() == (tmp_path / "b.mbz").read_bytes()


def test_fitted_attributes_come_back(tmp_path):
    X, y = table()
    model = SDistClassifier(random_state=3, max_iter=40).fit(X, y)
    model.save(tmp_path / "model.mbz")
    other = load(tmp_path / "model.mbz")
    for name in ("best_iter_", "n_iter_", "start_share_", "oob_score_", "rule_", "n_features_in_"):
        assert getattr(other, name) == getattr(model, name)
    assert other.get_params() == model.get_params()
    np.testing.assert_array_equal(other.path_, model.path_)
    np.testing.assert_array_equal(other.classes_, model.classes_)


def test_a_search_keeps_what_it_chose(tmp_path):
    X, y = table()
    search = SDistClassifierCV(cv=3, param_grid={"max_degree": [2]}, random_state=0).fit(X, y)
    search.save(tmp_path / "search.mbz")
    other = load(tmp_path / "search.mbz")
    assert other.best_params_ == search.best_params_
    assert other.best_score_ == search.best_score_
    assert len(other.estimators_) == len(search.estimators_)


def test_names_come_back(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = table()
    frame = pd.DataFrame(X, columns=["Alter", "größe", "x 3", "y*z", "e^2", "f"])
    SDistClassifier(random_state=0).fit(frame, y).save(tmp_path / "model.mbz")
    other = load(tmp_path / "model.mbz")
    assert list(other.feature_names_in_) == list(frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        other.predict(frame.rename(columns={"f": "g"}))


@pytest.mark.parametrize(
    "labels", [[0, 1], [-1, 1], [False, True], [1.0, 2.0], ["a", "b"], np.array(["a", "b"], object)]
)
def test_labels_of_any_kind(labels, tmp_path):
    X, y = table()
    y = np.asarray(labels)[(y == "yes").astype(int)]
    model = SDistClassifier(random_state=0, max_iter=10).fit(X, y)
    model.save(tmp_path / "model.mbz")
    classes = load(tmp_path / "model.mbz").classes_
    assert classes.dtype == model.classes_.dtype
    assert classes.tolist() == model.classes_.tolist()


def test_labels_without_a_form_in_the_file_are_refused(tmp_path):
    X, y = table()
    model = SDistClassifier(random_state=0, max_iter=10).fit(X, y)
    model.classes_ = np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[D]")
    with pytest.raises(ValueError, match="cannot be saved"):
        model.save(tmp_path / "model.mbz")
    assert not list(tmp_path.iterdir())


def test_a_generator_is_not_part_of_a_model(tmp_path):
    X, y = table()
    model = SDistClassifier(random_state=np.random.RandomState(0), max_iter=10).fit(X, y)
    model.save(tmp_path / "model.mbz")
    assert load(tmp_path / "model.mbz").random_state is None


def test_without_rows(tmp_path):
    X, y = table()
    model = SDistClassifier(random_state=0).fit(X, y)
    model.save(tmp_path / "model.mbz", rows=False)
    other = load(tmp_path / "model.mbz")
    np.testing.assert_array_equal(other.transform(X), model.transform(X))
    np.testing.assert_array_equal(other.path_, model.path_)
    assert other.oob_score_ == model.oob_score_
    for call in (other.predict, other.predict_proba, other.kneighbors):
        with pytest.raises(ValueError, match="without its training rows"):
            call(X)
    with pytest.raises(ValueError, match="without its training rows"):
        next(other.staged_transform(X))
    with zipfile.ZipFile(tmp_path / "model.mbz") as members:
        assert not [name for name in members.namelist() if "rows" in name]


def test_only_the_columns_that_matter_are_saved(tmp_path):
    X, y = table(n_rows=300, n_features=40)
    model = SDistClassifier(random_state=0, start_share=0.0).fit(X, y)
    model.save(tmp_path / "model.mbz")
    with zipfile.ZipFile(tmp_path / "model.mbz") as members:
        columns = np.load(io.BytesIO(members.read("arrays/rows/columns.npy")))
        values = np.load(io.BytesIO(members.read("arrays/rows/values.npy")))
    used = {column for fit in model._crossfit.fits for term in fit.terms for column in term}
    assert set(columns) == used
    assert len(used) < 40
    np.testing.assert_array_equal(values, X[:, columns])


def test_a_metric_and_a_transformer(tmp_path):
    X, y = table()
    sdist = SDist(random_state=0).fit(X, y)
    sdist.save(tmp_path / "sdist.mbz")
    sdist.metric_.save(tmp_path / "metric.mbz")
    np.testing.assert_array_equal(load(tmp_path / "sdist.mbz").transform(X), sdist.transform(X))
    metric = load(tmp_path / "metric.mbz")
    assert isinstance(metric, SparseMetric)
    np.testing.assert_array_equal(metric.kernel(X), sdist.metric_.kernel(X))


def test_an_unfitted_model_is_not_saved(tmp_path):
    for model in (SDist(), SDistClassifier(), SDistClassifierCV()):
        with pytest.raises(ValueError, match="not fitted"):
            model.save(tmp_path / "model.mbz")
    with pytest.raises(TypeError, match="metrics and fitted estimators"):
        metricboost.persistence.save({}, tmp_path / "model.mbz")


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    X, y = table()
    path = tmp_path / "model.mbz"
    model = SDistClassifier(random_state=0, max_iter=10).fit(X, y)
    model.save(path)
    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        model.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


# What must not get in


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A small model file, and what its model says about its training rows."""
    X, y = table(n_rows=60, n_features=3)
    model = SDistClassifier(random_state=0, n_averaged=2, max_iter=15).fit(X, y)
    path = tmp_path_factory.mktemp("small") / "model.mbz"
    model.save(path)
    return path, X, model.predict_proba(X)


def content(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as members:
        return {name: members.read(name) for name in members.namelist()}


def rewritten(path: Path, target: Path, **changes: bytes | None) -> Path:
    """A copy of the file in which members are replaced, or left out where None is given."""
    parts = {**content(path), **changes}
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as members:
        for name, value in parts.items():
            if value is not None:
                members.writestr(name, value)
    return target


def with_manifest(path: Path, target: Path, change) -> Path:
    manifest = json.loads(content(path)["manifest.json"])
    change(manifest)
    return rewritten(path, target, **{"manifest.json": json.dumps(manifest).encode()})


def refuses(path: Path, match: str | None = None) -> None:
    with pytest.raises(ModelFileError, match=match):
        load(path)


def test_flipped_bytes(small, tmp_path):
    path, X, expected = small
    original = path.read_bytes()
    random = np.random.default_rng(0)
    refused = 0
    damaged = tmp_path / "damaged.mbz"
    for place in random.integers(0, len(original), 1000):
        changed = bytearray(original)
        changed[place] ^= int(random.integers(1, 256))
        damaged.write_bytes(changed)
        try:
            model = load(damaged)
        except ModelFileError:
            refused += 1
            continue
        np.testing.assert_array_equal(model.predict_proba(X), expected)
        model.save(tmp_path / "again.mbz")
        assert (tmp_path / "again.mbz").read_bytes() == original
    assert refused > 700  # what is left are dates, attributes and the like


def test_truncated_files(small, tmp_path):
    path, _, _ = small
    original = path.read_bytes()
    cut = tmp_path / "cut.mbz"
    for size in np.linspace(0, len(original) - 1, 200).astype(int):
        cut.write_bytes(original[:size])
        refuses(cut)


def test_other_files(tmp_path):
    path = tmp_path / "other.mbz"
    for text in (b"", b"a,b\n1,2\n", os.urandom(1000), pickle.dumps({"a": 1})):
        path.write_bytes(text)
        refuses(path)
    with zipfile.ZipFile(path, "w") as members:
        members.writestr("something.txt", "else")
    refuses(path, "not a model file")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing.mbz")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)


def test_a_newer_version(small, tmp_path):
    path = with_manifest(small[0], tmp_path / "new.mbz", lambda m: m.update(version=2))
    refuses(path, "install a newer metricboost")


@pytest.mark.parametrize("version", [0, -1, "1", 1.5, None, True, [1]])
def test_no_version(small, tmp_path, version):
    path = with_manifest(small[0], tmp_path / "x.mbz", lambda m: m.update(version=version))
    refuses(path, "version")


@pytest.mark.parametrize("name", ["/etc/passwd", "../../evil.npy", "arrays/../x.npy", "a.exe"])
def test_members_from_elsewhere(small, tmp_path, name):
    refuses(rewritten(small[0], tmp_path / "x.mbz", **{name: b"x"}), "not declared, or not allowed")

    def declare(manifest):
        manifest["arrays"][name] = {"dtype": "<f8", "shape": [0], "sha256": ""}

    refuses(with_manifest(small[0], tmp_path / "x.mbz", declare), "not allowed")


def test_a_missing_array(small, tmp_path):
    name = next(name for name in content(small[0]) if name.endswith("components.npy"))
    refuses(rewritten(small[0], tmp_path / "x.mbz", **{name: None}), "missing")


def test_an_object_array_runs_no_code(small, tmp_path):
    class Evil:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "evil"),))

    name = "arrays/rows/weight.npy"
    stream = io.BytesIO()
    np.save(stream, np.array([Evil()] * 60, dtype=object), allow_pickle=True)
    refuses(rewritten(small[0], tmp_path / "x.mbz", **{name: stream.getvalue()}))

    def declare(manifest):
        manifest["arrays"]["rows/weight"]["dtype"] = "|O"

    refuses(with_manifest(small[0], tmp_path / "x.mbz", declare), "declared wrongly")
    assert not (tmp_path / "evil").exists()


def replaced(path: Path, target: Path, name: str, array) -> Path:
    """A file whose array is another one, declared as it is: only its meaning is wrong."""
    array = np.asarray(array)
    manifest = json.loads(content(path)["manifest.json"])
    declaration = archive._declaration(array)
    manifest["arrays"][name] = declaration
    member = archive._header(declaration) + array.tobytes()
    return rewritten(
        path, target,
        **{"manifest.json": json.dumps(manifest).encode(), f"arrays/{name}.npy": member},
    )  # fmt: skip


def test_every_array_of_a_wrong_shape(small, tmp_path):
    """One entry more or less, one dimension more, other types: each array of the file in turn."""
    path = small[0]
    manifest = json.loads(content(path)["manifest.json"])
    for name in manifest["arrays"]:
        with zipfile.ZipFile(path) as members:
            array = np.load(io.BytesIO(members.read(f"arrays/{name}.npy")))
        longer = np.concatenate(
            [array, array[-1:] if len(array) else np.zeros((1, *array.shape[1:]))]
        )
        wrong = [
            longer.astype(array.dtype),
            array[None],
            array.astype("<f8" if array.dtype != "<f8" else "<i8"),
        ]
        for k, other in enumerate(wrong):
            if other.ndim > 2:
                continue
            target = replaced(path, tmp_path / "x.mbz", name, other)
            try:
                model = load(target)
            except ModelFileError:
                continue
            # The only lengths that nothing else fixes are those of the rank of a factor.
            assert k == 0
            assert name.endswith("components"), name
            model.predict(small[1])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("part0/metric/center", [np.nan, 0, 0]),
        ("part0/metric/scale", [0.0, 1, 1]),
        ("part0/metric/scale", [np.inf, 1, 1]),
        ("rows/columns", [-1, 0, 1]),
        ("rows/columns", [0, 1, 99]),
        ("rows/labels", np.full(60, 2)),
        ("rows/labels", np.zeros(60, dtype=np.int64)),
        ("rows/weight", np.zeros(60)),
        ("rows/weight", np.full(60, np.nan)),
        ("crossfit0/fit0/scaling/kept", [2, 1, 0]),
    ],
)
def test_values_that_make_no_model(small, tmp_path, name, value):
    refuses(replaced(small[0], tmp_path / "x.mbz", name, value), name.split("/")[-1])


def leaves(value, path=()):
    """Every place in a manifest; of a list the first and the last, which stand for the others."""
    yield path
    if isinstance(value, dict):
        places = list(value)
    else:
        places = sorted({0, len(value) - 1}) if isinstance(value, list) and value else []
    for place in places:
        yield from leaves(value[place], (*path, place))


def test_a_manifest_with_anything_anywhere(small, tmp_path):
    """Each value of the manifest replaced by others: a ModelFileError, or a model that works."""
    manifest = json.loads(content(small[0])["manifest.json"])
    for place in leaves(manifest["model"], ("model",)):
        for value in (None, -1, 1e308, "x", [[[]]], {}):
            changed = json.loads(json.dumps(manifest))
            inner = changed
            for key in place[:-1]:
                inner = inner[key]
            inner[place[-1]] = value
            text = json.dumps(changed).encode()
            target = rewritten(small[0], tmp_path / "x.mbz", **{"manifest.json": text})
            try:
                model = load(target)
            except ModelFileError:
                continue
            assert isinstance(model, SDistClassifier), (place, value)
            model.transform(small[1])


def peak_of_loading(path: Path, **options) -> int:
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError):
            load(path, **options)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


MEBIBYTE = 2**20


def test_a_bomb_in_the_manifest(small, tmp_path):
    bomb = b'{"format": "metricboost"' + b" " * (300 * MEBIBYTE) + b"}"
    path = rewritten(small[0], tmp_path / "x.mbz", **{"manifest.json": bomb})
    assert path.stat().st_size < MEBIBYTE
    assert peak_of_loading(path) < 40 * MEBIBYTE


def test_a_bomb_of_brackets(small, tmp_path):
    for bomb in (b"[" * (4 * MEBIBYTE), b"9" * (4 * MEBIBYTE)):
        path = rewritten(small[0], tmp_path / "x.mbz", **{"manifest.json": bomb})
        assert peak_of_loading(path) < 40 * MEBIBYTE


def test_other_compressions_are_refused(small, tmp_path):
    """Their decoders give as much as they have, whatever length is asked for."""
    parts = content(small[0])
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        with zipfile.ZipFile(tmp_path / "x.mbz", "w", method) as members:
            for name, value in parts.items():
                members.writestr(name, value)
        refuses(tmp_path / "x.mbz", "compressed by a method")


def test_one_array_cannot_be_many(small, tmp_path):
    def repeat(manifest):
        fits = manifest["model"]["crossfits"][0]["fits"]
        fits.extend(fits[:1] * 1000)

    refuses(with_manifest(small[0], tmp_path / "x.mbz", repeat), "used elsewhere")


def test_labels_that_would_fill_the_memory(small, tmp_path):
    def lengthen(manifest):
        values = [f"{i:04}" for i in range(1500)] + ["z" * 2**20]
        manifest["model"]["classes"] = {"type": "str", "values": values}

    refuses(with_manifest(small[0], tmp_path / "x.mbz", lengthen), "are too long")


@pytest.mark.parametrize("rule", [{"kind": "hull", "k": 10**30, "ridge": 1.0},
                                  {"kind": "kernel", "width": 1.0, "cost": 1e300}])  # fmt: skip
def test_rules_beyond_bounds(small, tmp_path, rule):
    def change(manifest):
        manifest["model"]["part"]["readout"]["rule"] = rule

    refuses(with_manifest(small[0], tmp_path / "x.mbz", change))


def test_dimensions_without_terms(tmp_path):
    metric = SparseMetric([], np.empty((0, 0)), [0.0], [1.0], [], [])
    metric.save(tmp_path / "m.mbz")
    assert load(tmp_path / "m.mbz").transform([[1.0]]).shape == (1, 0)
    refuses(replaced(tmp_path / "m.mbz", tmp_path / "x.mbz", "components", np.empty((10**12, 0))))


def test_links_are_followed_and_devices_left(small, tmp_path):
    model = load(small[0])
    (tmp_path / "link.mbz").symlink_to(tmp_path / "target.mbz")
    model.save(tmp_path / "link.mbz")
    assert (tmp_path / "link.mbz").is_symlink()
    assert (tmp_path / "target.mbz").read_bytes() == small[0].read_bytes()
    with pytest.raises(OSError, match="not a regular file"):
        model.save("/dev/null")


def test_an_array_larger_than_declared(small, tmp_path):
    name = "arrays/rows/weight.npy"
    bomb = content(small[0])[name] + bytes(300 * MEBIBYTE)
    path = rewritten(small[0], tmp_path / "x.mbz", **{name: bomb})
    assert peak_of_loading(path) < 10 * MEBIBYTE


def test_an_array_that_declares_too_much(small, tmp_path):
    def declare(manifest):
        manifest["arrays"]["rows/weight"]["shape"] = [2**40]

    path = with_manifest(small[0], tmp_path / "x.mbz", declare)
    refuses(path, "max_bytes")
    assert peak_of_loading(path, max_bytes=2**60) < 10 * MEBIBYTE


def test_a_table_too_wide_for_its_rows(tmp_path):
    """A few stored columns of a very wide table: zeros take memory too."""
    X, y = table(n_rows=300, n_features=200)
    path = tmp_path / "model.mbz"
    SDistClassifier(random_state=0, start_share=0.0).fit(X, y).save(path)
    with pytest.raises(ModelFileError, match="training rows take 480000 bytes"):
        load(path, max_bytes=400_000)
    load(path, max_bytes=500_000)
