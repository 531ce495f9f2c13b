"""Errors of metricboost's own."""


class ModelFileError(ValueError):
    """A model file that is damaged, hostile, or newer than this version of metricboost."""


class TableError(ValueError):
    """A table, or a column of it, that cannot be used as it is; the message says what to do."""


class DeviceMemoryError(MemoryError):
    """Something does not fit into the memory of the device that is to compute it."""


class CheckpointError(ValueError):
    """A checkpoint of another fit: of other data, other parameters, or another version."""


class GuessingWarning(UserWarning):
    """A fitted model is no better, out of fold, than guessing with the class frequencies."""


class FitInterrupted(KeyboardInterrupt):
    """A fit that was asked to stop, and has written what it learned."""
