"""A metric for other runtimes."""

from ._onnx import to_onnx

__all__ = ["to_onnx"]
