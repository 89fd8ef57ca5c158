"""`KernelNovelty`: distance of rows to a sparse kernel PCA model."""

from dataclasses import dataclass, field

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.exceptions import NotFittedError

from ._kernel_model import KernelModel, dense, double
from ._parameters import about, documented, is_one_of, is_positive
from ._request import CONTAMINATION


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class KernelNovelty(OutlierMixin, KernelModel):
    """Detector of outliers by their distance to kernel PCA components over a handful of points.

    The score is Hoffmann's reconstruction error: the squared distance, in feature space, of a row to the span of the
    components; process engineers know it as SPE or Q. Columns are taken as they are: give a `scaling`, or put a
    `StandardScaler` before it, where they have different units.

    Parameters
    ----------
    %(parameters)s

    Attributes
    ----------
    offset_ : float
        Rows with a lower `score_samples` are outliers.
    support_, support_vectors_, coefficients_, explained_variance_, fidelity_, gamma_, report_, n_features_in_, ...
        As in :class:`SparseKernelPCA`.

    See Also
    --------
    SparseKernelPCA : The same model as a transformer.

    Examples
    --------
    >>> import numpy as np
    >>> from skpca import KernelNovelty
    >>> angle = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    >>> ring = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> detector = KernelNovelty(n_support=20, random_state=0).fit(ring)
    >>> detector.predict([[1.0, 0.0], [0.0, 0.0]])
    array([ 1, -1])
    >>> detector.p_values([[0.0, 0.0]]).round(3)
    array([0.005])
    """

    contamination: str | float = field(
        default="auto",
        metadata=about(
            'Share of the training rows that count as outliers, above 0 and up to 0.5; "auto" is 0.05.',
            lambda value: is_one_of(("auto",))(value) or is_positive(value) and value <= 0.5,
            '"auto", or a number above 0 and up to 0.5',
        ),
    )

    def fit(self, X, y=None):
        """Fit the components and the threshold.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; sparse ones are made dense.
        y : array-like of shape (n_samples,), default=None
            Classes, of any type; only methods and kernels that need labels look at them.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        X = self._fit(X, y)
        if self._precision is None:
            features = self._model.transform(X)
            self._precision = np.linalg.pinv(features.T @ features / len(features), hermitian=True)
        return self

    def fit_predict(self, X, y=None):
        """Fit, and say which training rows are outliers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,), default=None
            As in `fit`.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            1 for inliers, -1 for outliers.
        """
        return self.fit(X, y).predict(X)

    def score_samples(self, X):
        """How normal rows are: minus the squared distance to the span of the components.

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

    def decision_function(self, X):
        """`score_samples` less `offset_`: negative for outliers.

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

    def predict(self, X):
        """Which rows are outliers.

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

    def p_values(self, X):
        """How rare scores as bad as those of X are among training rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        p : ndarray of shape (n_samples,)
            ``(1 + training rows at least as novel) / (1 + training rows)``.
        """
        scores = self._scores(X)
        return self._model.p_values(scores)

    def hotelling(self, X):
        """Hotelling's T² of the components: distance from the mean *within* their span.

        What `score_samples` does not see: a row in the span, but far out.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        t2 : ndarray of shape (n_samples,)
            Squared uncorrelated features over their variances, summed.
        """
        X = double(self._queries(X))
        if self._precision is None:
            raise NotFittedError("a model file does not keep the correlations of components: fit the detector again")
        features = self._model.transform(X)
        return np.einsum("ij,jk,ik->i", features, self._precision, features)

    def contributions(self, X):
        """Which inputs drove the novelty of a row: the slope of its distance along each feature.

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
        return self._model.score_gradient(X)

    def _scores(self, X):
        """The core's scores, higher is more novel."""
        X = dense(self._queries(X))
        return self._model.score(X)

    def _share(self):
        """Share of the training rows that count as outliers."""
        return CONTAMINATION if isinstance(self.contamination, str) else float(self.contamination)

    def _options(self):
        return {"quantile": 1.0 - self._share()}

    def _adopt(self, model):
        about = super()._adopt(model)
        self.offset_ = -about["threshold"]
        # Components that solve an eigenproblem are uncorrelated; a paper's own need not be.
        self._precision = np.linalg.pinv(np.diag(self.explained_variance_)) if self._frame is None else None
        return about
