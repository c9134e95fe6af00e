"""Tasks on released functions, which spend nothing: comparing two of them, drift over steps, and clusters."""

from hushsum.tasks.compare import compare
from hushsum.tasks.comparison_result import Comparison, Region
from hushsum.tasks.drift import Drift, DriftCheck, drift
from hushsum.tasks.two_sample_test import SquaredDistance, TwoSampleTest

__all__ = [
    "Comparison",
    "Drift",
    "DriftCheck",
    "Region",
    "SquaredDistance",
    "TwoSampleTest",
    "compare",
    "drift",
]
