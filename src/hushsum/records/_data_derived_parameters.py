"""Detect declared parameters that look computed from the private records or do not fit the records, and
records that were scaled by a transform fitted to them.

Bounds that are the minimum and maximum of the records, or a bandwidth that is Silverman's rule of them,
publish a statistic of the data that was not paid for. The following is noticed, per column:

- both bounds are attained and no record lies beyond them, over all batches so far, unless all records are
  integers (codes, counts, ages) or both bounds are numbers that people choose: with one significant digit,
  with two of which the second is a 5, multiples of 12 up to 360, and neighbours of powers of two. So shares
  from 0 to 1, hours from 0 to 24 and colours from 0 to 255 stay quiet;
- a bound with more than four significant digits is the extreme of a batch, a common quantile of it, or its
  mean and an integer of standard deviations, also rounded to the digits declared;
- a bandwidth with more than four significant digits is a rule of thumb computed from a batch;
- most records of a batch lie outside the bounds: a mistake, of units or of the order of columns. All of them
  would be clipped, and a release would spend its budget on nothing. Such a batch is refused before anything
  is debited, unless its owner allows it; where the bounds are the default of a Python model, which nobody
  declared, it is a warning, as scikit-learn's conventions ask;
- all records of a fit have standard deviation 1, or median 0 and quartiles 1 apart, or extremes at 0 or ±1
  that single records attain, or uncorrelated columns of mean 0, all to the last digits.

Only these are noticed; no warning proves nothing. A finding depends on the data: it is for the owner's eyes,
goes into no file, claim or ledger, and shows no value.

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
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import KW_ONLY, dataclass, field
from decimal import Decimal
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import Argument, DataRefused, SuspiciousParameter, UsageError

from ._arrow import as_dense, column_names_of, in_memory
from ._bounds import Bounds
from ._transform import Transform

__all__ = [
    "TARGETS", "ParameterCheck", "are_copies", "clipping_allowed", "default_bounds_refused", "is_natural",
    "is_round", "level_outside", "refuse_copied_rows", "refuse_private_rows",
]  # fmt: skip

_ROUND_DIGITS: Final = 4
_OWNER: Final = "This warning depends on the data: keep it to yourself."
# Days since 1970 up to which a bound may be a date, in the year 2106.
_LATEST_DAY: Final = 50_000
# In smaller batches most records may be outside by accident.
_FEWEST_RECORDS: Final = 20

# Records of a batch, evenly spaced, that are compared with the bounds.
_LOOKED_AT: Final = 4096

_DECLARE: Final = "declare bounds from what is known of the subject, or pay for them with hs.private_bounds."
_FULL_CIRCLE: Final = 360
# Quantiles that bounds are made of.
_TAILS: Final = (0.001, 0.005, 0.01, 0.02, 0.025, 0.05, 0.1, 0.25)

_EXACT: Final = 1e-9
# How near a statistic is to what a scaler makes of it, in double and in single precision.
_SINGLE: Final = 1e-6

# The part of the values of a column that are different, unless they lie on a grid, as colours do.
_CONTINUOUS: Final = 0.75

_INSIDE: Final = ("hushsum.", "sklearn.")

_IGNORE, _WARN, _REFUSE, _REFUSE_DECLARED = "ignore", "warn", "refuse", "refuse declared bounds"
_ON_CLIPPING: Final[ContextVar[str]] = ContextVar("on clipping", default=_REFUSE_DECLARED)

RECORDS, TARGETS = "records", "targets"


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
    return value.is_integer() and _is_near_power_of_two(int(value))


def _is_near_power_of_two(value: int) -> bool:
    return any(near.bit_count() == 1 for near in range(abs(value) - 1, abs(value) + 2))


def _begins_or_ends_month(days: int) -> bool:
    day = datetime.date(1970, 1, 1) + datetime.timedelta(days=days)
    return day.day == 1 or (day + datetime.timedelta(days=1)).day == 1


def is_natural(value: float) -> bool:
    """Whether a person would choose the number as an end of a range that is known beforehand.

    >>> [is_natural(each) for each in (0.0, -180.0, 0.25, 24.0, 255.0, 4.3, 87.0)]
    [True, True, True, True, True, False, False]
    """
    digits = Decimal(repr(float(value))).normalize().as_tuple().digits
    if len(digits) == 1 or (len(digits) == 2 and digits[1] == 5):
        return True
    return float(value).is_integer() and (
        (value % 12 == 0 and abs(value) <= _FULL_CIRCLE) or _is_near_power_of_two(int(value))
    )


@contextmanager
def clipping_allowed(allowed: bool = True, *, quiet: bool = False) -> Iterator[None]:
    """Within the block a batch that mostly lies outside the bounds is warned of, and counted; with False, as
    around the block. It is ``quiet`` where the batch was checked already.
    """
    before = _ON_CLIPPING.set(_IGNORE if quiet else _WARN if allowed else _ON_CLIPPING.get())
    try:
        yield
    finally:
        _ON_CLIPPING.reset(before)


@contextmanager
def default_bounds_refused() -> Iterator[None]:
    """Within the block a batch that mostly lies outside default bounds is refused, as with declared ones."""
    now = _ON_CLIPPING.get()
    before = _ON_CLIPPING.set(_REFUSE if now == _REFUSE_DECLARED else now)
    try:
        yield
    finally:
        _ON_CLIPPING.reset(before)


def level_outside() -> int:
    """The ``stacklevel`` of a warning of the caller: that of the code that called Hushsum, also through
    scikit-learn.
    """
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_INSIDE):
        level, frame = level + 1, frame.f_back
    return level


@dataclass(slots=True, eq=False, repr=False)
class ParameterCheck:
    """Compares declared bounds and bandwidths with each batch of the records they were declared for.

    It remembers, for each column, whether the records so far attain its bounds, and no value. It is secret
    like the records, and part of no file.

    Parameters
    ----------
    bounds, bandwidths
        What was declared.
    columns : sequence of str, optional
        The names of the columns.
    what : str
        What messages call the records: "records" or "targets".
    default : bool
        Whether the bounds are a default that nobody declared.
    """

    bounds: Bounds | None
    _: KW_ONLY
    bandwidths: Iterable[float] = ()
    columns: Sequence[str] | None = None
    what: str = RECORDS
    default: bool = False
    _told: set[str] = field(default_factory=set, init=False)
    _watched: list[int] = field(init=False)
    # Of the lower and the upper end of each watched column: 1 if all records so far lie strictly inside, 0 if
    # some attain it, −1 if some lie beyond it.
    _inside: Floats = field(init=False)
    _fractions: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        self.bandwidths = [each for each in self.bandwidths if not is_round(each)]
        pairs = [] if self.bounds is None else list(zip(self.bounds.low, self.bounds.high, strict=True))
        self._watched = [i for i, pair in enumerate(pairs) if not all(map(is_natural, pair))]
        self._inside = np.ones((2, len(self._watched)))
        self._fractions = np.zeros(len(self._watched), bool)

    def warn(
        self, batch: Floats | Callable[[], Floats], *, rows: NDArray[Any] | None = None, whole: bool = False
    ) -> None:
        """Warn of every suspicion that a batch raises and that was not reported before.

        Refuse a batch that the bounds mostly clip.

        Within :func:`clipping_allowed` with ``quiet`` nothing is compared: a model has done it.

        Parameters
        ----------
        batch : array of shape (n, dim), or a callable that returns it
            As it came, before clipping; only called where it is needed.
        rows : array, optional
            The batch as it is counted, clipped and relative to the centre of the bounds: only if most of
            these touch the bounds are the data themselves looked at.
        whole : bool
            Whether these are all records, so that a scaling that was fitted to them shows.

        Raises
        ------
        DataRefused
            if most records lie outside declared bounds, unless :func:`clipping_allowed`.
        """
        if _ON_CLIPPING.get() == _IGNORE:
            return
        look: Callable[[], Floats] = cache(batch) if callable(batch) else lambda: batch
        found = [*self._statistics(look)]
        if whole:
            found += _fitted_scaling(look(), self.what)
        for sentence in found:
            if sentence not in self._told:
                self._told.add(sentence)
                warnings.warn(f"{sentence} {_OWNER}", SuspiciousParameter, stacklevel=level_outside())
        self._refuse_clipping(look, rows)

    def _statistics(self, look: Callable[[], Floats]) -> Iterator[str]:
        bounds = self.bounds
        if bounds is not None and self._watched:
            values = look()[:, self._watched]
            low, high = bounds.sides[:, self._watched]
            self._inside = np.minimum(
                self._inside, np.sign([values.min(axis=0) - low, high - values.max(axis=0)])
            )
            self._fractions |= (values != np.floor(values)).any(axis=0)
            for i, column in enumerate(self._watched):
                odd = [
                    side
                    for side, bound in (("low", bounds.low[column]), ("high", bounds.high[column]))
                    if not is_round(bound)
                    and any(_read_off(bound, each) for each in _ends(values[:, i], bound, side))
                ]
                for side in odd:
                    yield (
                        f"the {side} bound of {self._column(column)} has many digits and is a statistic "
                        f"of this batch of {self.what}: {_DECLARE}"
                    )
                if not odd and self._fractions[i] and not self._inside[:, i].any():
                    yield (
                        f"the bounds of {self._column(column)} are the smallest and the largest value of "
                        f"the {self.what}: {_DECLARE}"
                    )
        if self.bandwidths:
            rules = list(_rules_of_thumb(look()))
            if any(_read_off(each, rule) for each in self.bandwidths for rule in rules):
                yield (
                    "the bandwidth has many digits and is a rule of thumb computed from this batch: choose "
                    "it by the subject, or pay for it with hs.methods.choose_kernel."
                )

    def _refuse_clipping(self, look: Callable[[], Floats], rows: NDArray[Any] | None) -> None:
        """Refuse a batch of which most records lie outside the bounds, or warn where that is allowed."""
        bounds = self.bounds
        if bounds is None:
            return
        if rows is not None:
            if rows.ndim != 2 or len(rows) < _FEWEST_RECORDS:
                return
            low, high = bounds.relative(bounds.sides)
            sample = rows[:: -(-len(rows) // _LOOKED_AT)]
            if 2 * int(((sample <= low) | (sample >= high)).any(axis=1).sum()) <= len(sample):
                return
        values = look()
        if len(values) < _FEWEST_RECORDS:
            return
        sample = values[:: -(-len(values) // _LOOKED_AT)]
        outside = (sample < bounds.sides[0]) | (sample > bounds.sides[1])
        if 2 * int(outside.any(axis=1).sum()) <= len(sample):
            return
        foremost = self._column(int(outside.sum(axis=0).argmax()))
        self._refuse_or_warn("" if self.what == TARGETS else f", foremost in {foremost}")

    def _refuse_or_warn(self, where: str) -> None:
        what, check = self.what, "check the units" + (" and the order of the columns" if where else "")
        if _ON_CLIPPING.get() in (_REFUSE, _REFUSE if self.default else _REFUSE_DECLARED):
            raise DataRefused(
                "bounds" if where else "target_bounds",
                f"must contain most {what}",
                got=f"bounds that most {what} of this batch lie outside of{where}",
                remedy=(
                    f"{check}, or give ",
                    Argument("allow_clipping", True),
                    " to clip them; nothing was spent. This depends on the data: keep it to yourself",
                ),
            )
        kind = "default" if self.default else "declared"
        warnings.warn(
            f"most {what} of this batch lie outside the {kind} bounds{where}, and are clipped to them: "
            f"{'declare bounds' if self.default else check}. {_OWNER}",
            SuspiciousParameter,
            stacklevel=level_outside(),
        )

    def _column(self, number: int) -> str:
        if self.what == TARGETS:
            return "the target"
        return f"column {number if self.columns is None else repr(str(self.columns[number]))}"


def _ends(values: Floats, bound: float, side: str) -> Iterator[float]:
    """The statistics of a column that people take for a bound."""
    sign = -1.0 if side == "low" else 1.0
    extreme = float(values.min() if side == "low" else values.max())
    yield extreme
    mean = float(values.mean())
    for divisor in {len(values), max(len(values) - 1, 1)}:
        spread = float(np.sqrt(((values - mean) ** 2).sum() / divisor))
        yield from (mean + sign * times * spread for times in range(1, 7))
    # A quantile lies inside the range of the records.
    if sign * (extreme - bound) > 0:
        yield from np.quantile(values, [each if side == "low" else 1.0 - each for each in _TAILS]).tolist()


def _fitted_scaling(values: Floats, what: str) -> list[str]:
    """A sentence if the records look as if a scaler had been fitted to exactly them."""
    fractional = values[:, (values != np.floor(values)).any(axis=0)]
    if len(values) < _FEWEST_RECORDS or not fractional.shape[1]:
        return []
    found = _scaling_in_words(fractional)
    if found is None:
        return []
    return [
        f"these {what} have {found}, as if a scaler had been fitted to them. What it learned is a statistic "
        "of private data that no claim covers: scale by declared ranges, with hushsum.models.PublicEncoder, "
        "or with a scaler that was fitted to public data."
    ]


def _scaling_in_words(values: Floats) -> str | None:
    mean, spread = values.mean(axis=0), values.std(axis=0)
    unbiased = spread * (len(values) / (len(values) - 1)) ** 0.5
    for each in (spread, unbiased):
        if (np.abs(each - 1.0) < _EXACT).any():
            return "a standard deviation of 1"
        if ((np.abs(each - 1.0) < _SINGLE) & (np.abs(mean) < _SINGLE)).any():
            return "mean 0 and a standard deviation of 1"
    lower, middle, upper = np.quantile(values, [0.25, 0.5, 0.75], axis=0)
    quartiles = (np.abs(middle) < _EXACT) & (np.abs(upper - lower - 1.0) < _EXACT)
    if not all(map(_is_designed, values.T[quartiles])):
        return "median 0 and quartiles that are 1 apart"
    smallest, largest, alone = values.min(axis=0), values.max(axis=0), np.array([1, 2])
    at_ends = (np.abs(values) > 1.0 - _EXACT).sum(axis=0)
    if (np.abs(np.abs(values).max(axis=0) - 1.0) < _EXACT).all() and np.isin(at_ends, alone).all():
        both = np.isin(smallest, (0.0, -1.0)) & (np.abs(largest - 1.0) < _EXACT)
        continuous = all(len(np.unique(column)) > _CONTINUOUS * len(column) for column in values.T)
        if (both.all() or values.shape[1] > 1) and continuous and not all(map(_is_designed, values.T)):
            return "extremes at 0 or ±1 in every column, each attained by one record"
    centred = (np.abs(mean) < _EXACT * spread).all()
    if centred and values.shape[1] > 1:
        correlations = np.abs(np.corrcoef(values.T) - np.eye(values.shape[1]))
        if (correlations < _EXACT).all():
            return "columns of mean 0 without any correlation"
    return None


def _is_designed(column: Floats) -> bool:
    """Whether the values are evenly spaced and all as frequent: somebody chose them, and measured nothing."""
    values, counts = np.unique(column, return_counts=True)
    even = bool(np.ptp(np.diff(values)) <= _SINGLE * np.ptp(values))
    return even and bool(counts.min() == counts.max())


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


_AT_A_TIME: Final = 1 << 16
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
# Public rows of which at least this part is among the records are taken for copies, and records of which at
# least this part are different from each other for records that can be recognised.
_SHARE: Final = 0.5


def are_copies(public: NDArray[np.float32], records: NDArray[np.float32]) -> bool:
    """Whether public rows repeat private records: all of them in any order, or half of the rows or more.

    Rows of few different values, such as answers to three questions, agree by accident. There only the whole
    set of records is recognised.

    Parameters
    ----------
    public : array of shape (n_rows, dim)
    records : array of shape (n_records, dim)
        Private, in the same columns.

    Privacy
    -------
    The answer depends on the records and is for their owner alone, before anything is spent or published:
    who uses it must hold the records.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> records = rng.normal(size=(1000, 2)).astype(np.float32)
    >>> are_copies(records[::-1], records), are_copies(records[:50], records)
    (True, True)
    >>> are_copies(records + 1, records)
    False
    """
    if not len(public) or not len(records) or public.shape[1] != records.shape[1]:
        return False
    rows = _digests(public)
    distinct = np.unique(rows)
    found = np.zeros(len(distinct), dtype=bool)
    total = np.uint64(0)
    for start in range(0, len(records), _AT_A_TIME):
        digests = _digests(records[start : start + _AT_A_TIME])
        total += digests.sum(dtype=np.uint64)
        places = np.minimum(np.searchsorted(distinct, digests), len(distinct) - 1)
        found[places[distinct[places] == digests]] = True
    if len(public) == len(records) and total == rows.sum(dtype=np.uint64):
        return True
    some = _digests(records[:: -(-len(records) // _AT_A_TIME)])
    recognised = len(np.unique(some)) >= _SHARE * len(some)
    return recognised and float(found.mean()) >= _SHARE


def _digests(rows: NDArray[np.float32]) -> NDArray[np.uint64]:
    """One number per row; rows that differ have different ones, except with a small probability."""
    # Zero has two signs.
    bits = np.ascontiguousarray(rows + np.float32(0.0)).view(np.uint32)
    digests = np.full(len(rows), _FACTOR)
    for column in range(rows.shape[1]):
        digests = (digests ^ bits[:, column]) * _FACTOR
        digests ^= digests >> np.uint64(29)
    return digests


def refuse_private_rows(public: object, X: object, *, parameter: str = "public") -> None:
    """Refuse private records in place of public ones: the same object, or a view of its memory.

    Raises
    ------
    UsageError
        without a look at a value.
    """
    both = isinstance(public, np.ndarray) and isinstance(X, np.ndarray)
    if public is not None and (public is X or (both and np.may_share_memory(public, X))):
        raise _private(parameter, "memory of the records")


def refuse_copied_rows(
    public: object,
    records: object,
    dim: int | None,
    columns: Sequence[str] | None = None,
    *,
    parameter: str = "public",
) -> None:
    """Refuse copies of private records in place of public ones; see `hushsum.records`.

    Copies with other values, and a part that is less than half of the public rows, are not noticed: whoever
    declares a sample public answers for it.

    Parameters
    ----------
    public, records : arrays, frames or Arrow data
        Public rows and private records, of numbers; others are not compared.
    dim : int or None
        How many columns the records have; None where they are sets.
    columns : sequence of str, optional
        Which columns the records have, where both are named.
    parameter : str
        What the public rows were given as.

    Raises
    ------
    UsageError
        for the owner of the records alone, before anything is spent.
    """
    if public is None or dim is None or isinstance(public, Transform):
        return
    try:
        found = are_copies(_compared(public, dim, columns), _compared(records, dim, columns))
    except DataRefused:
        return  # anything but a table of numbers is refused, or read otherwise, where it is counted
    if found:
        raise _private(parameter, "copies of the records")


def _compared(data: object, dim: int, columns: Sequence[str] | None) -> NDArray[np.float32]:
    named = columns if column_names_of(data) is not None else None
    return as_dense(in_memory(data), dim=dim, columns=named)


def _private(parameter: str, got: str) -> UsageError:
    return UsageError(
        parameter,
        "must be public rows, and no part of the private records",
        got=got,
        remedy="give rows that anybody may see, or leave it out",
    )
