"""Exceptions and warnings of metricboost."""


class ModelFileError(ValueError):
    """A model file is damaged or unsafe, or has an unsupported format version."""


class TableError(ValueError):
    """A table or a column cannot be used. The message says what to do."""


class DeviceMemoryError(MemoryError):
    """An operation needs more memory than the device has."""


class CheckpointError(ValueError):
    """A checkpoint belongs to a fit with other data, other parameters, or another version."""


class GuessingWarning(UserWarning):
    """The out-of-fold predictions of a model are not better than the class frequencies."""


class FitInterrupted(KeyboardInterrupt):
    """A fit was stopped with Ctrl-C. Its checkpoint, if it has one, is written first."""
