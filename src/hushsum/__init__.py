"""Hushsum: release a function of your private data once; query it forever.

>>> import hushsum as hs
>>> tally = hs.race(hs.EuclideanKernel(dim=1, bandwidth=1.0), rows=100)
>>> f = tally.add([[0.0]] * 1000).release(epsilon=1.0)
>>> bool(f([[0.0]])[0] > f([[1000.0]])[0])
True
"""

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any

from hushsum import _early_interrupt as _  # noqa: F401  # first: what follows takes a while
from hushsum import errors
from hushsum.analysis import compare, drift
from hushsum.auditing import audit
from hushsum.client import connect
from hushsum.kernels import (
    AngularKernel,
    EuclideanKernel,
    GaussianKernel,
    HammingKernel,
    JaccardKernel,
    LaplacianKernel,
    ManhattanKernel,
    MaternKernel,
)
from hushsum.loading import load
from hushsum.methods import fourier_features, grid, private_bounds, private_quantiles, race
from hushsum.planning import plan, release
from hushsum.privacy import Claim
from hushsum.releases import ReleasedFunction
from hushsum.streams import open_stream, stream
from hushsum.tally import Tally, load_tally
from hushsum.version import __version__

if TYPE_CHECKING:
    from hushsum.ledger import Ledger
    from hushsum.models import (
        PrivateClassifier,
        PrivateDensity,
        PrivateGaussianProcessRegressor,
        PrivateHistogram,
        PrivateKernelSVC,
        PrivateKMeans,
        PrivateLinearSVC,
        PrivateMixture,
        PrivateModes,
        PrivateNeighbors,
        PrivateOutlierDetector,
        PrivateRegressor,
        PrivateSampler,
        PrivateSynthesizer,
    )
    from hushsum.parties import merge
    from hushsum.plotting import heatmap

__all__ = [
    "AngularKernel", "Claim", "EuclideanKernel", "GaussianKernel", "HammingKernel", "JaccardKernel",
    "LaplacianKernel", "Ledger", "ManhattanKernel", "MaternKernel", "PrivateClassifier", "PrivateDensity",
    "PrivateGaussianProcessRegressor", "PrivateHistogram", "PrivateKMeans", "PrivateKernelSVC",
    "PrivateLinearSVC", "PrivateMixture", "PrivateModes", "PrivateNeighbors", "PrivateOutlierDetector",
    "PrivateRegressor", "PrivateSampler", "PrivateSynthesizer", "ReleasedFunction", "Tally", "__version__",
    "audit", "compare", "connect", "drift", "errors", "fourier_features", "grid", "heatmap", "load",
    "load_tally", "merge", "open_stream", "plan", "private_bounds", "private_quantiles", "race", "release",
    "stream",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """The ledger and the models when they are first used: SQLAlchemy and scikit-learn are slow to import."""
    if name == "Ledger":
        return import_module("hushsum.ledger").Ledger
    if name == "heatmap":
        return import_module("hushsum.plotting").heatmap
    if name == "merge":
        return import_module("hushsum.parties").merge
    if name == "models" or name in __all__:
        models = import_module("hushsum.models")
        return models if name == "models" else getattr(models, name)
    near = get_close_matches(name, __dir__(), n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    # With obj=None, so that tracebacks of Python, which make a suggestion in some places, do not repeat it.
    raise AttributeError(f"module 'hushsum' has no attribute {name!r}{hint}", name=name, obj=None)


def __dir__() -> list[str]:
    return sorted([*__all__, "models"])
