"""Errors of metricboost's own."""


class ModelFileError(ValueError):
    """A model file is damaged or hostile, or has another version of the format."""


class TableError(ValueError):
    """A table, or a column of it, that cannot be used as it is; the message says what to do."""


class DeviceMemoryError(MemoryError):
    """Something does not fit into the memory of the device that is to compute it."""


class CheckpointError(ValueError):
    """A checkpoint belongs to another fit: other data, other parameters, or another version."""


class GuessingWarning(UserWarning):
    """A fitted model is no better, out of fold, than guessing with the class frequencies."""


class FitInterrupted(KeyboardInterrupt):
    """A fit stopped because of Ctrl-C, after it had written what it had learned."""
