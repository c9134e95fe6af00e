"""Whether released functions rest on enough records to say anything."""

from __future__ import annotations

import math
from collections.abc import Iterable

from hushsum.releases.base import ReleasedFunction

COUNT_SHARE = 0.05
"""The part of a model's budget that pays for counting its records: priors and silence depend on it."""

_STANDARD_ERRORS = 10.0


def says_something(functions: Iterable[ReleasedFunction]) -> bool:
    """Whether the records are many beside the noise of their count; public, as it is read off the release.

    Below ten standard errors of the count (at the usual share about ``300/ε`` records) a sketch cannot tell
    its records from noise, and an answer would be a coin toss that looks like one. Models are silent then:
    they answer what they would know without any records. Noise alone passes with a probability below 1e-6.
    """
    count, variance = 0.0, 0.0
    for function in functions:
        count += function.count
        variance += float(getattr(function, "count_stderr", 0.0)) ** 2
    return count >= _STANDARD_ERRORS * math.sqrt(variance)
