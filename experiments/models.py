"""The models of the experiments, by name: metricboost, its ablations, and the rivals.

A builder takes the settings of a cell: plain values that determine the result. Modules of other
packages are imported late. If a package is not installed, only its own models are not available.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer

from metricboost import SDistClassifier, SDistClassifierCV

from . import rivals
from .paper.protocol import REFINED, TO_THE_LETTER, PaperSDist
from .rivals import GRIDS, nearest, screened, tuned_rival
from .runner import NotAvailableError

Settings = Mapping[str, Any]
Builder = Callable[[Settings], BaseEstimator]


def ours(**parameters: Any) -> Builder:
    return lambda settings: SDistClassifier(random_state=0, **parameters)


def searched(**parameters: Any) -> Builder:
    return lambda settings: SDistClassifierCV(random_state=0, **parameters)


def plain(build_it: Callable[..., BaseEstimator], *arguments: Any, **parameters: Any) -> Builder:
    """A model that has no settings."""
    return lambda settings: build_it(*arguments, **parameters)


def paper_sdist(settings: Settings) -> BaseEstimator:
    return PaperSDist(**settings)


def paper_rival(name: str, settings: Settings) -> BaseEstimator:
    search = tuned_rival(name, settings["grid"], settings["scaling"])
    rows = settings.get("tuning_rows")
    return search if rows is None else rivals.TunedOnSome(search, rows)


def ranks() -> BaseEstimator:
    """Columns replaced by the normal quantiles of their ranks, an alternative to clipping."""
    scores = QuantileTransformer(n_quantiles=1000, output_distribution="normal")
    return make_pipeline(scores, SDistClassifier(random_state=0, clip=None))


#: The paper's rivals with one setting changed, to measure the effect of the setting.
APART: dict[str, tuple[str, dict[str, Any]]] = {
    f"{name}, {how}": (name, {"scaling": scaling})
    for name in ("PGDM", "LMNN", "SMLsm", "NCA")
    for how, scaling in (("as they are", "none"), ("standardised", "standard"))
} | {
    "LMNN, one step": ("LMNN", {"grid": {"max_iter": [1]}}),
    "LMNN, at its optimum": ("LMNN", {"grid": {"max_iter": [500]}}),
    "PGDM, without ridge": ("PGDM", {"grid": {"diagonal": [False], "regularization": [1e-6]}}),
}

#: metricboost, and metricboost without one of its parts.
OURS: dict[str, Builder] = {
    "defaults": ours(),
    "tuned": searched(),
    "tuned AUC": searched(estimator=SDistClassifier(class_weight="balanced"), scoring="roc_auc"),
    "balanced": ours(class_weight="balanced"),
    "without screening": ours(screen_pairs=0),
    "without pruning": ours(prune=None),
    "without gate": ours(oob_gate=None),
    "one fit": ours(n_averaged=1),
    "without all columns": ours(start_share=0.0),
    "margin alone": ours(classifier="margin"),
    "without clipping": ours(clip=None),
    "ranks": plain(ranks),
    "tuned, one model": searched(n_blended=1),
    "coded": ours(multiclass="coded"),
    "imputing": ours(missing="impute"),
    "defaults, imputed": lambda settings: rivals.imputed(SDistClassifier(random_state=0)),
    "sDist, defaults": ours(),
    "sDist, tuned": searched(),
    "sDist without screening": ours(screen_pairs=0),
}
MODELS: dict[str, Builder] = {
    **OURS,
    "sDist": paper_sdist,
    "sDist, to the letter": paper_sdist,
    "screening + logistic": plain(screened, LogisticRegression(max_iter=2000)),
    "screening + 10-NN": plain(screened, KNeighborsClassifier(10)),
    "L1 logistic, all pairs": plain(rivals.l1_all_pairs),
    "3-NN": plain(nearest),
    "3-NN, imputed": lambda settings: rivals.imputed(nearest()),
    "3-NN, nan-Euclidean": plain(rivals.nearest_nan_euclidean),
    "scikit-learn NCA": plain(rivals.nca),
    "metric-learn LMNN": plain(rivals.lmnn),
    "metric-learn LFDA": plain(rivals.lfda),
    "RBF-SVM": plain(rivals.svm),
    "RBF-SVM, AUC": plain(rivals.svm, scoring="roc_auc", class_weight="balanced"),
    "RBF-SVM, imputed": lambda settings: rivals.imputed(rivals.svm()),
    "L1 logistic": plain(rivals.l1_logistic),
    "L1 logistic, balanced": plain(rivals.l1_logistic, "balanced"),
    "L2 logistic": plain(rivals.l2_logistic),
    "linear SVM": plain(rivals.linear_svm),
    "ridge": plain(rivals.ridge),
    "random forest": plain(rivals.forest, RandomForestClassifier),
    "random forest, tuned": plain(rivals.forest, RandomForestClassifier, tuned=True),
    "ExtraTrees": plain(rivals.forest, ExtraTreesClassifier),
    "ExtraTrees, tuned": plain(rivals.forest, ExtraTreesClassifier, tuned=True),
    "ExtraTrees ranking + kNN": plain(rivals.ranked_neighbors),
    "LightGBM, tuned": plain(rivals.tuned_lightgbm),
    "LightGBM": plain(rivals.lightgbm),
    "LightGBM, balanced": plain(rivals.lightgbm, "balanced"),
    # As the paper has them.
    "kNN": lambda settings: nearest(settings["scaling"]),
    "kNN, standardised": plain(nearest),
    "kNN, as they are": plain(nearest, "none"),
    "1-NN": plain(nearest, k=1),
    **{name: partial(paper_rival, name) for name in GRIDS},
    **{method: partial(paper_rival, name) for method, (name, _) in APART.items()},
}


def default_settings(name: str) -> dict[str, Any]:
    """The settings of a model, if an experiment does not give others."""
    if name in GRIDS:
        return {"grid": GRIDS[name], "scaling": "standard"}
    if name in APART:
        rival, changed = APART[name]
        return default_settings(rival) | changed | {"grid": GRIDS[rival] | changed.get("grid", {})}
    if MODELS[name] is paper_sdist:
        letter = name == "sDist, to the letter"
        parameters = TO_THE_LETTER if letter else REFINED
        own = {"margin_neighbors": parameters["n_neighbors"]}
        return {"parameters": parameters, "max_iter": 500 if letter else 2000} | own
    if name in OURS:
        return {"parameters": described(build(name, {}))}
    return {"scaling": "none"} if name == "kNN" else {}


def described(model: BaseEstimator) -> dict[str, str]:
    """All parameters, including defaults, so that a changed default gives another model."""
    given = sorted(model.get_params().items())
    return {name: repr(value) for name, value in given if not name.endswith("steps")}


def build(name: str, settings: Settings) -> BaseEstimator:
    """An unfitted model. Raises NotAvailableError if a package is not installed."""
    try:
        return MODELS[name](settings)
    except ImportError as error:
        raise NotAvailableError(str(error)) from error
