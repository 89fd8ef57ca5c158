"""How long the steps of a stranger's path take: from the README to a model and an alarm."""

import time
from contextlib import contextmanager

import pytest

STEPS = []


@pytest.fixture
def timed(request):
    """`with timed("what"):` adds a step to the summary."""

    @contextmanager
    def step(what):
        start = time.perf_counter()
        yield
        STEPS.append((request.node.name, time.perf_counter() - start, what))

    return step


def pytest_terminal_summary(terminalreporter):
    for test in dict.fromkeys(test for test, *_ in STEPS):
        steps = [(seconds, what) for of, seconds, what in STEPS if of == test]
        terminalreporter.write_line(f"\n{test}: {sum(seconds for seconds, _ in steps):.1f} s")
        for seconds, what in steps:
            terminalreporter.write_line(f"{seconds:7.2f} s  {what.strip().splitlines()[0][:100]}")
