"""Verdicts on claims: a claim holds, holds partly, or is not reproduced.

A claim is a list of checks, one for each data set or setting that it is made for; None is an impossible check.
It holds if every check passes, and is not reproduced if fewer than a third do: one of many may pass by chance.
"""

from dataclasses import dataclass

import numpy as np

HOLDS, PARTLY, NOT, UNKNOWN = "holds", "holds partly", "**not reproduced**", "not run"


@dataclass(frozen=True)
class Claim:
    text: str  # paraphrased
    checks: list
    number: str  # the deciding numbers
    note: str = ""

    @property
    def verdict(self):
        done = [check for check in self.checks if check is not None]
        if not done:
            return UNKNOWN
        return HOLDS if all(done) else PARTLY if 3 * sum(done) >= len(done) else NOT

    @property
    def coverage(self):
        """Returns text such as "3 of 4", with the number of checks that were not possible."""
        done = [check for check in self.checks if check is not None]
        left = len(self.checks) - len(done)
        return f"{sum(map(bool, done))} of {len(done)}" + (f", {left} not checked" if left else "")


def near(ours, theirs, margin):
    """Whether a published number is reproduced to a margin."""
    return None if ours is None else bool(abs(ours - theirs) <= margin)


def no_worse(differences, margin):
    """Whether a loss, averaged over paired runs, is within a margin; positive differences are losses."""
    return None if len(differences) == 0 else bool(np.mean(differences) <= margin)


def better(differences):
    """Whether paired runs show a gain of at least two standard errors; negative differences are gains."""
    if len(differences) == 0:
        return None
    if len(differences) == 1:
        return bool(differences[0] < 0)
    error = np.std(differences, ddof=1) / np.sqrt(len(differences))
    return bool(np.mean(differences) + 2 * error < 0)
