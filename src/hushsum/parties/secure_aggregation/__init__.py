"""Secure aggregation of integer tables between sites, after Bonawitz et al. (CCS 2017).

`SiteState` and `ServerState` are pure state machines, without sockets and clocks: they turn messages into
messages. The noise is drawn by the sites, inside the masks; `AggregationTerms` fix how much. `run_server` and
`join_as_site` run them between processes.
"""

from __future__ import annotations

from hushsum.parties.secure_aggregation._masks import (
    SHARE_BYTES,
    Ring,
    add_mask,
    agreed_key,
    from_ring,
    join_shares,
    pair_purpose,
    ring_type,
    self_mask_key,
    split_secret,
)
from hushsum.parties.secure_aggregation._messages import (
    CONSENT,
    KEYS,
    MASKED,
    OPENING,
    SHARES,
    STEPS,
    AggregationTerms,
)
from hushsum.parties.secure_aggregation._run import (
    Aggregated,
    SiteRequest,
    TermsRequest,
    join_as_site,
    read_terms,
    run_server,
    terms_as_json,
    write_terms,
)
from hushsum.parties.secure_aggregation._server import DONE, ServerState, released_sum
from hushsum.parties.secure_aggregation._site import PAIRWISE, SELF, SiteState

__all__ = [
    "CONSENT",
    "DONE",
    "KEYS",
    "MASKED",
    "OPENING",
    "PAIRWISE",
    "SELF",
    "SHARES",
    "SHARE_BYTES",
    "STEPS",
    "Aggregated",
    "AggregationTerms",
    "Ring",
    "ServerState",
    "SiteRequest",
    "SiteState",
    "TermsRequest",
    "add_mask",
    "agreed_key",
    "from_ring",
    "join_as_site",
    "join_shares",
    "pair_purpose",
    "read_terms",
    "released_sum",
    "ring_type",
    "run_server",
    "self_mask_key",
    "split_secret",
    "terms_as_json",
    "write_terms",
]
