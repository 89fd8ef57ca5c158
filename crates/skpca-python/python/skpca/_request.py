"""What a model was asked for ⇄ the parameters of an estimator.

An estimator's parameters go into its model file as they were given. The program, and files of older versions, have
other words for them.
"""

import json

import numpy as np

from . import _spec
from ._registry import METHODS

# Share of fresh normal rows that may be called outliers by default; methods that need labels call as many training
# rows.
CONTAMINATION = 0.05


def words(estimator, seed):
    """An estimator's parameters as a model file keeps them. A generator is the seed that it gave."""
    given = estimator.get_params(deep=False)
    if isinstance(given["random_state"], np.random.RandomState) or given["random_state"] is np.random:
        given["random_state"] = seed
    return json.dumps({name: value for name, value in map(kept, given.items()) if name is not None})


def kept(item):
    """A parameter that JSON can hold; the others are functions, of models that no file can hold."""
    name, value = item
    try:
        return name, json.loads(json.dumps(value, default=_spec.plain, allow_nan=False))
    except (TypeError, ValueError):
        return None, None


def parameters(kind, model):
    """The parameters of an estimator of this kind that fits such a model."""
    known = kind().get_params(deep=False)
    request = model.request()
    given = translated(json.loads(model.describe())) if request is None else from_request(json.loads(request))
    return {name: value for name, value in given.items() if name in known}


def from_request(request):
    """In the caller's own words, or by what the core was asked for."""
    asked = {
        "n_components": request["components"],
        "method": bare(request["method"]),
        "kernel": bare(request["kernel"]),
        "n_support": request["support"],
        "fidelity": request["fidelity"],
        "center": request["center"],
        "scaling": request["scaling"],
        "contamination": "auto" if "false_alarms" in request else contamination(request["quantile"]),
        "false_alarm_rate": request.get("false_alarms"),
        "statistic": request.get("statistic", "distance"),
        "score_fidelity": request.get("score_fidelity"),
        "robust": request.get("robust", False),
        "row_order": request.get("row_order", "auto"),
        "random_state": request["seed"],
    }
    own = request["words"]
    return {**own, "contamination": own.get("contamination", asked["contamination"])} if own else asked


def translated(about):
    """By what became of it, where the file does not know more: as many points, chosen in the same way."""
    method = about["method"]
    return {
        "n_components": about["q"],
        "method": method["name"],
        "kernel": bare(about["kernel"]),
        "n_support": None if METHODS[method["name"]]["keeps_all_rows"] else about["m"],
        "center": about["center"],
        "scaling": about["scaling"],
        "refit": method.get("refit", True),
        "contamination": contamination(about["quantile"]),
        "statistic": about["statistic"],
        "random_state": about["seed"],
    }


def bare(spec):
    """A name, where there is no more."""
    return spec["name"] if len(spec) == 1 else spec


def contamination(quantile):
    """The share above a quantile, as someone would write it."""
    short = round(1.0 - quantile, 12)
    return short if 1.0 - short == quantile else 1.0 - quantile
