"""The examples run and draw."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.stem)
def test_an_example_draws_its_picture(script, tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "picture.png"
    run = subprocess.run(
        [sys.executable, script, picture],
        capture_output=True,
        text=True,
        env={**os.environ, "MPLBACKEND": "Agg", "MPLCONFIGDIR": str(tmp_path)},
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout and picture.stat().st_size > 5000


def test_there_are_examples():
    assert len(EXAMPLES) >= 4
