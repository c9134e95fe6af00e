"""Protocols between parties that release, or choose records, together without a trusted party.

`hushsum.parties.secure_aggregation` adds the tables of several sites so that a server learns the noisy sum
and nothing else. `hushsum.parties.summarization` lets owners send a curator the records that resemble a
validation set. In the local model every person sends one report, which is private by itself or once shuffled
(`make_report`, `collect_reports`). `merge` adds functions that sites released with their own noise.

A protocol is two state machines without input or output, and its messages. One runtime runs them all: a
`Coordinator` listens, every `Participant` connects to it, both over TLS with pinned keys (`Identity`), and
what must survive a crash is in a `StateFolder`.
"""

from __future__ import annotations

from ._local_reports import (
    CollectionRequest,
    ReportTerms,
    collect_reports,
    make_report,
    publish_terms,
    release_reports,
    report_of,
)
from ._merge import are_functions, merge, merge_functions
from ._runtime import (
    Address,
    Coordinator,
    EncryptedState,
    OwnRefusal,
    Participant,
    ParticipantPatience,
    PartySpec,
    Patience,
    RunSpending,
    StateFolder,
    listener,
    parse_address,
)
from ._tls import Identity, connect, incoming, short, verify

__all__ = [
    "Address", "CollectionRequest", "Coordinator", "EncryptedState", "Identity", "OwnRefusal", "Participant",
    "ParticipantPatience", "PartySpec", "Patience", "ReportTerms", "RunSpending", "StateFolder",
    "are_functions", "collect_reports", "connect", "incoming", "listener", "make_report", "merge",
    "merge_functions", "parse_address", "publish_terms", "release_reports", "report_of", "short", "verify",
]  # fmt: skip
