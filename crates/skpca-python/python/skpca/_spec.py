"""Converts scikit-learn's parameters to specs of the core, `{"name": "rbf", "gamma": 0.5}`, and to a seed."""

import dataclasses
import json
from numbers import Integral, Real

from sklearn.utils import check_random_state

from . import _core
from ._registry import ALIASES, KERNELS, METHODS, known

# Fields of a spec that name an entry.
NAMES = {"name", *(one["name"] for entry in KERNELS.values() for one in entry["parameters"] if one["type"] == "kernel")}
# Parameters of the estimators that are passed on to methods.
OF_METHODS = sorted({name for entry in METHODS.values() for name in known(entry)})


def fields(what, value):
    """Converts a name, a name with parameters as on the command line, or a dict to a new dict."""
    if isinstance(value, str):
        value = json.loads(_core.parse_spec(value)) if "," in value else {"name": value}
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise ValueError(f'{what} = {value!r}: expected a name, or a dict such as {{"name": "rbf", "gamma": 0.5}}')
    return {
        name: ALIASES.get(one, one) if name in NAMES and isinstance(one, str) else one for name, one in value.items()
    }


def joined(estimator, spec, given):
    """Merges the estimator's parameters and those of its dict, which overrides defaults; contradictions are errors."""
    defaults = {one.name: one.default for one in dataclasses.fields(estimator)}
    for ours, (theirs, value) in given.items():
        if theirs in spec and spec[theirs] != value and value != defaults[ours]:
            raise ValueError(f"{ours} = {value!r}: {spec['name']} has {theirs} = {spec[theirs]!r}; give it once")
    return {**{theirs: value for theirs, value in given.values()}, **spec}


def kernel(estimator):
    """Returns the kernel's spec; its dict overrides the defaults of `gamma`, `degree` and `coef0`."""
    spec = fields("kernel", estimator.kernel)
    entry = KERNELS.get(spec["name"])
    # A kernel with a base kernel takes the parameters of its base.
    bases = [one for one in entry["parameters"] if one["type"] == "kernel"] if entry else []
    for base in bases:
        entry = KERNELS.get(spec.get(base["name"], base["default"]))
    given = {ours: (theirs, getattr(estimator, ours)) for ours, theirs in known(entry).items()}
    return joined(estimator, spec, {ours: pair for ours, pair in given.items() if pair[1] is not None})


def method(estimator):
    """Returns the method's spec; its dict overrides the defaults of `refit`, `tol` and `max_iter`."""
    spec = fields("method", estimator.method)
    names = known(METHODS.get(spec["name"]))
    given = {name: getattr(estimator, name) for name in OF_METHODS if getattr(estimator, name) is not None}
    for name, value in given.items():
        # A parameter with a default is ignored by methods that lack it.
        if name not in names and getattr(type(estimator), name) is None:
            raise ValueError(f"{name} = {value!r}: the method {spec['name']} has no such parameter")
    return joined(estimator, spec, {name: (names[name], value) for name, value in given.items() if name in names})


def labelled(estimator):
    """Whether a fit uses labels. Called before parameters are checked, so invalid ones are not an error here."""
    method, kernel = entry_of(METHODS, estimator.method), entry_of(KERNELS, estimator.kernel)
    learned = (
        kernel["labelled"] and isinstance(estimator.kernel, dict) and set(kernel["learned"]) & set(estimator.kernel)
    )
    return method["labelled"] or kernel["labelled"] and not learned


def entry_of(registry, value):
    """Returns the registry entry of a name or a dict; if there is none, one that needs no labels."""
    name = value.get("name") if isinstance(value, dict) else value
    name = name.partition(",")[0] if isinstance(name, str) else name
    return registry.get(name, {"labelled": False}) if isinstance(name, str) else {"labelled": False}


def text(what, spec):
    """Serialises a spec for the core, including numpy numbers and arrays."""
    try:
        return json.dumps(spec, default=plain, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} = {spec!r}: expected finite numbers, text and lists of them: {error}") from error


def plain(value):
    """Converts numpy numbers and arrays, and fractions, to JSON types."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Real):
        return float(value)
    raise TypeError(f"{value!r} is neither")


def seed(random_state):
    """Returns an integer as it is, as on the command line; draws a seed from a generator."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))
