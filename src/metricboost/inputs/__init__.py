"""Validation of tables, labels and weights, and the imputation of missing values."""

from .imputation import Imputation, indicator_name
from .labels import (
    check_classes,
    check_labels,
    class_codes,
    is_missing,
    present_labels,
    refuse_missing_labels,
)
from .names import listed
from .tables import (
    check_table,
    check_training,
    column_names,
    complain_of_columns,
    numbers_of,
    refuse_short_file,
)
from .weights import check_weights, refuse_impossible

__all__ = [
    "Imputation",
    "check_classes",
    "check_labels",
    "check_table",
    "check_training",
    "check_weights",
    "class_codes",
    "column_names",
    "complain_of_columns",
    "indicator_name",
    "is_missing",
    "listed",
    "numbers_of",
    "present_labels",
    "refuse_impossible",
    "refuse_missing_labels",
    "refuse_short_file",
]
