"""Sparse kernel PCA: features and novelty scores from a handful of points."""

from . import _core
from ._core import Model, fit, kernel, multiply_adds, product
from ._estimators import SparseKernelPCA
from ._novelty import KernelNovelty

__version__ = _core.__version__

__all__ = ["KernelNovelty", "Model", "SparseKernelPCA", "fit", "kernel", "multiply_adds", "product"]


def __dir__():
    return sorted([*__all__, "__version__", "exceptions"])
