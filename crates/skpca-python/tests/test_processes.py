"""Forks, threads, and the end of the interpreter, each in a process of its own: a hang must fail, not hang."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

PRELUDE = """
import concurrent.futures, multiprocessing, os, pickle, sys, threading, warnings
import numpy as np
import skpca
from skpca import KernelNovelty, SparseKernelPCA

warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
x = np.random.default_rng(0).normal(size=(34_000, 3))

def work(seed=0):
    "All that uses threads: fits, and passes over more than 100,000 values."
    pca = SparseKernelPCA(3, method="landmarks", n_support=5, random_state=seed).fit(x)
    novelty = KernelNovelty(2, n_support=3, random_state=seed).fit(x[:500])
    parts = [
        pca.transform(x), pca.transform(x.astype(np.float32)), pca.inverse_transform(pca.transform(x[:5])),
        novelty.score_samples(x), novelty.contributions(x[:500]), novelty.p_values(x[:1]),
        skpca.kernel("rbf", x[:300], x[:300]), skpca.product("rbf", x, x[:9], np.ones((9, 2))),
        pickle.loads(pickle.dumps(pca)).transform(x[:1]),
    ]
    return b"".join(part.tobytes() for part in parts)
"""


def run(program, **environment):
    """What a program prints; it writes nothing to stderr, and leaves no child behind."""
    process = subprocess.Popen(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(program)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "RAYON_NUM_THREADS": "2", **environment},
    )
    try:
        out, errors = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    assert (process.returncode, errors) == (0, "")
    return out.split()


WAYS = {
    "os.fork": """
        def in_child():
            reader, writer = os.pipe()
            if os.fork() == 0:
                same = work() == expected
                os.write(writer, b"1" if same else b"0")
                os._exit(0)
            return [os.read(reader, 1) == b"1"]
    """,
    "Pool": """
        def in_child():
            with multiprocessing.get_context("fork").Pool(2) as pool:
                return [answer == expected for answer in pool.map(work, [0, 0, 0])]
    """,
    "ProcessPoolExecutor": """
        def in_child():
            context = multiprocessing.get_context("fork")
            with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
                return [answer == expected for answer in pool.map(work, [0, 0, 0])]
    """,
    "joblib": """
        import joblib
        def in_child():
            jobs = (joblib.delayed(work)(0) for _ in range(3))
            return [answer == expected for answer in joblib.Parallel(n_jobs=2, backend="multiprocessing")(jobs)]
    """,
    "a grandchild": """
        def in_child():
            def child():
                work()
                grandchild = context.Process(target=lambda: queue.put(work() == expected))
                grandchild.start()
                grandchild.join()
            context = multiprocessing.get_context("fork")
            queue = context.Queue()
            process = context.Process(target=child)
            process.start()
            process.join()
            return [queue.get()]
    """,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_forked_child_computes_what_its_parent_does(way):
    program = """
        expected = work()
        print(*in_child(), work() == expected)
    """
    found = run(textwrap.dedent(WAYS[way]) + textwrap.dedent(program))
    assert found == ["True"] * len(found) and len(found) >= 2


def test_a_fork_amid_fits_of_other_threads():
    """Whatever the threads were at when the process split, the child has nothing to wait for."""
    run(
        """
        expected = work()
        stop = threading.Event()
        def busy():
            while not stop.is_set():
                work()
        threads = [threading.Thread(target=busy) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(3):
            child = os.fork()
            if child == 0:
                os._exit(0 if work() == expected else 1)
            assert os.waitpid(child, 0)[1] == 0
        stop.set()
        for thread in threads:
            thread.join()
        assert work() == expected
        """
    )


def test_threads_share_a_model():
    found = run(
        """
        pca = SparseKernelPCA(4, n_support=20, random_state=0).fit(x[:3000])
        # Rows in single precision pack the model anew, once.
        tables = [x, x.astype(np.float32), x[:1], x[::-1]] * 4
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda rows: pca.transform(rows).tobytes(), tables))
        print(answers == [pca.transform(rows).tobytes() for rows in tables], len(set(answers)))
        """
    )
    assert found == ["True", "4"]


def test_every_thread_is_of_our_own_pool():
    """The global pool of the core's library would not survive a fork: nothing may start it."""
    found = run(
        """
        import pathlib
        def names():
            return [(task / "comm").read_text().strip() for task in pathlib.Path("/proc/self/task").iterdir()]
        alone = len(names())
        work()
        models = [
            skpca.fit(x[:300], method=method, support=support, components=components)
            for method in ("landmarks", "likelihood") for support in (3, 100) for components in (1, 20)
        ]
        for model in models:
            for rows in (1, 7, 63, 100, 255, 256, 257, 479, 480, 5000):
                model.score(x[:rows])
                model.transform(x[:rows], single=True)
                model.score_gradient(x[:rows])
                skpca.kernel("rbf", x[:rows], x[:2])
        for model in models[-1:]:
            for rows in (1, 100, 256, 5000):
                model.log_likelihood(x[:rows])
        wide = np.random.default_rng(0).normal(size=(3, 101_000))
        skpca.fit(wide, support=2).score(wide[:1])
        skpca.multiply_adds(False, 1)
        print(len(names()) - alone, *sorted(name for name in names() if name.startswith("skpca")))
        """,
        RAYON_NUM_THREADS="3",
        OMP_NUM_THREADS="1",
    )
    # Three of the core's default, and the one that estimators use where others allow no more.
    assert found == ["4", "skpca-0", "skpca-0", "skpca-1", "skpca-2"]


LONG = """
def long_fit(progress):
    rows = np.random.default_rng(0).normal(size=(3000, 30))
    method = '{"name": "l1", "tolerance": 1e-14, "alternations": 1000000}'
    skpca.fit(rows, method=method, components=10, support=300, progress=progress)
"""


@pytest.mark.parametrize("progress", ["started.set()", "started.set(), time.sleep(0.4)"])
def test_the_end_of_the_interpreter_amid_a_fit(progress):
    """The process outlives the interpreter a little, as one with handlers at its exit does."""
    program = """
        import ctypes, time
        libc = ctypes.CDLL(None)
        libc.__cxa_atexit(ctypes.cast(libc.usleep, ctypes.c_void_p), ctypes.c_void_p(1_000_000), None)
        started = threading.Event()
        threading.Thread(target=long_fit, args=[lambda stage, share: (PROGRESS)], daemon=True).start()
        assert started.wait(60)
        print("left", flush=True)
    """
    assert run(LONG + textwrap.dedent(program).replace("PROGRESS", progress)) == ["left"]


def test_an_error_of_progress_ends_the_fit():
    program = """
        def progress(stage, share):
            raise RuntimeError(threading.current_thread().name)
        try:
            long_fit(progress)
        except RuntimeError as error:
            print(error)
    """
    assert run(LONG + textwrap.dedent(program)) == ["MainThread"]
