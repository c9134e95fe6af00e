"""A real uniform variable on [0, 1) of which only as many bits are drawn as a decision needs."""

from __future__ import annotations

from collections.abc import Callable


class LazyUniform:
    """The interval ``[prefix, prefix + 1) / 2^bits`` that contains U, halved 64 times by each `refine`.

    Parameters
    ----------
    prefix, bits : int
        The first ``bits`` binary digits of U.
    more : callable
        ``more(i)`` gives the i-th further group of 64 digits as an integer; it is called with i = 0, 1, 2, …
        in order.
    """

    __slots__ = ("_more", "_requested", "bits", "prefix")

    def __init__(self, prefix: int, bits: int, more: Callable[[int], int]) -> None:
        self.prefix = prefix
        self.bits = bits
        self._more = more
        self._requested = 0

    def refine(self) -> None:
        """Draw 64 more digits."""
        self.prefix = self.prefix << 64 | self._more(self._requested)
        self.bits += 64
        self._requested += 1

    def surely_below(self, low: int, bits: int) -> bool:
        """Whether every completion is below every number from ``low / 2^bits`` on; ``bits >= self.bits``."""
        return (self.prefix + 1) << (bits - self.bits) <= low

    def surely_above(self, high: int, bits: int) -> bool:
        """Whether no completion is below a number up to ``high / 2^bits``; ``bits >= self.bits``."""
        return self.prefix << (bits - self.bits) >= high
