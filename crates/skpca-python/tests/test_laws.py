"""Laws that hold whatever the numbers are: batches, threads, seeds, files and row order change nothing."""

import os
import subprocess
import sys

import numpy as np
import oracle
import pytest
import skpca
from oracle import KERNELS, describe, eigenvalues, error

BATCHES = [1, 2, 3, 7, 63, 64, 65]


def batched(answer, x, size, **options):
    return np.concatenate([answer(x[i : i + size].copy(), **options) for i in range(0, len(x), size)])


@pytest.mark.parametrize("d", [1, 3, 70, 300])
@pytest.mark.parametrize("name", KERNELS)
def test_a_row_does_not_know_its_batch(name, d):
    rng = np.random.default_rng(d)
    # More support points and queries than a block of rows or a tile has.
    x, queries = rng.normal(size=(320, d)), rng.normal(size=(530, d))
    model = skpca.fit(x, method="landmarks", kernel=oracle.kernels(2.0 * d)[name].spec, support=150)
    for single in (False, True):
        for answer in (model.transform, model.score):
            whole = answer(queries, single=single)
            for size in BATCHES:
                assert np.array_equal(batched(answer, queries, size, single=single), whole), (single, size)


THREADED = """
import hashlib, sys, numpy as np, skpca
method, n, support = sys.argv[1], int(sys.argv[2]), sys.argv[3]
x = np.random.default_rng(n).normal(size=(n, 6)) * [3, 2.5, 2, 1.5, 1, 0.5]
model = skpca.fit(x, method=method, components=5, support=int(support) if support else None)
answers = [answer(x, single=single) for answer in (model.transform, model.score) for single in (False, True)]
print(hashlib.sha256(model.to_bytes() + b"".join(answer.tobytes() for answer in answers)).hexdigest())
"""


@pytest.mark.parametrize(
    ("method", "n", "support"),
    [
        ("exact", 1000, ""),
        ("landmarks", 3000, "60"),
        ("landmarks", 12000, "150"),
        ("landmarks", 3000, ""),
        ("l21", 12000, "40"),
        ("l1,refit=false", 3000, "20"),
        ("elastic-net", 5000, "20"),
        ("threshold", 3000, "20"),
    ],
)
def test_threads_do_not_change_a_bit(method, n, support):
    def run(threads):
        environment = {**os.environ, "RAYON_NUM_THREADS": str(threads)}
        command = [sys.executable, "-c", THREADED, method, str(n), support]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout

    alone = run(1)
    assert len(alone.strip()) == 64
    assert run(2) == alone


def toy(seed=0, n=400):
    return np.random.default_rng(seed).normal(size=(n, 4)) * [2.0, 1.5, 1.0, 0.5]


@pytest.mark.parametrize(
    "options", [{"method": "exact"}, {"method": "landmarks", "support": 30}, {"method": "landmarks"}], ids=str
)
def test_the_same_seed_gives_the_same_bytes(options):
    assert skpca.fit(toy(), seed=5, **options).to_bytes() == skpca.fit(toy(), seed=5, **options).to_bytes()
    assert skpca.fit(toy(), seed=5, **options).to_bytes() != skpca.fit(toy(1), seed=5, **options).to_bytes()


def test_another_seed_gives_another_support():
    supports = [describe(skpca.fit(toy(), method="landmarks", support=30, seed=seed))["support"] for seed in range(4)]
    assert len({tuple(support) for support in supports}) == 4
    for support in supports:
        assert support == sorted(set(support))
        assert len(support) == 30
        assert set(support) <= set(range(400))


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(
    "options", [{"method": "exact", "scaling": "none"}, {"support": 30, "center": False}, {"support": 30}], ids=str
)
def test_a_model_survives_its_bytes(name, options):
    model = skpca.fit(toy(), kernel=oracle.kernels(10.0)[name].spec, components=3, **options)
    again = skpca.Model.from_bytes(model.to_bytes())
    assert again.to_bytes() == model.to_bytes()
    assert describe(again) == describe(model)
    queries = toy(9)
    for single in (False, True):
        assert np.array_equal(again.transform(queries, single=single), model.transform(queries, single=single))
        assert np.array_equal(again.score(queries, single=single), model.score(queries, single=single))


def test_damaged_bytes_are_refused():
    good = skpca.fit(toy(), support=10).to_bytes()
    for damaged in (b"", good[:-1], good[: len(good) // 2], good[:-1] + bytes([good[-1] ^ 1])):
        with pytest.raises(ValueError, match="model"):
            skpca.Model.from_bytes(damaged)


@pytest.mark.parametrize("n", [150, 500])
@pytest.mark.parametrize("name", KERNELS)
def test_permuted_rows_permute_the_answer(name, n):
    x, queries = oracle.skewed(n)
    order = np.random.default_rng(2).permutation(n)
    kernel = oracle.kernels(10.0)[name]
    model = oracle.fit(x, kernel, method="exact", components=4)
    permuted = oracle.fit(x[order].copy(), kernel, method="exact", components=4)
    np.testing.assert_allclose(eigenvalues(permuted), eigenvalues(model), rtol=1e-10)
    assert error(permuted.transform(x[order].copy()), model.transform(x)[order]) < 1e-8
    assert error(permuted.transform(queries), model.transform(queries)) < 1e-8
    assert error(permuted.score(queries), model.score(queries)) < 1e-8


@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("gamma", [0.01, 0.05, 1 / 6])
def test_a_smooth_kernel_is_never_called_indefinite(d, gamma):
    # More points asked for than the kernel has digits for: the last pivots are near rounding, none is negative.
    for seed in range(6):
        x = np.random.default_rng(seed).normal(size=(320, d))
        for m in (50, 150, 320):
            model = skpca.fit(x, kernel=f"rbf,gamma={gamma!r}", support=m, scaling="none", seed=seed)
            assert 0 < describe(model)["m"] <= m
