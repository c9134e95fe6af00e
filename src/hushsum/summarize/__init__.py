"""Private summarization: owners send a curator the points that resemble a consumer's validation set.

What owners learn of each other's records is differentially private over all rounds. The two sides are state
machines without input or output, `CuratorState` and `OwnerState`, which a transport drives; `summarize` runs
both in one process.
"""

from hushsum.summarize.curator import CuratorState
from hushsum.summarize.features import SummaryFeatures
from hushsum.summarize.hash_secret import HashSecret
from hushsum.summarize.messages import Answer, Broadcast, RunTerms
from hushsum.summarize.owner import OwnerState
from hushsum.summarize.published_auction import published_auction
from hushsum.summarize.result import Summary, SummaryClaims, claims_of, summary_of
from hushsum.summarize.run import plan_terms, split_budget, summarize
from hushsum.summarize.target import NoisyTarget, release_target

__all__ = [
    "Answer",
    "Broadcast",
    "CuratorState",
    "HashSecret",
    "NoisyTarget",
    "OwnerState",
    "RunTerms",
    "Summary",
    "SummaryClaims",
    "SummaryFeatures",
    "claims_of",
    "plan_terms",
    "published_auction",
    "release_target",
    "split_budget",
    "summarize",
    "summary_of",
]
