"""A detector for PyOD: higher scores are more novel, labels are 0 and 1. Needs `pip install skpca[pyod]`."""

from dataclasses import dataclass, field

from pyod.models.base import BaseDetector
from sklearn.utils.validation import check_is_fitted

from ._novelty import KernelNovelty, replaced
from ._parameters import Parameters, about, documented

__all__ = ["SKPCA"]

# The value does not matter: without one, KernelNovelty would fit more models to find a threshold.
PLACEHOLDER_CONTAMINATION = 0.05


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class SKPCA(Parameters, BaseDetector):
    """Outlier detector based on the distance to sparse kernel PCA components, for PyOD.

    Parameters
    ----------
    %(parameters)s

    Attributes
    ----------
    detector_ : KernelNovelty
        The fitted model.
    decision_scores_ : ndarray of shape (n_samples,)
        Scores of the training rows; higher is more novel.
    threshold_ : float
        Rows with higher scores are outliers.
    labels_ : ndarray of shape (n_samples,)
        0 for inliers, 1 for outliers.

    References
    ----------
    .. [1] H. Hoffmann, "Kernel PCA for novelty detection", Pattern Recognition 40 (2007), 863-874.
       doi:10.1016/j.patcog.2006.07.009

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

    method: str | dict = replaced("method", KernelNovelty.method)
    contamination: float = field(
        default=0.1, metadata=about("Share of the training rows that are outliers, or a thresholding rule of PyOD.")
    )

    def __post_init__(self):
        # Not super(): the dataclass has already set its parameters.
        BaseDetector.__init__(self, contamination=self.contamination)

    def fit(self, X, y=None):
        """Fit the detector.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,), default=None
            Class labels; used only by methods and kernels that need labels.

        Returns
        -------
        self : object
            The fitted detector.
        """
        self._set_n_classes(y)
        # PyOD sets its own threshold, and allows objects as contamination.
        parameters = {name: value for name, value in self.get_params().items() if name != "contamination"}
        self.detector_ = KernelNovelty(**parameters, contamination=PLACEHOLDER_CONTAMINATION).fit(X, y)
        self.decision_scores_ = self.decision_function(X)
        self._process_decision_scores()
        return self

    def decision_function(self, X):
        """Return the novelty scores of rows; higher is more novel.

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
