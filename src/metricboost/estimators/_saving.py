"""Saving estimators to model files, and restoring them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator

from ..errors import ModelFileError
from ..storage import Saved, write
from ._embedding import ModelHolder
from ._parameters import names_of

Estimator = TypeVar("Estimator", bound=BaseEstimator)


class SavingMixin(ModelHolder):
    """The method ``save`` of estimators."""

    def save(self, path: str | os.PathLike[str], rows: bool = True) -> None:
        """Write the fitted model to a file, which :func:`metricboost.load` reads.

        Parameters
        ----------
        path : str or path
            The name of the file, usually with the suffix ``.mbz``. An existing file is replaced
            when the new file is complete.
        rows : bool, default=True
            Whether the file contains the training rows of a classifier, with the columns that the
            model uses. A file without training rows contains no row of the table; its model can
            embed rows and explain the metric, but cannot classify.
        """
        write(self.saved(rows), path)

    def saved(self, rows: bool = True) -> Saved:
        """The content of a model file.

        Parameters
        ----------
        rows : bool, default=True
            As in :meth:`save`.

        Returns
        -------
        metricboost.storage.Saved
        """
        model = self._ready()
        names = getattr(self, "feature_names_in_", None)
        return Saved(
            kind=type(self).__name__,
            parameters=parameters_of_the_model(self),
            model=model if rows else model.without_rows(),
            feature_names=None if names is None else [str(name) for name in names],
            n_features=self.n_features_in_,
            more=self._saved_attributes(),
        )

    def _saved_attributes(self) -> dict[str, Any]:
        """The content of the file apart from the parameters and the model."""
        return {}


def parameters_of_the_model(estimator: Any) -> dict[str, Any]:
    """The parameters of an estimator that a model file contains.

    Parameters that describe the machine are left out, and so are parameters whose value and default
    are both None.
    """
    kind = type(estimator)
    given, defaults = estimator.get_params(deep=False), kind().get_params(deep=False)
    names = names_of(kind, of_the_machine=False)
    return {
        name: given[name] for name in names if not (given[name] is None and defaults[name] is None)
    }


def estimator_of(cls: type[Estimator], parameters: Mapping[str, Any]) -> Estimator:
    """An unfitted estimator with the parameters of a model file.

    The parameters are checked in the same way as in ``fit``.

    Parameters
    ----------
    cls : type
    parameters : mapping of str to object
    """
    unknown = sorted(set(parameters) - set(names_of(cls, of_the_machine=False)))
    if unknown:
        raise ModelFileError(
            f"The model file has the parameter {unknown[0]!r}, which {cls.__name__} does not have. "
            "The file is damaged, or was saved by a newer version of metricboost."
        )
    try:
        made: Any = cls(**parameters)
        made._validate_params()
    except (TypeError, ValueError) as error:
        raise ModelFileError(
            f"The model file has an invalid parameter of {cls.__name__}: {error}"
        ) from error
    return cast(Estimator, made)


def restore_features(estimator: Any, saved: Saved) -> None:
    """Set the number and the names of the columns to the saved values."""
    estimator.n_features_in_ = saved.n_features
    if saved.feature_names is not None:
        estimator.feature_names_in_ = np.array(saved.feature_names, dtype=object)
