"""Whether a bandwidth is too small for the declared number of records, and one that suits it."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Final

from hushsum.errors import SuspiciousParameter
from hushsum.kernels import ColumnKernel, scaled_by
from hushsum.methods import NORMAL_MEAN_ABSOLUTE, Option, method_named
from hushsum.records import Bounds

_SIGNIFICANT: Final = 2.0
"""The standard errors from which on a value differs from zero, by a 95 % interval."""

_MOST_COLUMNS: Final = 2
"""In more columns records never fill a box evenly, and most of it is empty in any case."""

_STEP, _STEPS = 1.1, 48


def narrow_bandwidth(option: Option) -> str | None:
    """What is wrong with the bandwidth of an option for a declared number of records; None if it suits.

    Records that are spread evenly over the declared box have a mean kernel value of ∫k over the volume of the
    box. Where two predicted standard errors are more than that, most places of a curve or a map do not differ
    from zero. The bandwidth that is named is the narrowest, to a tenth, at which the same plan has two
    standard errors or more.

    >>> import hushsum as hs
    >>> plan = hs.plan(records=2000, dim=2, bandwidth=0.1, bounds=(0, 10), epsilon=0.1)
    >>> narrow_bandwidth(plan.best)
    'the bandwidth is too small for 2,000 records: if they were spread evenly over the bounds, 1.3 of them \
would be near a place, with a standard error of 36; a bandwidth of 0.81 suits that number'
    """
    request = option.request
    kernel, bounds = request.kernel, request.bounds
    if bounds is None or not isinstance(kernel, ColumnKernel) or bounds.dim > _MOST_COLUMNS or kernel.signed:
        return None
    if not math.isfinite(kernel.integral()) or option.move is not None:
        return None
    even, error = _even(kernel, bounds), _error(option, kernel, bounds)
    if even >= _SIGNIFICANT * error:
        return None
    records = request.records
    found = (
        f"the bandwidth is too small for {records:,} records: if they were spread evenly over the bounds, "
        f"{_written(even * records)} of them would be near a place, with a standard error of "
        f"{_written(error * records)}"
    )
    for step in range(1, _STEPS):
        wider = scaled_by(kernel, [_STEP**step] * bounds.dim)
        # Wider kernels have no less noise.
        possible = _even(wider, bounds) >= _SIGNIFICANT * error
        if possible and _even(wider, bounds) >= _SIGNIFICANT * _error(option, wider, bounds):
            return f"{found}; {_suiting(kernel, _STEP**step)} suits that number"
    return f"{found}; no bandwidth suits it: declare more records, or a larger epsilon"


def warn_of_narrow_bandwidth(option: Option, *, level: int = 3) -> None:
    """Warn of it before anything is counted or debited; ``level`` is as of ``warnings.warn``."""
    found = narrow_bandwidth(option)
    if found is not None:
        warnings.warn(found, SuspiciousParameter, stacklevel=level + 1)


def _even(kernel: ColumnKernel, bounds: Bounds) -> float:
    return min(1.0, kernel.integral() / math.prod(bounds.widths))


def _error(option: Option, kernel: ColumnKernel, bounds: Bounds) -> float:
    """The standard error that noise is predicted to give such a mean kernel value, with the method of an
    option.
    """
    predict = method_named(option.method).predict
    assert predict is not None
    even = _even(kernel, bounds)
    asked = replace(option.request, kernel=kernel, density=even, densities=(even,) * 3)
    return min((each.noise for each in predict(asked)), default=math.inf) / NORMAL_MEAN_ABSOLUTE


def _suiting(kernel: ColumnKernel, factor: float) -> str:
    if "bandwidth" in kernel.parameters():
        return f"a bandwidth of {_written(kernel.bandwidth * factor)}"
    return f"one {_written(factor)} times as large"


def _written(number: float) -> str:
    """Two digits, without an exponent where that is short."""
    return f"{float(f'{number:.2g}'):g}"
