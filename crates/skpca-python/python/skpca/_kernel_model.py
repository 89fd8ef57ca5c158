"""The common base of the estimators: parameters, fitting, fitted attributes, files and pickles."""

import json
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from . import _blocks, _core, _given, _parameters, _request, _spec, _threads
from ._collections import over_partitions, reject_collection
from ._documentation import Linked
from ._registry import METHODS, listed, those
from .exceptions import DenseCopyWarning, RangeWarning, ShortfallWarning

# Marks notes of the core about a shortfall: "20 components requested, 10 found: …".
SHORTFALL = " requested, "
# Size in bytes above which a dense copy raises a warning.
SMALL_COPY = 100_000_000
# Queries stay sparse if fewer than one cell in this many is filled.
DENSITY = 8


def has_density(estimator):
    """Whether the method fits a density; raises an AttributeError otherwise."""
    name = _spec.entry_of(METHODS, estimator.method)
    if not name.get("density"):
        raise AttributeError(f"only {listed(those(METHODS, 'density'))} has a log-likelihood")
    return True


class KernelModel(_parameters.Parameters, Linked, BaseEstimator):
    """Base class that wraps a model of the core in scikit-learn's conventions. Not for direct use."""

    def _fit(self, X, y, sample_weight=None):
        """Fits the core's model; returns X as the core saw it, or a sample of the rows of a stream, and weights."""
        reject_collection(X, f"fit it with skpca.dask.{type(self).__name__}, which leaves it where it is")
        _parameters.check(self)
        with _threads.limited(self.n_jobs), _parameters.renamed(self):
            streamed = None if _given.is_given(self.kernel) else _blocks.stream(X)
            self._check_rows(streamed is None and not is_sparse(X))
            if streamed is None:
                X, labels = self._training(X, y)
                weights = None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64)
                X = self._fit_checked(X, labels, weights)
                n = X.shape[0]
            else:
                if sample_weight is not None:
                    raise ValueError(
                        "sample_weight: rows that are read in passes cannot have weights; give them as an array"
                    )
                rows = self._fit_checked(self._streamed(*streamed), None)
                X, weights, n = rows.sample(_blocks.KEPT, 0), None, rows.shape[0]
        self._fitted_to(X, weights, n)
        return X, weights

    def _check_rows(self, dense):
        """Hook before a fit: rejects rows (`dense`: an array) that steps after the fit cannot use."""

    def _fitted_to(self, X, weights, n):
        """Hook after a fit to n rows, of which X is all or a sample."""

    def _streamed(self, rows, names):
        """Validates rows that are read in passes."""
        n, self.n_features_in_ = rows.shape
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        if n < 2:
            raise ValueError(f"Found array with {n} sample(s) while a minimum of 2 is required.")
        if _spec.labelled(self):
            raise ValueError("X: methods and kernels with labels need an array: draw a sample of the rows")
        return rows

    def _fit_checked(self, X, labels, weights=None):
        given = _given.is_given(self.kernel)
        seed = _spec.seed(self.random_state)
        model = (_given if given else _core).fit(
            compressed(X) if is_sparse(X) else X,
            method=_spec.text("method", self._method()),
            kernel=self.kernel if given else _spec.text("kernel", _spec.kernel(self)),
            components=self.n_components,
            support=self.n_support,
            fidelity=self.fidelity,
            center=self.center,
            scaling=self.scaling or "none",
            seed=seed,
            labels=labels,
            weights=weights,
            names=self._names(getattr(self, "feature_names_in_", ())),
            progress=progress(type(self).__name__) if self.verbose else None,
            words=_request.words(self, seed),
            **self._landmarks(X, given),
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

    def _landmarks(self, X, given):
        """Returns the options for given landmarks: row indices, or points."""
        if self.landmarks is None:
            return {}
        if given:
            raise ValueError("landmarks: must be None under a given kernel; n_support says how many samples are kept")
        landmarks = np.asarray(self.landmarks)
        if landmarks.ndim == 1:
            if landmarks.dtype.kind not in "iu" or landmarks.min() < 0:
                raise ValueError(
                    f"landmarks: expected row numbers from 0 to {X.shape[0] - 1}, or rows of two dimensions"
                )
            return {"landmark_rows": landmarks.tolist()}
        return {"landmarks": np.ascontiguousarray(dense(landmarks), dtype=np.float64)}

    def get_params(self, deep=True):
        """Get parameters by name; with `deep` also those in dicts, as ``method__penalty``."""
        params = super().get_params(deep)
        for name in ("method", "kernel") if deep else ():
            if isinstance(params.get(name), dict):
                params |= {f"{name}__{key}": value for key, value in params[name].items() if key != "name"}
        return params

    def set_params(self, **params):
        """Set parameters by name; ``method__penalty=0.1`` and ``kernel__gamma=0.5`` set those of a method or kernel."""
        nested = {key: params.pop(key) for key in list(params) if key.startswith(("method__", "kernel__"))}
        super().set_params(**params)
        for key, value in nested.items():
            name, _, parameter = key.partition("__")
            setattr(self, name, {**_spec.fields(name, getattr(self, name)), parameter: value})
        return self

    def _method(self):
        """Returns the method as the core expects it."""
        return _spec.method(self)

    def _names(self, names):
        """Returns the column names for the core, or None."""
        return distinct(names)

    def _options(self):
        """Returns further options of the core's fit."""
        return {}

    def _training(self, X, y):
        """Validates training rows; returns them with the class index of each row if labels are needed."""
        checks = dict(ensure_min_samples=2)
        if not _spec.labelled(self):
            X = self._checked(X, **checks)
            stays_sparse = is_sparse(X) and copy_size(X) > SMALL_COPY and not _given.is_given(self.kernel)
            return X if stays_sparse else double(X), None
        X, y = self._checked(X, y=y, **checks)
        check_classification_targets(y)
        return double(X), np.unique(y, return_inverse=True)[1].astype(np.int64, copy=False)

    def _queries(self, X):
        """Validates new rows; keeps their dtype."""
        check_is_fitted(self)
        reject_collection(X, "this method takes arrays only; transform and the scores leave it where it is")
        # The core checks for NaN itself, and a check costs as much as fifteen kernel values.
        X = self._checked(X, reset=False, ensure_all_finite=_given.is_given(self.kernel))
        far = None if hasattr(X, "toarray") else self._model.far_outside(X)
        if far is not None:
            warnings.warn(far, RangeWarning, stacklevel=4)
        return X

    def _checked(self, X, **checks):
        """Validates rows: C order, dense or sparse, float32 preserved; any objects for a kernel function."""
        things = _given.as_objects(X) if callable(self.kernel) else None
        if things is not None:
            self.n_features_in_ = 1
            return things
        reject_masked(X=X, **{name: value for name, value in checks.items() if name == "y"})
        dtype = getattr(X, "dtype", None)
        if getattr(dtype, "kind", "O") not in "biufcO":
            raise ValueError(f"X: expected real numbers, found an array of type {dtype}")
        try:
            return validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], order="C", **checks)
        except OverflowError as error:
            raise ValueError(f"X: expected real numbers: {error}") from error

    def _features(self, X):
        """Computes features of validated rows; sparse rows stay sparse where the kernel allows."""
        if self._takes_sparse and is_mostly_zeros(X):
            return self._model.transform_sparse(compressed(X)).astype(X.dtype, copy=False)
        return self._model.transform(dense(X), single=X.dtype == np.float32)

    def _novelty(self, X):
        """Computes scores of validated rows; sparse rows stay sparse where the kernel allows."""
        if self._takes_sparse and is_mostly_zeros(X):
            return self._model.score_sparse(compressed(X))
        return self._model.score(dense(X))

    def _adopt(self, model):
        """Stores a model and sets the fitted attributes; returns its description."""
        parts, about = model.arrays(support=False), json.loads(model.describe())
        self._takes_sparse = isinstance(model, _core.Model) and takes_sparse(about)
        self._model = model
        self._frame = parts.get("frame")
        self.support_ = parts.get("rows")
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

    def moments(self, X=None, sample_weight=None):
        """Return sums over rows from which a model over the same support can be computed; they are small and additive.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            Rows; none by default.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row; 1 by default.

        Returns
        -------
        moments : Moments
            Has `add`, `merge`, `subtract`, `scale` and `to_bytes`. `fit_moments` fits the components to them.
        """
        check_is_fitted(self)
        moments = self._model.moments()
        if X is not None:
            moments.add(double(self._queries(X)), sample_weight)
        return moments

    def fit_moments(self, moments):
        """Replace the components by the best ones over the same support for the rows in `moments`.

        Support, kernel and scaling do not change, nor do the fidelity and the training scores, which refer to the rows
        seen by `fit`.

        Parameters
        ----------
        moments : Moments
            Sums over rows, made by `moments` of this estimator or of one with the same model.

        Returns
        -------
        self : object
            The estimator.
        """
        check_is_fitted(self)
        self._adopt(self._model.refit(moments))
        return self

    def _along(self, features):
        """Converts features to coordinates along orthonormal directions that span the components."""
        return features if self._frame is None else features @ self._frame

    @available_if(has_density)
    @over_partitions
    def log_likelihood(self, X):
        """Log-likelihood of rows under the Gaussian in feature space that the method fitted.

        Its mean over held-out rows can be used to choose the noise. Only for methods with a density.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_likelihood : ndarray of shape (n_samples,)
            Natural logarithms.
        """
        X = dense(self._queries(X))
        with _threads.limited(self.n_jobs):
            return self._model.log_likelihood(X)

    @property
    def support_vectors_(self):
        """The support as rows of the caller's table: a new array each time, as wide tables would hold it twice."""
        # Before `fit` there is no `_model`, and so, as for any attribute that `fit` sets, an AttributeError.
        return unscaled(self._model.arrays())

    @property
    def feature_importances_(self):
        """Importance of each input: its share of the squared gradients of the components at the support points (sum 1).

        Columns of different units should be scaled.
        """
        check_is_fitted(self)
        if _given.is_given(self.kernel):
            raise AttributeError("a given kernel has no gradient: inputs have no importance")
        return self._model.importance()

    def save(self, path):
        """Write the model to a file that the `skpca` program and `load` can read.

        Parameters
        ----------
        path : str or path-like
            The file. An existing file is replaced only once the new one is complete, and keeps its mode; links are
            followed.
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
            A fitted estimator with the parameters that the model was fitted with.
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
    """Returns the support in the units of the user's table; objects that are not numbers are unchanged."""
    support = parts["support"]
    plain = parts["scale"] is None or (parts["scale"] == 1).all() and not parts["shift"].any()
    return support if plain else support * parts["scale"] + parts["shift"]


def is_sparse(X):
    """Whether rows are a sparse matrix."""
    return hasattr(X, "toarray")


def is_mostly_zeros(X):
    """Whether rows are a sparse matrix that is faster to evaluate sparse than dense."""
    return is_sparse(X) and DENSITY * X.nnz < X.shape[0] * X.shape[1]


def takes_sparse(about):
    """Whether the scaling and the kernel of a model allow sparse rows."""
    try:
        _core.check_sparse(json.dumps(about["kernel"]))
    except ValueError:
        return False
    return about["scaling"] == "none"


def compressed(X):
    """Converts sparse rows for the core: CSR arrays with ascending column indices in each row."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    arrays = X.indptr.astype(np.int64, copy=False), X.indices.astype(np.int32, copy=False)
    return _core.SparseRows(*arrays, X.data.astype(np.float64, copy=False), X.shape[1])


def copy_size(X):
    """Returns the size in bytes of a dense copy of sparse rows."""
    return X.shape[0] * X.shape[1] * X.dtype.itemsize


def distinct(names):
    """Returns the column names if they are distinct, otherwise None."""
    return list(names) if len(names) and len(set(names)) == len(names) else None


def reject_masked(**arrays):
    """Rejects masked arrays: scikit-learn would use the values under the mask."""
    for name, array in arrays.items():
        if np.ma.is_masked(array):
            raise ValueError(f"values of {name} are masked: fill them, or leave their rows out")


def dense(X):
    """Converts rows to a dense array for a model of the core; dense rows are not copied."""
    if not is_sparse(X):
        return X
    size = copy_size(X)
    if size > SMALL_COPY:
        message = f"sparse input of {X.shape[0]} x {X.shape[1]} is made dense, which takes {size / 1e9:.1f} GB"
        warnings.warn(message, DenseCopyWarning, stacklevel=5)
    return X.toarray()


def double(X):
    """Converts rows to dense float64 in C order for the rest of the core; arrays of objects are unchanged."""
    return X if X.dtype == object else np.ascontiguousarray(dense(X), dtype=np.float64)


def progress(name):
    """Returns a callback that prints the progress of a fit, one line per tenth of each stage."""
    shown = None

    def show(stage, fraction):
        nonlocal shown
        now = stage, int(10 * fraction)
        if now != shown:
            print(f"[{name}] {stage} {fraction:.0%}", flush=True)
        shown = now

    return show
