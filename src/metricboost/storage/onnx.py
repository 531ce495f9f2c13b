"""A metric as an ONNX model: the embedding as a graph of a few operators.

The graph repeats ``SparseMetric.transform``. It gathers the columns that the metric uses, fills
missing values, standardises and clips the columns, multiplies them degree by degree, and multiplies
the terms by the components; terms with a weight on the diagonal are scaled. Constants are computed
in double precision, whatever the type of the graph.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._files import replacing
from .._typing import Float, Index
from .._version import __version__
from ..model import SparseMetric

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto

#: Opset 17 came with version 8 of the file format: every onnxruntime since 1.12 reads both.
OPSET, IR_VERSION = 17, 8
DTYPES = ("float32", "float64")


def to_onnx(
    metric: SparseMetric, path: str | os.PathLike[str] | None = None, dtype: str = "float32"
) -> ModelProto:
    """The embedding of a metric as an ONNX model, for programs without Python or metricboost.

    The input ``X`` of shape (N, n_features) has the columns of the metric in their order. The
    output ``embedding`` is that of ``metric.transform`` up to rounding. The names of the columns
    and the version of metricboost are in the metadata. The package onnx is needed:
    ``pip install "metricboost[onnx]"``.

    Parameters
    ----------
    metric : SparseMetric
        Such as ``metric_`` of a fitted estimator.
    path : str or path, optional
        A file to write, usually with the ending ``.onnx``. A file of that name is replaced when
        the new one is complete.
    dtype : {"float32", "float64"}, default="float32"
        The type of the input, the output and all that lies between. Products of high degree
        can exceed what float32 holds if columns are not clipped.

    Returns
    -------
    onnx.ModelProto

    Examples
    --------
    >>> import numpy as np
    >>> from onnxruntime import InferenceSession
    >>> from metricboost import SparseMetric, to_onnx
    >>> metric = SparseMetric([(0, 1)], [[0.5]], np.zeros(2), np.ones(2), [1.0], [1.0])
    >>> session = InferenceSession(to_onnx(metric).SerializeToString())
    >>> session.run(["embedding"], {"X": np.float32([[3.0, 5.0], [1.0, 1.0]])})[0]
    array([[7.],
           [0.]], dtype=float32)
    """
    _check_installed()
    if dtype not in DTYPES:
        raise ValueError(f"dtype={dtype!r} must be one of {DTYPES}.")
    graph = _Graph(np.dtype(dtype))
    if metric.columns and metric.rank:
        _embedding(graph, metric, _products(graph, metric))
    else:
        _zeros(graph, metric.rank)
    model = _model(graph, metric)
    if path is not None:
        with replacing(path) as unfinished:
            unfinished.write_bytes(model.SerializeToString())
    return model


def _check_installed() -> None:
    try:
        import onnx  # noqa: F401
    except ImportError as error:
        raise ImportError(
            'A metric becomes an ONNX model with the package onnx: pip install "metricboost[onnx]".'
        ) from error


@dataclass
class _Graph:
    """The nodes and constants of a graph that is being made. Every value has a name."""

    dtype: np.dtype[Any]
    nodes: list[NodeProto] = field(default_factory=list)
    constants: list[TensorProto] = field(default_factory=list)

    def add(self, operator: str, *inputs: str, **options: Any) -> str:
        """Add a node, and return the name of its output."""
        from onnx import helper

        output = f"{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [output], **options))
        return output

    def integers(self, name: str, values: npt.ArrayLike) -> str:
        """Add a constant of integers, and return its name in the graph."""
        return self._keep(name, np.asarray(values, dtype=np.int64))

    def numbers(self, name: str, values: Float | float) -> str:
        """Add a constant in the type of the graph, and return its name in the graph.

        A value that the type cannot hold is an error.
        """
        values = np.asarray(values, dtype=np.float64)
        with np.errstate(over="ignore"):
            cast = values.astype(self.dtype)
        lost = np.isfinite(values) & ~np.isfinite(cast)
        if lost.any():
            raise ValueError(
                f"The {name} of this metric has the value {values[lost][0]}, which {self.dtype} "
                "cannot hold: use dtype='float64'."
            )
        return self._keep(name, cast)

    def _keep(self, name: str, values: npt.NDArray[Any]) -> str:
        from onnx import numpy_helper

        # Names must be identifiers, as in C.
        name = f"{name.replace(' ', '_')}_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(values, name))
        return name

    def gather(self, table: str, columns: Index, width: int) -> str:
        """Columns of a table that has ``width`` columns.

        If these are all columns in their order, the result is the table itself.
        """
        if np.array_equal(columns, np.arange(width)):
            return table
        return self.add("Gather", table, self.integers("columns", columns), axis=1)

    def concat(self, tables: list[str]) -> str:
        """Tables side by side."""
        return tables[0] if len(tables) == 1 else self.add("Concat", *tables, axis=1)


def _products(graph: _Graph, metric: SparseMetric) -> str:
    """The products of all terms, in the order of ``_by_degree``."""
    used = np.unique([j for term in metric.columns for j in term])
    table = _standardised(graph, metric, used)
    terms = [metric.columns[t] for t in _by_degree(metric)]
    groups = []
    for degree in sorted({len(term) for term in terms}):
        factors = np.searchsorted(used, [term for term in terms if len(term) == degree])
        product = graph.gather(table, factors[:, 0], len(used))
        for i in range(1, degree):
            product = graph.add("Mul", product, graph.gather(table, factors[:, i], len(used)))
        groups.append(product)
    return graph.concat(groups)


def _by_degree(metric: SparseMetric) -> Index:
    """The terms in increasing order of their degrees."""
    return np.argsort([len(term) for term in metric.columns], kind="stable")


def _standardised(graph: _Graph, metric: SparseMetric, used: Index) -> str:
    """The standardised columns ``used`` of the extended table."""
    values, marks = used[used < metric.n_features], used[used >= metric.n_features]
    parts = []
    if len(values):
        parts.append(_values(graph, metric, values))
    if len(marks):
        parts.append(_marks(graph, metric, marks))
    return graph.concat(parts)


def _values(graph: _Graph, metric: SparseMetric, columns: Index) -> str:
    """Columns of the input, standardised and clipped, with missing values filled."""
    values = graph.gather("X", columns, metric.n_features)
    standard = _centred(graph, values, metric.center[columns])
    standard = graph.add("Div", standard, _scale(graph, metric.scale[columns]))
    if metric.clip is not None and np.isfinite(metric.clip):
        ends = [graph.numbers("clip", end) for end in (-metric.clip, metric.clip)]
        standard = graph.add("Clip", standard, *ends)
    if metric.imputation is None:
        return standard
    # The fill values are standardised here, in double precision.
    fill = graph.numbers("fill", _constants(metric, columns, missing=True))
    return graph.add("Where", graph.add("IsNaN", values), fill, standard)


def _centred(graph: _Graph, values: str, center: Float) -> str:
    """The values minus the centre in double precision, whatever the type of the graph.

    The values of a column may lie far from zero, as years and timestamps do. Values near the centre
    lose no digits when the rounded centre is subtracted. The remainder of the centre is subtracted
    after that.
    """
    centred = graph.add("Sub", values, graph.numbers("center", center))
    remainder = center - center.astype(graph.dtype)
    if not remainder.any():
        return centred
    return graph.add("Sub", centred, graph.numbers("center remainder", remainder))


def _scale(graph: _Graph, scale: Float) -> str:
    small = np.abs(scale) < np.finfo(graph.dtype).smallest_normal
    if small.any():
        raise ValueError(
            f"The scale of this metric has the value {scale[small][0]}, too small for "
            f"{graph.dtype}: use dtype='float64'."
        )
    return graph.numbers("scale", scale)


def _marks(graph: _Graph, metric: SparseMetric, columns: Index) -> str:
    """Standardised indicators. Each indicator takes one of two values."""
    indicators = () if metric.imputation is None else metric.imputation.indicators
    sources = np.asarray(indicators, dtype=np.intp)[columns - metric.n_features]
    missing = graph.add("IsNaN", graph.gather("X", sources, metric.n_features))
    yes, no = (graph.numbers("mark", _constants(metric, columns, case)) for case in (True, False))
    return graph.add("Where", missing, yes, no)


def _constants(metric: SparseMetric, columns: Index, missing: bool) -> Float:
    """Standardised columns of the extended table in a row whose values are all missing, or all 0.

    In the first case they are the fill values and the indicators of missing values. In the second
    case only the indicators are of use.
    """
    row = np.full((1, metric.n_features), np.nan if missing else 0.0)
    extended = row if metric.imputation is None else metric.imputation.apply(row)
    standard: Float = (extended[0, columns] - metric.center[columns]) / metric.scale[columns]
    return standard if metric.clip is None else np.clip(standard, -metric.clip, metric.clip)


def _embedding(graph: _Graph, metric: SparseMetric, products: str) -> None:
    """The centred products times the factor of W, and those with a weight on the diagonal of W."""
    order = _by_degree(metric)
    center = graph.numbers("term center", metric.term_center[order])
    centred = graph.add("Sub", products, center)
    parts = []
    if len(metric.components):
        factor = (metric.components / metric.term_scale)[:, order].T
        parts.append(graph.add("MatMul", centred, graph.numbers("components", factor)))
    weighted = np.flatnonzero(metric.diagonal)
    if len(weighted):
        # A matrix of thousands of diagonal weights would be mostly zeros, so they are multiplied
        # one by one.
        alone = graph.gather(centred, np.argsort(order)[weighted], len(order))
        weights = np.sqrt(metric.diagonal[weighted]) / metric.term_scale[weighted]
        parts.append(graph.add("Mul", alone, graph.numbers("diagonal", weights)))
    graph.concat(parts)


def _zeros(graph: _Graph, rank: int) -> None:
    """The embedding of a metric without terms or dimensions: zeros."""
    from onnx import numpy_helper

    shape = graph.add("Concat", graph.add("Shape", "X", end=1), graph.integers("rank", [rank]),
                      axis=0)  # fmt: skip
    zero = numpy_helper.from_array(np.zeros(1, graph.dtype))
    graph.add("ConstantOfShape", shape, value=zero)


def _model(graph: _Graph, metric: SparseMetric) -> ModelProto:
    from onnx import helper

    graph.nodes[-1].output[0] = "embedding"  # the last node computes it
    kind = helper.np_dtype_to_tensor_dtype(graph.dtype)
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "metric",
            [helper.make_tensor_value_info("X", kind, ["N", metric.n_features])],
            [helper.make_tensor_value_info("embedding", kind, ["N", metric.rank])],
            graph.constants,
        ),
        producer_name="metricboost",
        producer_version=__version__,
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", OPSET)],
    )
    names = json.dumps(metric.feature_names, ensure_ascii=False)
    helper.set_model_props(model, {"metricboost_version": __version__, "feature_names": names})
    return model
