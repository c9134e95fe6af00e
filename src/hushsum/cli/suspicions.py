"""Warnings to the owner, about parameters that look read off the records and about what is taken as public:
reported once, and on the owner's terminal only.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from hushsum.cli.output import warn
from hushsum.errors import PublicAssumption, SuspiciousParameter

_TOLD = (SuspiciousParameter, PublicAssumption)


@contextmanager
def suspicions_told() -> Iterator[None]:
    """Collect the warnings of the block and say each once on standard error, where results never go."""
    with warnings.catch_warnings(record=True) as caught:
        for kind in _TOLD:
            warnings.simplefilter("always", kind)
        yield
    for sentence in dict.fromkeys(str(each.message) for each in caught if issubclass(each.category, _TOLD)):
        warn(sentence)
