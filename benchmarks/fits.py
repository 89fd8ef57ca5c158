"""The data and the fits that are compared, once: timed in one process, weighed in another.

Each side is imported where it is used, so that a process which weighs one does not carry the other.
"""

import json

import numpy as np

COMPONENTS = 10


def normal(n, d, seed=0):
    """Standard normal rows: no structure to exploit, on either side."""
    return np.random.default_rng(seed).normal(size=(n, d))


def gamma(d):
    """Squared distances of standard normal rows are near 2d, so kernel values are near 1/e."""
    return 1.0 / (2 * d)


def exact_ours(x):
    import skpca

    kernel = f"rbf,gamma={gamma(x.shape[1])!r}"
    return skpca.fit(x, method="exact", kernel=kernel, components=COMPONENTS, scaling="none")


def exact_peer(x, solver="arpack"):
    from sklearn.decomposition import KernelPCA

    kernel = {"kernel": "rbf", "gamma": gamma(x.shape[1])}
    return KernelPCA(COMPONENTS, eigen_solver=solver, random_state=0, **kernel).fit(x)


def landmarks_ours(x, m):
    import skpca

    kernel = f"rbf,gamma={gamma(x.shape[1])!r}"
    return skpca.fit(x, method="landmarks", kernel=kernel, components=COMPONENTS, support=m, scaling="none")


def small_ours(x, m):
    """With the columns scaled, as `skpca.fit` does unless told: that must not cost a pass over memory."""
    import skpca

    return skpca.fit(x, method="landmarks", components=COMPONENTS, support=m)


def landmarks_peer(x, m):
    from sklearn.decomposition import PCA
    from sklearn.kernel_approximation import Nystroem
    from sklearn.pipeline import make_pipeline

    features = Nystroem(kernel="rbf", gamma=gamma(x.shape[1]), n_components=m, random_state=0)
    return make_pipeline(features, PCA(COMPONENTS, random_state=0)).fit(x)


def expansion_ours(x, fidelity):
    import skpca

    kernel = f"rbf,gamma={gamma(x.shape[1])!r}"
    return skpca.fit(x, method="expansion", kernel=kernel, components=COMPONENTS, fidelity=fidelity, scaling="none")


def exact_default(x, q):
    """As a user calls it: columns standardised, gamma by the median rule."""
    import skpca

    return skpca.fit(x, method="exact", components=q)


def exact_peer_default(x, q):
    from sklearn.decomposition import KernelPCA
    from sklearn.preprocessing import StandardScaler

    scaled = StandardScaler().fit_transform(x)
    return KernelPCA(q, kernel="rbf", gamma=gamma(x.shape[1]), eigen_solver="arpack", random_state=0).fit(scaled)


def fewest_ours(x, method, fidelity, q):
    import skpca

    return skpca.fit(x, method=method, components=q, fidelity=fidelity)


def searched_ours(x, method, m, rank):
    import skpca

    return skpca.fit(x, method=f"{method},rank={rank}", components=COMPONENTS, support=m)


def factor_ours(x, rank):
    """The factor that the fit above begins with."""
    from skpca import _core

    return _core.factorise("rbf", x, rank)


def energy_ours(x, components=COMPONENTS):
    import skpca

    return skpca.fit(x, method="energy,alpha=0.2", kernel="linear", components=components, scaling="none")


def energy_peer(x, components=COMPONENTS):
    from sklearn.decomposition import PCA

    # With no number of components, as many as hold 1 − α/2 of the variance, as the rule asks for.
    return PCA(components or 0.9).fit(x)


def describe(model):
    return json.loads(model.describe())


def eigenvalues(model):
    found = describe(model)
    return np.array(found["explained_variance"]) * found["n"]
