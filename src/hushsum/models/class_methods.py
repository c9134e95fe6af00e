"""Which method a classifier uses, and what its user should know before spending; no data comes near it."""

from __future__ import annotations

from typing import Final

from hushsum.bases.monomials import MOST_SQUARED
from hushsum.models.class_moments_rule import discriminant_basis, largest_edge, spectral_edge
from hushsum.models.parameters import NUMBER, TEXT, Parameter
from hushsum.privacy.claim import Promise
from hushsum.records.transform import Transform

AUTO, KERNEL, MEANS, DISCRIMINANT = "auto", "kernel", "means", "discriminant"
METHODS: Final = (AUTO, KERNEL, MEANS, DISCRIMINANT)
RULES: Final = ("likelihood", "map")
MOST_KERNEL_COLUMNS: Final = 32

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
RADIUS = Parameter(
    "radius",
    NUMBER,
    "For means and discriminant: the length that no record exceeds, from the middle of bounds and in "
    "units of their half-width; declared, longer records are shortened to it. 1 for vectors of "
    "length 1 and bounds from -1 to 1. Default: half of that of the box.",
    above=0,
    optional=True,
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
    if dim <= MOST_KERNEL_COLUMNS and radius is None and public is None:
        return KERNEL
    return MEANS


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
