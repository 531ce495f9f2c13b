"""Model files and ONNX. Model files hold no code and no pickles, so any of them is safe to load."""

from .files import MAX_BYTES, Saved, read, write
from .onnx import to_onnx

__all__ = ["MAX_BYTES", "Saved", "read", "to_onnx", "write"]
