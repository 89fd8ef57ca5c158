"""`path`: models for many penalties, or all numbers of points, for little more than the cost of one fit."""

import numpy as np
from sklearn.utils import Bunch

from . import _core, _given, _parameters, _spec, _threads
from ._estimators import SparseKernelPCA
from ._kernel_model import double
from ._registry import METHODS, listed, those

# Largest size by default, in multiples of the number of components.
SIZES_PER_COMPONENT = 3
COMPONENTS = 10
# Fields of a step besides its support.
STEP = ("penalty", "fidelity", "objective", "gap", "n_iter", "converged")


def path(X, n_components=None, *, eps=1e-2, n_shares=20, shares=None, max_support=None, **parameters):
    """Fit a path of sizes or penalties, each model starting from the one before.

    Methods that grow a model point by point, such as the default, have a path of sizes; those with a penalty have a
    path of penalties, like `sklearn.linear_model.lasso_path`.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Training rows.
    n_components : int or None, default=None
        Number of components; None is 10, or the rank of the data where that is lower.
    eps : float, default=1e-2
        The smallest penalty as a share of the largest useful penalty, at which nothing is selected any more.
    n_shares : int, default=20
        Number of penalties, in geometric progression.
    shares : array-like of shape (n_shares,), default=None
        Shares of the largest useful penalty, instead of `eps` and `n_shares`.
    max_support : int or None, default=None
        Largest size of a path of sizes; None is three times the number of components.
    **parameters
        Parameters of :class:`SparseKernelPCA`: `method`, `kernel`, `gamma`, `center`, `scaling`, `random_state`,
        `n_jobs`, …

    Returns
    -------
    path : Bunch
        `n_support`, ndarray of shape (n_steps,): numbers of points, and `fidelity`, ndarray of shape (n_steps,): the
        shares of what exact kernel PCA captures. With penalties also `shares`, `penalties` (the parameter ``penalty``
        of the method), `objective`, `gap`, `n_iter` and `converged`, ndarrays of shape (n_steps,), and `support`, a
        list with the rows in use.

    See Also
    --------
    SparseKernelPCA : Fits one of these models.

    Examples
    --------
    >>> import skpca
    >>> from sklearn.datasets import load_iris
    >>> X, _ = load_iris(return_X_y=True)
    >>> sizes = skpca.path(X, 3, max_support=8, random_state=0)
    >>> sizes.n_support
    array([3, 4, 5, 6, 7, 8])
    >>> int(sizes.n_support[sizes.fidelity >= 0.95][0])
    4
    >>> penalties = skpca.path(X, 3, method="l21", shares=[0.5, 0.1], random_state=0)
    >>> bool(penalties.n_support[0] < penalties.n_support[1])
    True
    """
    estimator = SparseKernelPCA(n_components, **parameters)
    _parameters.check(estimator)
    given = _fit_options(estimator)
    name = _spec.fields("method", estimator.method)["name"]
    if name not in METHODS:
        valid = ", ".join(METHODS)
        raise ValueError(f"method = {estimator.method!r}: expected one of {valid}")
    X = double(estimator._checked(X, ensure_min_samples=2))
    with _threads.limited(estimator.n_jobs), _parameters.renamed(estimator):
        if METHODS[name]["path"]:
            if max_support is not None:
                raise ValueError(f"max_support = {max_support!r}: {name} has a path of penalties; give shares or eps")
            return _of_penalties(X, _shares(eps, n_shares, shares), given)
        if shares is not None:
            able = listed(those(METHODS, "path"))
            raise ValueError(f"shares: only {able} have a path of penalties; {name} has one of sizes, give max_support")
        return _of_sizes(X, max_support or SIZES_PER_COMPONENT * (n_components or COMPONENTS), given)


def _fit_options(estimator):
    """Returns the options of the core's fit."""
    for name in ("n_support", "fidelity"):
        if getattr(estimator, name) is not None:
            raise ValueError(f"{name} = {getattr(estimator, name)!r}: a path has many sizes")
    if _given.is_given(estimator.kernel):
        raise ValueError("kernel: a path needs a kernel of the registry")
    return {
        "method": _spec.text("method", _spec.method(estimator)),
        "kernel": _spec.text("kernel", _spec.kernel(estimator)),
        "components": estimator.n_components,
        "center": estimator.center,
        "scaling": estimator.scaling or "none",
        "seed": _spec.seed(estimator.random_state),
    }


def _shares(eps, n_shares, shares):
    if shares is not None:
        return np.asarray(shares, dtype=float)
    if not 0 < eps < 1:
        raise ValueError(f"eps = {eps!r}: expected a number between 0 and 1")
    if not _parameters.is_integer(n_shares):
        raise ValueError(f"n_shares = {n_shares!r}: expected an integer from 1")
    return np.geomspace(1, eps, n_shares)


def _of_penalties(X, shares, given):
    steps = _core.path(X, shares, **given)
    columns = {name: np.array([step[name] for step in steps]) for name in STEP}
    support = [step["support"] for step in steps]
    penalties = columns.pop("penalty")
    sizes = np.array([len(rows) for rows in support])
    return Bunch(shares=shares, penalties=penalties, n_support=sizes, support=support, **columns)


def _of_sizes(X, most, given):
    found = _core.sizes(X, most, **given)
    return Bunch(n_support=np.array([m for m, _ in found]), fidelity=np.array([fidelity for _, fidelity in found]))
