"""``SDistClassifier``: nearest neighbours under the learned metric."""

from __future__ import annotations

from typing import Any

from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import StrOptions

from ..model.readouts import READOUTS, Readout, readouts
from ._parameters import declared, parameter, positive_integer
from ._predicting import PredictingMixin
from ._sdist import SDist


@declared
class SDistClassifier(PredictingMixin, ClassifierMixin, SDist):  # type: ignore[misc]
    """Classification by nearest neighbours under a learned sparse non-linear metric.

    All of :class:`SDist`, and a classifier on its embedding. What is not given is chosen on rows
    out of fold: each row is classified by a metric that was learned without it. On the same
    evidence the probabilities are calibrated and the thresholds between classes are set.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    model_ : metricboost.model.Model
        The fitted model, from which all other attributes are read. It holds a copy of the training
        rows in the columns that it uses. If the metric is one column, the embedding of the rows
        is that column.
    metric_, classes_, class_count_, feature_importances_, stability_, start_share_, path_, \
    best_iter_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`SDist`.
    readout_ : metricboost.model.readouts.Readout
        The readout that was chosen, such as ``Margin(k=10)``.
    n_neighbors_predict_ : int
        The number of nearest rows that predictions look at (for "kernel" and "mixture", the number
        that :meth:`kneighbors` returns).
    oob_score_ : float
        The share of the rows that were classified correctly by metrics that had not seen them,
        weighted as the rows are. For every fold the variant and the readout are chosen with the
        other folds (``python -m experiments.honesty noise`` measures the score on noise). With
        ``n_averaged=1`` the metric has seen all rows, and the score is far too optimistic.
    oob_gain_ : float
        Standard errors by which the Brier score of the same predictions is better than that of
        guessing with the class frequencies, row by row. Below 2 the model is no better than
        guessing, and ``fit`` warns. NaN with ``n_averaged=1``.

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
        '{"auto", "margin", "hull", "knn", "kernel", "mixture"}',
        [StrOptions({"auto", *READOUTS})],
        """
        The readout: how classes are read off the distance. "margin" compares the mean squared
        distances to the nearest rows of each class (the paper's f). "hull" compares the distances
        to the flats through these rows. "knn" counts the classes of the nearest rows. "kernel" is
        a support vector machine under the kernel of the distance. "mixture" has a Gaussian mixture
        for each class in the leading directions of the embedding. "auto" takes the better of
        "margin" and "hull".
        """,
    )
    n_neighbors_predict: int | str = parameter(
        "auto",
        'int or "auto"',
        [StrOptions({"auto"}), positive_integer()],
        """
        How many nearest rows a prediction looks at: rows of each class, or rows of any class for
        "knn". "auto" chooses from 3, 5, 10 and 20 (from 10 and 20 for "hull").
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
        return self._ready().the_reading.readout

    @property
    def oob_score_(self) -> float:
        return self._ready().the_reading.score

    @property
    def oob_gain_(self) -> float:
        return self._ready().the_reading.gain
