"""Predicted errors before any budget is spent (``plan``); release of the best option (``release``)."""

from hushsum.methods import Option
from hushsum.planning._pipeline import (
    UNDECLARED,
    DeclaredRecords,
    EmptyTally,
    ReleaseRecords,
    planned_tally,
    release,
)
from hushsum.planning._plan import (
    CENTRAL,
    Plan,
    PlanRequest,
    bounds_of_sample,
    kernel_of_sample,
    plan,
    rounded_bandwidth,
    silverman,
)
from hushsum.planning._requests import KernelSpec, MethodSpec, TableSpec, built, empty_tally, takes_sets

__all__ = [
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
    "empty_tally",
    "kernel_of_sample",
    "plan",
    "planned_tally",
    "release",
    "rounded_bandwidth",
    "silverman",
    "takes_sets",
]
