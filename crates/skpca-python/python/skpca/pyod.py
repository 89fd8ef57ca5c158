"""A detector with PyOD's contract: higher scores are worse, labels are 0 and 1. Needs `pip install skpca[pyod]`."""

from pyod.models.base import BaseDetector
from sklearn.utils.validation import check_is_fitted

from ._novelty import KernelNovelty


class SKPCA(BaseDetector):
    """Outliers by their distance to sparse kernel PCA components, for PyOD.

    Parameters
    ----------
    n_components : int, default=None
        Number of components; None is 10, or the rank of the data where that is lower.
    contamination : float, default=0.1
        Share of the training rows that count as outliers.
    method, kernel, gamma, degree, coef0, n_support, fidelity, center, scaling, refit, tol, max_iter, ... :
        As in :class:`skpca.SparseKernelPCA`.

    Attributes
    ----------
    detector_ : KernelNovelty
        The fitted model.
    decision_scores_ : ndarray of shape (n_samples,)
        Squared distances of the training rows; higher is worse.
    threshold_ : float
        Rows with higher scores are outliers.
    labels_ : ndarray of shape (n_samples,)
        0 for inliers, 1 for outliers.

    Examples
    --------
    >>> from pyod.utils.data import generate_data
    >>> from sklearn.metrics import roc_auc_score
    >>> from skpca.pyod import SKPCA
    >>> X, X_new, y, y_new = generate_data(n_train=500, n_test=200, random_state=0)
    >>> detector = SKPCA(random_state=0).fit(X)
    >>> bool(roc_auc_score(y, detector.decision_scores_) > 0.95)
    True
    >>> bool(roc_auc_score(y_new, detector.decision_function(X_new)) > 0.95)
    True
    """

    def __init__(
        self,
        n_components=None,
        *,
        contamination=0.1,
        method="expansion",
        kernel="rbf",
        gamma=None,
        degree=3,
        coef0=1,
        n_support=None,
        fidelity=None,
        center=None,
        scaling="none",
        refit=True,
        tol=None,
        max_iter=None,
        random_state=None,
        n_jobs=None,
        verbose=0,
    ):
        super().__init__(contamination=contamination)
        self.n_components = n_components
        self.method = method
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_support = n_support
        self.fidelity = fidelity
        self.center = center
        self.scaling = scaling
        self.refit = refit
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X, y=None):
        """Fit the detector.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,), default=None
            Classes; used by the method "discriminant" and the kernel "conformal" only.

        Returns
        -------
        self : object
            The fitted detector.
        """
        self._set_n_classes(y)
        # PyOD has its own rule for the threshold, and allows objects as contamination.
        parameters = {name: value for name, value in self.get_params().items() if name != "contamination"}
        self.detector_ = KernelNovelty(**parameters).fit(X, y)
        self.decision_scores_ = self.decision_function(X)
        self._process_decision_scores()
        return self

    def decision_function(self, X):
        """Squared distances of rows to the model; higher is worse.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        anomaly_scores : ndarray of shape (n_samples,)
            Scores.
        """
        check_is_fitted(self, ["detector_"])
        return -self.detector_.score_samples(X)
