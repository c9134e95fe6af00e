"""Warnings about declared parameters, which only the owner may see."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from hushsum.errors import SuspiciousParameter


@contextmanager
def collect_parameter_warnings(notes: list[str]) -> Iterator[None]:
    """Collect warnings about suspicious parameters, once each. They depend on the records, so they go into
    the result of the owner's job, which nobody else can see.
    """
    with warnings.catch_warnings(record=True) as caught:
        # Warnings of other libraries are for developers, and nobody would read them here.
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("always", SuspiciousParameter)
        yield
    notes += sorted({str(each.message) for each in caught if each.category is SuspiciousParameter})
