"""Declared bounds, steps and balls that records are clipped to."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats, is_number
from hushsum.errors import UsageError, shown
from hushsum.files import Stored

from ._arrow import as_dense

__all__ = [
    "FEWEST_BITS", "MOST_BITS", "MOST_CELLS", "Bounds", "CellGrid", "Codes", "DeclaredBounds",
    "DeclaredSteps", "Steps", "UnitBall", "bins_for_bandwidth", "bounds_in_words", "clipped_to_ball",
    "declared_bounds", "declared_steps", "names_in_words", "norms", "steps_between", "whole_length",
    "whole_vectors",
]  # fmt: skip

# Elements converted at a time: the float64 copy stays in the cache, and small beside the data.
_BLOCK: Final = 1 << 14

DeclaredBounds = Sequence[tuple[float, float]] | tuple[float, float] | Mapping[str, tuple[float, float]]
"""One (low, high) for all columns, a list with one for each, or a dictionary by the names of columns."""

_FLOAT32_MAX: Final = float(np.finfo(np.float32).max)
_MOST_NAMES: Final = 8


@dataclass(frozen=True, slots=True)
class Bounds:
    """A box, declared and never learned from the data, that every record is clipped to.

    Records inside the library are relative to the centre of the box, because float32 has 24 bits: a column of
    timestamps near 1.7e9 in a box one hour wide would otherwise keep only multiples of 128 seconds.

    Parameters
    ----------
    low, high : tuple of float, one per column
        Finite, ``low < high`` in every column.

    Privacy
    -------
    Clipping is elementwise, so a record's bits depend on that record alone. How many records were clipped is
    private, and nothing here counts them.

    Raises
    ------
    UsageError
        A bound is not finite, ``low < high`` fails, or the box is too wide for float32.

    >>> box = Bounds.of([(0, 10), (-1, 1)], dim=2)
    >>> box.relative(np.array([[12.0, 0.5]]))
    array([[5. , 0.5]], dtype=float32)
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    sides: Floats = field(init=False, repr=False, compare=False)
    """The low and the high end of every column, shape (2, dim); read-only."""
    centre: Floats = field(init=False, repr=False, compare=False)
    """The middle of the box, shape (dim,); read-only."""

    def __post_init__(self) -> None:
        if len(self.low) != len(self.high) or not self.low:
            raise UsageError("bounds", "must have one low and one high for every column")
        _check_sides(list(zip(self.low, self.high, strict=True)), None)
        sides = np.array([self.low, self.high])
        for name, array in (("sides", sides), ("centre", sides[0] / 2 + sides[1] / 2)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @classmethod
    def of(cls, value: object, dim: int, columns: Sequence[str] | None = None) -> Bounds | None:
        """Read a ``bounds=`` argument.

        Parameters
        ----------
        value : None, (low, high), a sequence of dim (low, high), a dictionary by column name, or Bounds
            One pair stands for every column. With ``dim=2``, ``((0, 1), (0, 1))`` is two pairs.
        dim : int
            The number of columns.
        columns : sequence of str, optional
            What the columns are called, in their order; needed for a dictionary.

        Raises
        ------
        UsageError
            The value has another shape, or breaks a rule of `Bounds`.
        """
        if value is None:
            return None
        if isinstance(value, Mapping):
            value = _in_order(value, columns)
        if isinstance(value, Bounds):
            bounds = value
        else:
            pairs = _pairs(value, dim)
            _check_sides(pairs, columns)
            bounds = cls(tuple(low for low, _ in pairs), tuple(high for _, high in pairs))
        if bounds.dim != dim:
            raise _another_number(dim)
        return bounds

    @classmethod
    def declared(
        cls, value: object, dim: int, method: str, *, columns: Sequence[str] | None = None
    ) -> Bounds:
        """Read the ``bounds=`` argument of a method that cannot do without."""
        bounds = cls.of(value, dim, columns=columns)
        if bounds is None:
            raise _refused(f"must be declared for {method}", "none")
        return bounds

    @property
    def dim(self) -> int:
        """The number of columns."""
        return len(self.low)

    @property
    def widths(self) -> tuple[float, ...]:
        """How wide each column's declared range is."""
        return tuple(high - low for low, high in zip(self.low, self.high, strict=True))

    @property
    def half_width(self) -> NDArray[np.float32]:
        """The least float32 that no clipped and centred record exceeds in magnitude, shape (dim,)."""
        # The rounding to float32 is monotone, so the largest magnitude is that of a corner.
        corners = (self.sides - self.centre).astype(np.float32)
        half: NDArray[np.float32] = np.abs(corners).max(axis=0)
        return half

    def relative(self, array: NDArray[Any], *, clip: bool = True) -> NDArray[np.float32]:
        """Make real numbers of shape (n, dim) relative to the centre of the box, and clip them to it before,
        unless they are queries.

        The arithmetic is float64 and elementwise; only the result is rounded to float32.
        """
        if len(array) == 1 and not clip:
            with np.errstate(all="ignore"):
                return (array.astype(np.float64) - self.centre).astype(np.float32)
        out = np.empty(array.shape, dtype=np.float32)
        rows = max(1, min(len(array), _BLOCK // self.dim))
        # The box repeated to the shape of a block: broadcasting over few columns is three times slower.
        low, high, centre = (np.tile(side, (rows, 1)) for side in (*self.sides, self.centre))
        with np.errstate(all="ignore"):
            for start in range(0, len(array), rows):
                block = array[start : start + rows].astype(np.float64, order="C")
                if clip:
                    np.maximum(block, low[: len(block)], out=block)
                    np.minimum(block, high[: len(block)], out=block)
                block -= centre[: len(block)]
                out[start : start + rows] = block
        return out

    def as_json(self) -> list[list[float]]:
        """``[[low, high], ...]``, one pair per column."""
        return [[low, high] for low, high in zip(self.low, self.high, strict=True)]

    @classmethod
    def from_json(cls, value: object) -> Bounds:
        """The inverse of `as_json`; raises UsageError for anything else."""
        if not isinstance(value, list) or not value:
            raise UsageError("bounds", "must be a list of [low, high], one per column")
        bounds = cls.of(value, len(value))
        assert bounds is not None
        return bounds


def declared_bounds(
    value: object, *, dim: int, columns: Sequence[str] | None = None
) -> tuple[Bounds | None, tuple[str, ...] | None]:
    """A ``bounds=`` argument and the names of the columns, which a dictionary of bounds gives by itself.

    >>> box, names = declared_bounds({"age": (0, 120), "height": (1.0, 2.5)}, dim=2)
    >>> box.as_json(), names
    ([[0.0, 120.0], [1.0, 2.5]], ('age', 'height'))

    Raises
    ------
    UsageError
        The value has another shape, a dictionary does not name the columns, or a rule of `Bounds` is broken.
    """
    names = None if columns is None else tuple(columns)
    if names is None and isinstance(value, Mapping):
        names = tuple(value)
    return Bounds.of(value, dim, names), names


def _refused(rule: str, got: str, remedy: str = "declare the range that a record may have") -> UsageError:
    return UsageError("bounds", rule, got=got, remedy=remedy)


def _in_order(value: Mapping[Any, Any], columns: Sequence[str] | None) -> object:
    """The pairs of a dictionary in the order of the columns; the one pair of a column of lists."""
    if columns is None:
        rule = "by name need the names of the columns"
        raise _refused(rule, "columns without names", "give a list of pairs")
    names = list(columns)
    if set(value) != set(names) or not all(isinstance(name, str) for name in value):
        remedy = "give one (low, high) for each column"
        # The first record of a file without a header would be shown otherwise.
        if all(map(str.isidentifier, names)):
            remedy += f": {_names_of(names)}"
        raise _refused("must have the name of every column once and no other", _names_of(value), remedy)
    return value[names[0]] if len(names) == 1 else [value[name] for name in names]


def _names_of(names: Iterable[object]) -> str:
    """Some names, for a message."""
    found = [shown(name) for name in names]
    return ", ".join(found[:_MOST_NAMES]) + (", …" if len(found) > _MOST_NAMES else "") or "none"


def _check_sides(pairs: Sequence[tuple[float, float]], columns: Sequence[str] | None) -> None:
    """Refuse a side that is no range of numbers; says which, by its name where columns have names."""
    for number, (low, high) in enumerate(pairs):
        column = number if columns is None or number >= len(columns) else repr(str(columns[number]))
        got = f"({low:g}, {high:g})"
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise _refused(f"of column {column} must be finite with low < high", got)
        if high / 2 - low / 2 > _FLOAT32_MAX:
            rule = f"of column {column} must be narrower than float32's range"
            raise _refused(rule, got, "declare a narrower range, or rescale the column")


def _pairs(value: object, dim: int) -> list[tuple[float, float]]:
    rule = f"must be (low, high), or a list of {dim} such pairs, of numbers"
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise _refused(rule, type(value).__name__)
    if len(value) == 2 and all(is_number(end) for end in value):
        return [(float(value[0]), float(value[1]))] * dim
    pairs = []
    for pair in value:
        if isinstance(pair, np.ndarray):
            pair = pair.tolist()
        if not isinstance(pair, Sequence) or len(pair) != 2 or not all(is_number(end) for end in pair):
            raise _refused(rule, "something else among them", "declare a pair of numbers for each")
        pairs.append((float(pair[0]), float(pair[1])))
    if len(pairs) != dim:
        raise _another_number(dim)
    return pairs


def _another_number(dim: int) -> UsageError:
    # Not how many: who passes the records as bounds would see their number.
    rule = f"must have one (low, high) for each of {dim} columns"
    return _refused(rule, "another number", "declare as many, or one for all")


def names_in_words(names: Sequence[str]) -> str:
    """Names on one line, the middle of a long list left out.

    >>> names_in_words([f"x{i}" for i in range(100)])
    'x0, x1, x2, x3, x4, x5, …, x99 (100 columns)'
    """
    if len(names) <= _MOST_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[: _MOST_NAMES - 2])}, …, {names[-1]} ({len(names)} columns)"


def bounds_in_words(bounds: Bounds | None) -> str:
    """Declared bounds on one line, the middle of a long list left out, and once if all are the same."""
    if bounds is None:
        return "none declared"
    ranges = [f"{low:g}:{high:g}" for low, high in zip(bounds.low, bounds.high, strict=True)]
    if len(ranges) > 2 and len(set(ranges)) == 1:
        return f"{ranges[0]} for each of {len(ranges)} columns"
    return names_in_words(ranges)


DeclaredSteps = float | Sequence[float | None] | Mapping[str, float | None]
"""One step for all columns, one for each, None for a column without, or a dictionary by column name."""

Steps = tuple[float | None, ...]

_TOLERANCE = 1e-6


def declared_steps(
    value: DeclaredSteps | None, bounds: Bounds, columns: Sequence[str] | None = None
) -> Steps | None:
    """A ``steps=`` argument as one step, or None, for each column; None if no column has one.

    >>> declared_steps({"age": 1.0}, Bounds.of([(0, 120), (0, 9)], 2), ["age", "weight"])
    (1.0, None)

    Raises
    ------
    UsageError
        The value has another shape, a step is not above 0, or a column is not an integer of steps wide.
    """
    if value is None:
        return None
    steps = _steps_in_order(value, bounds.dim, columns)
    for step, low, high in zip(steps, bounds.low, bounds.high, strict=True):
        if step is not None:
            steps_between(low, high, step)
    return None if all(step is None for step in steps) else steps


def steps_between(low: float, high: float, step: float) -> int:
    """How many steps a column is wide."""
    number = round((high - low) / step)
    if number < 1 or abs(number * step - (high - low)) > _TOLERANCE * (high - low):
        raise UsageError(
            "steps",
            "must divide the distance of the bounds of a column",
            got=f"{step:g} from {low:g} to {high:g}",
            remedy="declare bounds that are values, and the distance of neighbouring values",
        )
    return number


def _steps_in_order(value: DeclaredSteps, dim: int, columns: Sequence[str] | None) -> Steps:
    listed: Sequence[Any] = [value] * dim
    if isinstance(value, Mapping):
        names = list(columns or ())
        if not set(value) <= set(names):
            raise UsageError(
                "steps",
                "by name must name columns, whose names are declared",
                got="other names",
                remedy="give columns=, or a list with one step or None for each column",
            )
        listed = [value.get(name) for name in names]
    elif isinstance(value, Sequence):
        if len(value) != dim:
            rule = f"must be {dim} numbers or None, one for each column"
            raise UsageError("steps", rule, got=str(len(value)))
        listed = value
    for each in listed:
        if each is not None and not (is_number(each) and 0.0 < each < _LARGEST):
            remedy = "give the distance of neighbouring values"
            raise UsageError("steps", "must be numbers above 0", got=shown(each), remedy=remedy)
    return tuple(None if each is None else float(each) for each in listed)


_LARGEST: Final = 1e300
MOST_CELLS = 1 << 24
MOST_BINS = 1 << 20

Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CellGrid:
    """``bins[j]`` cells of equal width along column j of a box; declared, never learned from the data.

    Privacy
    -------
    A record's cell is computed elementwise in float64 from that record's own float32 bits, so it depends on
    that record alone.

    Examples
    --------
    >>> grid = CellGrid.of(Bounds.of([(0, 10), (0, 1)], dim=2), [5, 2])
    >>> grid.codes(np.array([[-5.0, 0.4], [5.0, -0.5]], dtype=np.float32))
    array([[0, 1],
           [4, 0]])
    """

    bounds: Bounds
    bins: tuple[int, ...]

    @classmethod
    def of(cls, bounds: Bounds, bins: int | Sequence[int], *, most_cells: int | None = None) -> CellGrid:
        """Read a ``bins=`` argument: one number for all columns, or one for each.

        ``most_cells`` limits the cells of the whole box; None where a method never forms it.

        Raises
        ------
        UsageError
            A number is not an integer from 1 to 2²⁰, there are not as many as columns, or too many cells.
        """
        one = isinstance(bins, int | np.integer)
        given: list[Any] = [bins] * bounds.dim if one else list(np.atleast_1d(np.asarray(bins, object)))
        if len(given) != bounds.dim:
            raise UsageError(
                "bins", f"must be one number, or one for each of {bounds.dim} columns", got="another number"
            )
        for each in given:
            whole = isinstance(each, int | np.integer) and not isinstance(each, bool)
            if not whole or not 1 <= each <= MOST_BINS:
                raise UsageError(
                    "bins", f"must be integers from 1 to {MOST_BINS}", got="another", remedy="try 64"
                )
        grid = cls(bounds, tuple(int(each) for each in given))
        if most_cells is not None and grid.cells > most_cells:
            rule = f"must make at most {most_cells} cells together"
            raise UsageError("bins", rule, got=f"{grid.cells}", remedy="use fewer bins")
        return grid

    @property
    def cells(self) -> int:
        """The number of cells."""
        return math.prod(self.bins)

    @property
    def width(self) -> Floats:
        """The width of a cell along each column."""
        low, high = self.bounds.sides
        width: Floats = (high - low) / np.array(self.bins)
        return width

    def codes(self, rows: NDArray[np.float32]) -> Codes:
        """The cell of each record along each column; rows as ``kernel.prepare`` centres them on the box."""
        number = np.array(self.bins, dtype=np.float64)
        low = self.bounds.sides[0] - self.bounds.centre
        place = np.floor((rows.astype(np.float64) - low) / self.width)
        codes: Codes = np.clip(place, 0.0, number - 1.0).astype(np.int64)
        return codes

    def flat(self, codes: Codes) -> Codes:
        """One number for each record's cell, from 0 to ``cells − 1``, the last column fastest."""
        index = np.zeros(len(codes), np.int64)
        for column, number in enumerate(self.bins):
            index = index * number + codes[:, column]
        return index

    def count(self, rows: NDArray[np.float32]) -> Codes:
        """How many records lie in each cell, shape (cells,); secret."""
        return np.bincount(self.flat(self.codes(rows)), minlength=self.cells).astype(np.int64)

    def centres(self) -> Floats:
        """The middle of each cell in the units of the data, shape (cells, columns)."""
        codes = np.empty((self.cells, len(self.bins)), np.int64)
        index = np.arange(self.cells)
        for column in reversed(range(len(self.bins))):  # NumPy has no such arrays of more than 64 columns
            index, codes[:, column] = np.divmod(index, self.bins[column])
        return self.places(codes, 0.5)

    def places(self, codes: Codes | NDArray[np.int_], within: float | Floats) -> Floats:
        """Points in the units of the data, ``within`` (0 to 1) of the way through their cells."""
        low, high = self.bounds.sides
        points: Floats = np.clip(low + (codes + within) * self.width, low, high)
        return points


def bins_for_bandwidth(
    bounds: Bounds, bandwidths: Sequence[float], *, fraction: float, most_cells: int
) -> list[int]:
    """Bins a declared ``fraction`` of the bandwidth of their column wide, fewer where that makes more than
    ``most_cells``.

    >>> bins_for_bandwidth(Bounds.of((0, 10), dim=1), [1.0], fraction=0.5, most_cells=1000)
    [20]
    """
    spans = bounds.sides[1] - bounds.sides[0]
    cells = np.maximum(1.0, np.ceil(spans / (fraction * np.array(bandwidths))))
    # Columns that are narrower than a cell keep their one cell; the others share what is left.
    while math.prod(int(each) for each in cells) > most_cells:
        free = cells > 1.0
        excess = float(np.prod(cells)) / most_cells
        cells[free] = np.maximum(1.0, np.floor(cells[free] * min(excess ** (-1.0 / free.sum()), 0.999)))
    return [int(each) for each in cells]


@dataclass(frozen=True, slots=True)
class UnitBall(Stored):
    """The public map of a record (x, y) to features φ with ‖φ‖ ≤ 1 and a target v with |v| ≤ 1.

    Every column is clipped to its bounds and mapped to [−1, 1]; then φ = (1, u)/radius and v is the target's
    place between its bounds. A smaller ``radius`` makes the features larger against noise, and shortens
    records with ‖u‖ beyond √(radius² − 1) to that length. The default radius shortens nothing.

    Parameters
    ----------
    bounds : Bounds
        One pair for each feature, and the target's as the last.
    radius : float, optional
        Above 1. Default: √(features + 1).

    Privacy
    -------
    Everything is elementwise, or sums one record's columns in a fixed order, so the bits of a mapped record
    depend on that record alone.

    Examples
    --------
    >>> ball = UnitBall(Bounds.of([(0, 10), (0, 10), (-1, 1)], 3))
    >>> features, target = ball.of_records([[5.0, 10.0, 0.5]])
    >>> features.round(3), target
    (array([[0.577, 0.   , 0.577]]), array([0.5]))
    """

    bounds: Bounds
    radius: float | None = None

    def __post_init__(self) -> None:
        if self.radius is not None and not (math.isfinite(self.radius) and self.radius > 1.0):
            raise UsageError("radius", "must be finite and above 1", got=f"{self.radius}")

    @property
    def features(self) -> int:
        """Numbers in φ: one more than columns of x, and as many as a record has with its target."""
        return self.bounds.dim

    @property
    def length(self) -> float:
        """The radius that divides."""
        return math.sqrt(self.features) if self.radius is None else min(self.radius, math.sqrt(self.features))

    def of_records(self, data: object, *, columns: tuple[str, ...] | None = None) -> tuple[Floats, Floats]:
        """φ of shape (n, features) and v of shape (n,), of records with the target in the last column.

        Raises ``DataRefused`` for anything but a table of finite numbers of that width.
        """
        rows = as_dense(data, dim=self.features, bounds=self.bounds, columns=columns)
        half = self.bounds.half_width.astype(np.float64)
        unit = rows.astype(np.float64) / half
        inner, target = unit[:, :-1], np.ascontiguousarray(unit[:, -1])
        return self._ball(inner), target

    def _ball(self, unit: Floats) -> Floats:
        radius = self.length
        features = np.empty((len(unit), unit.shape[1] + 1))
        features[:, 0] = 1.0 / radius
        shrink = np.minimum(1.0, math.sqrt(radius**2 - 1.0) / np.maximum(norms(unit), 1e-300))
        features[:, 1:] = unit * (shrink / radius)[:, None]
        return features

    def model(self, theta: Floats) -> tuple[Floats, float]:
        """Coefficients and intercept in the units of the records, of v ≈ θ·φ."""
        half = self.bounds.half_width.astype(np.float64)
        scaled = np.asarray(theta, np.float64) * half[-1] / self.length
        slopes = scaled[1:] / half[:-1]
        centre = self.bounds.centre
        return slopes, float(scaled[0] + centre[-1] - slopes @ centre[:-1])


def norms(rows: Floats) -> Floats:
    """The length of every row, its squares summed column by column: a record's bits depend on no other."""
    total = np.zeros(len(rows))
    for column in range(rows.shape[1]):
        total += rows[:, column] * rows[:, column]
    return np.sqrt(total)


MOST_BITS = 20
FEWEST_BITS = 8


def whole_length(dim: int, bits: int) -> int:
    """A: the integer that stands for the radius, so that rounded vectors are no longer than 2^bits.

    >>> whole_length(512, 12)
    4083
    """
    return (1 << bits) - math.isqrt(dim) // 2 - 2


def clipped_to_ball(rows: Floats, radius: float) -> Floats:
    """Rows that are longer than the radius, shortened to it; each row's bits depend on that row alone."""
    # At least the radius, so that the quotient neither overflows nor warns, which would tell of a record.
    shrink = radius / np.maximum(norms(rows), radius)
    clipped: Floats = rows * shrink[:, None]
    return clipped


def whole_vectors(rows: Floats, radius: float, bits: int) -> NDArray[np.int64]:
    """Rows in the ball of this radius, rounded to integers z with ‖z‖ ≤ S = 2^bits.

    Privacy
    -------
    A row is clipped to the radius, multiplied by A/radius and rounded, each column by itself; the squares
    behind its length are summed column by column. So its bits depend on that row alone. Rounding moves each
    of d columns by at most ½, and clipping and scaling in double precision make the length wrong by less
    than d·2⁻⁴⁹ of itself. So ‖z‖ ≤ A·(1 + d·2⁻⁴⁹) + √d/2 ≤ S, with A = S − ⌊⌊√d⌋/2⌋ − 2, for every d up to
    2²⁰.
    """
    length = whole_length(rows.shape[1], bits)
    scaled = clipped_to_ball(rows, radius) * (length / radius)
    return np.rint(scaled).astype(np.int64)
