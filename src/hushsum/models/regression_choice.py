"""Which method of linear regression suits a budget, from declared quantities alone."""

from __future__ import annotations

import math

from hushsum.privacy.accounting import zcdp_rho
from hushsum.privacy.claim import Promise

METHODS = ("adassp", "ssp", "sketch", "objective", "ops", "adaops")

_MOST_NOISE = 1.0
_MOST_PURE_NOISE = 0.1
_MOST_SPREAD = 0.15
_FEW_COLUMNS = 30


def moment_noise(promise: Promise, columns: int) -> float:
    """The error of Σuuᵀ that ``"adassp"`` has, for columns u between −1 and 1; public.

    The noise of an entry in the unit ball, whose square radius columns + 1 the columns were divided by.
    """
    size = columns + 1
    if promise.pure:
        assert promise.epsilon is not None
        l1 = (size + 1) / 2.0 + math.sqrt(size) + 0.25
        return size * math.sqrt(2.0) * l1 / float(promise.epsilon)
    assert promise.epsilon is not None
    l2_squared = (1.0 + 1.0 / size) / 2.0 + 1.0 + 1.0 / 16.0
    return size * math.sqrt(l2_squared / (2.0 * zcdp_rho(promise.epsilon, promise.delta)))


def sample_spread(promise: Promise, columns: int, theta_bound: float) -> float:
    """The squared error that one posterior sample adds to predictions, times the number of records."""
    assert promise.epsilon is not None
    return (columns + 1) * (1.0 + theta_bound) ** 2 / (2.0 * float(promise.epsilon))


def choose_method(promise: Promise, *, columns: int, records: int | None, theta_bound: float = 2.0) -> str:
    """The method of the least predicted error; it never sees a record.

    Perturbed sums have the least error while their noise, per record, is small beside what columns between −1
    and 1 contribute. With pure ε it grows with the square of the columns, and a posterior sample, whose error
    grows with their number, takes over. Where neither can tell a slope from noise, the sketch does least
    harm: it releases the mean of the target apart. The thresholds were measured on public data. Without
    ``records`` there are taken to be enough.

    >>> choose_method(Promise.of(epsilon=1.0, delta=1e-6), columns=16, records=10_000)
    'adassp'
    >>> choose_method(Promise.of(epsilon=1.0), columns=128, records=5_000)
    'ops'
    >>> choose_method(Promise.of(epsilon=0.1), columns=128, records=5_000)
    'sketch'
    """
    if records is None:
        return "adassp" if not promise.pure or columns <= _FEW_COLUMNS else "ops"
    number = max(records, 1)
    most = _MOST_PURE_NOISE if promise.pure else _MOST_NOISE
    if moment_noise(promise, columns) / number < most:
        return "adassp"
    if promise.pure and sample_spread(promise, columns, theta_bound) / number < _MOST_SPREAD:
        return "ops"
    return "sketch"
