"""The report: one self-contained page about a model and how well it classifies some rows."""

from ._report import Report, make_report

__all__ = ["Report", "make_report"]
