"""Hushsum: release a function of your private data once; ask it questions for ever.

>>> import hushsum as hs
>>> tally = hs.race(hs.EuclideanKernel(dim=1, bandwidth=1.0), rows=100)
>>> f = tally.add([[0.0]] * 1000).release(epsilon=1.0)
>>> bool(f([[0.0]])[0] > f([[1000.0]])[0])
True
"""

from hushsum import errors
from hushsum.auditing import AuditReport, audit
from hushsum.kernels import (
    AngularKernel,
    EuclideanKernel,
    GaussianKernel,
    HammingKernel,
    JaccardKernel,
    ManhattanKernel,
)
from hushsum.methods import choose, choose_kernel, grid, private_bounds, private_quantiles, race
from hushsum.planning import Plan, plan, release
from hushsum.privacy.claim import Claim
from hushsum.releases import Answers, ReleasedFunction, load
from hushsum.tally import Tally
from hushsum.tally.file import load_tally
from hushsum.version import __version__

__all__ = [
    "AngularKernel",
    "Answers",
    "AuditReport",
    "Claim",
    "EuclideanKernel",
    "GaussianKernel",
    "HammingKernel",
    "JaccardKernel",
    "ManhattanKernel",
    "Plan",
    "ReleasedFunction",
    "Tally",
    "__version__",
    "audit",
    "choose",
    "choose_kernel",
    "errors",
    "grid",
    "load",
    "load_tally",
    "plan",
    "private_bounds",
    "private_quantiles",
    "race",
    "release",
]
