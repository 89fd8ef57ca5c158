"""One BLAS thread: the oracles are small, and two that spin on a busy machine are ten times slower than one."""

import os

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[name] = "1"
