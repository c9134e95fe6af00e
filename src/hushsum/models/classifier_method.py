"""Which method a classifier uses, and what its user should know before spending; no data comes near it."""

from __future__ import annotations

import math
from typing import Final

from hushsum.bases.monomials import MOST_SQUARED
from hushsum.models.class_moments_rule import discriminant_basis, largest_edge, spectral_edge
from hushsum.models.column_scaling import quantiles_are_useful
from hushsum.models.parameters import INTEGER, NUMBER, TEXT, Parameter
from hushsum.privacy.claim import Promise
from hushsum.records.transform import Transform

AUTO, KERNEL, MEANS, DISCRIMINANT = "auto", "kernel", "means", "discriminant"
METHODS: Final = (AUTO, KERNEL, MEANS, DISCRIMINANT)
RULES: Final = ("likelihood", "map")
MOST_KERNEL_COLUMNS: Final = 32
_COLUMNS_AT_ONE: Final = 8
"""Up to so many columns a bandwidth of half the declared range suits the tables of the benchmark. On sentence
embeddings of AG News (384 columns, ε = 1, δ = 1e-5) the rule of √(columns/8) reaches 0.79, without growth
0.37.
"""
_MOST_ROWS: Final = 1000
_ROWS_AT_ONE: Final = 150
"""Rows of a class at ε = 1. Decisions fall where the sums of the classes are alike and small beside the
noise, so fewer rows serve than elsewhere. Measured on pulsars, occupancy and RNA at ε from 0.1 to 10: the
best number grows about as √ε, and the optimum is flat.
"""

BOUNDS, QUANTILES = "bounds", "quantiles"
SCALINGS: Final = (AUTO, BOUNDS, QUANTILES)

METHOD = Parameter(
    "method",
    TEXT,
    "What is released of each class: a sketch (kernel), the sum of its vectors (means), or that and "
    "second moments (discriminant). auto: discriminant where the predicted noise in second moments "
    "is below 1/√columns of the squared radius; else kernel in up to 32 columns, and means in more "
    "or where a radius or public rows are given.",
    choices=METHODS,
)
RULE = Parameter(
    "rule",
    TEXT,
    "Compare the means f_c(q)/N_c, as if all classes were as frequent (likelihood), or the sums "
    "f_c(q), so that frequent classes weigh more (map). The tails of the kernel are long, so that "
    "the sums of a frequent class outweigh a rare one: the first is usually better even where "
    "frequencies differ.",
    choices=RULES,
)
ROWS = Parameter(
    "rows",
    INTEGER,
    "Rows of each class's sketch; a release with pure ε publishes no more of them than suit the "
    "class. 'auto': 150·√ε, or 1000 with delta, whose noise does not grow with rows.",
    choices=("auto",),
    at_least=1,
)
RADIUS = Parameter(
    "radius",
    NUMBER,
    "For means and discriminant: the length that no record exceeds, from the middle of bounds and in "
    "units of their half-width; declared, longer records are shortened to it. 1 for vectors of "
    "length 1 and bounds from -1 to 1. Default: half of that of the box.",
    above=0,
    optional=True,
)
COLUMN_SCALING = Parameter(
    "column_scaling",
    TEXT,
    "For means and discriminant: what columns are measured in, the declared bounds, or two private quantiles "
    "of each column and beyond them the logarithm of the distance (quantiles), which suits skewed columns in "
    "wide bounds. A fifth of ε pays for the quantiles, and records are kept, in secret, until the release. "
    "auto: quantiles with discriminant in up to 32 columns, without radius and public, where the quantiles "
    "are predicted to be off by at most half of the declared number of records; else bounds.",
    choices=SCALINGS,
)


def chosen_class_method(
    method: str,
    dim: int,
    *,
    classes: int,
    records: int,
    promise: Promise,
    radius: float | None,
    public: object,
    column_scaling: str = AUTO,
) -> str:
    """The method, or of ``auto`` the one with the smallest predicted error, from declared quantities."""
    if method != AUTO:
        return method
    if isinstance(public, Transform):
        dim = public.dim
    if dim <= MOST_SQUARED:
        basis = discriminant_basis(classes, dim, records, promise)
        if spectral_edge(basis, promise, records) <= largest_edge(dim):
            return DISCRIMINANT
    if dim <= MOST_KERNEL_COLUMNS and radius is None and public is None and column_scaling != QUANTILES:
        return KERNEL
    return MEANS


def scales_by_quantiles(
    column_scaling: str,
    method: str,
    dim: int,
    *,
    records: int,
    promise: Promise,
    radius: float | None,
    public: object,
) -> bool:
    """Whether columns are measured in private quantiles, by declared quantities alone."""
    if column_scaling != AUTO:
        return column_scaling == QUANTILES
    if method != DISCRIMINANT or radius is not None or public is not None:
        return False
    return quantiles_are_useful(dim, records, promise)


def bandwidth_growth(columns: int) -> float:
    """How much larger the default bandwidth is in so many columns, where records are farther apart."""
    return max(1.0, math.sqrt(columns / _COLUMNS_AT_ONE))


def default_rows(promise: Promise) -> int:
    """The rows of the sketch of one class."""
    if not promise.pure or promise.epsilon is None:
        return _MOST_ROWS
    return min(_MOST_ROWS, max(1, math.ceil(_ROWS_AT_ONE * math.sqrt(promise.epsilon))))


def class_advice(
    method: str, dim: int, *, automatic: bool, two_classes: bool, pure: bool, undeclared: bool
) -> list[str]:
    """Where another model or parameter is usually better."""
    found = []
    if two_classes and pure and dim <= MOST_KERNEL_COLUMNS:
        found.append(
            "for two classes under pure ε consider PrivateLinearSVC with method='objective' too: on "
            "tables of measurements it was up to 3 points better, and far worse for a rare class"
        )
    if automatic and method == KERNEL:
        found.append(
            "second moments would be hidden by noise, so sketches are compared; where a plane separates "
            "the classes method='means' is better, and a delta or more records help"
        )
    if dim > MOST_KERNEL_COLUMNS and method == KERNEL:
        found.append(
            "in so many columns sketches see little; for vectors of a known length, such as 1, leave method "
            "out and declare that length as radius"
        )
    elif dim > MOST_KERNEL_COLUMNS and undeclared:
        found.append(
            "in so many columns declare a radius if records have a known length, such as 1: the noise is "
            "otherwise as large as half of the box"
        )
    return found
