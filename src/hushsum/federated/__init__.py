"""Federated release: several sites, or many persons, release one function without a trusted party.

`hushsum.federated.secure_aggregation` adds the tables of sites so that a server learns the noisy sum and
nothing else; `server_process` and `site_process` run it over TLS. `hushsum.federated.merge_releases` merges
functions that each site released with its own noise.
`hushsum.federated.local_reports` collects one report per person, which is private by itself or once shuffled.
"""

from __future__ import annotations

from hushsum.federated.local_reports import ReportTerms, collect_reports, make_report

__all__ = ["ReportTerms", "collect_reports", "make_report"]
