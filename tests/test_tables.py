"""Reading tables from files, and encoding their columns as numbers."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

from mixed_table import mixed  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402

from metricboost.errors import TableError  # noqa: E402
from metricboost.tables import TableEncoder, read_chunks, read_table  # noqa: E402
from metricboost.tables.reading import head_of  # noqa: E402

# Reading


@pytest.mark.parametrize(
    "name", ["t.csv", "t.csv.gz", "t.tsv", "t.parquet", "t.feather", "t.arrow"]
)
def test_files_of_every_kind(tmp_path, name):
    frame, path = mixed(), tmp_path / name
    if name.startswith("t.csv"):
        frame.to_csv(path, index=False)
    elif name == "t.tsv":
        frame.to_csv(path, index=False, sep="\t")
    elif name == "t.parquet":
        frame.to_parquet(path)
    else:
        frame.to_feather(path)
    read = read_table(path)
    assert list(read.columns) == list(frame.columns)
    np.testing.assert_allclose(read["g3"].to_numpy(float), frame["g3"].to_numpy(float))
    chunks = list(read_chunks(path, rows=50))
    assert [len(part) for part in chunks] == [50, 50, 20]
    assert pd.concat(chunks)["outcome"].tolist() == frame["outcome"].tolist()


def test_an_npz(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.ones((4, 2)), y=[0, 1, 0, 1])
    assert list(read_table(tmp_path / "t.npz").columns) == ["x0", "x1", "y"]
    np.savez(tmp_path / "n.npz", X=np.ones((4, 2)), columns=["a", "b"])
    assert list(read_table(tmp_path / "n.npz").columns) == ["a", "b"]
    np.savez(tmp_path / "bad.npz", Z=np.ones(3))
    with pytest.raises(TableError, match="no two-dimensional array named X"):
        read_table(tmp_path / "bad.npz")
    np.savez(tmp_path / "object.npz", X=np.array([[{}]], dtype=object))
    with pytest.raises(
        TableError, match=r"array X of .* holds Python objects.*Save X\.astype\(float\)"
    ):
        read_table(tmp_path / "object.npz")
    for name in ("y", "columns"):
        labels = {name: np.array(["a", "b"], dtype=object)}
        np.savez(tmp_path / "object.npz", X=np.ones((2, 2)), **labels)
        with pytest.raises(TableError, match=rf"array {name} of .*Save {name}\.astype\(str\)"):
            read_table(tmp_path / "object.npz")


def numbers(path):
    frame = read_table(path)
    encoder = TableEncoder().fit(frame)
    return dict(zip(encoder.features_, encoder.transform(frame).T.tolist()))


def test_semicolons_and_decimal_commas(tmp_path):
    (tmp_path / "t.csv").write_text('\n"a, cm";b;c\n1,5;10.0.0.1;2\n2,25;10.0.0.2;1.234,5\n')
    found = numbers(tmp_path / "t.csv")
    assert found["a, cm"] == [1.5, 2.25]
    assert found["c"] == [2, 1234.5]
    (tmp_path / "p.csv").write_text("a;b\n1.5;x\n2.25;y\n")
    assert numbers(tmp_path / "p.csv")["a"] == [1.5, 2.25]


def test_marks_of_missing_values(tmp_path):
    (tmp_path / "t.csv").write_text("a, b\n1,?\nNA,2\n,3\nunknown,4\n2,5\n")
    found = numbers(tmp_path / "t.csv")
    np.testing.assert_array_equal(found["a"], [1, np.nan, np.nan, np.nan, 2])
    np.testing.assert_array_equal(found["b"], [np.nan, 2, 3, 4, 5])


def test_a_comma_at_the_end_of_every_row(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2,\n3,4,\n5,6,\n")
    assert numbers(tmp_path / "t.csv") == {"a": [1, 3, 5], "b": [2, 4, 6]}


def test_a_chunk_is_encoded_as_the_whole_table(tmp_path):
    """A level is the same text in any chunk; one odd text spoils no other row."""
    lines = [f"{code},{flag},{i}.5" for i, (code, flag) in enumerate(
        [("1", "True"), ("2", "False"), ("01", "True"), ("x", "False")] * 20)]  # fmt: skip
    (tmp_path / "t.csv").write_text("\n".join(["code,flag,size", *lines]))
    encoder = TableEncoder().fit(read_table(tmp_path / "t.csv"))
    assert [column.kind for column in encoder.columns_] == ["category", "category", "number"]
    (tmp_path / "n.csv").write_text(
        "code,flag,size\n1,True,1.5\n,dunno,<3\n2,True,2.5\n01,False,4\n"
    )
    with pytest.warns(UserWarning, match="'size' has the text '<3' among its numbers"):
        whole = encoder.transform(read_table(tmp_path / "n.csv"))
    with pytest.warns(UserWarning, match="among its numbers"):
        parts = [encoder.transform(part) for part in read_chunks(tmp_path / "n.csv", rows=1)]
    np.testing.assert_array_equal(whole, np.vstack(parts))
    assert whole[0, encoder.features_.index("flag=True")] == 1
    typed = pd.DataFrame(
        {"code": [1.0, None, 2.0], "flag": [True, False, True], "size": [1.0, 2, 3]}
    )
    np.testing.assert_array_equal(encoder.transform(typed)[:, 1], whole[:3, 1])


def test_a_column_of_numbers_that_holds_none():
    encoder = TableEncoder().fit(pd.DataFrame({"a": [1.5, 2.5, 3.5]}))
    with pytest.raises(
        TableError,
        match="'a' held numbers in training, but here it holds only texts, such as 'broken'",
    ):
        encoder.transform(pd.DataFrame({"a": ["broken"] * 30}))


# Decimal marks


def texts(**columns):
    return pd.DataFrame(columns, dtype=str)


def written(frame, decimal):
    """Numbers as a file has them, all with three digits behind the mark."""
    return frame.map(lambda value: f"{value:.3f}".replace(".", decimal))


@pytest.mark.parametrize("rows", [3, 200])
@pytest.mark.parametrize(("first", "then"), [",.", ".,", ",,", ".."])
def test_the_decimal_mark_is_that_of_the_table_that_is_read(first, then, rows):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(400, 2)), columns=["u", "v"])
    encoder = TableEncoder().fit(written(frame[:200], first))
    new = frame[200 : 200 + rows]
    np.testing.assert_allclose(encoder.transform(written(new, then)), new, atol=6e-4)


@pytest.mark.parametrize(
    ("training", "new", "expected"),
    [
        (["1,5", "2,5"], ["1.234", "5.678"], [1234, 5678]),  # fits both: as in training
        (["1.5", "2.5"], ["1.234", "5.678"], [1.234, 5.678]),
        (["1,5", "2,5"], ["0.637", "-0.025"], [0.637, -0.025]),  # no thousands begin with a zero
        (["1,5", "2,5"], ["0.637", "1.234"], [0.637, 1.234]),
        (["1.5", "2.5"], ["1.234,5", "1.234"], [1234.5, 1234]),
        (["1.5", "2.5"], ["1.234"] * 20 + ["2,5"], [1.234] * 20 + [np.nan]),  # a slip
        (["1.5", "2.5"], ["1,5e-05", "1e3"], [1.5e-5, 1000]),
        (["1,5", "2,5"], ["3", "4"], [3, 4]),
        (["1,5", "2,5"], [None, None], [np.nan, np.nan]),
    ],
)
@pytest.mark.filterwarnings("ignore:.*missing value")
def test_numbers_that_can_be_read_in_two_ways(training, new, expected):
    encoder = TableEncoder().fit(texts(a=training))
    np.testing.assert_allclose(encoder.transform(texts(a=new))[:, 0], expected)


def test_columns_that_do_not_tell_go_with_those_that_do():
    german = TableEncoder().fit(texts(a=["1,5", "2,5"], b=["1.234", "999"]))
    np.testing.assert_allclose(
        german.transform(texts(a=["1,5", "3"], b=["1.234", "1"])), [[1.5, 1234], [3, 1]]
    )
    np.testing.assert_allclose(german.transform(texts(a=["1.5"], b=["1.234"])), [[1.5, 1.234]])
    both = TableEncoder().fit(texts(a=["1,5", "2,5"], b=["0.25", "0.75"]))
    np.testing.assert_allclose(both.transform(texts(a=["1,5"], b=["1.234"])), [[1.5, 1.234]])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"", "is empty"),
        ("t.csv", b"a,b\n", "has no rows"),
        ("t.csv", b"a,b\n1,2\n1,2,3,4\n", "cannot be read as CSV"),
        ("t.csv", b"\x00\x01\x02" * 50, "contains null bytes"),
        ("t.csv", "a,b\nü,1\n".encode("latin-1"), "not UTF-8"),
        ("t.csv", "ä,ö\n1,2\n".encode("latin-1"), "not UTF-8"),
        ("t.csv", b"a, a\n1,2\n", "two columns named 'a'"),
        ("t.csv", b'"a,b\n' + b"1,2\n" * 50_000, "every quote is closed"),
        ("t.parquet", b"no parquet", "cannot be read as Parquet"),
        ("t.feather", b"no arrow at all", "cannot be read as Arrow"),
        ("t.npz", b"no zip", "cannot be read as npz"),
        ("t.xlsx", b"x", "unknown ending"),
    ],
)
def test_files_that_are_no_tables(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=message):
        read_table(tmp_path / name)


def test_a_header_of_any_length(tmp_path):
    """The header is longer than the part of a file that is read first. A name has two lines."""
    names = [f"x{j}" for j in range(20_000)] + ['"two\nlines"', "target"]
    path = tmp_path / "t.csv"
    path.write_text(",".join(names) + "\n" + ",".join(["1"] * len(names)) + "\n")
    read = read_table(path)
    assert read.shape == (1, 20_002)
    assert list(read.columns[-2:]) == ["two\nlines", "target"]
    path.write_text(",".join([*names, "x5"]) + "\n" + ",".join(["1"] * 20_003) + "\n")
    with pytest.raises(TableError, match="two columns named 'x5'"):
        read_table(path)
    with pytest.raises(TableError, match=r"does not end in the first 0\.0625 MiB"):
        head_of(path, most_bytes=2**16)


def test_lines_end_as_in_csv(tmp_path):
    """Not at other characters that Unicode ends lines with."""
    (tmp_path / "t.csv").write_text("a\u2028b,c\x85d\n1,2\n", encoding="utf-8")
    assert list(read_table(tmp_path / "t.csv").columns) == ["a\u2028b", "c\x85d"]
    (tmp_path / "t.csv").write_bytes(b'"a\nb";c\r1;2\r3;4\r')
    assert read_table(tmp_path / "t.csv").to_dict("list") == {"a\nb": ["1", "3"], "c": ["2", "4"]}
    (tmp_path / "t.csv").write_text("a,b\n" + f"1,{'x' * 200_000}\n" * 3)
    assert read_table(tmp_path / "t.csv").shape == (3, 2)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "t.csv")
    with gzip.open(tmp_path / "t.csv.gz", "wt") as stream:
        stream.write("a,b\n1,2\n")
    (tmp_path / "cut.csv.gz").write_bytes((tmp_path / "t.csv.gz").read_bytes()[:20])
    with pytest.raises(TableError):
        read_table(tmp_path / "cut.csv.gz")


# Encoding


def kinds(encoder):
    return {problem.column: problem.kind for problem in encoder.problems_}


def test_columns_of_every_kind():
    encoder = TableEncoder(drop=["outcome"]).fit(mixed())
    assert encoder.features_ == [
        "g0", "g1", "g2", "g3", "g4", "g5", "sex=m", "city=Bern", "city=Oslo", "city=Rome",
        "city=(missing)", "smoker",
    ]  # fmt: skip
    assert kinds(encoder) == {"patient_id": "identifier"}
    X = encoder.transform(mixed())
    assert np.isnan(X[:, 3]).sum() == 14
    np.testing.assert_array_equal(X[:, 7:11].sum(axis=1), 1)
    assert set(X[:, 11]) == {0.0, 1.0}


def test_identifiers():
    n = 50
    frame = pd.DataFrame({
        "code": [f"a{i}" for i in range(n)],
        "userId": np.random.default_rng(0).permutation(10**6)[:n],
        "counter": range(n), "size": np.random.default_rng(1).permutation(10**6)[:n],
        "x": np.random.default_rng(2).normal(size=n),
    })  # fmt: skip
    encoder = TableEncoder().fit(frame)
    assert encoder.features_ == ["size", "x"]
    assert set(kinds(encoder).values()) == {"identifier"}
    lipids = frame.rename(columns={"size": "lipid"})
    assert TableEncoder().fit(lipids).features_ == ["lipid", "x"]
    kept = TableEncoder(keep=["counter"]).fit(frame)
    assert kept.features_ == ["counter", "size", "x"]


@pytest.mark.parametrize("kind", [str, object, np.uint64])
def test_whole_numbers_too_large_to_be_exact_are_texts(kind):
    many = [10**19 + 7 * i for i in range(100)]
    few = [10**16 + i % 3 for i in range(100)]
    frame = pd.DataFrame({
        "uid": np.array(many, dtype=kind), "code": np.array(few, dtype=kind),
        "x": np.linspace(0, 1, 100),
    })  # fmt: skip
    encoder = TableEncoder().fit(frame)
    assert kinds(encoder) == {"uid": "identifier"}
    assert encoder.features_ == [*(f"code={10**16 + i}" for i in range(3)), "x"]
    np.testing.assert_array_equal(encoder.transform(frame)[:, :3].sum(axis=0), [34, 33, 33])


def test_larger_numbers_than_any_type_has():
    frame = texts(big=[str(10**25 + i) for i in range(100)], x=[f"{i}.5" for i in range(100)])
    encoder = TableEncoder(keep="big").fit(frame)
    assert kinds(TableEncoder().fit(frame)) == {"big": "identifier"}
    assert not encoder.transform(pd.DataFrame({"big": [1e25, 2e25], "x": 1.0}))[:, :-1].any()


def test_one_large_number_makes_no_texts_of_a_column():
    frame = pd.DataFrame({"age": [*range(20, 60), 10**18]})
    assert TableEncoder().fit(frame).features_ == ["age"]
    assert TableEncoder().fit(frame.astype(str)).features_ == ["age"]


@pytest.mark.parametrize(
    "values",
    [
        ["2024-03-01", "2024-04-02", "2024-05-03"],
        ["2024-03-01 12:30", "2024-04-02 01:02", "2024-05-03 22:00"],
        ["01.03.2024", "02.04.2024", "3.5.24"],
        ["3/1/2024", "12/31/2023", "1/1/2020"],
        ["Mar 1, 2024", "Apr 2, 2024", "May 3, 2024"],
        pd.to_datetime(["2024-03-01", "2024-04-02", "2024-05-03"]),
        pd.to_datetime(["2024-03-01", "2024-04-02", "2024-05-03"]).tz_localize("UTC"),
    ],
)
def test_dates_are_refused_with_advice(values):
    frame = pd.DataFrame({"day": values, "x": [1.0, 2, 3]})
    with pytest.raises(TableError, match=r"'day' holds dates.*--drop day"):
        TableEncoder().fit(frame)
    assert TableEncoder(drop=["day"]).fit(frame).features_ == ["x"]


@pytest.mark.parametrize("case", [str, str.upper, str.lower])
def test_yes_and_no_from_a_file_without_types(case):
    frame = pd.DataFrame({"flag": [True, False] * 15, "x": np.linspace(0, 1, 30)})
    encoder = TableEncoder().fit(frame)
    new = frame.astype(str)
    new["flag"] = new["flag"].map(case)
    np.testing.assert_allclose(encoder.transform(new), frame.astype(float))
    new.loc[3, "flag"] = "maybe"
    with pytest.warns(UserWarning, match="'flag' has the text 'maybe'"):
        assert np.isnan(encoder.transform(new)[3, 0])


def test_yes_and_no_among_numbers_are_texts():
    encoder = TableEncoder().fit(pd.DataFrame({"x": [1.5, 2.5, 3.5]}))
    with pytest.warns(UserWarning, match="'x' has the text 'True'"):
        found = encoder.transform(texts(x=["1.5", "True"]))
    np.testing.assert_array_equal(found[:, 0], [1.5, np.nan])


def test_text_that_is_no_date():
    frame = pd.DataFrame(
        {"version": ["1.2", "v2-beta", "1.2"], "size": ["10-20", "20-30", "10-20"]}
    )
    assert TableEncoder().fit(frame).features_ == ["version=v2-beta", "size=20-30"]


def test_numbers_with_a_few_texts():
    frame = pd.DataFrame({"age": ["31", "44", "old", *map(str, range(20, 50))]})
    encoder = TableEncoder().fit(frame)
    assert encoder.columns_[0].kind == "number"
    assert kinds(encoder) == {"age": "not a number"}
    assert np.isnan(encoder.transform(frame)[2, 0])


def test_many_levels():
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"city": random.choice([f"c{i}" for i in range(60)], 400)})
    encoder = TableEncoder().fit(frame)
    assert len(encoder.features_) == 20
    assert kinds(encoder) == {"city": "levels"}


def test_new_levels_and_columns_in_another_order():
    frame = mixed()
    encoder = TableEncoder(drop=["outcome"]).fit(frame)
    other = frame[frame.columns[::-1]].head(2).assign(city="Paris", unused=1)
    X = encoder.transform(other)
    np.testing.assert_array_equal(X[:, 7:11], 0)
    np.testing.assert_array_equal(X[:, :6], encoder.transform(frame.head(2))[:, :6])
    with pytest.raises(TableError, match="lacks column 'g1', which"):
        encoder.transform(frame.drop(columns="g1"))


def test_remarks_about_columns():
    frame = pd.DataFrame({"a": [1.0] * 30, "b": [None] * 20 + [1.0, 2] * 5, "c": ["x"] * 30,
                          "d": np.arange(30) % 7, "e": [None] * 30})  # fmt: skip
    found = [(p.column, p.kind) for p in TableEncoder().fit(frame).problems_]
    assert ("a", "constant") in found
    assert ("b", "missing") in found
    assert ("c", "constant") in found
    assert ("e", "missing") in found
    assert TableEncoder().fit(frame).transform(frame).shape[0] == 30


def test_pandas_types_of_its_own():
    frame = pd.DataFrame({
        "i": pd.array([1, None, 3], dtype="Int64"),
        "b": pd.array([True, None, False], dtype="boolean"),
        "s": pd.array(["x", None, "y"], dtype="string"), "c": pd.Categorical(["u", "v", "u"]),
    })  # fmt: skip
    encoder = TableEncoder().fit(frame)
    X = encoder.transform(frame)
    assert encoder.features_ == ["i", "b", "s=x", "s=y", "s=(missing)", "c=v"]
    np.testing.assert_array_equal(X[0], [1, 1, 1, 0, 0, 0])
    assert np.isnan(X[1, :2]).all()


def test_names_that_are_not_there():
    with pytest.raises(TableError, match=r"no column 'sexx'\. Did you mean 'sex'"):
        TableEncoder(drop=["sexx"]).fit(mixed())
    with pytest.raises(TableError, match="The columns are patient_id, g0"):
        TableEncoder(drop=["zzzzzzz"]).fit(mixed())


@pytest.mark.parametrize(
    ("table", "advice"),
    [
        ("parts.csv", "a str: read the file with metricboost.tables.read_table"),
        (np.ones((3, 2)), "a ndarray: make a table with pandas.DataFrame"),
        ({"a": [1, 2]}, "a dict: make a table with pandas.DataFrame"),
    ],
)
def test_only_tables_are_encoded(table, advice):
    encoder = TableEncoder().fit(mixed())
    for call in (TableEncoder().fit, encoder.transform):
        with pytest.raises(TypeError, match=advice):
            call(table)


KINDS = {
    "point": ["1.5", "-2.25", "NA", "3e2"], "comma": ["1,5", "2.000,25", "?", "3,0"],
    "code": ["007", "010", "007", "3"], "word": ["a", " b", "a", None],
    "flag": ["True", "False", "True", "NA"], "whole": ["1", "2", "2", "5"],
    "empty": [None, "NA", "?", "."], "constant": ["5", "5", "5", "5"],
}  # fmt: skip


@pytest.mark.parametrize("repeats", [5, 400])
@pytest.mark.parametrize("kind", [str, object])
def test_columns_are_encoded_together_as_each_alone(kind, repeats):
    """Columns of one type are looked at together, and long ones in another way than short ones."""
    columns = {f"{name}{i}": values * repeats for i in range(3) for name, values in KINDS.items()}
    frame = pd.DataFrame(columns, dtype=kind)
    encoder = TableEncoder()
    together = encoder.fit_transform(frame)
    alone = [TableEncoder().fit(frame[[name]]) for name in columns]
    assert encoder.columns_ == [column for one in alone for column in one.columns_]
    assert encoder.problems_ == [problem for one in alone for problem in one.problems_]
    parts = [one.transform(frame[[name]]) for one, name in zip(alone, columns)]
    np.testing.assert_array_equal(together, np.hstack(parts))
    np.testing.assert_array_equal(together, encoder.transform(frame))


def test_a_single_name_is_one_column():
    frame = mixed().drop(columns="outcome")
    assert "city=Oslo" not in TableEncoder(drop="city").fit(frame).features_
    assert "patient_id" in TableEncoder(keep="patient_id").fit(frame).features_


def test_names_that_are_not_texts():
    """The names of a DataFrame that is made from an array are the numbers 0, 1, ..."""
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 3)))
    encoder = TableEncoder(drop=[1]).fit(frame)
    assert encoder.features_ == ["0", "2"]
    np.testing.assert_array_equal(encoder.transform(frame), frame[[0, 2]])


def test_the_encoder_is_an_estimator():
    encoder = TableEncoder(drop=["outcome"], keep="patient_id")
    assert clone(encoder.fit(mixed())).get_params() == {"drop": ["outcome"], "keep": "patient_id"}
    with pytest.raises(NotFittedError):
        clone(encoder).transform(mixed())
