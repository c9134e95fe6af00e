"""Private summarization: owners send a curator the points that resemble a consumer's validation set.

What owners learn of each other's records is differentially private over all rounds. The two sides are state
machines without input or output, `CuratorState` and `OwnerState`, which a transport drives; `summarize` runs
both in one process; `collect_summary` and `offer_records` run them between processes, with files, keys, state
folders and ledgers. The messages are ``curator: Opening → owner: ready``, then for each step
``Broadcast → Answer``.
"""

from __future__ import annotations

from ._features import PUBLIC_SEED, Hashes, HashSecret, SummaryFeatures, best_first, scores
from ._greedy_choice import greedy_choice
from ._messages import (
    AUCTION,
    BID,
    DELIVER,
    FRESH,
    RULES,
    SEND,
    THRESHOLD,
    Answer,
    Broadcast,
    Opening,
    RunTerms,
)
from ._noisy_sums import (
    NoisySums,
    answers_rho,
    count_step,
    factored_coefficients,
    record_squared,
    sum_squared,
    sum_variance,
    target_variance,
)
from ._runs import (
    CuratorMachine,
    CuratorRequest,
    OwnerMachine,
    OwnerRequest,
    Summarized,
    ValidationRequest,
    collect_summary,
    offer_records,
    owner_spending,
    release_validation,
)
from ._states import CuratorState, HashedTarget, NoisyTarget, OwnerState, release_target
from ._summary import claims_of, owners_claim, plan_terms, split_budget, summarize, summary_of

__all__ = [
    "AUCTION", "BID", "DELIVER", "FRESH", "PUBLIC_SEED", "RULES", "SEND", "THRESHOLD", "Answer", "Broadcast",
    "CuratorMachine", "CuratorRequest", "CuratorState", "HashSecret", "HashedTarget", "Hashes", "NoisySums",
    "NoisyTarget", "Opening", "OwnerMachine", "OwnerRequest", "OwnerState", "RunTerms", "Summarized",
    "SummaryFeatures", "ValidationRequest", "answers_rho", "best_first", "claims_of", "collect_summary",
    "count_step", "factored_coefficients", "greedy_choice", "offer_records", "owner_spending", "owners_claim",
    "plan_terms", "record_squared", "release_target", "release_validation", "scores", "split_budget",
    "sum_squared", "sum_variance", "summarize", "summary_of", "target_variance",
]  # fmt: skip
