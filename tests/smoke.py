"""What an installed package must be able to do, with nothing but what it depends on."""

import sys
import tempfile
import time
from pathlib import Path

start = time.perf_counter()
import metricboost  # noqa: E402

seconds = time.perf_counter() - start

from metricboost import SDistClassifier, load  # noqa: E402
from metricboost.datasets import make_xor  # noqa: E402
from metricboost.engines import native_available  # noqa: E402

X, y = make_xor(300, 30, informative=2, random_state=0)
model = SDistClassifier(random_state=0).fit(X[:200], y[:200])
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "model.mbz"
    model.save(path)
    again = load(path)
assert (again.predict(X) == model.predict(X)).all()
assert (Path(metricboost.__file__).parent / "py.typed").exists()
assert native_available(), "the C++ kernels are not there"
assert not Path(metricboost.__file__).is_relative_to(Path(__file__).parents[1] / "src")
error = 1 - model.score(X[200:], y[200:])
print(f"{sys.version.split()[0]}, metricboost {metricboost.__version__}: imported in "
      f"{seconds:.2f} s, {model.metric_.terms[0].name}, error {error:.2f}")  # fmt: skip
