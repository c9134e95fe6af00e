"""Predicted errors before any budget is spent (``plan``); release of the best option (``release``)."""

from hushsum.methods.error_prediction import Option
from hushsum.planning.plan import plan
from hushsum.planning.planned_options import Plan
from hushsum.planning.release import release

__all__ = ["Option", "Plan", "plan", "release"]
