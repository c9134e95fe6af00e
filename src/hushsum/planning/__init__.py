"""Predicted errors before any budget is spent (``plan``); release of the best option (``release``)."""

from hushsum.methods.prediction_request import Option
from hushsum.planning.plan import plan
from hushsum.planning.plan_result import Plan
from hushsum.planning.release import release

__all__ = ["Option", "Plan", "plan", "release"]
