"""`save`: a pipeline of scalers and an estimator of skpca as one model file, which takes raw rows.

x ↦ (x − shift) / scale        every scaler here; their composition has the same form
"""

import json

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from ._kernel_model import KernelModel


def save(estimator, path):
    """Write an estimator, or a pipeline of scalers that ends in one, to a model file.

    The model file takes the same rows as the pipeline: `StandardScaler`, `MinMaxScaler`, `MaxAbsScaler` and
    `RobustScaler` become part of the model. The `skpca` program and `load` can read it.

    Parameters
    ----------
    estimator : SparseKernelPCA, KernelNovelty or Pipeline
        Fitted. All steps of a pipeline except the last must be scalers, None or ``"passthrough"``.
    path : str or path-like
        The file. An existing file is replaced only once the new one is complete, and keeps its mode; links are
        followed.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import skpca
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, _ = load_wine(return_X_y=True)
    >>> pipeline = make_pipeline(StandardScaler(), skpca.KernelNovelty(n_support=20, random_state=0)).fit(X)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = pathlib.Path(directory) / "wine.skpca"
    ...     skpca.save(pipeline, path)
    ...     loaded = skpca.KernelNovelty.load(path)
    >>> bool((loaded.predict(X) == pipeline.predict(X)).all())
    True
    """
    if not isinstance(estimator, Pipeline):
        _ours(estimator).save(path)
        return
    check_is_fitted(estimator)
    steps = [step for _, step in estimator.steps if step not in (None, "passthrough")]
    last = _ours(steps[-1] if steps else None)
    scalers = steps[:-1]
    if not scalers:
        last.save(path)
        return
    shift, scale = _composed(scalers, last.n_features_in_)
    rule = _rule(scalers) if last.scaling in (None, "none") else None
    copies = getattr(last, "lags", 0) + 1
    shift, scale = np.tile(shift, copies), np.tile(scale, copies)
    names = last._names(getattr(scalers[0], "feature_names_in_", ()))
    last._model.with_scaler(shift, scale, rule, names, _words(last, rule)).save(path)


def _ours(estimator):
    if not isinstance(estimator, KernelModel):
        raise TypeError(
            f"skpca.save takes a SparseKernelPCA, a KernelNovelty or a pipeline that ends in one, not {estimator!r}"
        )
    check_is_fitted(estimator)
    return estimator


def _composed(scalers, width):
    """Returns the shift and scale of a sequence of scalers."""
    shift, scale = np.zeros(width), np.ones(width)
    for scaler in scalers:
        own_shift, own_scale = _affine(scaler, width)
        shift, scale = shift + scale * own_shift, scale * own_scale
    return shift, scale


def _affine(scaler, width):
    """Returns the shift and scale of one scaler: x ↦ (x − shift) / scale."""
    zeros, ones = np.zeros(width), np.ones(width)
    # The exact type: a subclass may do something else.
    kind = type(scaler)
    if kind is StandardScaler:
        shift = scaler.mean_ if scaler.with_mean else zeros
        return shift, ones if scaler.scale_ is None else scaler.scale_
    if kind is MinMaxScaler and not scaler.clip:
        return -scaler.min_ / scaler.scale_, 1 / scaler.scale_
    if kind is MaxAbsScaler and not getattr(scaler, "clip", False):
        return zeros, scaler.scale_
    if kind is RobustScaler:
        shift, scale = (
            scaler.center_ if scaler.with_centering else zeros,
            scaler.scale_ if scaler.with_scaling else ones,
        )
        return shift, scale
    raise TypeError(
        f"{scaler!r} cannot be saved with the model: steps before it must be StandardScaler, MinMaxScaler, MaxAbsScaler"
        " or RobustScaler, without clip; pickle the pipeline instead"
    )


def _rule(scalers):
    """Returns the `scaling` parameter that is equivalent to the last scaler, if there is one."""
    last = scalers[-1]
    if type(last) is StandardScaler and last.with_mean and last.with_std:
        return "standard"
    return "minmax" if type(last) is MinMaxScaler and tuple(last.feature_range) == (0, 1) else None


def _words(estimator, rule):
    """Returns the estimator's parameters with the pipeline's scaling; None if either is missing."""
    words = json.loads(estimator._model.request() or "{}").get("words")
    return json.dumps({**words, "scaling": rule}) if words and rule else None
