"""Estimators in model files."""

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
    """Writes the fitted model to a file."""

    def save(self, path: str | os.PathLike[str], rows: bool = True) -> None:
        """Write the fitted model to a file, which :func:`metricboost.load` reads.

        Parameters
        ----------
        path : str or path
            Usually with the ending ``.mbz``. A file of that name is replaced when the new one is
            complete.
        rows : bool, default=True
            Whether the file holds the training rows of a classifier, in the columns that the model
            uses. Without them no row of the table leaves the machine. The model can then embed
            rows and explain what was learned, but it cannot classify.
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
        """What a file holds besides the parameters and the model."""
        return {}


def parameters_of_the_model(estimator: Any) -> dict[str, Any]:
    """The parameters that a model file keeps.

    Parameters that belong to the machine are left out, and those that are None by default and have
    not been given.
    """
    kind = type(estimator)
    given, defaults = estimator.get_params(deep=False), kind().get_params(deep=False)
    names = names_of(kind, of_the_machine=False)
    return {
        name: given[name] for name in names if not (given[name] is None and defaults[name] is None)
    }


def estimator_of(cls: type[Estimator], parameters: Mapping[str, Any]) -> Estimator:
    """An unfitted estimator with the parameters of a model file, which are checked as in ``fit``.

    Parameters
    ----------
    cls : type
    parameters : mapping of str to object
    """
    unknown = sorted(set(parameters) - set(names_of(cls, of_the_machine=False)))
    if unknown:
        raise ModelFileError(f"{unknown[0]!r} is not a parameter of {cls.__name__}.")
    try:
        made: Any = cls(**parameters)
        made._validate_params()
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"The parameters of {cls.__name__} are wrong: {error}") from error
    return cast(Estimator, made)


def restore_features(estimator: Any, saved: Saved) -> None:
    """Set the number and the names of the columns as they were saved."""
    estimator.n_features_in_ = saved.n_features
    if saved.feature_names is not None:
        estimator.feature_names_in_ = np.array(saved.feature_names, dtype=object)
