"""Sparse kernel PCA: features and novelty scores from a handful of points."""

from ._core import Model, fit, kernel, multiply_adds, product

__all__ = ["Model", "fit", "kernel", "multiply_adds", "product"]
