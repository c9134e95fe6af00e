"""Scores of vectors from a text or image model: their inner products with the records, or the squares."""

from __future__ import annotations

import math
from typing import Final

from hushsum._types import Floats
from hushsum.bases.monomials import MOST_SQUARED
from hushsum.kernels.base import InnerProductKernel, Kernel
from hushsum.kernels.inner_product import DotProductKernel, PolynomialKernel
from hushsum.methods.monomials import NAME
from hushsum.models.parameters import NUMBER, Parameter
from hushsum.models.predicted_error import planned_error, share_of
from hushsum.models.public_rows import USUAL_RECORDS
from hushsum.privacy.claim import Promise
from hushsum.records.norm_clipping import clipped_to_ball
from hushsum.releases.base import ReleasedFunction

RADIUS = Parameter(
    "radius",
    NUMBER,
    "For vectors of a model: the length that no record exceeds, declared; 1 for vectors of length 1. "
    "Scores are then mean squared inner products, or mean inner products where the predicted noise "
    "is large beside 1/√columns; bandwidth, power, rows and width are not used.",
    above=0,
    optional=True,
)
METHOD: Final = NAME
MANY_COLUMNS: Final = 32
DECISIONS: Final = 20.0
"""Outliers are decided by squared inner products where their noise is so many times below 1/√columns. Looked
at on two of the four classes of AG News against a third one: squares are better at ε = 1, products at 0.1.
"""
RANKS: Final = 5.0
"""The same for counts of neighbours. Looked at on AG News: squares rank candidates better at ε = 0.1 too."""


def inner_product(
    dim: int, radius: float, promise: Promise, clear: float
) -> DotProductKernel | PolynomialKernel:
    """Squares where their noise is small for a usual number of records; looks at no data."""
    squares = PolynomialKernel(dim=dim, radius=float(radius))
    if dim <= MOST_SQUARED and clear * noise_of(squares, USUAL_RECORDS, promise) <= 1.0 / math.sqrt(dim):
        return squares
    return DotProductKernel(dim=dim, radius=float(radius))


def noise_of(kernel: Kernel, records: int, promise: Promise) -> float:
    """The predicted error of a score by inner products."""
    return planned_error(kernel, records, METHOD, bounds=None, **share_of(promise, 1))


def embedding_advice(dim: int, promise: Promise) -> list[str]:
    """What to say before hash rows are released in many columns."""
    if dim <= MANY_COLUMNS:
        return []
    said = [
        "in so many columns hash rows count near-duplicates and little else; for vectors of a text or image "
        "model declare radius, such as 1"
    ]
    if promise.pure:
        said.append("a delta lowers the noise of hash rows many times")
    return said


def in_ball(function: ReleasedFunction, queries: Floats) -> Floats:
    """Queries shortened to the radius of inner products: a long vector is not like many records."""
    kernel = function.kernel
    return clipped_to_ball(queries, kernel.radius) if isinstance(kernel, InnerProductKernel) else queries
