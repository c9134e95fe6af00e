"""Answers with error bars."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import UsageError

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Answers:
    """What a released function says at each query.

    ``value`` ± ``stderr``, an interval from ``lower`` to ``upper`` at ``level``, and ``bound``: the largest
    standard error that any data with these answers could have, but for one case in a thousand. All arrays
    have shape (n_queries,).

    The standard error holds for queries chosen without regard to the hash functions. It is too small for a
    query found by optimising the function itself, and where fewer than about ten rows meet a heavy cluster;
    ``bound`` holds there too.
    """

    value: Floats
    stderr: Floats
    lower: Floats
    upper: Floats
    bound: Floats
    level: float

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[dict[str, float]]:
        """One dictionary a query."""
        names = [field.name for field in fields(self) if field.name != "level"]
        for i in range(len(self)):
            yield {name: float(getattr(self, name)[i]) for name in names}


def normal_answers(value: Floats, stderr: Floats, level: float) -> Answers:
    """Answers whose error is about normal with a known standard deviation, which is then its own bound.

    NaN where it is not known.
    """
    from scipy.special import ndtri

    if not 0.0 < level < 1.0:
        raise UsageError(parameter="level", rule="must be between 0 and 1", got=f"{level}", remedy="try 0.95")
    reach = float(ndtri(0.5 + level / 2.0)) * stderr
    return Answers(value, stderr, value - reach, value + reach, stderr.copy(), level)
