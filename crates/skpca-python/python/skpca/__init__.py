"""Sparse kernel PCA: features and novelty scores from a handful of points."""

from . import _core
from ._core import Model, Moments, Online, fit, kernel, multiply_adds, product
from ._estimators import SparseKernelPCA
from ._linear import SparseLinearPCA
from ._novelty import KernelNovelty
from ._path import path
from ._pipeline import save

__version__ = _core.__version__

__all__ = [
    "KernelNovelty",
    "Model",
    "Moments",
    "Online",
    "SparseKernelPCA",
    "SparseLinearPCA",
    "fit",
    "kernel",
    "multiply_adds",
    "path",
    "product",
    "save",
]


def __dir__():
    return sorted([*__all__, "__version__", "exceptions"])
