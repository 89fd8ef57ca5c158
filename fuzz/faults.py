"""Fault injection: after a failure, every output is complete or absent, and existing files are unchanged.

    python fuzz/faults.py target/release/skpca --rounds 300 --seed 1       kills at random moments, and every fault once
    python fuzz/faults.py target/release/skpca --rounds 4                  the short form in ./test

Faults: SIGKILL, SIGTERM and SIGINT at random moments of fit, score, transform and update; a reader that exits early
(SIGPIPE); a full disk (RLIMIT_FSIZE, and /dev/full); a read-only folder; a table that shrinks while it is read; several
processes that write the same model; a clock that jumps; fork with threads (Python). Each prints a line; the exit code
is 1 if one of them failed.
"""

import argparse
import functools
import os
import random
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FAULTS = []
LIMIT = 120


def fault(function):
    FAULTS.append(function)
    return function


class Desk:
    """A folder with a table, a model fitted to it, an updatable model, and the program."""

    def __init__(self, program, folder, seed):
        self.program, self.folder, self.random = program, folder, random.Random(seed)
        numbers = random.Random(0)
        lines = [",".join(f"{numbers.gauss(0, 1):.6f}" for _ in range(6)) for _ in range(20_000)]
        (folder / "t.csv").write_text("a,b,c,d,e,f\n" + "\n".join(lines) + "\n")
        (folder / "few.csv").write_text("a,b,c,d,e,f\n" + "\n".join(lines[:500]) + "\n")
        self.run("fit few.csv -o model.skpca --support 20 -q 3")
        self.run("fit few.csv -o learns.skpca --support 10 -q 3 --updatable")
        self.whole = {name: self.run(f"{verb} model.skpca t.csv").stdout for name, verb in self.tables().items()}

    @staticmethod
    def tables():
        return {"scores.csv": "score", "features.csv": "transform"}

    def start(self, words, **options):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": self.folder, **options}
        return subprocess.Popen([self.program, *words.split()], **options)

    def run(self, words, code=0, **options):
        process = self.start(words, **options)
        out, said = process.communicate(timeout=LIMIT)
        assert process.returncode == code, f"{words}: {process.returncode}, not {code}: {said.decode()}"
        assert b"panicked" not in said, said
        return subprocess.CompletedProcess(words, code, out, said)

    def sweep(self):
        """Removes outputs and the temporary files of killed programs; no other file may exist."""
        known = {"t.csv", "few.csv", "model.skpca", "learns.skpca"}
        for path in self.folder.iterdir():
            if path.name in known:
                continue
            temporary = path.name.startswith(".skpca-") and path.name.endswith(".tmp")
            assert temporary or path.name in {*self.whole, "new.skpca"}, f"{path.name} was left"
            path.unlink()

    def check_table(self, name):
        path = self.folder / name
        if path.exists():
            assert path.read_bytes() == self.whole[name], f"{name} is not whole"
            return True
        return False

    def check_model(self, name):
        if (self.folder / name).exists():
            self.run(f"inspect {name} --json")
            return True
        return False


def interrupt(desk, number, rounds):
    """Sends a signal to programs at random moments; returns a summary."""
    written = ended = 0
    before = (desk.folder / "learns.skpca").read_bytes()
    for _ in range(rounds):
        words, look = desk.random.choice(
            [
                ("fit t.csv -o new.skpca --support 60 -q 5 --threads 1", lambda: desk.check_model("new.skpca")),
                ("score model.skpca t.csv -o scores.csv", lambda: desk.check_table("scores.csv")),
                ("transform model.skpca t.csv -o features.csv", lambda: desk.check_table("features.csv")),
                ("update learns.skpca t.csv -o new.skpca", lambda: desk.check_model("new.skpca")),
            ]
        )
        process = desk.start(words)
        # Often early, when files are opened and renamed; sometimes late.
        time.sleep(desk.random.random() ** 2 * desk.random.choice([0.02, 0.1, 0.5, 1.5]))
        process.send_signal(number)
        _, said = process.communicate(timeout=LIMIT)
        assert process.returncode in (0, -number), f"{words}: {process.returncode}: {said.decode()}"
        assert b"panicked" not in said, said
        ended += process.returncode == -number
        written += look()
        assert (desk.folder / "learns.skpca").read_bytes() == before
        desk.sweep()
    return f"{rounds} rounds, {ended} ended by the signal, {written} outputs, all whole"


@fault
def killed(desk, rounds):
    return interrupt(desk, signal.SIGKILL, rounds)


@fault
def terminated(desk, rounds):
    return interrupt(desk, signal.SIGTERM, max(2, rounds // 4))


@fault
def interrupted(desk, rounds):
    return interrupt(desk, signal.SIGINT, max(2, rounds // 4))


@fault
def reader_leaves(desk, rounds):
    for verb in ("score", "transform"):
        # Through a shell, with the default signal handling, to get the exit codes of both programs.
        line = f"'{desk.program}' {verb} model.skpca t.csv | head -1; echo ${{PIPESTATUS[0]}}"
        run = subprocess.run(
            ["bash", "-c", line], cwd=desk.folder, capture_output=True, timeout=LIMIT, restore_signals=True
        )
        first, code = run.stdout.decode().splitlines()
        assert first.encode() == desk.whole[{"score": "scores.csv", "transform": "features.csv"}[verb]].splitlines()[0]
        assert code in ("0", str(128 + signal.SIGPIPE)), code
        assert run.stderr == b"", run.stderr
    return "score and transform | head -1: quiet"


@fault
def disk_full(desk, rounds):
    def limit(size):
        # Ignore the signal, which would end the program, so that the write fails as on a full disk.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    before = (desk.folder / "learns.skpca").read_bytes()
    count = 0
    for size in (0, 100, 2000, 10_000):
        for words in (
            "fit few.csv -o new.skpca --support 200",
            "score model.skpca t.csv -o scores.csv",
            "transform model.skpca t.csv -o features.csv",
            "update learns.skpca few.csv -o new.skpca",
        ):
            run = desk.run(words, code=1, preexec_fn=functools.partial(limit, size))
            assert run.stderr.startswith(b"error: "), run.stderr
            left = {path.name for path in desk.folder.iterdir()}
            assert left == {"t.csv", "few.csv", "model.skpca", "learns.skpca"}, left
            assert (desk.folder / "learns.skpca").read_bytes() == before
            count += 1
    if Path("/dev/full").exists():
        for words in ("score model.skpca t.csv", "inspect model.skpca"):
            with open("/dev/full", "wb") as full:
                desk.run(words, code=1, stdout=full)
            count += 1
    return f"{count} calls: an error, nothing left, nothing lost"


@fault
def read_only_folder(desk, rounds):
    sealed = desk.folder.parent / "sealed"
    shutil.copytree(desk.folder, sealed)
    mode = stat.S_IMODE(sealed.stat().st_mode)
    user = {} if os.geteuid() else {"user": 65534, "group": 65534, "extra_groups": []}
    if user:
        # Root may write anywhere, so the program runs as nobody, who must be able to reach the folder.
        desk.folder.parent.chmod(0o755)
    sealed.chmod(0o555)
    try:
        for words in ("fit few.csv -o new.skpca --support 5", "score model.skpca few.csv -o scores.csv"):
            process = desk.start(words, cwd=sealed, **user)
            _, said = process.communicate(timeout=LIMIT)
            assert process.returncode == 1 and b"ermission denied" in said, (process.returncode, said)
        left = {path.name for path in sealed.iterdir()}
        assert left == {"t.csv", "few.csv", "model.skpca", "learns.skpca"}, left
    except PermissionError:
        return "skipped: the program cannot be run as another user here"
    finally:
        sealed.chmod(mode)
        shutil.rmtree(sealed)
    return "an error, and nothing left"


@fault
def table_shrinks(desk, rounds):
    outcomes = {0: 0, 1: 0}
    whole = (desk.folder / "t.csv").read_bytes()
    try:
        for words in ("score model.skpca t.csv -o scores.csv", "fit t.csv -o new.skpca --support 20") * max(
            1, rounds // 4
        ):
            process = desk.start(words)
            time.sleep(desk.random.random() * 0.05)
            os.truncate(desk.folder / "t.csv", desk.random.randrange(len(whole)))
            _, said = process.communicate(timeout=LIMIT)
            assert process.returncode in outcomes and b"panicked" not in said, (process.returncode, said)
            outcomes[process.returncode] += 1
            assert process.returncode == 0 or not {"scores.csv", "new.skpca"} & set(os.listdir(desk.folder))
            if process.returncode == 0 and (desk.folder / "scores.csv").exists():
                lines = (desk.folder / "scores.csv").read_bytes().splitlines()
                # The last row may come from a truncated line; the others are those of the table.
                assert lines[:-1] == desk.whole["scores.csv"].splitlines()[: len(lines) - 1]
            desk.check_model("new.skpca")
            desk.sweep()
            (desk.folder / "t.csv").write_bytes(whole)
    finally:
        (desk.folder / "t.csv").write_bytes(whole)
    return f"{sum(outcomes.values())} runs: {outcomes[0]} results for the remaining rows, {outcomes[1]} errors"


@fault
def several_write_one_model(desk, rounds):
    looks = 0
    for _ in range(max(1, rounds // 4)):
        running = [desk.start(f"fit few.csv -o new.skpca --support {size}") for size in (10, 20, 30, 40)]
        while any(process.poll() is None for process in running):
            looks += desk.check_model("new.skpca")
        for process in running:
            _, said = process.communicate()
            assert process.returncode == 0, said
        assert desk.check_model("new.skpca")
        desk.sweep()
    return f"the model was complete whenever it was read ({looks} times)"


@fault
def clock_jumps(desk, rounds):
    """The library uses no clock (clippy.toml); the program uses one for progress and for the budget of `compare`."""
    library = next(Path("/usr").glob("lib/*/faketime/libfaketime.so.1"), None)
    if library is None:
        source = Path(__file__).resolve().parent.parent / "crates" / "skpca"
        walls = (source / "clippy.toml").read_text()
        assert "std::time::Instant" in walls and "std::time::SystemTime" in walls
        return "no libfaketime here; clippy.toml forbids clocks in the library"
    plain = desk.run("fit few.csv -o new.skpca --support 20") and (desk.folder / "new.skpca").read_bytes()
    for jump in ("-40y", "+200y", "@2038-01-19 03:14:00 x10000"):
        environment = {**os.environ, "LD_PRELOAD": str(library), "FAKETIME": jump}
        desk.run("fit few.csv -o new.skpca --support 20", env=environment)
        assert (desk.folder / "new.skpca").read_bytes() == plain, jump
    desk.sweep()
    return "the same bytes at any time"


@fault
def fork_beside_threads(desk, rounds):
    """A forked child of a process that has used threads must not hang, and must give the same results."""
    code = """
import multiprocessing, sys
import numpy as np, skpca
x = np.random.default_rng(0).normal(size=(3000, 4))
model = skpca.SparseKernelPCA(n_components=3, n_support=20).fit(x)
expected = model.transform(x)
def child(_):
    return np.array_equal(model.transform(x), expected)
context = multiprocessing.get_context("fork" if sys.argv[1] == "fork" else "spawn")
if __name__ == "__main__":
    if sys.argv[1] == "fork":
        with context.Pool(4) as pool:
            assert all(pool.map(child, range(16)))
    from threading import Thread
    wrong = []
    def scores():
        for _ in range(20):
            if not child(0):
                wrong.append(1)
    threads = [Thread(target=scores) for _ in range(4)]
    [t.start() for t in threads]; [t.join() for t in threads]
    assert not wrong
"""
    script = desk.folder.parent / "forks.py"
    script.write_text(code)
    try:
        import skpca  # noqa: F401
    except ImportError:
        return "skipped: skpca is not installed in this Python"
    run = subprocess.run([sys.executable, script, "fork"], capture_output=True, timeout=LIMIT)
    assert run.returncode == 0, run.stderr.decode()
    return "16 results of forked children and 80 of threads, all the same"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=lambda path: str(Path(path).resolve()))
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*")
    arguments = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "desk"
        folder.mkdir()
        desk = Desk(arguments.program, folder, arguments.seed)
        for each in FAULTS:
            if arguments.only and each.__name__ not in arguments.only:
                continue
            try:
                outcome = each(desk, arguments.rounds)
            except (AssertionError, subprocess.TimeoutExpired) as error:
                outcome, failed = f"FAILED: {error}", failed + 1
            print(f"{each.__name__.replace('_', ' ')}: {outcome}", flush=True)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
