"""What a release will cost in error, before any budget is spent."""

from hushsum.planning.choose import release
from hushsum.planning.plan import Option, Plan
from hushsum.planning.predict import plan

__all__ = ["Option", "Plan", "plan", "release"]
