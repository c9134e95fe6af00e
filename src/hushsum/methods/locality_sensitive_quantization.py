"""Locality-sensitive quantization as published: features, and the fast Gauss transform."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hushsum.bases.box_polynomials import BoxPolynomials, degrees_of
from hushsum.bases.cosine_features import CosineFeatures
from hushsum.bases.declared_box import DEFAULT_SCALE, gaussian_width
from hushsum.kernels.base import Kernel
from hushsum.kernels.parameters import positive_integer
from hushsum.kernels.registry import GAUSSIAN
from hushsum.methods.tally_methods import boxed_tally, register_tally
from hushsum.records.bounds import Bounds, DeclaredBounds
from hushsum.tally.tally import Tally

MAX_ORDER = 12
_ANYWHERE = (-1e38, 1e38)


def lsq_rff(
    kernel: Kernel,
    *,
    bounds: DeclaredBounds | None = None,
    features: int = 200,
    seed: int = 0,
    columns: Sequence[str] | None = None,
    max_per_unit: int | None = None,
) -> Tally:
    """An empty tally of random cosine features, one phase each, as published; any dimension.

    Kept as a peer to compare with: paired features of one frequency have half the noise and no random phase.

    Parameters
    ----------
    kernel : GaussianKernel
    bounds : (low, high) for all columns, a list of them, or a dictionary by column name, optional
        Records are clipped to it. Features are bounded without.
    features : int
        I: the error of the method is about 1/√I, that of the noise about I^½/(ε·n).
    seed : int
        Public seed of frequencies and phases. Tallies that shall merge need the same one.
    columns, max_per_unit
        As for :func:`hushsum.race`.

    Examples
    --------
    >>> import hushsum as hs
    >>> from hushsum.methods import lsq_rff
    >>> tally = lsq_rff(hs.GaussianKernel(dim=5, bandwidth=1.0), features=400, seed=7)
    >>> f = tally.add([[0.0] * 5] * 10_000).release(epsilon=1.0)
    >>> bool(f([[0.0] * 5])[0] > f([[9.0] * 5])[0])
    True

    Notes
    -----
    Wagner, Naamad and Mishra, ICML 2023. With exact integer noise on features in fixed point.
    """

    def basis(box: Bounds, names: tuple[str, ...] | None) -> CosineFeatures:
        return CosineFeatures(kernel=kernel, bounds=box, columns=names, features=features, seed=seed)

    box = _ANYWHERE if bounds is None else bounds
    return boxed_tally("lsq_rff", kernel, basis, bounds=box, columns=columns, max_per_unit=max_per_unit)


def lsq_fgt(
    kernel: Kernel,
    *,
    bounds: DeclaredBounds,
    order: int = 3,
    columns: Sequence[str] | None = None,
    max_per_unit: int | None = None,
) -> Tally:
    """An empty tally of monomials in boxes of √2 bandwidths, as published; low dimension.

    Kept as a peer to compare with: :func:`hushsum.methods.hermite` cuts less off for the same noise.

    Parameters
    ----------
    kernel : GaussianKernel
    bounds : (low, high) for all columns, a list of them, or a dictionary by column name
        Declared, never read off the data. Records are clipped to it.
    order : int
        ρ: degrees 0, …, ρ − 1 in each column, and boxes within √ρ sides of a query are read.
    columns, max_per_unit
        As for :func:`hushsum.race`.

    Examples
    --------
    >>> import hushsum as hs
    >>> from hushsum.methods import lsq_fgt
    >>> tally = lsq_fgt(hs.GaussianKernel(dim=1, bandwidth=1.0), bounds=(0, 10), order=4)
    >>> tally.basis.shape
    (8, 4)

    Notes
    -----
    Wagner, Naamad and Mishra, ICML 2023: offsets are within half a side, so a monomial of degree j is within
    2^−j, and the noise is for the sum of these, (2 − 2^(1−ρ))^d.
    """
    highest = positive_integer("order", order, at_most=MAX_ORDER) - 1

    def basis(box: Bounds, names: tuple[str, ...] | None) -> BoxPolynomials:
        degrees = degrees_of(box.dim, highest, every_column=True)
        return BoxPolynomials(
            bounds=box,
            columns=names,
            side=math.sqrt(2.0) * gaussian_width(kernel, "lsq_fgt"),
            order=highest,
            weights=tuple(max(1, DEFAULT_SCALE >> sum(degree)) for degree in degrees),
            polynomials="monomials",
            every_column=True,
        )

    return boxed_tally("lsq_fgt", kernel, basis, bounds=bounds, columns=columns, max_per_unit=max_per_unit)


PAPER = "Wagner, Naamad and Mishra 2023"
register_tally("lsq_rff", lsq_rff, role=GAUSSIAN, paper=PAPER, needs_bounds=False)
register_tally("lsq_fgt", lsq_fgt, role=GAUSSIAN, paper=PAPER, most_columns=4)
