"""Warnings of skpca, one class each: ``warnings.simplefilter("ignore", skpca.exceptions.ShortfallWarning)``."""


class SkpcaWarning(UserWarning):
    """Whatever skpca warns of, but for scikit-learn's ConvergenceWarning."""


class ShortfallWarning(SkpcaWarning):
    """A model has fewer components or points than asked for, or a lower fidelity; the message says why."""


class DenseCopyWarning(SkpcaWarning):
    """A sparse matrix is made dense; the message says how large it will be."""
