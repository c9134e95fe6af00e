"""Tallies: secret, exact integer sums over records, which are merged, saved and released."""

from hushsum.tally.tally import Tally

__all__ = ["Tally"]
