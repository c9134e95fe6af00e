"""Sums by class and second moments: vectors in the directions in which each bound is met, in every class."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from hushsum._types import Floats
from hushsum.auditing.adversarial_records import Pool
from hushsum.auditing.cases.monomials import opposed_directions
from hushsum.auditing.registry import BasisCases, register_basis
from hushsum.bases.base import Basis
from hushsum.bases.class_moments import ClassMoments
from hushsum.bases.monomials import SQUARE_WEIGHT


def _pool(basis: Basis, rng: np.random.Generator) -> Pool:
    """Axes, diagonals, their opposites and the pairs whose products differ most; records far outside of the
    ball and at its centre.
    """
    assert isinstance(basis, ClassMoments)
    dim = basis.dim
    level = np.ones(dim)
    vectors = [np.eye(dim)[0], level, -level, _worst_partner(basis), *opposed_directions(dim)]
    vectors += [*rng.normal(size=(3, dim))]
    rows = [basis.radius * each / np.linalg.norm(each) for each in vectors]
    rows += [np.zeros(dim), 1e30 * level, 1e-30 * level]
    records = [np.concatenate(([code], each)) for code in range(basis.classes) for each in rows]
    return [*np.tile(np.array(records, np.float32), (3, 1))]


def _worst_partner(basis: ClassMoments) -> Floats:
    """What the first axis is replaced by, so that the sums and the moments of one class move the most."""
    own, shared = basis.mean_weight - basis.shared_weight, basis.shared_weight
    mean, second = own**2 + (basis.classes - 1) * shared**2, (SQUARE_WEIGHT * basis.length) ** 2
    cosine = -min(1.0, mean / (2 * second)) if basis.moments else -1.0
    found = np.zeros(basis.dim)
    found[0], found[-1] = cosine, math.sqrt(1.0 - cosine**2)
    return found


def _example(
    classes: int,
    dim: int,
    moments: Fraction,
    *,
    radius: float = 1.0,
    by_class: bool = False,
    total: float = 1.0,
) -> ClassMoments:
    return ClassMoments.of_shares(
        classes,
        dim,
        radius,
        moment_share=moments,
        count_share=Fraction(1, 20),
        by_class=by_class,
        bits=10,
        total=total,
    )


register_basis(
    ClassMoments.name,
    BasisCases(
        _pool,
        (
            _example(2, 6, Fraction(0), radius=3.0),
            _example(3, 8, Fraction(1, 5)),
            _example(2, 4, Fraction(3, 5)),
            _example(2, 5, Fraction(1, 2), by_class=True),
            _example(3, 6, Fraction(0), total=0.5),
            _example(2, 4, Fraction(3, 5), total=0.7),
        ),
    ),
)
