"""What every estimator here shares: parameters, fitting, what is known after it, files and pickles."""

import json
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from . import _core, _given, _parameters, _request, _spec, _threads
from .exceptions import DenseCopyWarning, ShortfallWarning

# Notes of the core that say what a model lacks: "20 components asked for, 10 found: …".
SHORTFALL = " asked for, "
# Below so many bytes nobody needs to know of a dense copy.
SMALL_COPY = 100_000_000


class KernelModel(_parameters.Parameters, BaseEstimator):
    """A model of the core behind scikit-learn's conventions. Not for use by itself."""

    def _fit(self, X, y):
        """Fits the core's model to X, keeps it, and returns X as the core saw it."""
        _parameters.check(self)
        with _threads.limited(self.n_jobs):
            return self._fit_checked(*self._training(X, y))

    def _fit_checked(self, X, labels):
        given = _given.is_given(self.kernel)
        seed = _spec.seed(self.random_state)
        model = (_given if given else _core).fit(
            X,
            method=_spec.text("method", _spec.method(self)),
            kernel=self.kernel if given else _spec.text("kernel", _spec.kernel(self)),
            components=self.n_components,
            support=self.n_support,
            fidelity=self.fidelity,
            center=self.center,
            scaling=self.scaling,
            seed=seed,
            labels=labels,
            names=distinct(getattr(self, "feature_names_in_", ())),
            progress=progress(type(self).__name__) if self.verbose else None,
            words=_request.words(self, seed),
            **self._options(),
        )
        about = self._adopt(model)
        if not self.report_["converged"]:
            what, rounds = about["method"]["name"], self.report_["rounds"]
            message = f"{what} did not converge in {rounds} rounds: raise max_iter or tol, or see report_"
            warnings.warn(message, ConvergenceWarning, stacklevel=4)
        for note in self.report_["notes"]:
            if SHORTFALL in note:
                warnings.warn(note, ShortfallWarning, stacklevel=4)
        return X

    def get_params(self, deep=True):
        """The parameters by name; with `deep` also those of dicts, as ``method__penalty``."""
        params = super().get_params(deep)
        for name in ("method", "kernel") if deep else ():
            if isinstance(params.get(name), dict):
                params |= {f"{name}__{key}": value for key, value in params[name].items() if key != "name"}
        return params

    def set_params(self, **params):
        """Set parameters by name; ``method__penalty=0.1`` and ``kernel__gamma=0.5`` set one of a method or kernel."""
        nested = {key: params.pop(key) for key in list(params) if key.startswith(("method__", "kernel__"))}
        super().set_params(**params)
        for key, value in nested.items():
            name, _, parameter = key.partition("__")
            setattr(self, name, {**_spec.fields(name, getattr(self, name)), parameter: value})
        return self

    def _options(self):
        """What else the core is asked for."""
        return {}

    def _training(self, X, y):
        """Checked rows, and the number of each row's class where labels matter."""
        checks = dict(ensure_min_samples=2)
        if not _spec.labelled(self):
            return double(self._checked(X, **checks)), None
        X, y = self._checked(X, y=y, **checks)
        check_classification_targets(y)
        return double(X), np.unique(y, return_inverse=True)[1].astype(np.int64, copy=False)

    def _queries(self, X):
        """Checked rows of new data, in the type they came in."""
        check_is_fitted(self)
        # The core looks for NaN itself, and looking costs as much as fifteen kernel values.
        return self._checked(X, reset=False, ensure_all_finite=_given.is_given(self.kernel))

    def _checked(self, X, **checks):
        """Rows in C order, dense or sparse, float32 where they came so. A function may take rows of anything."""
        things = _given.as_objects(X) if callable(self.kernel) else None
        if things is not None:
            self.n_features_in_ = 1
            return things
        refuse_masked(X=X, **{name: value for name, value in checks.items() if name == "y"})
        dtype = getattr(X, "dtype", None)
        if getattr(dtype, "kind", "O") not in "biufcO":
            raise ValueError(f"X: expected real numbers, found an array of type {dtype}")
        try:
            return validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], order="C", **checks)
        except OverflowError as error:
            raise ValueError(f"X: expected real numbers: {error}") from error

    def _adopt(self, model):
        """Keeps a model, and says what it is."""
        parts, about = model.arrays(), json.loads(model.describe())
        self._model = model
        self._frame = parts.get("frame")
        self.support_ = parts.get("rows")
        self.support_vectors_ = unscaled(parts)
        self.coefficients_ = parts["coefficients"]
        self.explained_variance_ = parts["variances"]
        self.explained_variance_ratio_ = parts["variances"] / about["total_variance"]
        self.captured_variance_ratio_ = about["captured"] / about["n"] / about["total_variance"]
        self.eigenvalues_ = parts["variances"] * about["n"]
        self.n_components_ = about["q"]
        self.fidelity_ = about["fidelity"]
        self.gamma_ = about["kernel"].get("gamma")
        self.report_ = about["report"]
        self.n_iter_ = max(1, self.report_["rounds"])
        return about

    def _along(self, features):
        """Features along orthonormal directions that span the components."""
        return features if self._frame is None else features @ self._frame

    def save(self, path):
        """Write the model to a file that the `skpca` program and `load` read.

        Parameters
        ----------
        path : str or path-like
            Where to. An older file is replaced only once the new one is whole, and keeps its mode; links are followed.
        """
        check_is_fitted(self)
        self._model.save(path)

    @classmethod
    def load(cls, path):
        """Read a model that `save` or the `skpca` program wrote.

        Parameters
        ----------
        path : str or path-like
            The file.

        Returns
        -------
        estimator : object
            A fitted estimator with the parameters that were given to the model's fit.
        """
        model = _core.Model.from_bytes(Path(path).read_bytes())
        about = json.loads(model.describe())
        estimator = cls(**_request.parameters(cls, model))
        estimator.n_features_in_ = about["d"]
        if about["columns"] is not None:
            estimator.feature_names_in_ = np.array(about["columns"], dtype=object)
        estimator._adopt(model)
        return estimator

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        tags.target_tags.required = _spec.labelled(self)
        return tags


def unscaled(parts):
    """The support as rows of the caller's table; things that are not rows of numbers as they are."""
    support = parts["support"]
    return support if parts["scale"] is None else support * parts["scale"] + parts["shift"]


def distinct(names):
    """Names of columns that can be told apart by them, or nothing."""
    return list(names) if len(names) and len(set(names)) == len(names) else None


def refuse_masked(**arrays):
    """scikit-learn would take what is under a mask for a value."""
    for name, array in arrays.items():
        if np.ma.is_masked(array):
            raise ValueError(f"values of {name} are masked: fill them, or leave their rows out")


def dense(X):
    """Rows as a model of the core takes them: float64 or float32. Those that are dense already are not copied."""
    if not hasattr(X, "toarray"):
        return X
    size = X.shape[0] * X.shape[1] * X.dtype.itemsize
    if size > SMALL_COPY:
        message = f"sparse input of {X.shape[0]} x {X.shape[1]} is made dense, which takes {size / 1e9:.1f} GB"
        warnings.warn(message, DenseCopyWarning, stacklevel=5)
    return X.toarray()


def double(X):
    """Rows as the rest of the core takes them: dense, float64, one after the other. Things that are no numbers stay."""
    return X if X.dtype == object else np.ascontiguousarray(dense(X), dtype=np.float64)


def progress(name):
    """Prints what a fit is at, a line for each tenth of each stage."""
    shown = None

    def show(stage, fraction):
        nonlocal shown
        now = stage, int(10 * fraction)
        if now != shown:
            print(f"[{name}] {stage} {fraction:.0%}", flush=True)
        shown = now

    return show
