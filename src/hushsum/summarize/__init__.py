"""Private summarization: owners send a curator the points that resemble a consumer's validation set.

What owners learn of each other's records is differentially private over all rounds. The two sides are state
machines without input or output, `CuratorState` and `OwnerState`, which a transport drives.
"""

from hushsum.summarize.curator import CuratorState
from hushsum.summarize.features import SummaryFeatures
from hushsum.summarize.messages import Answer, Broadcast, Terms
from hushsum.summarize.owner import OwnerState
from hushsum.summarize.target import NoisyTarget, release_target

__all__ = [
    "Answer",
    "Broadcast",
    "CuratorState",
    "NoisyTarget",
    "OwnerState",
    "SummaryFeatures",
    "Terms",
    "release_target",
]
