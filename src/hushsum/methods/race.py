"""The private RACE sketch as a method."""

from __future__ import annotations

from collections.abc import Sequence

from hushsum.bases.hash_rows import HashRows
from hushsum.kernels.base import Kernel
from hushsum.methods.linear import register_tally
from hushsum.records.bounds import Bounds
from hushsum.tally.tally import Tally

DEFAULT_ROWS = 1000
DEFAULT_WIDTH = 1000


def race(
    kernel: Kernel,
    *,
    rows: int = DEFAULT_ROWS,
    width: int = DEFAULT_WIDTH,
    seed: int = 0,
    bounds: Sequence[tuple[float, float]] | tuple[float, float] | None = None,
    columns: Sequence[str] | None = None,
    max_per_unit: int | None = None,
    scattered: bool = True,
) -> Tally:
    """An empty tally of hash rows, to be filled by ``add`` and made public by ``release``.

    Works in any dimension and in one pass. In one to four dimensions, grids are more accurate for the same ε.

    Parameters
    ----------
    kernel : Kernel
        A hashable kernel: Euclidean, Manhattan, angular, Jaccard or Hamming.
    rows, width : int
        The size of the table. Rows are a capacity: a pure-ε release publishes the part of them that suits it.
    seed : int
        Public seed of the hash functions. Tallies that shall merge need the same one.
    bounds : list of (low, high), or one (low, high) for all columns, optional
        Declared, never read off the data. Records are clipped to it. Useful where columns have a large
        offset.
    columns : list of str, optional
        What the columns are called, in their order. It becomes part of the fingerprint and of the released
        file, and frames are read by these names.
    max_per_unit : int, optional
        Protect persons instead of records, each with at most this many records.
    scattered : bool
        False makes the rows of version 0.1.0, which err more, to merge with tallies from then.

    Examples
    --------
    >>> import hushsum as hs
    >>> tally = hs.race(hs.EuclideanKernel(dim=2, bandwidth=1.0), rows=200, seed=7)
    >>> f = tally.add([[0.0, 0.0], [0.1, 0.0]]).release(epsilon=1.0)
    >>> f.claim.epsilon, f.claim.unit
    (1.0, 'record')

    Notes
    -----
    Coleman and Shrivastava, CCS 2021, Algorithms 1 and 2, with exact integer noise in place of a rounded
    real one.
    """
    dim = getattr(kernel, "dim", None)
    box = None if bounds is None else Bounds.of(bounds, dim if dim is not None else 1)
    names = None if columns is None else tuple(columns)
    return Tally(HashRows(kernel, rows, width, seed, box, names, scattered), max_per_unit=max_per_unit)


register_tally(
    "race",
    race,
    paper="Coleman and Shrivastava 2021",
    kernels=("euclidean", "manhattan", "angular", "jaccard", "hamming"),
)
