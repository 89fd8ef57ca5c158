"""The package as it is installed, with nothing beside it but what it asks for: `python installed.py PROGRAM`.

Not for pytest, which is not there. PROGRAM is the `skpca` program: both read the other's files.
"""

import pathlib
import pickle
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import skpca
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skpca import KernelNovelty, SparseKernelPCA

program = sys.argv[1]
package = pathlib.Path(skpca.__file__).parent
assert "site-packages" in package.parts, f"{package}: this is not an installed package"
assert (package / "py.typed").exists() and (package / "_core.pyi").exists(), "types are shipped"

x = np.random.default_rng(0).normal(size=(400, 3))
features = make_pipeline(StandardScaler(), SparseKernelPCA(4, n_support=12, random_state=0)).fit_transform(x)
assert features.shape == (400, 4) and np.isfinite(features).all()

detector = KernelNovelty(fidelity=0.9, random_state=0).fit(x)
scores = detector.score_samples(x)
assert (pickle.loads(pickle.dumps(detector)).score_samples(x) == scores).all()
assert detector.predict([[9.0, 9.0, 9.0]])[0] == -1

with tempfile.TemporaryDirectory() as directory:
    table, model, own = (f"{directory}/{name}" for name in ("x.csv", "model.skpca", "own.skpca"))
    np.savetxt(table, x, delimiter=",", header="a,b,c", comments="", fmt="%.17g")

    def run(*words):
        return subprocess.run([program, *words], check=True, capture_output=True, text=True).stdout

    # The program reads what Python wrote.
    detector.save(own)
    printed = np.array([float(line.split(",")[0]) for line in run("score", own, table).splitlines()[1:]])
    assert np.allclose(-printed, scores, rtol=1e-12, atol=1e-12), "the program scores a file from Python differently"
    # Python reads what the program wrote.
    run("fit", table, "-o", model, "--support", "12", "-q", "4", "--quiet")
    loaded = SparseKernelPCA.load(model)
    assert list(loaded.feature_names_in_) == ["a", "b", "c"]
    warnings.simplefilter("ignore", UserWarning)  # x has no names
    printed = np.array(
        [[float(v) for v in line.split(",")] for line in run("transform", model, table).splitlines()[1:]]
    )
    assert np.allclose(loaded.transform(x), printed, rtol=1e-12, atol=1e-12), (
        "Python reads a file of the program differently"
    )

print(f"skpca is installed in {package.name} and agrees with {pathlib.Path(program).name}")
