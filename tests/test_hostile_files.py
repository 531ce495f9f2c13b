"""Damaged and hostile model files: a ModelFileError, or the model that was saved."""

from __future__ import annotations

import copy
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
from metricboost.storage import archive


def table(n_rows=120, n_features=6):
    X, y = make_xor(n_samples=n_rows, n_features=n_features, informative=2, random_state=0)
    return X, np.array(["no", "yes"])[y]


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
    newer = archive.VERSION + 1
    path = with_manifest(small[0], tmp_path / "new.mbz", lambda m: m.update(version=newer))
    refuses(path, "install a newer metricboost")


def test_an_earlier_version(small, tmp_path):
    path = with_manifest(small[0], tmp_path / "old.mbz", lambda m: m.update(version=1))
    refuses(path, "fit the model and save it again")


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

    name = "arrays/model/rows/weight.npy"
    stream = io.BytesIO()
    np.save(stream, np.array([Evil()] * 60, dtype=object), allow_pickle=True)
    refuses(rewritten(small[0], tmp_path / "x.mbz", **{name: stream.getvalue()}))

    def declare(manifest):
        manifest["arrays"]["model/rows/weight"]["dtype"] = "|O"

    refuses(with_manifest(small[0], tmp_path / "x.mbz", declare), "declared wrongly")
    assert not (tmp_path / "evil").exists()


def replaced(path: Path, target: Path, name: str, array) -> Path:
    """A file whose array is another one, declared as it is: only its meaning is wrong."""
    archive.write(target, {}, {name: np.asarray(array)})
    other, member = content(target), f"arrays/{name}.npy"
    manifest = json.loads(content(path)["manifest.json"])
    manifest["arrays"][name] = json.loads(other["manifest.json"])["arrays"][name]
    changes = {"manifest.json": json.dumps(manifest).encode(), member: other[member]}
    return rewritten(path, target, **changes)


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
        ("model/model0/metric/center", [np.nan, 0, 0]),
        ("model/model0/metric/scale", [0.0, 1, 1]),
        ("model/model0/metric/scale", [np.inf, 1, 1]),
        ("model/rows/columns", [-1, 0, 1]),
        ("model/rows/columns", [0, 1, 99]),
        ("model/rows/labels", np.full(60, 2)),
        ("model/rows/labels", np.zeros(60, dtype=np.int64)),
        ("model/rows/weight", np.zeros(60)),
        ("model/rows/weight", np.full(60, np.nan)),
        ("model/rows/columns", [2, 1, 0]),
        ("model/model0/history/fit0/columns", [2, 1, 0]),
        ("model/model0/history/terms/degrees", [2**62, 2**62]),
        ("model/model0/stability", [0.0, 2.0, 0.5]),
        ("model/class_count", [-1, 2]),
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


#: A short test tries every third value at each place, another third at the next place.
PARTS = pytest.mark.parametrize("part", [3, pytest.param(1, marks=pytest.mark.slow)])


@PARTS
def test_a_manifest_with_anything_anywhere(small, tmp_path, part):
    """Each value of the manifest replaced by others: a ModelFileError, or a model that works."""
    manifest = json.loads(content(small[0])["manifest.json"])
    values = (None, -1, 1e308, "x", [[[]]], {})
    for number, place in enumerate(leaves(manifest["saved"], ("saved",))):
        for value in values[number % part :: part]:
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
        fits = manifest["saved"]["model"]["models"][0]["history"]["fits"]
        fits.extend(fits[:1] * 1000)

    refuses(with_manifest(small[0], tmp_path / "x.mbz", repeat), "used elsewhere")


def test_labels_that_would_fill_the_memory(small, tmp_path):
    def lengthen(manifest):
        values = [f"{i:04}" for i in range(1500)] + ["z" * 2**20]
        manifest["saved"]["model"]["classes"] = {"type": "str", "values": values}

    refuses(with_manifest(small[0], tmp_path / "x.mbz", lengthen), "are too long")


@pytest.mark.parametrize("readout", [{"kind": "hull", "k": 10**30, "ridge": 1.0},
                                     {"kind": "kernel", "width": 1.0, "cost": 1e300}])  # fmt: skip
def test_readouts_beyond_bounds(small, tmp_path, readout):
    def change(manifest):
        manifest["saved"]["model"]["models"][0]["reading"]["readout"] = readout

    refuses(with_manifest(small[0], tmp_path / "x.mbz", change))


def test_dimensions_without_terms(tmp_path):
    metric = SparseMetric([], np.empty((0, 0)), [0.0], [1.0], [], [])
    metricboost.save(metric, tmp_path / "m.mbz")
    assert load(tmp_path / "m.mbz").transform([[1.0]]).shape == (1, 0)
    wide = np.empty((10**12, 0))
    refuses(replaced(tmp_path / "m.mbz", tmp_path / "x.mbz", "metric/components", wide))


def test_links_are_followed_and_devices_left(small, tmp_path):
    model = load(small[0])
    (tmp_path / "link.mbz").symlink_to(tmp_path / "target.mbz")
    model.save(tmp_path / "link.mbz")
    assert (tmp_path / "link.mbz").is_symlink()
    assert (tmp_path / "target.mbz").read_bytes() == small[0].read_bytes()
    with pytest.raises(OSError, match="not a regular file"):
        model.save("/dev/null")


def test_an_array_larger_than_declared(small, tmp_path):
    name = "arrays/model/rows/weight.npy"
    bomb = content(small[0])[name] + bytes(300 * MEBIBYTE)
    path = rewritten(small[0], tmp_path / "x.mbz", **{name: bomb})
    assert peak_of_loading(path) < 10 * MEBIBYTE


def test_an_array_that_declares_too_much(small, tmp_path):
    def declare(manifest):
        manifest["arrays"]["model/rows/weight"]["shape"] = [2**40]

    path = with_manifest(small[0], tmp_path / "x.mbz", declare)
    refuses(path, "max_bytes")
    assert peak_of_loading(path, max_bytes=2**60) < 10 * MEBIBYTE


def test_a_wide_table_takes_no_memory(tmp_path):
    """The training rows are read in the stored columns only, not as the table that was fitted."""
    X, y = table(n_rows=300, n_features=200)
    path = tmp_path / "model.mbz"
    SDistClassifier(random_state=0, start_share=0.0).fit(X, y).save(path)
    with zipfile.ZipFile(path) as members:
        arrays = [name for name in members.namelist() if name != "manifest.json"]
        total = sum(np.load(io.BytesIO(members.read(name))).nbytes for name in arrays)
    with pytest.raises(ModelFileError, match=f"declares {total} bytes.*max_bytes={total - 1}"):
        load(path, max_bytes=total - 1)
    model = load(path, max_bytes=total)
    assert model.model_.best.rows.values.nbytes < X.nbytes / 2


# --- nesting


@pytest.mark.parametrize("levels", [2, 10, 300, 100_000])
def test_estimators_inside_estimators(small, tmp_path, levels):
    """A file has at most one estimator inside another."""
    manifest = json.loads(content(small[0])["manifest.json"])
    outer = {**manifest["saved"], "model": None, "kind": "TableClassifier"}
    before, after = json.dumps({**outer, "part": "HERE"}).split('"HERE"')
    parts = before * levels + json.dumps(manifest["saved"]) + after * levels
    text = json.dumps({**manifest, "saved": "HERE"}).replace('"HERE"', parts)
    path = rewritten(small[0], tmp_path / "x.mbz", **{"manifest.json": text.encode()})
    refuses(path, "nested|recursion|larger")


@pytest.mark.parametrize("levels", [11, 300, 50_000])
@pytest.mark.parametrize("kind", ["value", "list", "tuple", "dict"])
def test_values_inside_values(small, tmp_path, kind, levels):
    """Lists and dictionaries are nested ten levels deep at most."""
    opened = {"value": "[", "dict": '{"dict": [{"list": [{"value": 1}, '}
    closed = {"value": "]", "dict": "]}]}"}
    before, after = opened.get(kind, f'{{"{kind}": ['), closed.get(kind, "]}")
    deep = before * levels + ("1" if kind == "value" else '{"value": 1}') + after * levels
    deep = f'{{"value": {deep}}}' if kind == "value" else deep
    manifest = json.loads(content(small[0])["manifest.json"])
    manifest["saved"]["more"]["deep"] = "HERE"
    text = json.dumps(manifest).replace('"HERE"', deep)
    path = rewritten(small[0], tmp_path / "x.mbz", **{"manifest.json": text.encode()})
    refuses(path, "nested|recursion|larger")


# --- what estimators refuse


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_iter", -1),
        ("max_iter", "many"),
        ("learning_rate", [0.1]),
        ("init", "three"),
        ("engine", "numpy"),
        ("checkpoint", "/tmp/elsewhere"),
        ("n_jobs", 100),
        ("nothing", 1),
        ("self", 1),
        ("__class__", 1),
    ],
)
def test_parameters_that_a_model_does_not_have(small, tmp_path, name, value):
    """Also those that belong to the machine: a file must not set them."""

    def change(manifest):
        manifest["saved"]["parameters"][name] = {"value": value}

    refuses(with_manifest(small[0], tmp_path / "x.mbz", change), name)


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("SDist", "must not have a readout"),
        ("SDistClassifierCV", "must hold a blend"),
        ("SparseMetric", "does not hold a metric"),
        ("TableClassifier", "must hold one of"),
        ("object", "holds a 'object'"),
    ],
)
def test_a_model_of_another_kind(small, tmp_path, kind, why):
    def change(manifest):
        manifest["saved"].update(kind=kind, parameters={})

    refuses(with_manifest(small[0], tmp_path / "x.mbz", change), why)


def test_a_classifier_needs_a_readout(tmp_path):
    X, y = table(n_rows=60)
    SDist(random_state=0, n_averaged=1, max_iter=5).fit(X, y).save(tmp_path / "a.mbz")

    def change(manifest):
        manifest["saved"]["kind"] = "SDistClassifier"

    refuses(with_manifest(tmp_path / "a.mbz", tmp_path / "x.mbz", change), "must have a readout")


@pytest.fixture(scope="module")
def search(tmp_path_factory):
    X, y = table(n_rows=60, n_features=3)
    grid = {"max_degree": [1, 2]}
    model = SDistClassifierCV(SDistClassifier(max_iter=5), grid, cv=2, random_state=0).fit(X, y)
    path = tmp_path_factory.mktemp("search") / "search.mbz"
    model.save(path)
    return path, X


@PARTS
def test_a_search_with_anything_anywhere(search, tmp_path, part):
    """Each value that belongs to the search, as in the test of a whole manifest."""
    path, X = search
    manifest = json.loads(content(path)["manifest.json"])
    values = (None, -1, 1e308, "x", [], [[[]]], {}, {"value": 1}, {"value": None})
    for number, place in enumerate(leaves(manifest["saved"]["more"], ("saved", "more"))):
        for value in values[number % part :: part]:
            changed = copy.deepcopy(manifest)
            inner = changed
            for key in place[:-1]:
                inner = inner[key]
            inner[place[-1]] = value
            text = json.dumps(changed).encode()
            target = rewritten(path, tmp_path / "x.mbz", **{"manifest.json": text})
            try:
                model = load(target)
            except ModelFileError:
                continue
            assert isinstance(model, SDistClassifierCV), (place, value)
            assert isinstance(model.best_params_, dict)
            assert np.isfinite(model.best_score_)
            assert model.n_splits_ >= 1
            assert len(model.estimators_) == len(model.model_.models)
            model.predict_proba(X)


def test_a_blend_needs_readouts(search, tmp_path):
    def change(manifest):
        manifest["saved"]["model"]["models"][-1]["reading"] = None

    refuses(with_manifest(search[0], tmp_path / "x.mbz", change), "without a readout")


# --- arrays and labels


def test_an_array_that_nothing_uses(small, tmp_path):
    def change(manifest):
        manifest["saved"]["model"]["rows"] = None

    refuses(with_manifest(small[0], tmp_path / "x.mbz", change), "no part of the model uses")


@pytest.mark.parametrize(
    "classes",
    [
        {"type": "str", "values": [0, 1]},
        {"type": "str", "values": [10**4000, "z"]},
        {"type": "int64", "values": ["0", "1"]},
        {"type": "int8", "values": [0, 1000]},
        {"type": "float64", "values": [0.0, None]},
        {"type": "object", "values": ["a", [1]]},
        {"type": "object", "values": ["a", 1]},
        {"type": "bool", "values": ["", "x"]},
        {"type": "int64", "values": [1, 0]},
        {"type": "datetime64[D]", "values": [0, 1]},
    ],
)
def test_labels_of_other_types(small, tmp_path, classes):
    def change(manifest):
        manifest["saved"]["model"]["classes"] = classes

    refuses(with_manifest(small[0], tmp_path / "x.mbz", change), "classes")
