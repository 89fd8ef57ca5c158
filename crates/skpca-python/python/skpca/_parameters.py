"""What the estimators' parameters may be, a line for each, looked at before a fit. None leaves it to the core."""

from math import isfinite
from numbers import Integral, Real

import numpy as np

from . import _spec

SCALINGS = ("none", "standard", "minmax")
GAMMA_RULES = next(
    tuple(one["choices"])
    for entry in _spec.KERNELS.values()
    for one in entry["parameters"]
    if one["sklearn"] == "gamma"
)


def is_whole(value, least=1, most=2**63 - 1):
    return isinstance(value, Integral) and not isinstance(value, bool) and least <= value <= most


def is_number(value):
    return isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)


def is_positive(value):
    return is_number(value) and value > 0


def is_gamma(value):
    return is_positive(value) or isinstance(value, str) and value in GAMMA_RULES


def is_flag(value):
    return isinstance(value, bool | np.bool_)


def is_random_state(value):
    return is_whole(value, 0, 2**64 - 1) or isinstance(value, np.random.RandomState) or value is np.random


WHOLE = "an integer from 1 to 2**63 - 1, or None"
PARAMETERS = {
    "n_components": (is_whole, WHOLE),
    "n_support": (is_whole, WHOLE),
    "fidelity": (lambda value: is_positive(value) and value <= 1, "a number above 0 and up to 1, or None"),
    "gamma": (is_gamma, f"a finite number above 0, one of {', '.join(GAMMA_RULES)}, or None"),
    "degree": (lambda value: is_number(value) and value in range(1, 65), "an integer from 1 to 64"),
    "coef0": (is_number, "a finite number"),
    "center": (is_flag, "True, False or None"),
    "scaling": (lambda value: isinstance(value, str) and value in SCALINGS, f"one of {', '.join(SCALINGS)}"),
    "refit": (is_flag, "True or False"),
    "tol": (is_positive, "a finite number above 0, or None"),
    "max_iter": (lambda value: is_whole(value, 0, 10**15), "an integer from 0 to 10**15, or None"),
    "random_state": (is_random_state, "an integer from 0 to 2**64 - 1, a RandomState or None"),
    "n_jobs": (lambda value: is_whole(value, -(2**63)) and value != 0, "an integer other than 0, or None"),
}


def check(estimator):
    """Rejects parameters that no fit can have."""
    if estimator.scaling is None:
        raise ValueError(f"scaling = None: must be {PARAMETERS['scaling'][1]}")
    for name, (is_sound, expected) in PARAMETERS.items():
        value = getattr(estimator, name)
        if value is not None and not is_sound(value):
            raise ValueError(f"{name} = {value!r}: must be {expected}")
