"""Predicted errors before any budget is spent (``plan``); release of the best option (``release``)."""

from hushsum.methods import Option

from ._pipeline import UNDECLARED, DeclaredRecords, EmptyTally, ReleaseRecords, planned_tally, release
from ._plan import (
    CENTRAL,
    Plan,
    PlanRequest,
    bounds_of_sample,
    bytes_in_words,
    kernel_of_sample,
    plan,
    rounded_bandwidth,
    silverman,
)
from ._requests import BOUNDS, KernelSpec, MethodSpec, TableSpec, built, empty_tally, takes_sets

__all__ = [
    "BOUNDS",
    "CENTRAL",
    "UNDECLARED",
    "DeclaredRecords",
    "EmptyTally",
    "KernelSpec",
    "MethodSpec",
    "Option",
    "Plan",
    "PlanRequest",
    "ReleaseRecords",
    "TableSpec",
    "bounds_of_sample",
    "built",
    "bytes_in_words",
    "empty_tally",
    "kernel_of_sample",
    "plan",
    "planned_tally",
    "release",
    "rounded_bandwidth",
    "silverman",
    "takes_sets",
]
