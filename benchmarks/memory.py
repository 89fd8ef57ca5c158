"""Peak memory of one fit, in a process that does nothing else.

Run as a program it is that process: `python benchmarks/memory.py '{"fit": "exact_ours", "n": 1000, "d": 10}'`.
"""

import json
import subprocess
import sys
import time

MEGABYTE = 1e6


def weigh(fit, n, d, **options):
    """Baseline (imports and data) and peak of `fits.<fit>` in megabytes, and its seconds."""
    request = json.dumps({"fit": fit, "n": n, "d": d, **options})
    run = subprocess.run([sys.executable, __file__, request], check=True, capture_output=True, text=True)
    return json.loads(run.stdout)


def peak():
    """Peak resident memory of this process in megabytes.

    Not `ru_maxrss`: on Linux a child starts with its parent's there, which is the benchmark itself.
    """
    with open("/proc/self/status") as status:
        kilobytes = next(line.split()[1] for line in status if line.startswith("VmHWM"))
    return int(kilobytes) * 1024 / MEGABYTE


def main():
    import fits

    request = json.loads(sys.argv[1])
    fit = getattr(fits, request.pop("fit"))
    # A small fit first: imports and thread pools belong to the baseline.
    small = {**request, "n": 100, **({"m": 20} if "m" in request else {})}
    fit(fits.normal(small.pop("n"), small.pop("d")), **small)
    x = fits.normal(request.pop("n"), request.pop("d"))
    baseline = peak()
    start = time.perf_counter()
    fit(x, **request)
    seconds = time.perf_counter() - start
    print(json.dumps({"baseline_mb": baseline, "peak_mb": peak(), "seconds": seconds, "data_mb": x.nbytes / MEGABYTE}))


if __name__ == "__main__":
    main()
