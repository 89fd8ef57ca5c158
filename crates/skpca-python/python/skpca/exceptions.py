"""Warning classes, for filters: ``warnings.simplefilter("ignore", skpca.exceptions.ShortfallWarning)``."""


class SkpcaWarning(UserWarning):
    """Base class of the warnings of skpca, apart from scikit-learn's ConvergenceWarning."""


class ShortfallWarning(SkpcaWarning):
    """A model has fewer components or points than requested, or a lower fidelity; the message says why."""


class DenseCopyWarning(SkpcaWarning):
    """A sparse matrix is made dense; the message says how large it will be."""


class RangeWarning(SkpcaWarning):
    """Rows are far outside the range of the training rows, such as raw rows given to a model of scaled rows."""


class WorkerWarning(SkpcaWarning):
    """Workers of a cluster use another instruction set than this machine; the message names the instruction sets."""
