"""Breaks a habit of the ecosystem that the package keeps, one after the other, and sees whether its test notices.

    python crates/skpca-python/tests/broken.py [PART-OF-A-TEST …]

Each line is a file of the package, what it says, what it says when broken, and the tests that must then fail. The
package that is installed is copied, never changed.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import skpca

HERE = Path(__file__).parent
PACKAGE = Path(skpca.__file__).parent
BREAKS = [
    # Threads.
    ("_threads.py", "return n_jobs if n_jobs > 0 else", "return -1 if n_jobs > 0 else", "threads.py::test_n_jobs_is_a"),
    ("_threads.py", "1 if backend.nesting_level else -1", "-1", "threads.py::test_none_is_one_in_a_worker_of_joblib"),
    (
        "_threads.py",
        "backend, n_jobs = get_active_backend()",
        "backend, _ = get_active_backend()",
        "threads.py::test_none_is_what",
    ),
    ("_threads.py", "_openmp_effective_n_threads() if", "cpu_count() if", "threads.py::test_the_environment_limits"),
    # No silence.
    ("_kernel_model.py", "if SHORTFALL in note:", "if False:", "parameters.py::test_a_model_that_falls_short_warns"),
    (
        "_kernel_model.py",
        'if not self.report_["converged"]:',
        "if False:",
        "estimators.py::test_not_converging_is_a_warning",
    ),
    # Parameters by the user's names.
    (
        "_parameters.py",
        '"support": "n_support",',
        '"support": "support",',
        "parameters.py::test_complaints_name_parameters",
    ),
    ("_parameters.py", "which is a float,", "", "parameters.py::test_complaints_name_parameters"),
    (
        "_spec.py",
        'if "," in value else',
        "if False else",
        "parameters.py::test_a_spec_is_spelled_as_on_the_command_line",
    ),
    (
        "_kernel_model.py",
        '("method__", "kernel__")',
        '("nothing__",)',
        "parameters.py::test_parameters_of_a_method_in_a_grid",
    ),
    (
        "_spec.py",
        "if theirs in spec and spec[theirs] != value and",
        "if False and",
        "parameters.py::test_contradictions",
    ),
    # A step of a pipeline that loses its scaler.
    ("_kernel_model.py", "if far is not None:", "if False:", "pipeline.py::test_a_model_that_lost_its_scaler_says_so"),
    ("_pipeline.py", "shift + scale * own_shift", "shift", "pipeline.py::test_a_saved_pipeline_takes_raw_rows"),
    # Kernels of one's own.
    (
        "_given.py",
        "if takes_tables(kernel, Z):",
        "if False:",
        "estimators.py::test_functions_of_tables_are_called_once",
    ),
    ("_given.py", 'method = {"name": AMONG_SAMPLES}', "pass", "estimators.py::test_the_default_of_given_kernels"),
    ("_given.py", "return False\n    try", "return True\n    try", "estimators.py::test_kernels_of_strings"),
    (
        "_estimators.py",
        "np.float32 if X.dtype == np.float32 else np.float64",
        "X.dtype",
        "estimators.py::test_kernels_of_graphs",
    ),
    # Small things.
    ("_documentation.py", "generated/python", "elsewhere", "estimators.py::test_the_html_representation_links"),
    ("__init__.py", "def __dir__():", "def dir_():", "parameters.py::test_the_package_shows_what_is_public"),
]


def notices(name, before, after, test):
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory) / "skpca"
        shutil.copytree(PACKAGE, copy)
        text = (copy / name).read_text()
        assert text.count(before) == 1, f"{name}: {before!r} is there {text.count(before)} times"
        (copy / name).write_text(text.replace(before, after))
        file, _, which = test.partition("::")
        run = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-x",
                "-q",
                "-p",
                "no:cacheprovider",
                str(HERE / f"test_{file}"),
                "-k",
                which,
            ],
            env=os.environ | {"PYTHONPATH": directory},
            capture_output=True,
            text=True,
        )
    # 1: tests have failed; 5 would be that there were none.
    return run.returncode == 1 and " failed" in run.stdout


def main():
    wanted = sys.argv[1:]
    missed = []
    for name, before, after, test in BREAKS:
        if wanted and not any(part in test for part in wanted):
            continue
        seen = notices(name, before, after, test)
        print(f"{'noticed' if seen else 'MISSED '}  {test}", flush=True)
        if not seen:
            missed.append(test)
    sys.exit(f"{len(missed)} missed" if missed else 0)


if __name__ == "__main__":
    main()
