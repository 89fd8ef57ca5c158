"""Lines through a pipe: how many rows a second the program scores as they arrive.

    python benchmarks/pipe.py --json results/pipe.json       # 1,000,000 lines of 10 columns, 15 support points

Fits a model, then writes CSV lines to `skpca score MODEL -` through a real pipe, and reads the answers from another:
first all lines as fast as they are taken, then line by line, each answered before the next is written. Needs numpy and
a release build of `skpca`.
"""

import argparse
import json
import resource
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

COLUMNS, SUPPORT, COMPONENTS = 10, 15, 5
# Rows that are written one at a time.
SINGLE = 2000


def text(rows):
    return "".join(",".join(f"{value:.6f}" for value in row) + "\n" for row in rows.tolist())


def started(program, command, model):
    return subprocess.Popen([program, command, str(model), "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def through(process, header, lines):
    """Seconds in which all lines are answered, and how many answers there are."""
    begin = time.perf_counter()

    def write():
        with process.stdin as pipe:
            pipe.write(header + lines)

    writer = threading.Thread(target=write)
    writer.start()
    answers = 0
    while some := process.stdout.read(1 << 20):
        answers += some.count(b"\n")
    seconds = time.perf_counter() - begin
    writer.join()
    if process.wait():
        raise SystemExit(f"the program ended with {process.returncode}")
    return seconds, answers - 1


def processor_seconds():
    """Of all programs that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def one_by_one(process, header, lines):
    """Seconds from a line to its answer, each."""
    process.stdin.write(header)
    seconds = []
    for i, line in enumerate(lines):
        begin = time.perf_counter()
        process.stdin.write(line)
        process.stdin.flush()
        if i == 0:
            process.stdout.readline()
        process.stdout.readline()
        seconds.append(time.perf_counter() - begin)
    process.stdin.close()
    process.wait()
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--program", default="skpca")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    random = np.random.default_rng(0)
    header = (",".join(f"c{k}" for k in range(COLUMNS)) + "\n").encode()
    lines = text(random.normal(size=(options.rows, COLUMNS))).encode()
    results = {"rows": options.rows, "columns": COLUMNS, "support": SUPPORT, "bytes": len(lines)}
    with tempfile.TemporaryDirectory() as directory:
        table, model = Path(directory) / "table.csv", Path(directory) / "model.skpca"
        table.write_bytes(header + text(random.normal(size=(5000, COLUMNS))).encode())
        flags = ["--support", str(SUPPORT), "-q", str(COMPONENTS), "--quiet"]
        subprocess.run([options.program, "fit", str(table), "-o", str(model), *flags], check=True)
        for command in ("score", "transform"):
            before = processor_seconds()
            runs = [through(started(options.program, command, model), header, lines) for _ in range(options.repeats)]
            processor = (processor_seconds() - before) / options.repeats
            if any(answers != options.rows for _, answers in runs):
                raise SystemExit(f"{command}: {runs}: not every line was answered")
            seconds = min(seconds for seconds, _ in runs)
            results[command] = {"seconds": seconds, "rows_per_second": options.rows / seconds}
            # What it would be where nothing else runs, on one core.
            results[command]["rows_per_processor_second"] = options.rows / processor
        singles = lines.split(b"\n", SINGLE)[:SINGLE]
        latency = one_by_one(started(options.program, "score", model), header, [line + b"\n" for line in singles])
        results["one line"] = {"median_microseconds": 1e6 * float(np.median(latency)), "lines": len(latency)}
    print(json.dumps(results, indent=2))
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
