"""What a release will cost in error, before any budget is spent; and the release of what is planned."""

from hushsum.methods.prediction import Option
from hushsum.planning.plan import Plan, plan
from hushsum.planning.release import release

__all__ = ["Option", "Plan", "plan", "release"]
