"""The Bernstein mechanism as a method."""

from __future__ import annotations

from collections.abc import Sequence

from hushsum.bases.bernstein import BernsteinLattice
from hushsum.kernels.base import Kernel
from hushsum.kernels.registry import GAUSSIAN
from hushsum.methods.tally_methods import boxed_tally, register_tally
from hushsum.records.bounds import Bounds, DeclaredBounds
from hushsum.tally.tally import Tally

PUBLISHED = (1, 3, 7, 9, 19, 39, 99)
"""Degrees of the lattices of 2, 4, 8, 10, 20, 40 and 100 points that Coleman and Shrivastava tried; up to 20
points in three dimensions and more.
"""


def bernstein(
    kernel: Kernel,
    *,
    bounds: DeclaredBounds,
    degree: int = 19,
    iterations: int = 2,
    as_published: bool = False,
    columns: Sequence[str] | None = None,
    max_per_unit: int | None = None,
) -> Tally:
    """An empty tally of kernel sums at the points of a lattice, read through Bernstein polynomials.

    For one to three columns and smooth functions. Peaks narrower than about half the box over √degree are
    flattened unless ``iterations`` is large.

    Parameters
    ----------
    kernel : GaussianKernel
    bounds : (low, high) for all columns, a list of them, or a dictionary by column name
        Declared, never read off the data. Records are clipped to it; so are queries.
    degree : int
        The lattice has degree + 1 points in each column.
    iterations : int
        The order h of the iterated polynomials.
    as_published : bool
        Noise for a sensitivity of 1 at every lattice point, instead of what a record can really add up to.
    columns, max_per_unit
        As for :func:`hushsum.race`.

    Examples
    --------
    >>> import hushsum as hs
    >>> from hushsum.methods import bernstein
    >>> tally = bernstein(hs.GaussianKernel(dim=1, bandwidth=2.0), bounds=(0, 10))
    >>> f = tally.add([[2.0]] * 1000).release(epsilon=1.0)
    >>> bool(f([[2.0]])[0] > f([[9.0]])[0])
    True

    Notes
    -----
    Aldà and Rubinstein, AAAI 2017. With exact integer noise on values in fixed point, and the lattice filled
    through the tensor structure of the kernel.
    """

    def basis(box: Bounds, names: tuple[str, ...] | None) -> BernsteinLattice:
        return BernsteinLattice(
            kernel=kernel,
            bounds=box,
            columns=names,
            degree=degree,
            iterations=iterations,
            as_published=as_published,
        )

    return boxed_tally("bernstein", kernel, basis, bounds=bounds, columns=columns, max_per_unit=max_per_unit)


register_tally("bernstein", bernstein, role=GAUSSIAN, paper="Aldà and Rubinstein 2017", most_columns=3)
