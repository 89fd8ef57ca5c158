"""Online learning, batch by batch, with scikit-learn's `partial_fit`."""

import warnings
from dataclasses import dataclass, field

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight, _num_samples, check_is_fitted

from . import _core, _given, _parameters, _spec, _threads
from ._collections import reject_collection
from ._kernel_model import KernelModel, double
from ._parameters import about, is_flag, is_positive


def learns_on(estimator):
    """Whether an estimator with these parameters can learn online; raises an AttributeError otherwise."""
    if _given.is_given(estimator.kernel):
        raise AttributeError("a given kernel cannot learn online: partial_fit and updatable need a kernel of skpca")
    if _spec.labelled(estimator):
        raise AttributeError("methods and kernels that need labels cannot learn online")
    if getattr(estimator, "lags", 0):
        raise AttributeError(f"lags = {estimator.lags}: the rows before a batch are not known to partial_fit")
    return True


@dataclass(eq=False, repr=False, kw_only=True)
class OnlineModel(KernelModel):
    """Base class of models that learn online. Not for direct use."""

    forget_factor: float = field(
        default=1.0,
        metadata=about(
            "Factor on the weight of all earlier rows for each row that `partial_fit` learns: with 0.999 the total"
            " weight tends to 1000 rows, with 1 nothing is forgotten. It acts per row, not per batch as in"
            " `MiniBatchNMF`.",
            lambda value: is_positive(value) and value <= 1,
            "a float in the range (0.0, 1.0]",
        ),
    )
    updatable: bool = field(
        default=False,
        metadata=about(
            "Whether a fitted or saved model can be updated: `fit` then keeps sums over the rows, and `save`"
            " also writes these and a sample of 500 rows. Otherwise `partial_fit` must be called from the beginning.",
            is_flag,
            "a bool",
        ),
    )
    _online = None
    _loaded = False

    @available_if(learns_on)
    def partial_fit(self, X, y=None, sample_weight=None):
        """Update the model with a batch of rows, or start with it.

        The first batch is fitted, and determines points, kernel and scaling. Each later batch adds to the sums from
        which the components are computed, which is exact as long as the points stay. A sample of all rows shows when
        the points no longer reach the requested fidelity: then rows of the sample are added, or replace points that
        became useless. There are never more than `n_support` points, or 250. After a `fit` without `updatable`, it
        starts from scratch.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; the first batch needs at least as many as the requested components or points.
        y : None
            Ignored: methods and kernels that need labels cannot learn online.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row; 1 by default.

        Returns
        -------
        self : object
            The estimator.
        """
        reject_collection(X, "give its partitions to partial_fit one by one")
        _parameters.check(self)
        if not hasattr(self, "_model"):
            return self._begin(X, y, sample_weight)
        if self._online is None and not self._loaded:
            message = "partial_fit starts from scratch: fit kept no state to continue from; set updatable=True before"
            warnings.warn(message, UserWarning, stacklevel=2)
            return self._begin(double(self._queries(X)), y, sample_weight)
        if self._online is None:
            raise ValueError(
                "partial_fit: this model file has no state to continue from; it was written without updatable=True"
            )
        X = double(self._queries(X))
        weights = self._weights(sample_weight, X)
        with _threads.limited(self.n_jobs), _parameters.renamed(self):
            self._online.learn_by(**self._learning())
            update = self._online.update(X, weights)
            self._adopt(self._online.model())
        self.report_["update"] = update
        return self

    def _begin(self, X, y, sample_weight):
        """Fits the first batch."""
        rows = _num_samples(X)
        for name in ("n_components", "n_support"):
            asked = getattr(self, name)
            if asked is not None and asked > rows:
                raise ValueError(f"{name} = {asked}: the first batch of partial_fit has {rows} rows, expected as many")
        self.fit(X, y)
        if self._online is None or sample_weight is not None:
            self._learn_from(double(self._queries(X)), sample_weight)
        return self

    def _check_rows(self, dense):
        if not self.updatable:
            return
        try:
            learns_on(self)
        except AttributeError as error:
            raise ValueError(f"updatable = True: {error}") from None
        if not dense:
            raise ValueError("updatable = True: fit needs a dense array; give blocks of rows to partial_fit")

    def _fitted_to(self, X, weights, n):
        self._online, self._loaded, self.n_samples_seen_ = None, False, n
        if self.updatable:
            self._learn_from(X, weights)

    def _learn_from(self, X, sample_weight):
        """Starts online learning from the model that was just fitted to X."""
        weights = self._weights(sample_weight, X)
        with _threads.limited(self.n_jobs), _parameters.renamed(self):
            self._online = _core.Online(self._model, X, weights, **self._learning())
            self._adopt(self._online.model())

    def _weights(self, sample_weight, X):
        if sample_weight is None:
            return None
        return _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)

    def _learning(self):
        """Returns the core's learning options."""
        return {"forget": float(self.forget_factor), "alarms": True}

    def _adopt(self, model):
        about = super()._adopt(model)
        if about["learned"] is not None:
            self.report_["learned"] = about["learned"]
        self.n_samples_seen_ = about["n"] if self._online is None else self._online.n_samples_seen
        return about

    def fit_moments(self, moments):
        self._online = None
        return super().fit_moments(moments)

    fit_moments.__doc__ = KernelModel.fit_moments.__doc__

    def save(self, path):
        check_is_fitted(self)
        keeps = self.updatable and self._online is not None
        (self._online.stored() if keeps else self._model).save(path)

    save.__doc__ = KernelModel.save.__doc__

    @classmethod
    def load(cls, path):
        estimator = super().load(path)
        estimator._online, estimator._loaded = _core.Online.resume(estimator._model), True
        estimator._adopt(estimator._model)
        return estimator

    load.__func__.__doc__ = KernelModel.load.__doc__
