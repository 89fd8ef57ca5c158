"""Converts between the request in a model file and the parameters of an estimator.

An estimator's parameters are written to its model file as given. Files of the program and of older versions use other
names.
"""

import json

import numpy as np

from . import _spec
from ._registry import METHODS

# Default share of new normal rows that may be flagged as outliers; for methods that need labels, share of the training
# rows.
CONTAMINATION = 0.05


def words(estimator, seed):
    """Serialises an estimator's parameters for a model file; a random generator becomes the seed that it gave."""
    given = estimator.get_params(deep=False)
    if isinstance(given["random_state"], np.random.RandomState) or given["random_state"] is np.random:
        given["random_state"] = seed
    return json.dumps({name: value for name, value in map(kept, given.items()) if name is not None})


def kept(item):
    """Converts a parameter to JSON types; functions become None, as their models cannot be saved."""
    name, value = item
    try:
        return name, json.loads(json.dumps(value, default=_spec.plain, allow_nan=False))
    except (TypeError, ValueError):
        return None, None


def parameters(kind, model):
    """Returns the parameters of an estimator of this class that fits such a model."""
    known = kind().get_params(deep=False)
    request = model.request()
    given = translated(json.loads(model.describe())) if request is None else from_request(json.loads(request))
    return {name: value for name, value in given.items() if name in known}


def from_request(request):
    """Returns the parameters as the caller gave them, or derives them from the core's request."""
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
    """Derives the parameters from the fitted model if the file has no request: as many points, chosen the same way."""
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
    """Returns only the name of a spec without parameters."""
    return spec["name"] if len(spec) == 1 else spec


def contamination(quantile):
    """Returns the share above a quantile, rounded if that is exact."""
    short = round(1.0 - quantile, 12)
    return short if 1.0 - short == quantile else 1.0 - quantile
