"""The core's registries of methods and kernels, and their description in docstrings."""

import json
from textwrap import fill

from . import _core

# Registry entries of methods and kernels, by name.
METHODS = {entry["name"]: entry for entry in json.loads(_core.methods())}
KERNELS = {entry["name"]: entry for entry in json.loads(_core.kernels())}

# scikit-learn's names of kernels, where they differ from the core's.
ALIASES = {entry["sklearn"]: name for name, entry in KERNELS.items() if entry["sklearn"]}


def known(entry):
    """Maps parameters of the estimators to the names they have in a registry entry."""
    return {one["sklearn"]: one["name"] for one in entry["parameters"] if one["sklearn"]} if entry else {}


# The kernel k(x, z) = x·z, which user-defined kernels are reduced to.
LINEAR = next(name for name, entry in KERNELS.items() if entry["linear"])
# The method that selects columns, which needs the linear kernel.
COLUMNS = next(name for name, entry in METHODS.items() if entry["linear"])
# The kernel exp(−γ ‖x − z‖²), for the kernel ridge regression.
GAUSSIAN = next(name for name, entry in KERNELS.items() if entry["gaussian"] and "gamma" in known(entry))


def owners(registry, parameter, field):
    """Groups the entries that have a parameter of the estimators by one field of its declaration."""
    found = {}
    for entry in registry.values():
        for one in entry["parameters"]:
            if one["sklearn"] == parameter:
                found.setdefault(one[field], []).append(entry["name"])
    return found


def those(registry, capability):
    """Returns the names of the entries that have a capability."""
    return [name for name, entry in registry.items() if entry[capability]]


def listed(names):
    """Joins names: `"a", "b" and "c"`."""
    *first, last = [f'"{name}"' for name in names] or ["none"]
    return f"{', '.join(first)} and {last}" if first else last


def described(registry):
    """Returns a list item for each entry of a registry, then one for each parameter."""
    entries = [item(spelled(entry), entry["summary"], entry["source"]) for entry in registry.values()]
    parameters = [item(f"``{one['name']}`` of {listed(names)}", *explained(one)) for one, names in grouped(registry)]
    return "\n".join([*entries, "", "Their own parameters:", "", *parameters])


def spelled(entry):
    return " or ".join(f'"{name}"' for name in (entry["name"], entry.get("sklearn")) if name)


def explained(parameter):
    default = parameter["default_text"] if parameter["default"] is None else repr(parameter["default"])
    values = [] if parameter["type"] == "boolean" else [parameter["values"]]
    also = [f"``{parameter['sklearn']}`` sets it too"] if parameter["sklearn"] not in (None, parameter["name"]) else []
    return parameter["help"], "; ".join([*values, f"default: {default}", *also])


def grouped(registry):
    """Returns the distinct parameters, each with the entries that have it."""
    found = []
    for name, entry in registry.items():
        for parameter in entry["parameters"]:
            same = next((names for one, names in found if one == parameter), None)
            if same is None:
                found.append((parameter, [name]))
            else:
                same.append(name)
    return found


def item(name, text, remark):
    """Formats a list item, wrapped for a docstring."""
    remark = f" ({remark})" if remark else ""
    return fill(f"- {name}: {text}{remark}", 100, subsequent_indent="  ", break_on_hyphens=False)
