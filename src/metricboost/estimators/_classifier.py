"""``SDistClassifier``: nearest neighbours under the learned metric."""

from __future__ import annotations

from typing import Any

from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import StrOptions

from .._typing import Float
from ..model import Blend, OutOfFold
from ..model.readouts import READOUTS, Readout, readouts
from ._parameters import declared, parameter, positive_integer
from ._predicting import PredictingMixin, decision_values
from ._sdist import SDist


@declared
class SDistClassifier(PredictingMixin, ClassifierMixin, SDist):  # type: ignore[misc]
    """Classification by nearest neighbours under a learned sparse non-linear metric.

    The classifier learns a metric as :class:`SDist` does, and classifies rows in the embedding of
    the metric. Parameters that are "auto" are chosen by predictions out of fold: each row is
    classified by a metric that was learned without the row. The same predictions calibrate the
    probabilities and set the thresholds between the classes.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : metricboost.model.Model or metricboost.model.Blend
        The fitted model, from which all other attributes are read. A blend has several models,
        with different readouts, whose log probabilities are averaged. The model contains a copy of
        the training rows, with the columns that the model uses. If the metric uses a single
        column, the embedding of the rows reveals the values of this column.
    metric_, classes_, class_count_, feature_importances_, stability_, start_share_, path_, \
    best_iter_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`SDist`.
    readout_ : metricboost.model.readouts.Readout
        The chosen readout, such as ``Margin(k=10)``.
    readouts_ : list of metricboost.model.readouts.Readout
        The readouts whose log probabilities are averaged, ``readout_`` first; usually only this.
    n_neighbors_predict_ : int
        The number of neighbours that a prediction uses, and that :meth:`kneighbors` returns by
        default. For readouts that use no neighbours the number is 10.
    oob_score_ : float
        The weighted share of the rows that are classified correctly out of fold, that is, by a
        metric that was learned without the row. The variant and the readout for the rows of a fold
        are chosen with the rows of the other folds. With ``n_averaged=1`` the metric was learned
        from all rows, and the score is far too optimistic.
    oob_interval_ : tuple of float
        The 95% interval of the share of new rows that the model classifies correctly, around
        ``oob_score_``. It is wider than that of as many new rows, because the errors of the folds
        depend on each other and a model of another table would differ. NaN with ``n_averaged=1``.
    oob_predict_proba_ : ndarray of shape (n_samples, n_classes)
        The predictions of which ``oob_score_`` is the score: the probabilities of each row, by a
        metric, a readout and a calibration that have not seen the row. NaN for rows without a
        prediction: those with the weight 0 and, in tables of more than 2500 rows, those that were
        not needed for the choice.
    oob_decision_function_ : ndarray of shape (n_samples,) or (n_samples, n_classes)
        The same predictions, as ``decision_function`` has them.
    oob_gain_ : float
        The difference between the Brier score of the predictions out of fold and the Brier score
        of predicting the class frequencies, in standard errors. Positive values are better than
        the class frequencies. If the gain is below 2, the model is no better than guessing, and
        ``fit`` warns. NaN with ``n_averaged=1``.

    Examples
    --------
    >>> from metricboost import SDistClassifier
    >>> from metricboost.datasets import make_xor
    >>> X, y = make_xor(n_samples=800, n_features=100, informative=2, random_state=0)
    >>> model = SDistClassifier(random_state=0).fit(X[:400], y[:400])
    >>> model.score(X[400:], y[400:]) > 0.8
    True
    """

    classifier: str = parameter(
        "auto",
        f'{{"auto", {", ".join(map(repr, READOUTS))}}}'.replace("'", '"'),
        [StrOptions({"auto", *READOUTS})],
        """
        The readout, which turns distances into evidence for the classes. "margin" compares the
        mean squared distances to the nearest rows of each class (the paper's f). "hull" compares
        the distances to the flats through these rows. "knn" counts the classes of the nearest rows.
        "kernel" is a support vector machine with the Gaussian kernel of the distance. "mixture"
        fits a Gaussian mixture to each class in the leading directions of the embedding. "linear"
        is a logistic regression on the weighted terms of the metric, and ``explain()`` then has
        the coefficients of each term. "additive" is one on the terms and on thresholds of the
        terms. "ridge" is a ridge regression on the embedding. "auto" chooses "margin" or "hull",
        or one of the other three if it is clearly better out of fold. It averages the best of
        "margin" and "hull", the best of "linear" and "additive", and "ridge" under the plain
        distance, as far as their average predicts better.
        """,
    )
    n_neighbors_predict: int | str = parameter(
        "auto",
        'int or "auto"',
        [StrOptions({"auto"}), positive_integer()],
        """
        The number of neighbours that a prediction uses. "margin" and "hull" use this number of
        nearest rows of each class, "knn" uses this number of nearest rows of all classes together,
        and the other readouts ignore it. "auto" chooses 1, 3, 5, 10 or
        20 (for "hull" 10 or 20) by predictions out of fold.
        """,
    )

    def _readouts(self) -> list[Readout] | None:
        given = self.n_neighbors_predict
        return readouts(self.classifier, None if given == "auto" else int(given))

    def _parameters_of_best(self) -> dict[str, Any]:
        parameters: dict[str, Any] = self.get_params(deep=False)
        return parameters

    @property
    def readout_(self) -> Readout:
        return self._ready().best.the_reading.readout

    @property
    def readouts_(self) -> list[Readout]:
        model = self._ready()
        models = model.models if isinstance(model, Blend) else [model]
        return [one.the_reading.readout for one in models]

    @property
    def oob_score_(self) -> float:
        return self._ready().best.the_reading.score

    @property
    def oob_gain_(self) -> float:
        return self._ready().best.the_reading.gain

    @property
    def oob_interval_(self) -> tuple[float, float]:
        return self._ready().best.the_reading.interval

    @property
    def oob_predict_proba_(self) -> Float:
        found = self._out_of_fold()
        return found.of_all_rows(found.probabilities)

    @property
    def oob_decision_function_(self) -> Float:
        found = self._out_of_fold()
        return found.of_all_rows(decision_values(found.log_odds))

    def _out_of_fold(self) -> OutOfFold:
        found = self._ready().best.the_reading.out_of_fold
        if found is None:
            raise AttributeError(
                "This model has no predictions out of fold: it was fitted with n_averaged=1, found "
                "by a search, or saved with rows=False."
            )
        return found
