"""Warnings about declared parameters, for the owner's eyes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from hushsum.errors import SuspiciousParameter


@contextmanager
def collect_parameter_warnings(notes: list[str]) -> Iterator[None]:
    """Note what is suspicious about declared parameters, once each. It depends on the records: it goes into
    the result of the owner's job, which nobody else can see.
    """
    with warnings.catch_warnings(record=True) as caught:
        # Warnings of other libraries are for whoever writes code, and here nobody would read them.
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("always", SuspiciousParameter)
        yield
    notes += sorted({str(each.message) for each in caught if each.category is SuspiciousParameter})
