"""Fits and scores of a table that is larger than the memory of the process, against reading it with Arrow.

    python benchmarks/larger_than_memory.py --rows 60000000 --json results/larger-than-memory.json

Makes a Parquet file of float32 columns, reads it with pyarrow three times, fits it with the program in a process of
few addresses, and scores it. Needs pyarrow, a release build of `skpca`, and disk for three times the table.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

COLUMNS = 20
CHUNK = 1_000_000
GIGABYTE = 1_000_000_000

READ = """
import sys, pyarrow.parquet
for _ in range(3):
    for batch in pyarrow.parquet.ParquetFile(sys.argv[1]).iter_batches(65536):
        pass
"""


def make(path, rows):
    """Eight clusters in columns of different units, a chunk at a time."""
    import pyarrow
    import pyarrow.parquet

    random = np.random.default_rng(0)
    centres = random.normal(size=(8, COLUMNS)) * 2
    units = np.logspace(-2, 3, COLUMNS)
    schema = pyarrow.schema([(f"c{k}", pyarrow.float32()) for k in range(COLUMNS)])
    with pyarrow.parquet.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for start in range(0, rows, CHUNK):
            count = min(CHUNK, rows - start)
            x = random.standard_normal((count, COLUMNS), dtype=np.float32) + centres[random.integers(8, size=count)]
            columns = [pyarrow.array((x[:, k] * units[k]).astype(np.float32)) for k in range(COLUMNS)]
            writer.write_table(pyarrow.table(columns, schema=schema))


def run(command, limit):
    """Seconds and peak of resident memory of a process that may have so many bytes of addresses."""
    start = time.perf_counter()
    child = subprocess.Popen(command, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - start
    if status:
        sys.exit(f"{' '.join(command)}: ended with {os.waitstatus_to_exitcode(status)}")
    return {"seconds": seconds, "peak_mb": usage.ru_maxrss / 1000}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=60_000_000)
    parser.add_argument("--limit", type=int, default=2 * GIGABYTE, help="bytes of address space")
    parser.add_argument("--program", default="skpca")
    parser.add_argument("--directory", default=None, help="where the table goes [default: a temporary directory]")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        table, model = Path(directory) / "table.parquet", Path(directory) / "model.skpca"
        make(table, options.rows)
        results = {"rows": options.rows, "columns": COLUMNS, "bytes": table.stat().st_size, "limit": options.limit}
        # pyarrow reserves addresses: it gets more of them, not more memory.
        results["arrow three times"] = run([sys.executable, "-c", READ, str(table)], 4 * options.limit)
        reading = results["arrow three times"]["seconds"]
        fits = {"expansion 0.95": ["--fidelity", "0.95"], "l21 50": ["--method", "l21", "--support", "50"]}
        for name, flags in fits.items():
            results[name] = run([options.program, "fit", str(table), "-o", str(model), *flags, "--json"], options.limit)
            results[name]["ratio"] = results[name]["seconds"] / reading
        scoring = [options.program, "score", str(model), str(table), "-o", str(Path(directory) / "scores.npy")]
        results["score"] = run(scoring, options.limit)
    print(json.dumps(results, indent=2))
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
