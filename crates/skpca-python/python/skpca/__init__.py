"""Sparse kernel PCA: features and novelty scores from a handful of points."""

from ._core import Model, __version__, fit, kernel, multiply_adds, product
from ._estimators import SparseKernelPCA
from ._novelty import KernelNovelty

__all__ = ["KernelNovelty", "Model", "SparseKernelPCA", "fit", "kernel", "multiply_adds", "product"]


def __dir__():
    return sorted([*__all__, "__version__", "exceptions"])
