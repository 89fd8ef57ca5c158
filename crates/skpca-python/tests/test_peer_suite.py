"""scikit-learn's own tests of `KernelPCA`, run against our estimator at full support.

The tests come from the installed scikit-learn; `KernelPCA` in them is replaced by an adapter that only renames. What
cannot pass is listed with the difference of contract that explains it.
"""

import numpy as np
import pytest
import sklearn.decomposition.tests.test_kernel_pca as suite
from sklearn.exceptions import NotFittedError
from skpca import SparseKernelPCA

RANK = "no components without variance: as many are kept as the rank, and a fit where it is 0 is refused"
SYMMETRIC = "a kernel matrix that is not symmetric has the eigenvalues of its symmetric part, features of what it is"
SEMI_DEFINITE = "a kernel that is not positive semi-definite is refused, whatever n_components"
GAMMA = "gamma=None is the median rule, not 1 / n_features"
DIFFERENCES = {
    "test_remove_zero_eig": RANK,
    "test_kernel_conditioning": RANK,
    "test_kernel_pca_precomputed_non_symmetric": SYMMETRIC,
    "test_precomputed_kernel_not_psd": SEMI_DEFINITE,
    "test_kernel_pca_inverse_correct_gamma": GAMMA,
}
# Their randomized solver refuses it too.
PASSES = {"test_precomputed_kernel_not_psd[randomized]"}


class KernelPCA(SparseKernelPCA):
    """Our estimator under scikit-learn's parameters."""

    def __init__(
        self,
        n_components=None,
        *,
        kernel="linear",
        gamma=None,
        alpha=1.0,
        fit_inverse_transform=False,
        eigen_solver="auto",
        remove_zero_eig=False,
        random_state=None,
    ):
        super().__init__(
            n_components, method="exact", kernel=kernel, gamma=gamma, alpha=alpha, random_state=random_state
        )
        self.fit_inverse_transform = fit_inverse_transform
        self.eigen_solver = eigen_solver
        self.remove_zero_eig = remove_zero_eig

    def fit(self, X, y=None):
        if self.fit_inverse_transform and self.kernel == "precomputed":
            raise ValueError("Cannot fit_inverse_transform with a precomputed kernel")
        super().fit(X, y)
        self.eigenvectors_ = self.transform(X) / np.sqrt(self.eigenvalues_)
        return self

    def inverse_transform(self, X):
        if not self.fit_inverse_transform:
            raise NotFittedError("fit_inverse_transform=False")
        return super().inverse_transform(X)


@pytest.fixture(autouse=True)
def ours(monkeypatch, request):
    monkeypatch.setattr(suite, "KernelPCA", KernelPCA)
    reason = DIFFERENCES.get(request.node.originalname)
    if reason and request.node.name not in PASSES:
        request.node.add_marker(pytest.mark.xfail(reason=reason, strict=True))


@pytest.fixture
def global_random_seed():
    return 42


globals().update({name: test for name, test in vars(suite).items() if name.startswith("test_")})
