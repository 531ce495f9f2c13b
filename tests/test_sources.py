"""Samples of rows, blocks of rows, and what is computed from all rows of a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse

from metricboost.inputs import Imputation
from metricboost.sources import (
    BLOCK_NUMBERS,
    Block,
    InMemory,
    corrected_weights,
    draw,
    draw_among,
    least_sample,
    quotas,
    sampling,
)
from metricboost.sources.statistics import (
    FARTHEST,
    PairSummary,
    column_sums,
    imputation_of,
    term_moments,
)

Array = npt.NDArray[Any]


def source_of(
    X: Any, labels: Array | None = None, rows: Array | None = None, **given: Any
) -> InMemory:
    """A table with weights; its rows are of two classes in turn if no labels are given."""
    n = X.shape[0] if rows is None else len(rows)
    labels = np.arange(n) % 2 if labels is None else labels
    return InMemory(X, labels, 1.0 + np.arange(n) % 5, rows, **given)


Maker = Callable[..., InMemory]


@pytest.fixture(params=[BLOCK_NUMBERS, 100], ids=["one block", "many blocks"])
def in_blocks(request: pytest.FixtureRequest) -> Maker:
    """``source_of``, for sources that are read in one block or in many."""
    return partial(source_of, block_numbers=request.param)


# --- samples


def splitmix(number: int, seed: int) -> int:
    """The priority of a row, with whole numbers of any size."""
    z = (number + 1) * 0x9E3779B97F4A7C15 + seed * 0xD1B54A32D192ED03
    z %= 2**64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    return z ^ (z >> 31)


def by_priority(rows: Array, seed: int) -> list[int]:
    return sorted(rows.tolist(), key=lambda row: splitmix(row, seed))


@pytest.mark.parametrize("seed", [0, 7, 2**31 - 2, 2**70 + 1])
def test_priorities_are_splitmix(seed: int) -> None:
    rows = np.array([0, 1, 2, 1000, 2**40])
    expected = [splitmix(row, seed % 2**64) for row in rows.tolist()]
    assert sampling.priorities(rows, seed).tolist() == expected


def test_priorities_are_uniform() -> None:
    """In ten equal parts of their range are equally many, also of the rows of one remainder."""
    for rows in (np.arange(20_000), 16 * np.arange(20_000)):
        found = np.histogram(sampling.priorities(rows, 3) * 2.0**-64, 10, (0.0, 1.0))[0]
        assert np.abs(found - 2000).max() < 5 * np.sqrt(2000)


@pytest.mark.parametrize(
    ("counts", "most", "expected"),
    [
        ([30, 5], 40, [30, 5]),  # all rows
        ([3000, 1000], 400, [300, 100]),  # in proportion
        ([5940, 60], 1000, [940, 60]),  # a rare class keeps its rows
        ([10_000, 300], 1000, [750, 250]),  # a class has at least an equal share of one half
        ([10_000, 300], 100, [50, 50]),
        ([10_000, 2440, 100], 300, [200, 50, 50]),  # the third's rows are missing to the second
        ([100] * 10, 500, [50] * 10),
        ([1000, 30, 3], 83, [50, 30, 3]),
        ([7, 7], 13, None),
    ],
)
def test_quotas(counts: list[int], most: int, expected: list[int] | None) -> None:
    if expected is None:
        with pytest.raises(ValueError, match="sample of 13 rows"):
            quotas(np.array(counts), most)
    else:
        assert quotas(np.array(counts), most).tolist() == expected


def test_quotas_of_any_classes() -> None:
    """No more rows than there may be, hardly fewer, and enough of every class."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        counts = np.ceil(10 ** rng.uniform(0, 5, rng.integers(2, 12))).astype(int)
        most = least_sample(counts) + int(10 ** rng.uniform(0, 4.5))
        sizes = quotas(counts, most)
        assert (sizes <= counts).all()
        assert (sizes >= np.minimum(counts, 50)).all()
        if counts.sum() <= most:
            assert (sizes == counts).all()
        else:
            assert most - len(counts) < sizes.sum() <= most
            larger = np.argsort(counts)
            assert (np.diff(sizes[larger]) >= 0).all()


def test_the_least_sample() -> None:
    counts = np.array([1000, 50, 49, 3])
    assert least_sample(counts) == 152
    assert quotas(counts, 152).tolist() == [50, 50, 49, 3]
    with pytest.raises(ValueError, match="151"):
        quotas(counts, 151)


@pytest.mark.parametrize("seed", [0, 11])
def test_a_sample_has_the_rows_with_the_smallest_priorities(in_blocks: Maker, seed: int) -> None:
    labels = np.random.default_rng(0).choice(3, 2000, p=[0.7, 0.28, 0.02])
    counts = np.bincount(labels)
    sizes = quotas(counts, 300)
    found = draw(in_blocks(np.zeros((2000, 2)), labels), 300, seed)
    expected = [
        row
        for c, size in enumerate(sizes)
        for row in by_priority(np.flatnonzero(labels == c), seed)[:size]
    ]
    assert found.tolist() == sorted(expected)


def test_a_sample_of_a_part_has_the_numbers_of_its_rows() -> None:
    """A part of a table gives the rows that the whole table gives of that part."""
    labels = np.zeros(1000, dtype=int)
    whole = draw(source_of(np.zeros((1000, 1)), labels), 400, 5)
    part = draw(source_of(np.zeros((600, 1)), labels[400:], first=400), 300, 5)
    assert part.min() >= 400
    common = min(len(part), (whole >= 400).sum())
    assert by_priority(part, 5)[:common] == by_priority(whole[whole >= 400], 5)[:common]


def test_a_sample_of_rows_with_a_weight() -> None:
    """Their priorities are those of their numbers in the table."""
    rows = np.flatnonzero(np.arange(900) % 3 > 0)
    found = draw(source_of(np.zeros((900, 1)), np.zeros(600, dtype=int), rows), 100, 6)
    assert found.tolist() == sorted(by_priority(rows, 6)[:100])


def test_a_larger_sample_has_the_rows_of_a_smaller_one() -> None:
    source = source_of(np.zeros((3000, 1)))
    samples = [set(draw(source, most, 1).tolist()) for most in (200, 500, 1500)]
    assert [len(sample) for sample in samples] == [200, 500, 1500]
    assert all(small < large for small, large in pairwise(samples))
    assert samples[0] != set(draw(source, 200, 2).tolist())


@pytest.mark.parametrize("most", [None, 70, 71])
def test_all_rows_are_a_sample(most: int | None) -> None:
    rows = np.arange(70) * 3
    assert draw(source_of(np.zeros((70, 1))), most, 0).tolist() == list(range(70))
    source = source_of(np.zeros((210, 1)), rows=rows, first=5)
    assert draw(source, most, 0).tolist() == (rows + 5).tolist()
    assert most is None or draw_among(rows, np.arange(70) % 2, most, 0) is rows


def test_a_sample_of_some_rows() -> None:
    """It is the sample that is drawn from a source, if the rows are all rows of it."""
    labels = np.random.default_rng(1).choice(2, 1500, p=[0.9, 0.1])
    rows = np.arange(1500)
    expected = draw(source_of(np.zeros((1500, 1)), labels), 200, 9)
    assert draw_among(rows, labels, 200, 9).tolist() == expected.tolist()
    some = rows[rows % 3 > 0]
    sizes = quotas(np.bincount(labels[some]), 200)
    of_classes = [some[labels[some] == c] for c in (0, 1)]
    expected = [row for own, size in zip(of_classes, sizes) for row in by_priority(own, 9)[:size]]
    assert draw_among(some, labels[some], 200, 9).tolist() == sorted(expected)


def test_a_sample_of_some_classes() -> None:
    """Classes of which there are no rows need none."""
    labels = np.repeat([1, 4], [300, 100])
    found = draw_among(np.arange(400), labels, 200, 0)
    assert np.bincount(labels[found]).tolist() == [0, 150, 0, 0, 50]


def test_samples_of_several_turns_have_no_row_in_common() -> None:
    """As long as there are enough rows; and then they have as few as there must be."""
    labels = np.random.default_rng(2).choice(2, 4000, p=[0.7, 0.3])
    rows = np.arange(4000)
    for n_turns, most, n_rows in ((4, 800, 3200), (5, 1600, 4000)):
        samples = [draw_among(rows, labels, most, 3, turn / n_turns) for turn in range(n_turns)]
        assert all(most - 2 < len(sample) <= most for sample in samples)
        times = np.bincount(np.concatenate(samples), minlength=4000)
        assert (times > 0).sum() >= 0.99 * n_rows - 8
        assert times.max() <= -(-n_turns * most // 4000) + (n_turns == 5)


def test_a_turn_starts_at_its_place_in_the_order() -> None:
    rows, labels = np.arange(500), np.zeros(500, dtype=int)
    half = sorted(rows.tolist(), key=lambda row: (splitmix(row, 4) - 2**63) % 2**64)
    assert draw_among(rows, labels, 100, 4, 0.5).tolist() == sorted(half[:100])


def test_a_sample_has_rows_of_many_groups() -> None:
    """A row of every group before a second one of any, class by class."""
    rng = np.random.default_rng(3)
    labels, groups = np.repeat([0, 1], [600, 300]), rng.integers(0, 90, 900)
    found = draw_among(np.arange(900), labels, 450, 0, groups=groups)
    for c, size in ((0, 300), (1, 150)):
        there = np.bincount(groups[labels == c], minlength=90)
        times = np.bincount(groups[found[labels[found] == c]], minlength=90)
        assert times.sum() == size
        assert (times >= np.minimum(there, times.max() - 1)).all()
    first = [by_priority(np.flatnonzero(groups == g), 0)[0] for g in range(90)]
    alone = draw_among(np.arange(900), np.zeros(900, dtype=int), 90, 0, groups=groups)
    assert alone.tolist() == sorted(first)


def test_weights_of_a_sample_have_the_proportions_of_all_rows() -> None:
    counts = np.array([9000, 900, 100])
    labels = np.repeat([0, 1, 2], [500, 250, 100])
    weight = np.random.default_rng(4).uniform(0.5, 2.0, 850)
    found = corrected_weights(weight, labels, counts)
    assert found.sum() == pytest.approx(850)
    mean = np.array([weight[labels == c].mean() for c in range(3)])
    shares = np.bincount(labels, found) / 850
    assert np.allclose(shares, counts * mean / (counts @ mean), rtol=1e-12)
    for c in range(3):
        assert np.ptp((found / weight)[labels == c]) < 1e-12


def test_weights_of_all_rows_are_only_scaled() -> None:
    labels, weight = np.arange(60) % 3, 1.0 + np.arange(60)
    found = corrected_weights(weight, labels, np.array([20, 20, 20]))
    assert np.allclose(found, weight * 60 / weight.sum(), rtol=1e-14)


# --- tables in memory


@dataclass(frozen=True)
class Blocks:
    """The blocks of a reduction, in order."""

    blocks: tuple[Block, ...]

    def __add__(self, other: Blocks) -> Blocks:
        return Blocks(self.blocks + other.blocks)

    def joined(self) -> Block:
        return Block(
            *(np.concatenate([getattr(block, name) for block in self.blocks]) for name in FIELDS)
        )


FIELDS = ("numbers", "labels", "X")


def collected(source: InMemory, **given: Any) -> Blocks:
    return source.reduce(lambda block: Blocks((block,)), **given)


def in_a_file(X: Array, folder: Path) -> Array:
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


LAYOUTS: dict[str, Callable[[Array, Path], Any]] = {
    "float64": lambda X, _: X,
    "float32": lambda X, _: X.astype(np.float32),
    "Fortran": lambda X, _: np.asfortranarray(X),
    "file": in_a_file,
    "CSR": lambda X, _: sparse.csr_matrix(X),
    "CSC, float32": lambda X, _: sparse.csc_array(X.astype(np.float32)),
}
ALL = pytest.mark.parametrize("layout", LAYOUTS)


def numbers(n: int = 170, p: int = 3, seed: int = 0) -> Array:
    """Values that float32 has exactly, many of them zero."""
    return np.random.default_rng(seed).integers(-3, 4, (n, p)) / 4.0


@ALL
@pytest.mark.parametrize("which", ["all", "some"])
def test_blocks_have_all_rows_in_order(
    in_blocks: Maker, layout: str, which: str, tmp_path: Path
) -> None:
    X = numbers()
    rows = np.flatnonzero(np.arange(170) % 4 != 1) if which == "some" else None
    own = X if rows is None else X[rows]
    labels = np.random.default_rng(1).integers(0, 3, len(own))
    source = in_blocks(LAYOUTS[layout](X, tmp_path), labels, rows=rows, first=7)
    assert source.shape == own.shape
    assert source.class_count.tolist() == np.bincount(labels).tolist()
    found = collected(source)
    assert len(found.blocks) == (-(-len(own) // 33) if source.block_numbers == 100 else 1)
    joined = found.joined()
    expected = np.arange(170) if rows is None else rows
    assert joined.numbers.tolist() == (7 + expected).tolist()
    assert np.array_equal(joined.labels, labels)
    assert joined.X.dtype == np.float64
    assert np.array_equal(joined.X, own)


def test_blocks_have_at_least_some_rows() -> None:
    source = source_of(numbers(170, 3), block_numbers=30)
    sizes = [len(block.labels) for block in collected(source).blocks]
    assert sizes == [10] * 17
    sizes = [len(block.labels) for block in collected(source, least_rows=64).blocks]
    assert sizes == [64, 64, 42]


@dataclass(frozen=True)
class Unreadable:
    """A table that has a shape and no values."""

    shape: tuple[int, int]


def test_without_columns_no_values_are_read() -> None:
    source = source_of(Unreadable((170, 3)), first=1000, block_numbers=100)
    found = collected(source, columns=False)
    assert [block.X.shape for block in found.blocks] == [(100, 0), (70, 0)]
    assert found.joined().numbers.tolist() == list(range(1000, 1170))


@ALL
@pytest.mark.parametrize("first", [0, 40])
def test_rows_are_taken_by_number(layout: str, first: int, tmp_path: Path) -> None:
    X, rows = numbers(), np.flatnonzero(np.arange(170) % 4 != 1)
    source = source_of(LAYOUTS[layout](X, tmp_path), rows=rows, first=first)
    places = np.array([0, 3, 50, 100, len(rows) - 1])
    taken, labels, weight = source.take(rows[places] + first)
    assert np.array_equal(taken.toarray() if sparse.issparse(taken) else taken, X[rows[places]])
    assert taken.dtype == source.X.dtype
    assert not isinstance(taken, np.memmap)
    assert np.array_equal(labels, places % 2)
    assert np.array_equal(weight, 1.0 + places % 5)


def test_all_rows_are_taken_without_a_copy() -> None:
    X = numbers()
    assert source_of(X).take(np.arange(170))[0] is X


def test_imputed_rows(in_blocks: Maker) -> None:
    X = numbers()
    X[::5, 1] = np.nan
    imputation = Imputation.of(X)
    source = in_blocks(X).imputed(imputation)
    assert source.shape == (170, 4)
    assert np.array_equal(collected(source).joined().X, imputation.apply(X))
    some = np.arange(0, 170, 7)
    assert np.array_equal(source.take(some)[0], imputation.apply(X[some]))
    assert np.array_equal(source.take(np.arange(170))[0], imputation.apply(X))


# --- statistics


@ALL
def test_column_sums(in_blocks: Maker, layout: str, tmp_path: Path) -> None:
    X, labels = numbers(170, 4), np.random.default_rng(1).integers(0, 3, 170)
    X[:, 3] = X[:, 3] > 0
    center, scale = np.array([0.1, -2.0, 0.0, 0.5]), np.array([1.0, 0.5, 7.0, 1.0])
    sums = column_sums(in_blocks(LAYOUTS[layout](X, tmp_path), labels), center, scale, 1)
    units = (X - center) / scale
    assert sums.n == 170
    assert np.allclose(sums.total, units.sum(axis=0), rtol=1e-12)
    assert np.allclose(sums.squares, (units**2).sum(axis=0), rtol=1e-12)
    assert np.array_equal(sums.low, X.min(axis=0))
    assert np.array_equal(sums.high, X.max(axis=0))
    marks = [[X[labels == c, 3].sum()] for c in range(3)]
    assert sums.marks.tolist() == marks
    assert np.allclose(center + scale * sums.mean, X.mean(axis=0), rtol=1e-12, atol=1e-14)
    assert np.allclose(scale * sums.deviation, X.std(axis=0), rtol=1e-12)


def test_column_sums_with_values_far_out(in_blocks: Maker) -> None:
    """Their squares do not overflow, and the range is what it is."""
    X = numbers(170, 2)
    X[13, 0] = 1e300
    sums = column_sums(in_blocks(X), np.zeros(2), np.ones(2))
    assert sums.high[0] == 1e300
    assert np.isfinite([sums.total, sums.squares]).all()
    assert sums.squares[0] == pytest.approx(FARTHEST**2)


def rough(X: Array) -> tuple[Array, Array]:
    """Constants of a third of the rows."""
    some = X[::3]
    return np.nanmean(some, axis=0), np.nanstd(some, axis=0)


@pytest.mark.parametrize("n", [400, 401])
def test_medians_of_continuous_columns(in_blocks: Maker, n: int) -> None:
    """To a bin, two thousandths of a deviation, whatever the shape of the distribution."""
    rng = np.random.default_rng(n)
    X = np.stack(
        [rng.normal(size=n), 1e3 * rng.lognormal(size=n), -rng.exponential(size=n) ** 3,
         5e6 + rng.standard_t(2, n), np.where(rng.random(n) < 0.5, -1, 1) * rng.uniform(1, 2, n)],
        axis=1,
    )  # fmt: skip
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 1] = np.where(np.isnan(X[:, 1]), 1.0, X[:, 1])
    expected, found = Imputation.of(X), imputation_of(in_blocks(X), *rough(X))
    assert found.indicators == expected.indicators == (0, 2, 3, 4)
    assert (np.abs(found.fill - expected.fill) <= 2e-3 * np.nanstd(X, axis=0)).all()


@pytest.mark.parametrize("n", [300, 301])
def test_medians_of_integer_columns_are_exact(in_blocks: Maker, n: int) -> None:
    """Also half-way between two values, in a column of one value, and in one without values."""
    rng = np.random.default_rng(n)
    X = np.stack(
        [rng.integers(0, 12, n), rng.poisson(0.3, n), rng.integers(1990, 2026, n), np.full(n, 7),
         rng.permutation(n) < n // 2, rng.permutation(n) % 2 * 1000, np.zeros(n)],
        axis=1,
    ).astype(float)  # fmt: skip
    X[rng.permutation(n)[:40], 0] = np.nan
    X[rng.permutation(n)[: n // 2], 2] = np.nan
    X[1:, 3] = np.nan
    X[:, 6] = np.nan
    center, scale = rough(np.where(np.isnan(X), 0.0, X))
    expected, found = Imputation.of(X), imputation_of(in_blocks(X), center, scale + (scale == 0))
    assert found.indicators == expected.indicators == (0, 2, 3, 6)
    assert (np.abs(found.fill - expected.fill) <= 1e-12 * (scale + np.abs(center))).all()
    assert found.fill[6] == 0.0


@dataclass(frozen=True)
class Scaled:
    """Columns scaled and clipped, as those of a fit are."""

    scale: Array

    def __call__(self, X: Array) -> Array:
        return np.clip(X / self.scale, -3.0, 3.0)


def three_classes(n: int = 900) -> tuple[Array, Array, Scaled, Array]:
    """A table, its classes, how it is scaled, and the means of the scaled columns by class."""
    rng = np.random.default_rng(5)
    X, labels = rng.normal(size=(n, 6)), rng.choice(3, n, p=[0.5, 0.4, 0.1])
    X[labels == 1, 2] += 0.5
    prepare = Scaled(rng.uniform(0.4, 2.0, 6))
    centers = np.stack([prepare(X)[labels == c].mean(axis=0) for c in range(3)])
    return X, labels, prepare, centers


def moments(X: Array) -> tuple[Array, Array]:
    """Means of the products of centred columns, and the squares of their standard errors."""
    X = X - X.mean(axis=0)
    products = X[:, :, None] * X[:, None, :]
    return products.mean(axis=0), products.var(axis=0) / (len(X) - 1)


@pytest.mark.parametrize("layout", ["float64", "CSR"])
def test_moments_of_pairs(in_blocks: Maker, layout: str, tmp_path: Path) -> None:
    X, labels, prepare, centers = three_classes()
    source = in_blocks(LAYOUTS[layout](X, tmp_path), labels)
    sums = source.reduce(PairSummary(prepare, centers), least_rows=50)
    assert sums.count.tolist() == np.bincount(labels).tolist()
    classes, columns = np.array([0, 2]), np.array([0, 2, 3, 5])
    means, errors = sums.moments(classes, columns)
    for c, mean, error in zip(classes, means, errors):
        expected = moments(prepare(X)[labels == c][:, columns])
        assert np.allclose(mean, expected[0], rtol=1e-10, atol=1e-12)
        assert np.allclose(error, expected[1], rtol=1e-10, atol=1e-14)


def test_moments_about_rough_centers(in_blocks: Maker) -> None:
    """Means of products are exact about any centers."""
    X, labels, prepare, centers = three_classes()
    sums = in_blocks(X, labels).reduce(PairSummary(prepare, centers + 0.3))
    means = sums.moments(np.arange(3), np.arange(6))[0]
    for c in range(3):
        assert np.allclose(means[c], moments(prepare(X)[labels == c])[0], rtol=1e-9, atol=1e-12)


def test_moments_without_the_rows_of_a_fold(in_blocks: Maker) -> None:
    """Sums less those of the rows that are left out are the sums of the other rows."""
    X, labels, prepare, centers = three_classes()
    source, summary = in_blocks(X, labels), PairSummary(prepare, centers)
    out = np.arange(900) % 5 == 2
    rest = source.reduce(summary) - summary(Block(np.flatnonzero(out), labels[out], X[out]))
    expected = in_blocks(X[~out], labels[~out]).reduce(summary)
    for name in ("count", "total", "products", "squares"):
        assert np.allclose(getattr(rest, name), getattr(expected, name), rtol=1e-10, atol=1e-10)
    means, _ = rest.moments(np.arange(3), np.arange(6))
    for c in range(3):
        kept = prepare(X)[~out & (labels == c)]
        assert np.allclose(means[c], moments(kept)[0], rtol=1e-9, atol=1e-12)


def test_moments_of_a_share_of_the_rows(in_blocks: Maker) -> None:
    """The rows with the smallest priorities, which are the same in a sum that is subtracted."""
    X, labels, prepare, centers = three_classes()
    summary = PairSummary(prepare, centers, seed=8, share=0.3)
    used = sampling.priorities(np.arange(900), 8) * 2.0**-64 <= 0.3
    assert 0.2 < used.mean() < 0.4
    sums = in_blocks(X, labels).reduce(summary)
    expected = PairSummary(prepare, centers)(Block(np.arange(900)[used], labels[used], X[used]))
    for name in ("count", "total", "products", "squares"):
        assert np.allclose(getattr(sums, name), getattr(expected, name), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("layout", ["float64", "float32", "CSC, float32"])
def test_moments_of_terms(in_blocks: Maker, layout: str, tmp_path: Path) -> None:
    X, prepare = numbers(170, 4), Scaled(np.array([0.2, 1.0, 3.0, 0.7]))
    terms = [(0,), (1, 3), (2, 2), (0, 0, 3)]
    found = term_moments(in_blocks(LAYOUTS[layout](X, tmp_path)), prepare, terms, X[:20])
    for term, (mean, deviation) in zip(terms, found):
        product = prepare(X)[:, list(term)].prod(axis=1)
        assert mean == pytest.approx(product.mean(), rel=1e-10, abs=1e-13)
        assert deviation == pytest.approx(product.std(), rel=1e-10)


def test_moments_of_a_product_far_from_zero() -> None:
    """The deviation of two columns near 1.7e9 is not lost in the squares of their product."""
    X = 1.7e9 + np.random.default_rng(0).normal(size=(300, 2))
    found = term_moments(source_of(X), np.asarray, [(0, 1)], X[:20])
    assert found[0, 1] == pytest.approx((X[:, 0] * X[:, 1]).std(), rel=1e-6)
