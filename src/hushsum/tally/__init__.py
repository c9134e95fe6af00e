"""Exact integer sums over one pass of records: secret, mergeable."""

from hushsum.tally.tally import Tally

__all__ = ["Tally"]
