"""``SDistClassifier``: nearest neighbours under the learned metric."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._threads import one_blas_thread
from .._typing import Data, Float
from ..imputation import Imputation
from ..metric import SparseMetric
from ..selection.choosing import CLASSIFIERS, Candidate, chosen, default_rules, plain_score
from ..selection.crossfit import CrossFit, Variant
from ..selection.readouts import Readout, Training
from ._explaining import ExplainingMixin
from ._sdist import SDist, with_rows
from ._validation import check_table

#: Rows that are classified at a time: their neighbours take memory.
PREDICTED_ROWS = 50_000


class SDistClassifier(ClassifierMixin, ExplainingMixin, SDist):  # type: ignore[misc]
    """Classification by nearest neighbours under a learned sparse non-linear metric.

    All of :class:`SDist`, and a classifier on its embedding. What is not given is chosen on rows
    out of fold: each row is classified by a metric that was learned without it. On the same
    evidence the probabilities are calibrated and the thresholds between classes are set.

    Parameters
    ----------
    classifier : {"auto", "margin", "hull", "knn", "kernel", "mixture"}, default="auto"
        How classes are read off the distance. "margin" compares the mean squared distances to the
        nearest rows of each class (the paper's f); "hull" the distances to the flats through
        them; "knn" counts the classes of the nearest rows; "kernel" is a support vector machine
        under the kernel of the distance; "mixture" has a Gaussian mixture for each class in the
        leading directions of the embedding. "auto" takes the better of "margin" and "hull".
    n_neighbors_predict : int or "auto", default="auto"
        How many nearest rows (of each class but for "knn") a prediction looks at; "auto" chooses
        from 3, 5, 10 and 20 (from 10 and 20 for "hull").
    max_iter, n_neighbors, n_nonzero, learning_rate, subsample, max_features, max_degree, \
    refresh_every, complexity_penalty, oob_gate, screen_pairs, prune, init, standardize, \
    class_weight, multiclass, missing, clip, n_averaged, start_share, max_rows, \
    max_references, engine, random_state, n_jobs, verbose, checkpoint
        As in :class:`SDist`.

    Attributes
    ----------
    metric_, classes_, feature_importances_, stability_, start_share_, path_, best_iter_, n_iter_, \
    n_features_in_, feature_names_in_
        As in :class:`SDist`.
    rule_ : object
        The rule that was chosen, such as ``Margin(k=10)``.
    n_neighbors_predict_ : int
        The number of nearest rows that predictions look at (for "kernel" and "mixture", that
        :meth:`kneighbors` returns).
    oob_score_ : float
        The share of the rows that were classified correctly by metrics that had not seen them,
        weighted as the rows are. For every fold the variant and the rule are chosen with the other
        folds (``python -m benchmarks.honesty noise`` measures what the score is on noise). With
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SDist._parameter_constraints,
        "classifier": [StrOptions(set(CLASSIFIERS))],
        "n_neighbors_predict": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        max_iter: int = 75,
        n_neighbors: int = 20,
        n_nonzero: int | float = 16,
        learning_rate: float = 0.1,
        subsample: float = 0.5,
        max_features: int | float | str | None = "auto",
        max_degree: int = 2,
        refresh_every: int | None = 10,
        complexity_penalty: float = 0.0,
        oob_gate: float | None = 2.0,
        screen_pairs: int | str = "auto",
        prune: int | str | None = "auto",
        init: Any = "zero",
        standardize: bool = True,
        class_weight: Any = None,
        multiclass: str = "common",
        missing: str = "error",
        clip: float | None = 3.0,
        n_averaged: int = 5,
        start_share: float | str = "auto",
        classifier: str = "auto",
        n_neighbors_predict: int | str = "auto",
        max_rows: int | str | None = "auto",
        max_references: int | str | None = "auto",
        engine: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__(
            max_iter=max_iter,
            n_neighbors=n_neighbors,
            n_nonzero=n_nonzero,
            learning_rate=learning_rate,
            subsample=subsample,
            max_features=max_features,
            max_degree=max_degree,
            refresh_every=refresh_every,
            complexity_penalty=complexity_penalty,
            oob_gate=oob_gate,
            screen_pairs=screen_pairs,
            prune=prune,
            init=init,
            standardize=standardize,
            class_weight=class_weight,
            multiclass=multiclass,
            missing=missing,
            clip=clip,
            n_averaged=n_averaged,
            start_share=start_share,
            max_rows=max_rows,
            max_references=max_references,
            engine=engine,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
            checkpoint=checkpoint,
        )
        self.classifier = classifier
        self.n_neighbors_predict = n_neighbors_predict

    def _chosen(self, crossfit: CrossFit) -> tuple[Variant, float]:
        tried = self._variants(len(crossfit.fits))
        rules = default_rules(self.classifier, self.n_neighbors_predict)
        found = self._candidates(crossfit, tried, rules)
        self._candidate = chosen(crossfit, found)
        self._plain_score = plain_score(crossfit, found)
        return self._candidate.variant, self._candidate.gain

    def _set_fitted(
        self, crossfit: CrossFit, own: CrossFit, variant: Variant, imputation: Imputation | None
    ) -> None:
        super()._set_fitted(crossfit, own, variant, imputation)
        self._set_readout(self._candidate)

    def _set_readout(self, candidate: Candidate) -> None:
        self._candidate = candidate
        self.rule_ = candidate.rule
        self.n_neighbors_predict_ = int(getattr(candidate.rule, "k", 10))
        self.oob_score_ = 1.0 - candidate.error
        self.oob_gain_ = candidate.gain
        self._readout = self._made_readout(self.metric_.without_imputation())

    def _made_readout(self, metric: SparseMetric) -> Readout:
        """The chosen rule on the training rows (imputed already) under a metric."""
        training = partial(_embedded, self._crossfit, metric)
        return Readout(self._engine(), training, self.rule_)

    def decision_function(self, X: Any) -> Float:
        """Calibrated log odds: of ``classes_[1]`` where there are two classes, else of each class.

        Of two classes the second is predicted where it is positive, of more the one with the
        largest.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        log_odds = self._log_odds(X)
        return log_odds[:, 1] - log_odds[:, 0] if len(self.classes_) == 2 else log_odds

    @one_blas_thread()
    def _log_odds(self, X: Any) -> Float:
        check_is_fitted(self)
        X = check_table(self, X, reset=False, missing=self.missing)
        starts = range(0, X.shape[0], PREDICTED_ROWS)
        parts = [self._log_odds_of(X[start : start + PREDICTED_ROWS]) for start in starts]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _log_odds_of(self, X: Data) -> Float:
        """Of some rows of a checked table."""
        return self._candidate.calibration.log_odds(self._readout(self._embedded_rows(X)))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The predicted class of every row."""
        return self._labels(self._log_odds(X))

    def _labels(self, log_odds: Float) -> npt.NDArray[Any]:
        if len(self.classes_) == 2:  # as decision_function says, to the last bit
            codes = (log_odds[:, 1] - log_odds[:, 0] > 0).astype(np.intp)
        else:
            codes = log_odds.argmax(axis=1)
        labels: npt.NDArray[Any] = self.classes_[codes]
        return labels

    def staged_predict(self, X: Any) -> Iterator[npt.NDArray[Any]]:
        """The predictions after each accepted step of the fits, before pruning."""
        check_is_fitted(self)
        calibration = self._candidate.calibration
        stages = zip(self.staged_transform(X), self._staged_metrics(imputed=True))
        for queries, metric in stages:
            yield self._labels(calibration.log_odds(self._made_readout(metric)(queries)))

    def predict_proba(self, X: Any) -> Float:
        """Class probabilities, calibrated on rows out of fold.

        With ``class_weight`` or ``sample_weight`` they are those of the weighted population.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        result: Float = softmax(self._log_odds(X), axis=1)
        return result

    def predict_log_proba(self, X: Any) -> Float:
        """Logarithms of ``predict_proba``."""
        with np.errstate(divide="ignore"):  # log(0) is -inf, as in scikit-learn's classifiers
            result: Float = np.log(self.predict_proba(X))
        return result

    def _check_ready(self) -> None:
        check_is_fitted(self)

    def kneighbors(
        self, X: Any, n_neighbors: int | None = None, return_distance: bool = True
    ) -> tuple[Float, npt.NDArray[np.int32]] | npt.NDArray[np.int32]:
        """The nearest training rows of every row under the metric.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        n_neighbors : int, default=None
            How many; ``n_neighbors_predict_`` by default.
        return_distance : bool, default=True

        Returns
        -------
        distances : ndarray of shape (n_samples, n_neighbors), if ``return_distance``
        rows : ndarray of shape (n_samples, n_neighbors)
            Row numbers of the training data as it was given to ``fit``.
        """
        check_is_fitted(self)
        training = self._readout.training.rows
        k = self.n_neighbors_predict_ if n_neighbors is None else n_neighbors
        if not isinstance(k, Integral) or not 1 <= k <= len(training):
            raise ValueError(
                f"n_neighbors={k} must be an integer from 1 to {len(training)}, the rows."
            )
        near, squared = self._engine().nearest(self._embedded(X), training, k)
        rows = self._training_rows[near].astype(np.int32)
        return (np.sqrt(squared), rows) if return_distance else rows


def _embedded(crossfit: CrossFit, metric: SparseMetric) -> Training:
    """The training rows under a metric."""
    with_rows(crossfit)
    return Training(
        metric.transform(crossfit.X), crossfit.labels, crossfit.weight, crossfit.n_classes
    )
