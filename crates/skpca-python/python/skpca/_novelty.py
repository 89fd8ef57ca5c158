"""`KernelNovelty`: a novelty detector based on sparse kernel PCA."""

import warnings
from dataclasses import dataclass, field, fields

import numpy as np
import scipy.sparse
from sklearn.base import OutlierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import InvalidParameterError

from . import _given, _spec
from ._collections import over_partitions
from ._kernel_model import double, is_sparse
from ._online import OnlineModel
from ._parameters import Parameters, about, among, documented, is_flag, is_integer, is_one_of, is_positive
from ._request import CONTAMINATION
from ._threads import on_threads
from .exceptions import ShortfallWarning

ROW_ORDERS = ("auto", "time", "any")
STATISTICS = ("mahalanobis", "distance")

# Share of the rows of a clean table that a robust fit may set aside by chance.
BY_CHANCE = 0.02


def replaced(name, default):
    """Returns a shared parameter with another default."""
    shared = next(one for one in fields(Parameters) if one.name == name)
    return field(default=default, metadata=shared.metadata)


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class KernelNovelty(OutlierMixin, OnlineModel):
    """Novelty detector based on the distance to kernel PCA components over a handful of points.

    By default the score is the Mahalanobis distance in feature space, over all components that 100 points span, with a
    little noise; its parts are known in process monitoring as SPE (or Q) and T². With ``statistic="distance"`` it is
    Hoffmann's reconstruction error, the squared distance to the span of the leading components (SPE alone). Columns are
    not scaled by default: if their units differ, set `scaling` or put a `StandardScaler` in front.

    Parameters
    ----------
    %(parameters)s

    Attributes
    ----------
    offset_ : float
        Rows with a lower `score_samples` are outliers. After `partial_fit` it is computed from the last 1000 rows, each
        scored before it was learned.
    reference_offset_ : float
        The offset after `fit` or the first `partial_fit`.
    n_samples_seen_ : int
        Number of rows seen by `fit` and `partial_fit`, learned or not.
    limits_ : dict or None
        Separate limits of the `statistics` "spe" and "t2"; None without a false-alarm rate.
    support_, support_vectors_, coefficients_, explained_variance_, fidelity_, gamma_, report_, n_features_in_, ...
        As in :class:`SparseKernelPCA`.

    See Also
    --------
    SparseKernelPCA : The same model as a transformer.

    References
    ----------
    .. [1] H. Hoffmann, "Kernel PCA for novelty detection", Pattern Recognition 40 (2007), 863-874.
       doi:10.1016/j.patcog.2006.07.009
    .. [2] C. F. Alcala and S. J. Qin, "Reconstruction-based contribution for process monitoring", Automatica 45
       (2009), 1593-1600. doi:10.1016/j.automatica.2009.02.027
    .. [3] W. Ku, R. H. Storer and C. Georgakis, "Disturbance detection and isolation by dynamic principal component
       analysis", Chemometrics and Intelligent Laboratory Systems 30 (1995), 179-196. doi:10.1016/0169-7439(95)00076-3

    Examples
    --------
    >>> import numpy as np
    >>> from skpca import KernelNovelty
    >>> angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 200)
    >>> ring = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> detector = KernelNovelty(n_support=10, random_state=0).fit(ring)
    >>> detector.predict([[1.0, 0.0], [0.0, 0.0]])
    array([ 1, -1])
    >>> detector.p_values([[0.0, 0.0]]).round(3)
    array([0.005])
    """

    method: str | dict = replaced("method", "landmarks")
    statistic: str = field(
        default="auto",
        metadata=about(
            'The novelty score: "mahalanobis" or "distance". "auto" is "mahalanobis" for the default method, "distance"'
            " if another method, a number of components, a fidelity or a kernel function is given. Under"
            ' "mahalanobis", unless they are given, `n_support` is 100,'
            " `n_components` is the same, and the kernel is a Gaussian with ten times the usual squared"
            " width.",
            is_one_of(("auto", *STATISTICS)),
            f"a str among {among(('auto', *STATISTICS))}",
        ),
    )
    contamination: str | float = field(
        default="auto",
        metadata=about(
            'Share of the training rows that are outliers, above 0 and at most 0.5. "auto" leaves the threshold to'
            " `false_alarm_rate`.",
            lambda value: is_one_of(("auto",))(value) or is_positive(value) and value <= 0.5,
            "a str among {'auto'} or a float in the range (0.0, 0.5]",
        ),
    )
    false_alarm_rate: float | None = field(
        default=None,
        metadata=about(
            'Share of new normal rows that may be flagged as outliers; None is 0.05 if `contamination` is "auto".'
            " Threshold and p-values are then computed by cross-fitting, from held-out rows: 3 to 10 more fits of"
            " the same size. Methods and kernels that need labels use the training scores unless a rate is given.",
            lambda value: is_positive(value) and value < 1,
            "a float in the range (0.0, 1.0)",
        ),
    )
    score_fidelity: float | None = field(
        default=None,
        metadata=about(
            "Required agreement of the scores with those of a model that keeps every row: points are added until the"
            ' rank correlation of both on held-out rows reaches this value. ``report_["score_fidelity"]`` states it.'
            " None leaves the size to `n_support` and `fidelity`.",
            lambda value: is_positive(value) and value <= 1,
            "a float in the range (0.0, 1.0]",
        ),
    )
    robust: bool | str = field(
        default=False,
        metadata=about(
            "Whether outlying rows are set aside before the fit, by concentration steps"
            " (Rousseeuw & Van Driessen 1999); up to a quarter of them may be outliers."
            ' ``report_["set_aside"]`` has their indices. "auto" sets rows aside only if they are more than 2 % of'
            " all, since a clean table may lose that many by chance.",
            lambda value: is_flag(value) or is_one_of(("auto",))(value),
            "a bool, a str among {'auto'}",
        ),
    )
    row_order: str = field(
        default="auto",
        metadata=about(
            'Meaning of the row order for `false_alarm_rate`: "time", "any" (none) or "auto" (time, if'
            " neighbouring rows are correlated). Rows in time order are held out in long blocks, and counted by their"
            " effective sample size.",
            is_one_of(ROW_ORDERS),
            f"a str among {among(ROW_ORDERS)}",
        ),
    )

    lags: int = field(
        default=0,
        metadata=about(
            "Number of preceding rows that each row is scored with (dynamic kernel PCA, Ku, Storer &"
            " Georgakis 1995). Rows must then be in time order. The first rows of a table, which have too few"
            " predecessors, use the very first row in their place. `support_vectors_` have the columns of the row, then"
            " those of the row before, and so on; `contributions` and `slopes` are summed over the lags.",
            lambda value: is_integer(value, 0),
            "an int in the range [0, 2**63)",
        ),
    )
    learn_alarms: bool = field(
        default=False,
        metadata=about(
            "Whether `partial_fit` also learns from rows that `predict` flags as outliers.",
            is_flag,
            "a bool",
        ),
    )

    def fit(self, X, y=None, sample_weight=None):
        """Fit the components and the threshold.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or an iterable of blocks of rows
            Training rows. Sparse rows whose dense copy would take more than 100 MB stay sparse: the points are then
            chosen on a sample, and the kernel must be a function of inner products and norms. Rows that do not fit in
            memory may be given as blocks: by a generator or a function that returns one, a
            ``pyarrow.dataset.Dataset`` or ``RecordBatchReader``, or a polars ``LazyFrame``; they are written to a
            temporary file and read in passes. A large ``np.memmap`` is read in place.
        y : array-like of shape (n_samples,), default=None
            Class labels, of any type; used only by methods and kernels that need labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row, 1 by default: a row of weight 3 counts as three equal rows, one of weight 0 is ignored.
            Methods that cannot use weights raise an error.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        X, weights = self._fit(X, y, sample_weight)
        if self.false_alarm_rate is not None and self._calibration and self._calibration["tail"]:
            warnings.warn(self.report_["notes"][-1], ShortfallWarning, stacklevel=2)
        if self._precision is None:
            features = self._features(X)
            shares = np.full(len(features), 1 / len(features)) if weights is None else weights / weights.sum()
            self._precision = np.linalg.pinv((features.T * shares) @ features, hermitian=True)
        return self

    def fit_predict(self, X, y=None, sample_weight=None):
        """Fit, and predict which training rows are outliers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,), default=None
            As in `fit`.
        sample_weight : array-like of shape (n_samples,), default=None
            As in `fit`.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            1 for inliers, -1 for outliers.
        """
        return self.fit(X, y, sample_weight).predict(X)

    @over_partitions
    def score_samples(self, X):
        """Return the normality of rows: minus the novelty score.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            At most 0; higher is more normal.
        """
        return -self._scores(X)

    @over_partitions
    def decision_function(self, X):
        """Return `score_samples` minus `offset_`: negative for outliers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        decision : ndarray of shape (n_samples,)
            Negative for outliers.
        """
        return self.score_samples(X) - self.offset_

    @over_partitions
    def predict(self, X):
        """Predict which rows are outliers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            1 for inliers, -1 for outliers.
        """
        return np.where(self.decision_function(X) < 0, -1, 1)

    @over_partitions
    def p_values(self, X):
        """Return p-values: how rare scores at least as high as those of X are among normal rows.

        With a `false_alarm_rate`, the default, they are valid: at most a share ``a`` of new normal rows has a p-value
        of ``a`` or less. With `contamination` they are computed from training rows, and are too small for new rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        p : ndarray of shape (n_samples,)
            ``(1 + training rows at least as novel) / (1 + training rows)``; rows in time order are counted by their
            effective sample size.
        """
        scores = self._scores(X)
        return self._model.p_values(scores)

    @on_threads
    def statistics(self, X):
        """Return both statistics of process monitoring: SPE (or Q) and T².

        SPE is the squared distance to the span of all components, T² the sum of the squared features divided by their
        variances, with a little noise added. The default `statistic` combines both. With a `false_alarm_rate` each has
        its own limit in ``limits_``, exceeded by that share of new normal rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        spe : ndarray of shape (n_samples,)
            Squared distance to the span of the components.
        t2 : ndarray of shape (n_samples,)
            Squared distance from the mean within the span, in units of the variances.
        """
        return self._model.statistics(double(self._queries(X)))

    @on_threads
    def hotelling(self, X):
        """Return Hotelling's T² of the components: the distance from the mean *within* their span.

        With ``statistic="distance"``, `score_samples` misses rows that lie in the span but far from the mean; T² finds
        them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        t2 : ndarray of shape (n_samples,)
            Sum of the squared uncorrelated features divided by their variances.
        """
        X = self._queries(X)
        if self._precision is None:
            raise NotFittedError("a model file does not keep the correlations of components: fit the detector again")
        features = self._features(X).astype(np.float64, copy=False)
        return np.einsum("ij,jk,ik->i", features, self._precision, features)

    @on_threads
    def contributions(self, X, return_expected=False):
        """Return what each input contributes to the novelty of a row.

        A contribution is how much the score would fall if this input alone had the value that the model expects
        (reconstruction-based contributions, Alcala & Qin 2009), scaled so that contributions add up to the score of the
        row minus the median score of the training rows. It identifies a faulty input at any distance, even where slopes
        vanish.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        return_expected : bool, default=False
            Whether to return the expected values too.

        Returns
        -------
        contributions : ndarray of shape (n_samples, n_features)
            Non-negative in rows that are more novel than the median.
        expected : ndarray of shape (n_samples, n_features)
            The value of each input at which the row would be least novel, the others unchanged. Only if
            ``return_expected``.
        """
        X = double(self._queries(X))
        contributions, expected = self._model.contributions(X)
        contributions, expected = self._over_lags(contributions), expected[:, : self.n_features_in_]
        return (contributions, expected) if return_expected else contributions

    @on_threads
    def slopes(self, X):
        """Return the derivative of the novelty score with respect to each input.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        slopes : ndarray of shape (n_samples, n_features)
            Positive where a larger value would make the row more novel, negative where a smaller one would.
        """
        X = double(self._queries(X))
        return self._over_lags(self._model.score_gradient(X))

    @on_threads
    def _scores(self, X):
        """Computes the core's scores; higher is more novel."""
        return self._novelty(self._queries(X))

    def _checked(self, X, **checks):
        """Validates rows and adds lagged columns."""
        checked = super()._checked(X, **checks)
        if not self.lags:
            return checked
        if isinstance(checked, tuple):
            return with_lags(checked[0], self.lags), *checked[1:]
        return with_lags(checked, self.lags)

    def _fit_checked(self, X, labels, weights=None):
        if self.lags:
            if not (isinstance(X, np.ndarray) or is_sparse(X)):
                raise ValueError(f"lags = {self.lags}: the rows must be in one array, as each needs those before it")
            if self.row_order == "any":
                raise InvalidParameterError(
                    f"lags = {self.lags} and row_order = 'any': rows with lags are in time order"
                )
        self._sets_aside = bool(self.robust)
        fitted = super()._fit_checked(X, labels, weights)
        if self.robust == "auto" and len(self.report_["set_aside"]) <= BY_CHANCE * X.shape[0]:
            self._sets_aside = False
            fitted = super()._fit_checked(X, labels, weights)
        return fitted

    def _names(self, names):
        names = super()._names(names)
        return names and lagged_names(names, self.lags)

    def _over_lags(self, values):
        """Sums values over lags, so that there is one per input."""
        return values.reshape(len(values), self.lags + 1, -1).sum(axis=1)

    @property
    def feature_importances_(self):
        return self._over_lags(super().feature_importances_[None])[0]

    feature_importances_.__doc__ = OnlineModel.feature_importances_.__doc__

    def _rate(self):
        """Returns the false-alarm rate of the threshold; None if it is a quantile of the training scores."""
        given = self.contamination != "auto"
        if self.false_alarm_rate is not None:
            if given:
                both = f"contamination = {self.contamination!r} and false_alarm_rate = {self.false_alarm_rate!r}"
                raise InvalidParameterError(f"{both}: give one of them, not both")
            return float(self.false_alarm_rate)
        return None if given or _spec.labelled(self) else CONTAMINATION

    def _method(self):
        usual = self.method == type(self).method and _given.is_given(self.kernel)
        return {"name": _given.AMONG_SAMPLES} if usual else super()._method()

    def _options(self):
        quantile = 1.0 - (CONTAMINATION if self.contamination == "auto" else float(self.contamination))
        return {
            "quantile": quantile,
            "false_alarms": self._rate(),
            "statistic": self._statistic(),
            "row_order": "time" if self.lags else self.row_order,
            "score_fidelity": self.score_fidelity,
            "robust": self._sets_aside,
        }

    def _statistic(self):
        """Resolves the parameter `statistic`."""
        if self.statistic != "auto":
            return self.statistic
        given = self.n_components is not None or self.fidelity is not None or _given.is_given(self.kernel)
        return "distance" if given or self.method != type(self).method else "mahalanobis"

    @classmethod
    def load(cls, path):
        estimator = super().load(path)
        estimator.n_features_in_ //= estimator.lags + 1
        if hasattr(estimator, "feature_names_in_"):
            estimator.feature_names_in_ = estimator.feature_names_in_[: estimator.n_features_in_]
        return estimator

    load.__func__.__doc__ = OnlineModel.load.__doc__

    def _learning(self):
        return {**super()._learning(), "alarms": self.learn_alarms}

    def _adopt(self, model):
        about = super()._adopt(model)
        self.offset_ = -about["threshold"]
        self.reference_offset_ = -about["learned"]["reference"] if about["learned"] else self.offset_
        self._calibration = about["calibration"]
        self.limits_ = self._calibration and self._calibration["limits"]
        # Components that solve an eigenproblem are uncorrelated; those of a paper's method need not be. Variances that
        # the score treats as noise are left out here too.
        variances = self.explained_variance_
        inverse = np.divide(1, variances, out=np.zeros_like(variances), where=variances > about["noise"])
        self._precision = np.diag(inverse) if self._frame is None else None
        return about


def with_lags(X, lags):
    """Appends the preceding rows to each row; the first row stands in for those before it."""
    rows = np.arange(X.shape[0])
    parts = [X[np.maximum(rows - lag, 0)] for lag in range(lags + 1)]
    return scipy.sparse.hstack(parts, format="csr") if is_sparse(X) else np.concatenate(parts, axis=1)


def lagged_names(names, lags):
    """Returns the names of the columns, then those of the columns one row earlier, and so on."""
    return [*names, *(f"{name} (t-{lag})" for lag in range(1, lags + 1) for name in names)]
