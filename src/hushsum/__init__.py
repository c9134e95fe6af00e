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
from hushsum.auditing import AuditReport, audit
from hushsum.client.connect import connect
from hushsum.client.shared_link import open_link
from hushsum.kernels import (
    AngularKernel,
    AsymmetricAngularKernel,
    DotProductKernel,
    EuclideanKernel,
    FittedKernel,
    GaussianKernel,
    HammingKernel,
    JaccardKernel,
    LaplacianKernel,
    ManhattanKernel,
    MaternKernel,
    PolynomialKernel,
    fit_kernel,
    on_columns,
    scaled,
)
from hushsum.loading import load
from hushsum.methods import (
    choose,
    choose_kernel,
    fourier_features,
    grid,
    marginals,
    monomials,
    private_bounds,
    private_quantiles,
    race,
)
from hushsum.methods.graphs import count_graph
from hushsum.planning import Plan, plan, release
from hushsum.privacy.claim import Claim
from hushsum.records.onnx_transform import OnnxTransform
from hushsum.records.transform import Transform
from hushsum.releases import Answers, ReleasedFunction, combine, neighbour_density
from hushsum.streams import Stream, StreamPlan, open_stream, plan_stream, stream
from hushsum.tally import Tally
from hushsum.tally.file import load_tally
from hushsum.tasks import Comparison, Drift, compare, drift
from hushsum.version import __version__

if TYPE_CHECKING:
    from hushsum.federated.merge_releases import merge
    from hushsum.heatmaps import heatmap
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
    from hushsum.records.edge_list import read_edges

__all__ = [
    "AngularKernel",
    "Answers",
    "AsymmetricAngularKernel",
    "AuditReport",
    "Claim",
    "Comparison",
    "DotProductKernel",
    "Drift",
    "EuclideanKernel",
    "FittedKernel",
    "GaussianKernel",
    "HammingKernel",
    "JaccardKernel",
    "LaplacianKernel",
    "Ledger",
    "ManhattanKernel",
    "MaternKernel",
    "OnnxTransform",
    "Plan",
    "PolynomialKernel",
    "PrivateClassifier",
    "PrivateDensity",
    "PrivateGaussianProcessRegressor",
    "PrivateHistogram",
    "PrivateKMeans",
    "PrivateKernelSVC",
    "PrivateLinearSVC",
    "PrivateMixture",
    "PrivateModes",
    "PrivateNeighbors",
    "PrivateOutlierDetector",
    "PrivateRegressor",
    "PrivateSampler",
    "PrivateSynthesizer",
    "ReleasedFunction",
    "Stream",
    "StreamPlan",
    "Tally",
    "Transform",
    "__version__",
    "audit",
    "choose",
    "choose_kernel",
    "combine",
    "compare",
    "connect",
    "count_graph",
    "drift",
    "errors",
    "fit_kernel",
    "fourier_features",
    "grid",
    "heatmap",
    "load",
    "load_tally",
    "marginals",
    "merge",
    "monomials",
    "neighbour_density",
    "on_columns",
    "open_link",
    "open_stream",
    "plan",
    "plan_stream",
    "private_bounds",
    "private_quantiles",
    "race",
    "read_edges",
    "release",
    "scaled",
    "stream",
]


def __getattr__(name: str) -> Any:
    """The ledger and the models when they are first used: SQLAlchemy and scikit-learn are slow to import."""
    if name == "Ledger":
        return import_module("hushsum.ledger").Ledger
    if name == "heatmap":
        return import_module("hushsum.heatmaps").heatmap
    if name == "merge":
        return import_module("hushsum.federated.merge_releases").merge
    if name == "read_edges":
        return import_module("hushsum.records.edge_list").read_edges
    if name == "models" or name in __all__:
        models = import_module("hushsum.models")
        return models if name == "models" else getattr(models, name)
    near = get_close_matches(name, __dir__(), n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    # With obj=None, so that tracebacks of Python, which make a suggestion in some places, do not repeat it.
    raise AttributeError(f"module 'hushsum' has no attribute {name!r}{hint}", name=name, obj=None)


def __dir__() -> list[str]:
    return sorted([*__all__, "models"])
