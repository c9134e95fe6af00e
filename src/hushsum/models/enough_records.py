"""Whether released functions rest on enough records for predictions."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from hushsum._types import Floats
from hushsum.releases.base import ReleasedFunction

COUNT_SHARE = 0.1
"""The part of a model's budget that pays for counting its records: priors and silence depend on it."""

_STANDARD_ERRORS = 5.0
_CAUTIOUS = 3.0


def enough_records(functions: Iterable[ReleasedFunction]) -> bool:
    """Whether the records are many beside the noise of their count; public, as it is read off the release.

    Below five standard errors of the count (at the usual share of a pure ε about ``70/ε`` records for one
    function, ``100/ε`` for two) noise alone may look like records. Models then fall back: they answer
    what they would without any records. Without records one release in 2000 passes, with Gaussian noise one
    in a million.
    """
    count, variance = 0.0, 0.0
    for function in functions:
        count += function.count
        variance += float(getattr(function, "count_stderr", 0.0)) ** 2
    return count >= _STANDARD_ERRORS * math.sqrt(variance)


def shares_within_noise(counts: Floats, errors: Floats) -> Floats:
    """How frequent each class may be, by noisy counts that are too few for more than that; post-processing.

    Every class alike, unless one has so many more records than any other that noise cannot be the reason:
    five standard errors of the difference. A prediction then does not depend on noise alone.

    >>> shares_within_noise(np.array([10.0, 40.0]), np.array([10.0, 10.0])).tolist()
    [0.5, 0.5]
    >>> shares_within_noise(np.array([10.0, 90.0]), np.array([10.0, 10.0])).round(2).tolist()
    [0.25, 0.75]
    """
    alike = np.full(len(counts), 1.0 / len(counts))
    first = int(np.argmax(counts))
    others = np.arange(len(counts)) != first
    apart = _STANDARD_ERRORS * np.hypot(errors[others], errors[first])
    if not np.all(counts[first] - counts[others] > apart):
        return alike
    raised = counts - min(0.0, float(counts.min())) + _CAUTIOUS * errors
    return np.asarray(raised / raised.sum())
