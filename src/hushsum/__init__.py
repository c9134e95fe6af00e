"""Hushsum: release a function of your private data once; ask it questions for ever.

>>> import hushsum as hs
>>> tally = hs.race(hs.EuclideanKernel(dim=1, bandwidth=1.0), rows=100)
>>> f = tally.add([[0.0]] * 1000).release(epsilon=1.0)
>>> bool(f([[0.0]])[0] > f([[1000.0]])[0])
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hushsum import _early_interrupt as _  # noqa: F401  # first: what follows takes a while
from hushsum import errors
from hushsum.auditing import AuditReport, audit
from hushsum.client.connect import connect
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
from hushsum.methods import (
    choose,
    choose_kernel,
    fourier_features,
    grid,
    private_bounds,
    private_quantiles,
    race,
)
from hushsum.planning import Plan, plan, release
from hushsum.privacy.claim import Claim
from hushsum.releases import Answers, ReleasedFunction
from hushsum.tally import Tally
from hushsum.tally.file import load_tally
from hushsum.version import __version__

if TYPE_CHECKING:
    from hushsum.ledger import Ledger
    from hushsum.models import (
        PrivateClassifier,
        PrivateDensity,
        PrivateGaussianProcessRegressor,
        PrivateHistogram,
        PrivateKernelSVC,
        PrivateLinearSVC,
        PrivateModes,
        PrivateNeighbors,
        PrivateOutlierDetector,
        PrivateRegressor,
        PrivateSampler,
    )

__all__ = [
    "AngularKernel",
    "Answers",
    "AuditReport",
    "Claim",
    "EuclideanKernel",
    "GaussianKernel",
    "HammingKernel",
    "JaccardKernel",
    "LaplacianKernel",
    "Ledger",
    "ManhattanKernel",
    "MaternKernel",
    "Plan",
    "PrivateClassifier",
    "PrivateDensity",
    "PrivateGaussianProcessRegressor",
    "PrivateHistogram",
    "PrivateKernelSVC",
    "PrivateLinearSVC",
    "PrivateModes",
    "PrivateNeighbors",
    "PrivateOutlierDetector",
    "PrivateRegressor",
    "PrivateSampler",
    "ReleasedFunction",
    "Tally",
    "__version__",
    "audit",
    "choose",
    "choose_kernel",
    "connect",
    "errors",
    "fourier_features",
    "grid",
    "load",
    "load_tally",
    "plan",
    "private_bounds",
    "private_quantiles",
    "race",
    "release",
]


def __getattr__(name: str) -> Any:
    """The ledger and the models when they are first used: SQLAlchemy and scikit-learn are slow to import."""
    if name == "Ledger":
        return import_module("hushsum.ledger").Ledger
    if name == "models" or name in __all__:
        models = import_module("hushsum.models")
        return models if name == "models" else getattr(models, name)
    raise AttributeError(f"module 'hushsum' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "models"])
