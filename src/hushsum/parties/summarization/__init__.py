"""Private summarization: owners send a curator the points that resemble a consumer's validation set.

What owners learn of each other's records is differentially private over all rounds. The two sides are state
machines without input or output, `CuratorState` and `OwnerState`, which a transport drives; `summarize` runs
both in one process; `collect_summary` and `offer_records` run them between processes, with files, keys, state
folders and ledgers. The messages are ``curator: Opening → owner: ready``, then for each step
``Broadcast → Answer``.
"""

from __future__ import annotations

from hushsum.parties.summarization._curator import CuratorState
from hushsum.parties.summarization._features import Hashes, HashSecret, SummaryFeatures, scores
from hushsum.parties.summarization._messages import (
    AUCTION,
    FRESH,
    THRESHOLD,
    Answer,
    Broadcast,
    Opening,
    RunTerms,
)
from hushsum.parties.summarization._noisy_sums import NoisySums, factored_coefficients
from hushsum.parties.summarization._owner import OwnerState
from hushsum.parties.summarization._runs import (
    CuratorMachine,
    CuratorRequest,
    OwnerMachine,
    OwnerRequest,
    Summarized,
    ValidationRequest,
    collect_summary,
    offer_records,
    release_validation,
)
from hushsum.parties.summarization._summary import (
    greedy_choice,
    plan_terms,
    split_budget,
    summarize,
    summary_of,
)
from hushsum.parties.summarization._target import HashedTarget, NoisyTarget, release_target

__all__ = [
    "AUCTION",
    "FRESH",
    "THRESHOLD",
    "Answer",
    "Broadcast",
    "CuratorMachine",
    "CuratorRequest",
    "CuratorState",
    "HashSecret",
    "HashedTarget",
    "Hashes",
    "NoisySums",
    "NoisyTarget",
    "Opening",
    "OwnerMachine",
    "OwnerRequest",
    "OwnerState",
    "RunTerms",
    "Summarized",
    "SummaryFeatures",
    "ValidationRequest",
    "collect_summary",
    "factored_coefficients",
    "greedy_choice",
    "offer_records",
    "plan_terms",
    "release_target",
    "release_validation",
    "scores",
    "split_budget",
    "summarize",
    "summary_of",
]
