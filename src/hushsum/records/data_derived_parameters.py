"""Detect declared parameters that look as if they had been computed from the private records, or that do not
fit them.

A bound that is the batch's own minimum, or a bandwidth that is Silverman's rule of it, publishes a statistic
of the data that was not paid for. The test detects only the common ways to do that, and only for one batch at
a time; silence proves nothing. Round numbers, at most four significant digits or next to a power of two, are
not suspected, so that colours from 0 to 255 that touch both ends stay quiet.

Bounds that most records of a batch lie outside of are a mistake, of units or of the order of columns: all of
them are clipped, and a release would spend its budget on nothing. Such a batch is refused before anything is
debited, unless its owner allows it.

What it finds depends on the data: it is for the owner's eyes, goes into no file, claim or ledger, and shows
no value.

Privacy
-------
A warning or a refusal is a statistic of the records that nothing pays for: whether it appears may change when
a record or a person is added, removed or replaced. So it is not an output of any mechanism here. Only the
owner sees it, on the terminal, in the process or in the job that reads the records, and nothing public
follows from it: a refused batch is counted nowhere, and no noise is drawn. Whoever publishes that a count was
refused, or answers it by leaving records out, publishes that statistic. A stream is paid before its records
arrive, and its steps must not depend on them; there it stays a warning.
"""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import Decimal
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import Argument, DataRefused, SuspiciousParameter
from hushsum.records.bounds import Bounds
from hushsum.records.columns_by_name import numbers_of

_ROUND_DIGITS: Final = 4
_OWNER: Final = "This warning depends on the data: keep it to yourself."
_LATEST_DAY: Final = 50_000
"""Days since 1970 up to which a bound may be a date, in the year 2106."""
_FEWEST_RECORDS: Final = 20
"""In smaller batches most records may be outside by chance."""

_LOOKED_AT: Final = 4096
"""Records of a batch, evenly spaced, that are compared with the bounds."""


_ON_CLIPPING: Final[ContextVar[str]] = ContextVar("on clipping", default="refuse")


def is_round(value: float) -> bool:
    """Whether a person would write the number down without measuring anything; also as a date, the first or
    last day of a month in days since 1970.

    >>> is_round(0.25), is_round(65535.0), is_round(1.7e9), is_round(0.73164)
    (True, True, True, False)
    >>> is_round(19_723.0), is_round(19_731.0)
    (True, False)
    """
    if float(value).is_integer() and abs(value) < _LATEST_DAY and _begins_or_ends_month(int(value)):
        return True
    digits = Decimal(repr(value)).normalize().as_tuple().digits
    if len(digits) <= _ROUND_DIGITS:
        return True
    if not value.is_integer():
        return False
    return any(near.bit_count() == 1 for near in range(abs(int(value)) - 1, abs(int(value)) + 2))


def _begins_or_ends_month(days: int) -> bool:
    day = datetime.date(1970, 1, 1) + datetime.timedelta(days=days)
    return day.day == 1 or (day + datetime.timedelta(days=1)).day == 1


@contextmanager
def clipping_allowed(allowed: bool = True, *, quiet: bool = False) -> Iterator[None]:
    """Within the block a batch that mostly lies outside the bounds is warned of, and counted; with False, as
    around the block. It is ``quiet`` where the batch was checked already.
    """
    before = _ON_CLIPPING.set("ignore" if quiet else "warn" if allowed else _ON_CLIPPING.get())
    try:
        yield
    finally:
        _ON_CLIPPING.reset(before)


def warn_of_parameters(
    data: object,
    rows: NDArray[Any],
    bounds: Bounds | None,
    dim: int,
    bandwidth: float | None,
    columns: Sequence[str] | None = None,
) -> None:
    """Warn the caller's caller of every suspicion, and refuse bounds that do not fit the records.

    ``rows`` are the records as they are counted, clipped and relative to the centre of the bounds, and
    ``columns`` their declared names.
    """
    for sentence in suspicions(data, dim=dim, bounds=bounds, bandwidth=bandwidth, columns=columns):
        warnings.warn(sentence, SuspiciousParameter, stacklevel=3)
    for column in _clipped(data, rows, bounds, columns):
        _refuse_or_warn("records", f", foremost in {column}", level=3)


def suspicions(
    data: object,
    *,
    dim: int,
    bounds: Bounds | None,
    bandwidth: float | None,
    columns: Sequence[str] | None = None,
) -> list[str]:
    """A sentence for every declared parameter that the batch itself gives away; mostly none.

    Parameters
    ----------
    data : records of shape (n, dim)
        As they came, before clipping.
    bounds, bandwidth
        What was declared, if it was.
    """
    odd_sides = [] if bounds is None else list(_odd_sides(bounds))
    odd_bandwidth = None if bandwidth is None or is_round(bandwidth) else bandwidth
    if not odd_sides and odd_bandwidth is None:
        return []
    values = _columns(data, dim, columns)
    found = [
        f"the {side} bound of {_column(column, columns)} has many digits and is this batch's own extreme: "
        f"declare bounds from what is known of the subject, or pay for them with hs.private_bounds. {_OWNER}"
        for column, side, bound in odd_sides
        if _read_off(bound, float(values[:, column].min() if side == "low" else values[:, column].max()))
    ]
    if odd_bandwidth is not None and any(_read_off(odd_bandwidth, rule) for rule in _rules_of_thumb(values)):
        found.append(
            "the bandwidth has many digits and is a rule of thumb computed from this batch: choose it by the "
            f"subject, or pay for it with hs.choose_kernel. {_OWNER}"
        )
    return found


def _clipped(
    data: object, rows: NDArray[Any], bounds: Bounds | None, columns: Sequence[str] | None
) -> list[str]:
    """The column with most of them, if most records of a batch lie outside the bounds.

    Only if most of them touch the bounds as they are counted are the data themselves looked at.
    """
    if bounds is None or rows.ndim != 2 or len(rows) < _FEWEST_RECORDS:
        return []
    step = -(-len(rows) // _LOOKED_AT)
    low, high = bounds.clip_and_centre(np.array([bounds.low, bounds.high]))
    sample = rows[::step]
    if 2 * int(((sample <= low) | (sample >= high)).any(axis=1).sum()) <= len(sample):
        return []
    values = _columns(data, bounds.dim, columns)[::step]
    return _mostly_outside(values, bounds, columns)


def refuse_clipping(
    values: Floats, bounds: Bounds | None, columns: Sequence[str] | None = None, *, level: int = 3
) -> None:
    """Refuse a batch of which most records lie outside what is declared, or warn where that is allowed.
    ``columns`` are their names, and ``level`` is as of ``warnings.warn``.

    Raises
    ------
    DataRefused
        unless :func:`clipping_allowed`.
    """
    if bounds is None or len(values) < _FEWEST_RECORDS:
        return
    for column in _mostly_outside(values[:: -(-len(values) // _LOOKED_AT)], bounds, columns):
        _refuse_or_warn("records", f", foremost in {column}", level=level)


def refuse_clipped_targets(targets: Floats, bounds: Bounds, *, level: int = 3) -> None:
    """The same for targets, which have one column."""
    if len(targets) < _FEWEST_RECORDS:
        return
    sample = targets[:: -(-len(targets) // _LOOKED_AT)]
    if 2 * int(((sample < bounds.low[0]) | (sample > bounds.high[0])).sum()) > len(sample):
        _refuse_or_warn("targets", "", level=level)


def _refuse_or_warn(what: str, where: str, *, level: int) -> None:
    action = _ON_CLIPPING.get()
    if action == "ignore":
        return
    check = "check the units" + (" and the order of the columns" if where else "")
    if action == "refuse":
        raise DataRefused(
            parameter="bounds" if where else "target_bounds",
            rule=f"must contain most {what}",
            got=f"bounds that most {what} of this batch lie outside of{where}",
            remedy=(
                f"{check}, or give ",
                Argument("allow_clipping", True),
                " to clip them; nothing was spent. This depends on the data: keep it to yourself",
            ),
        )
    warnings.warn(
        f"most {what} of this batch lie outside the declared bounds{where}, and are clipped to them: "
        f"{check}. {_OWNER}",
        SuspiciousParameter,
        stacklevel=level + 1,
    )


def _mostly_outside(sample: Floats, bounds: Bounds, columns: Sequence[str] | None) -> list[str]:
    outside = (sample < np.array(bounds.low)) | (sample > np.array(bounds.high))
    if 2 * int(outside.any(axis=1).sum()) <= len(sample):
        return []
    return [_column(int(outside.sum(axis=0).argmax()), columns)]


def _column(number: int, columns: Sequence[str] | None) -> str:
    return f"column {number if columns is None else repr(str(columns[number]))}"


def _odd_sides(bounds: Bounds) -> Iterator[tuple[int, str, float]]:
    for column, (low, high) in enumerate(zip(bounds.low, bounds.high, strict=True)):
        if not is_round(low):
            yield column, "low", low
        if not is_round(high):
            yield column, "high", high


def _read_off(declared: float, statistic: float) -> bool:
    """Whether the declared number is the statistic, or the statistic rounded to the digits declared."""
    exponent = Decimal(repr(declared)).as_tuple().exponent
    places = exponent if isinstance(exponent, int) else 0
    reach = 0.5 * 10.0 ** min(places, 0) if places < 0 else 0.0
    return abs(declared - statistic) <= max(reach, 1e-9 * abs(declared))


def _rules_of_thumb(values: Floats) -> Iterator[float]:
    """Standard deviations, and Scott's and Silverman's rules, of each column and of all together."""
    n, dim = values.shape
    if n < 2:
        return
    spreads: Floats = values.std(axis=0)
    together = float(np.sqrt((spreads**2).mean() + values.mean(axis=0).var()))
    factors = (
        1.0,
        n ** (-1.0 / (dim + 4)),
        (n * (dim + 2) / 4.0) ** (-1.0 / (dim + 4)),
        1.06 * n**-0.2,
        0.9 * n**-0.2,
    )
    # Divided by n or by n − 1, as people compute it.
    for divisor, total in ((n - 1, n), (n * dim - 1, n * dim), (1, 1)):
        correction = (total / divisor) ** 0.5
        for spread in (*spreads.tolist(), float(spreads.mean()), together):
            yield from (spread * correction * factor for factor in factors)


def _columns(data: object, dim: int, columns: Sequence[str] | None) -> Floats:
    parts: list[NDArray[Any]] = [part.values for part in numbers_of(data, dim=dim, columns=columns)]
    return np.concatenate([part.astype(np.float64) for part in parts], axis=1)
