"""A pipeline saved as one model file takes raw rows; rows that were scaled in another way are noticed."""

import json
import os
import subprocess
import warnings

import numpy as np
import pandas as pd
import pytest
import skpca
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris, load_wine
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from skpca import KernelNovelty, SparseKernelPCA
from skpca.exceptions import RangeWarning

X, Y = load_wine(return_X_y=True)
SCALERS = [
    [StandardScaler()],
    [StandardScaler(with_mean=False)],
    [StandardScaler(with_std=False), MinMaxScaler((-1, 1))],
    [MinMaxScaler()],
    [MaxAbsScaler()],
    [RobustScaler()],
    [RobustScaler(with_centering=False), "passthrough", StandardScaler()],
    [RobustScaler(with_scaling=False), None, MaxAbsScaler()],
    [],
]


def fitted(scalers, kind=KernelNovelty, x=X, **parameters):
    parameters = {"n_support": 12, "random_state": 0, **parameters}
    return make_pipeline(*scalers, kind(4, **parameters)).fit(x)


@pytest.mark.parametrize("scaling", [None, "standard", "minmax"])
@pytest.mark.parametrize("scalers", SCALERS, ids=lambda scalers: "-".join(type(one).__name__ for one in scalers))
def test_a_saved_pipeline_takes_raw_rows(scalers, scaling, tmp_path):
    pipeline = fitted(scalers, scaling=scaling)
    skpca.save(pipeline, tmp_path / "model")
    loaded = KernelNovelty.load(tmp_path / "model")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.allclose(loaded.score_samples(X), pipeline.score_samples(X), rtol=1e-9, atol=1e-12)
    assert np.array_equal(loaded.predict(X), pipeline.predict(X))
    assert loaded.offset_ == pipeline[-1].offset_


def test_features_slopes_and_support_are_those_of_raw_rows(tmp_path):
    pipeline = fitted([StandardScaler()], SparseKernelPCA)
    skpca.save(pipeline, tmp_path / "model")
    loaded = SparseKernelPCA.load(tmp_path / "model")
    assert np.allclose(loaded.transform(X), pipeline.transform(X), rtol=1e-9, atol=1e-12)
    assert np.allclose(pipeline[0].inverse_transform(pipeline[-1].support_vectors_), loaded.support_vectors_)
    detector = fitted([StandardScaler()])
    skpca.save(detector, tmp_path / "novelty")
    loaded, scaled = KernelNovelty.load(tmp_path / "novelty"), detector[0].transform(X)
    assert np.allclose(loaded.slopes(X) * detector[0].scale_, detector[-1].slopes(scaled))
    assert np.allclose(loaded.contributions(X), detector[-1].contributions(scaled))


@pytest.mark.parametrize("scaler, scaling", [(StandardScaler(), "standard"), (MinMaxScaler(), "minmax")])
def test_a_loaded_pipeline_can_be_fitted_again(scaler, scaling, tmp_path):
    pipeline = fitted([scaler], method="greedy")
    skpca.save(pipeline, tmp_path / "model")
    loaded = KernelNovelty.load(tmp_path / "model")
    assert loaded.get_params() == {**pipeline[-1].get_params(), "scaling": scaling}
    again = clone(loaded).fit(X)
    assert np.allclose(again.score_samples(X), pipeline.score_samples(X), rtol=1e-9, atol=1e-12)


def test_a_saved_pipeline_knows_the_names_of_its_columns(tmp_path):
    table = pd.DataFrame(X, columns=[f"c{k}" for k in range(X.shape[1])])
    pipeline = fitted([StandardScaler()], x=table)
    skpca.save(pipeline, tmp_path / "model")
    loaded = KernelNovelty.load(tmp_path / "model")
    assert list(loaded.feature_names_in_) == list(table.columns)
    assert np.allclose(loaded.score_samples(table), pipeline.score_samples(table), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "step", [PowerTransformer(), QuantileTransformer(n_quantiles=50), MinMaxScaler(clip=True)], ids=repr
)
def test_what_is_no_scaler_is_refused(step, tmp_path):
    with pytest.raises(TypeError, match="cannot be saved with the model: steps before it must be StandardScaler"):
        skpca.save(fitted([step]), tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("thing", [StandardScaler(), make_pipeline(StandardScaler()), 3])
def test_what_ends_in_no_estimator_of_ours_is_refused(thing, tmp_path):
    if hasattr(thing, "fit"):
        thing.fit(X)
    with pytest.raises(TypeError, match="skpca.save takes a SparseKernelPCA, a KernelNovelty or a pipeline"):
        skpca.save(thing, tmp_path / "model")


def test_an_estimator_alone_is_saved_as_by_its_own_method(tmp_path):
    detector = KernelNovelty(4, n_support=12, random_state=0, scaling="standard").fit(X)
    skpca.save(detector, tmp_path / "one")
    detector.save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize("load", [load_wine, load_iris])
def test_a_model_that_lost_its_scaler_says_so(load, tmp_path):
    x = load(return_X_y=True)[0]
    pipeline = fitted([StandardScaler()], x=x)
    pipeline[-1].save(tmp_path / "model")
    loaded = KernelNovelty.load(tmp_path / "model")
    with pytest.warns(RangeWarning, match="is far outside the range of .*were the training rows scaled"):
        loaded.predict(x)
    with pytest.warns(RangeWarning):
        loaded.score_samples(x.astype(np.float32))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded.predict(pipeline[0].transform(x))
        pipeline.predict(x)
        pipeline.predict(x[::-1] * 1.02)


def test_a_kernel_of_ones_own_has_no_range():
    detector = KernelNovelty(2, kernel=lambda a, b: float(a @ b), method="greedy", n_support=2).fit(X[:30])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        detector.predict(1e6 * X[:30])


def test_the_program_reads_a_saved_pipeline_and_notices_a_lost_scaler(tmp_path):
    program = os.path.join(os.path.dirname(__file__), "../../../target/release/skpca")
    if not os.path.exists(program):
        pytest.skip("the program is not built")
    pipeline = fitted([StandardScaler()])
    np.savetxt(tmp_path / "raw.csv", X, delimiter=",", header=",".join(f"c{k}" for k in range(13)), comments="")
    skpca.save(pipeline, tmp_path / "whole")
    pipeline[-1].save(tmp_path / "lost")

    def run(*words):
        return subprocess.run([program, *words], cwd=tmp_path, check=True, capture_output=True, text=True)

    whole, lost = run("score", "whole", "raw.csv"), run("score", "lost", "raw.csv")
    novel = [int(line.split(",")[3]) for line in whole.stdout.splitlines()[1:]]
    assert np.array_equal(novel, (pipeline.predict(X) == -1).astype(int))
    assert whole.stderr == ""
    assert lost.stderr.count("is far outside the range of the training rows") == 1
    assert run("score", "lost", "raw.csv", "--quiet").stderr == ""
    assert json.loads(run("inspect", "whole", "--json").stdout)["scaling"] == "standard"


def test_a_pipeline_treats_tables_as_the_program_does():
    """Medians and categories: in Python they are the work of scikit-learn's transformers."""
    rng = np.random.default_rng(0)
    mode = rng.choice(["auto", "hand", "off"], size=300)
    base = pd.Series(mode).map({"auto": 0.0, "hand": 5.0, "off": 10.0}).to_numpy()
    load = rng.normal(size=300)
    table = pd.DataFrame({"mode": mode, "load": load, "level": base + load + 0.1 * rng.normal(size=300)})
    table.loc[rng.random(300) < 0.03, "load"] = np.nan
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    columns = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["mode"]), (numbers, ["load", "level"]))
    detector = make_pipeline(columns, KernelNovelty(random_state=0)).fit(table)
    assert (detector.predict(table) == -1).mean() < 0.1
    odd = pd.DataFrame({"mode": ["auto", "hand"], "load": [0.0, np.nan], "level": [10.0, 25.0]})
    assert np.array_equal(detector.predict(odd), [-1, -1])
    with pytest.raises(ValueError, match="NaN"):
        KernelNovelty().fit(table[["load", "level"]])
