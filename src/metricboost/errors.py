"""Errors of metricboost's own."""


class ModelFileError(ValueError):
    """A model file that is damaged, hostile, or newer than this version of metricboost."""
