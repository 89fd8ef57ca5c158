"""The parameters that all estimators share, each with type, default, documentation and validation.

`dataclass` generates the constructors, so that a parameter is declared once. An estimator is a dataclass that extends
these with its own fields.
"""

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field, fields
from inspect import cleandoc, formatannotation
from math import isfinite
from numbers import Integral, Real
from textwrap import fill, indent
from types import NoneType
from typing import get_args

import numpy as np
from sklearn.utils._param_validation import InvalidParameterError

from ._given import AMONG_SAMPLES
from ._registry import KERNELS, METHODS, described, listed, owners, those

SCALINGS = ("standard", "minmax", "none")
INTEGERS = "an int in the range [1, 2**63)"
# The core's names of parameters that have other names here.
NAMES = {
    "components": "n_components",
    "support": "n_support",
    "quantile": "contamination",
    "false_alarms": "false_alarm_rate",
    "seed": "random_state",
}
GAMMA_RULES = next(
    tuple(one["choices"]) for entry in KERNELS.values() for one in entry["parameters"] if one["sklearn"] == "gamma"
)


def is_integer(value, least=1, most=2**63 - 1):
    return isinstance(value, Integral) and not isinstance(value, bool) and least <= value <= most


def is_number(value):
    return isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)


def is_positive(value):
    return is_number(value) and value > 0


def is_gamma(value):
    return is_positive(value) or is_one_of(GAMMA_RULES)(value)


def is_one_of(words):
    return lambda value: isinstance(value, str) and value in words


def is_flag(value):
    return isinstance(value, bool | np.bool_)


def is_spec(value):
    return isinstance(value.get("name") if isinstance(value, dict) else value, str)


def is_random_state(value):
    return is_integer(value, 0, 2**64 - 1) or isinstance(value, np.random.RandomState) or value is np.random


def among(words):
    return "{" + ", ".join(map(repr, words)) + "}"


def about(text, is_sound=None, expected=None, more=""):
    """Returns the metadata of a parameter. None is valid if its type allows it."""
    return {"text": text, "more": more, "check": is_sound and (is_sound, expected)}


@dataclass(eq=False, repr=False)
class Parameters:
    """The shared parameters. Not for direct use."""

    n_components: int | None = field(
        default=None,
        metadata=about(
            "Number of components; None is 10, or the rank of the data if that is lower.",
            is_integer,
            INTEGERS,
        ),
    )
    _: KW_ONLY
    method: str | dict = field(
        default="expansion",
        metadata=about(
            "Method that chooses the points: its name, or a dict that also holds its parameters, such as"
            ' ``{"name": "l21", "penalty": 0.1}`` or, as on the command line, ``"l21,penalty=0.1"``. In a grid,'
            " ``method__penalty`` sets one of them.",
            is_spec,
            "a str or a dict with a str as 'name'",
            more=described(METHODS),
        ),
    )
    kernel: str | dict | Callable = field(
        default="rbf",
        metadata=about(
            'Name of a kernel, or a dict that also holds its parameters, such as ``{"name": "rbf", "gamma": 0.5}``.'
            " A function of two tables, as in `sklearn.metrics.pairwise`, or of two rows, which may then be any"
            ' objects (strings, graphs), or "precomputed" (X is the matrix of kernel values; for new rows, of those'
            f" with the training rows), works with every method except {listed(those(METHODS, 'synthetic_points'))},"
            f' instead of which "{AMONG_SAMPLES}" is used; it needs an n_samples x n_samples matrix and cannot be'
            " saved to a model file.",
            lambda value: is_spec(value) or callable(value),
            "a str, a dict with a str as 'name' or a callable",
            more=described(KERNELS),
        ),
    )
    gamma: float | str | None = field(
        default=None,
        metadata=about(
            "The kernel's coefficient: a number, or a rule that computes it from the rows. "
            '"median" is 1 / median (squared) distance of two rows, "mean" 1 / (2 * mean squared distance), "scale"'
            ' 1 / (n_features * X.var()), "auto" 1 / n_features, the default of KernelPCA. None is '
            + "; ".join(f'"{rule}" for {listed(names)}' for rule, names in owners(KERNELS, "gamma", "default").items())
            + ".",
            is_gamma,
            f"a float in the range (0.0, inf), a str among {among(GAMMA_RULES)}",
        ),
    )
    degree: int | None = field(
        default=3,
        metadata=about(
            f"Degree of the kernel {listed(owners(KERNELS, 'degree', 'sklearn')['degree'])}.",
            lambda value: is_number(value) and value in range(1, 65),
            "an int in the range [1, 64]",
        ),
    )
    coef0: float | None = field(
        default=1,
        metadata=about(
            f"Constant of the kernels {listed(owners(KERNELS, 'coef0', 'sklearn')['coef0'])}.",
            is_number,
            "a float in the range (-inf, inf)",
        ),
    )
    n_support: int | None = field(default=None, metadata=about("Number of points to keep.", is_integer, INTEGERS))
    landmarks: Sequence | np.ndarray | None = field(
        default=None,
        metadata=about(
            "Points to use instead of choosing them: indices of training rows, or an array of points. All of these"
            " are kept, except linearly dependent ones, which the report names.",
            lambda value: not isinstance(value, str) and np.ndim(value) in (1, 2) and len(value) > 0,
            "a sequence of row numbers or an array-like of shape (n_support, n_features)",
        ),
    )
    fidelity: float | None = field(
        default=None,
        metadata=about(
            "Share of what exact kernel PCA captures that the components must reach, from 0 to 1; 0.95 if neither this"
            " nor `n_support` is given.",
            lambda value: is_positive(value) and value <= 1,
            "a float in the range (0.0, 1.0]",
        ),
    )
    center: bool | None = field(
        default=None,
        metadata=about(
            "Whether features are centred; None leaves it to the method: all except"
            f" {listed(those(METHODS, 'uncentred'))} centre them.",
            is_flag,
            "a bool",
        ),
    )
    scaling: str | None = field(
        default=None,
        metadata=about(
            "How columns are scaled before the kernel is evaluated: not at all (None), to mean 0 and variance 1"
            ' ("standard", the default of the `skpca` program), or to the range from 0 to 1 ("minmax").',
            is_one_of(SCALINGS),
            f"a str among {among(SCALINGS)}",
        ),
    )
    refit: bool | None = field(
        default=True,
        metadata=about(
            "Whether the best components over the chosen points replace those of the method's paper. For"
            f" {listed(those(METHODS, 'own_components'))}; the others always use the best components.",
            is_flag,
            "a bool",
        ),
    )
    tol: float | None = field(
        default=None,
        metadata=about(
            "Tolerance at which iterations end: "
            + "; ".join(f"``{name}`` of {listed(names)}" for name, names in owners(METHODS, "tol", "name").items())
            + ".",
            is_positive,
            "a float in the range (0.0, inf)",
        ),
    )
    max_iter: int | None = field(
        default=None,
        metadata=about(
            "Maximum number of iterations: "
            + "; ".join(f"``{name}`` of {listed(names)}" for name, names in owners(METHODS, "max_iter", "name").items())
            + ".",
            lambda value: is_integer(value, 0, 10**15),
            "an int in the range [0, 10**15]",
        ),
    )
    random_state: int | np.random.RandomState | None = field(
        default=None,
        metadata=about(
            "Seed of everything random. The same seed gives the same bits on any number of threads.",
            is_random_state,
            "an int in the range [0, 2**64), a RandomState",
        ),
    )
    n_jobs: int | None = field(
        default=None,
        metadata=about(
            "Number of threads: -1 is all cores, -2 all but one. None is 1 in a worker of joblib and all cores"
            " elsewhere, unless `joblib.parallel_config` says otherwise. ``OMP_NUM_THREADS`` and threadpoolctl limit"
            " what -1 and None mean. Results do not depend on it.",
            lambda value: is_integer(value, -(2**63)) and value != 0,
            "an int other than 0",
        ),
    )
    verbose: int = field(default=0, metadata=about("Whether to print progress."))


def check(estimator):
    """Rejects invalid parameters and combinations of them."""
    check_each(estimator)
    if estimator.n_support is not None and estimator.fidelity is not None:
        size, quality = f"n_support = {estimator.n_support!r}", f"fidelity = {estimator.fidelity!r}"
        raise InvalidParameterError(f"{size} and {quality}: give one of them, not both")


def check_each(estimator):
    """Rejects parameters that are invalid by themselves."""
    for one in fields(estimator):
        value, optional = getattr(estimator, one.name), NoneType in get_args(one.type)
        if one.metadata["check"] is None or value is None and optional:
            continue
        is_sound, expected = one.metadata["check"]
        if not is_sound(value):
            raise wrong(estimator, one.name, f"{expected}{' or None' if optional else ''}", shown(value, expected))


def wrong(estimator, name, expected, got):
    """Returns the error about a parameter, in scikit-learn's wording."""
    kind = type(estimator).__name__
    return InvalidParameterError(f"The {name!r} parameter of {kind} must be {expected}. Got {got} instead.")


def shown(value, expected):
    """Formats a rejected value; a float given for an int is called a float."""
    is_float = isinstance(value, Real) and not isinstance(value, Integral) and expected.startswith("an int")
    return f"{value!r}, which is a float," if is_float else repr(value)


@contextmanager
def renamed(estimator, names=NAMES):
    """Renames the parameters in errors of the core to the names of the estimator."""
    try:
        yield
    except ValueError as error:
        name, equals, text = str(error).partition(" = ")
        value, colon, expected = text.partition(": expected ")
        if name not in names or not equals or not colon:
            raise
        raise wrong(estimator, names[name], expected, value) from error


def documented(kind):
    """Writes the parameters of an estimator into its docstring, in place of ``%(parameters)s``."""
    if kind.__doc__ is not None:  # as with python -OO
        parameters = "\n".join(map(paragraph, fields(kind)))
        kind.__doc__ = cleandoc(kind.__doc__).replace("%(parameters)s", parameters)
    return kind


def paragraph(one):
    """Formats a parameter as in a numpydoc docstring."""
    text, more = fill(one.metadata["text"], 110, break_on_hyphens=False), one.metadata["more"]
    body = f"{text}\n\n{more}\n" if more else text
    return f"{one.name} : {formatannotation(one.type)}, default={one.default!r}\n{indent(body, '    ')}"
