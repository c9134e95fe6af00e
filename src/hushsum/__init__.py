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
from hushsum.version import __version__

if TYPE_CHECKING:
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
    from hushsum.ledger import Ledger
    from hushsum.loading import load
    from hushsum.methods import fourier_features, grid, private_bounds, private_quantiles, race
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
    from hushsum.planning import plan, release
    from hushsum.plotting import heatmap
    from hushsum.privacy import Claim
    from hushsum.releases import ReleasedFunction
    from hushsum.streams import open_stream, stream
    from hushsum.tally import Tally, load_tally

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

# Where the other names are. A package is imported when one of its names is first used, so that a command or a
# worker process starts with what it needs.
_PACKAGES = {
    "analysis": ("compare", "drift"),
    "auditing": ("audit",),
    "client": ("connect",),
    "ledger": ("Ledger",),
    "loading": ("load",),
    "methods": ("fourier_features", "grid", "private_bounds", "private_quantiles", "race"),
    "parties": ("merge",),
    "planning": ("plan", "release"),
    "plotting": ("heatmap",),
    "privacy": ("Claim",),
    "releases": ("ReleasedFunction",),
    "streams": ("open_stream", "stream"),
    "tally": ("Tally", "load_tally"),
}


def __getattr__(name: str) -> Any:
    """A public name from its package, or a package."""
    if name in __all__:
        kind = "models" if name.startswith("Private") else "kernels"
        package = next((each for each, names in _PACKAGES.items() if name in names), kind)
        found = globals()[name] = getattr(import_module(f"hushsum.{package}"), name)
        return found
    if not name.startswith("_"):
        try:
            return import_module(f"hushsum.{name}")
        except ModuleNotFoundError:
            pass
    near = get_close_matches(name, __dir__(), n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    # With obj=None, so that tracebacks of Python, which make a suggestion in some places, do not repeat it.
    raise AttributeError(f"module 'hushsum' has no attribute {name!r}{hint}", name=name, obj=None)


def __dir__() -> list[str]:
    return sorted([*__all__, "models"])
