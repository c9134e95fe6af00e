"""Sums of monomials as a method: inner products and their squares, without approximation."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hushsum.errors import UsageError
from hushsum.kernels import INNER_PRODUCT, InnerProductKernel, Kernel
from hushsum.records import DeclaredBounds, OnnxTransform, Transform, declared_bounds
from hushsum.tables import SQUARE_WEIGHT, Monomials, Reading
from hushsum.tally import Tally

from ._method import Method, register
from ._prediction import HEADER_BYTES, NORMAL_MEAN_ABSOLUTE, Option, PredictionRequest, errors_at_densities

__all__ = ["MONOMIALS", "monomials"]

MONOMIALS = "monomials"
_NANOSECONDS_NUMBER = 6.0
_NANOSECONDS_PRODUCT = 0.1


def monomials(
    kernel: Kernel,
    *,
    bits: int = 12,
    bounds: DeclaredBounds | None = None,
    columns: Sequence[str] | None = None,
    max_per_unit: int | None = None,
    transform: Transform | OnnxTransform | None = None,
) -> Tally:
    """An empty tally of the records' coordinates, or of products of two of them, for inner products.

    For vectors of a model in any number of columns. Answers have no error but the noise of the claim, which
    with δ or ρ does not grow with the columns. Under pure ε it grows as √columns for the dot product, and as
    the columns for its square.

    Parameters
    ----------
    kernel : InnerProductKernel
        `DotProductKernel` or `PolynomialKernel`, with the declared radius that records are clipped to.
    bits : int
        Of the integers that coordinates are rounded to.
    bounds
        None: a ball is declared with the kernel's ``radius`` instead.
    columns, max_per_unit
        As for `race`.
    transform : Transform or OnnxTransform, optional
        The public transformation that made the vectors. The caller applies it; its digest becomes part of the
        fingerprint, so that only tallies of one transformation merge.

    Examples
    --------
    >>> import hushsum as hs
    >>> tally = hs.methods.monomials(hs.kernels.DotProductKernel(dim=2))
    >>> f = tally.add([[1.0, 0.0], [0.6, 0.8]] * 500).release(epsilon=1.0, delta=1e-6)
    >>> bool(abs(f([[1.0, 0.0]])[0] - 0.8) < 0.05)
    True

    Notes
    -----
    The sum of vectors of bounded length with Gaussian noise is the noisy mean of Dwork, Kenthapadi, McSherry,
    Mironov and Naor (2006), here in integers.
    """
    INNER_PRODUCT.check(kernel, MONOMIALS)
    if bounds is not None:
        remedy = "declare the kernel's radius instead"
        raise UsageError("bounds", f"must be left out: the {kernel.name} kernel takes none", remedy=remedy)
    _, names = declared_bounds(None, dim=kernel.dim or 1, columns=columns)
    digest = None if transform is None else transform.digest
    return Tally(Monomials(kernel, bits, names, digest), max_per_unit=max_per_unit)


def predict(request: PredictionRequest) -> list[Option]:
    """The only option of this method, if its file is small enough."""
    if request.bounds is not None:
        return []
    return _options(request, Monomials(request.kernel))


def predict_reading(request: PredictionRequest, reading: Reading) -> list[Option]:
    """The option that releases monomials that exist."""
    return _options(request, reading.basis) if isinstance(reading.basis, Monomials) else []


def _options(request: PredictionRequest, basis: Monomials) -> list[Option]:
    """Errors are those at a query of the declared length."""
    assert isinstance(basis.kernel, InnerProductKernel)
    squares = basis.kernel.inner_degree() == 2
    weight = 1.0 / SQUARE_WEIGHT if squares else 1.0
    request = request.with_best_share(request.calibration(basis).table.variance * (weight / basis.unit) ** 2)
    calibration = request.calibration(basis)
    drawn = calibration.table
    noise = math.sqrt(drawn.variance) * weight / basis.unit / request.records
    number = request.count_error(calibration)
    counted = request.all_densities * math.sqrt(number.variance) / request.records
    total = NORMAL_MEAN_ABSOLUTE * np.hypot(noise, counted)
    whole = request.mean_reciprocal(number) * total
    dim, cells = basis.kernel.dim, basis.shape[1]
    work = dim * _NANOSECONDS_NUMBER + (cells * _NANOSECONDS_PRODUCT if squares else 0.0)
    request = request.kept_by(calibration)
    option = Option(
        method=MONOMIALS,
        request=request,
        settings={},
        mechanism=drawn.mechanism,
        shape=basis.shape,
        **errors_at_densities(total, np.zeros(1), whole),
        size=int(cells * request.cell_bytes(drawn, 0.0, rounding=0.001)) + HEADER_BYTES,
        seconds=request.records * work * 1e-9,
    )
    return [option] if option.size <= request.max_bytes else []


register(
    Method(
        name=MONOMIALS,
        tally=monomials,
        role=INNER_PRODUCT,
        paper="Dwork, Kenthapadi, McSherry, Mironov and Naor 2006",
        needs_bounds=False,
        predict=predict,
        predict_reading=predict_reading,
    )
)
