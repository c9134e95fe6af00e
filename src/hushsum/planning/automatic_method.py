"""Which method and sizes ``method="auto"`` takes, and what of a release request follows from them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TypedDict

from hushsum.errors import UsageError
from hushsum.kernels.base import Kernel
from hushsum.methods.prediction_request import Option
from hushsum.methods.registry import Method, all_methods, method_named
from hushsum.planning.plan import AUTO, MAX_BYTES, MAX_SECONDS, plan
from hushsum.privacy.claim import Relation
from hushsum.privacy.release_request import PURE_MECHANISMS
from hushsum.records.bounds import DeclaredBounds, declared_bounds
from hushsum.records.declared_steps import DeclaredSteps, Steps, declared_steps
from hushsum.tally.tally import Tally

UNDECLARED = 100_000
"""The number of records that sizes are chosen for where none is declared: its choice is near the best from a
tenth to ten times as many.
"""


def best_option(
    kernel: Kernel,
    *,
    epsilon: float | None,
    delta: float | None,
    rho: float | None,
    bounds: DeclaredBounds | None,
    method: str,
    records: int | None,
    relation: str | Relation,
    mechanism: str | None,
    rows: int | str,
    count_share: float | None,
    rounded: bool | None,
    width: int | None,
    columns: Sequence[str] | None = None,
    steps: DeclaredSteps | None = None,
    max_per_unit: int | None = None,
    max_bytes: int = MAX_BYTES,
    max_seconds: float = MAX_SECONDS,
    tallies_only: bool = False,
    public: object = None,
) -> Option:
    """The option that :func:`release` takes; without a declared number of records, for a usual one."""
    # More can be chosen of the release of a tally, and only a tally counts persons.
    of_a_tally = (mechanism, count_share, rounded, max_per_unit) != (None,) * 4 or rows != "auto"
    return plan(
        records=UNDECLARED if records is None else records,
        kernel=kernel,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        bounds=bounds,
        method=_with_settings(method, _given_sizes(rows, width)),
        rows=rows if isinstance(rows, int) else None,
        width=width,
        relation=relation,
        mechanism=mechanism if mechanism in PURE_MECHANISMS else None,
        count_share=count_share,
        max_per_unit=max_per_unit,
        max_bytes=max_bytes,
        max_seconds=max_seconds,
        steps=_steps(steps, kernel, bounds, columns),
        comparison=False,
        tallies_only=tallies_only or of_a_tally,
        public=public,
    ).best


def planned_sizes(
    option: Option, *, records: int | None, rows: int | str, width: int | None
) -> dict[str, int]:
    """What replaces the sizes of an option in its tally: those given, and where no number of records is
    declared those that suit any.
    """
    undeclared = method_named(option.method).undeclared_sizes if records is None else {}
    return {**undeclared, **_given_sizes(rows, width)}


def planned_options(
    option: Option,
    *,
    records: int | None,
    delta: float | None,
    rows: int | str,
    count_share: float | None,
    rounded: bool | None,
) -> PlannedOptions:
    """What is requested of the release of an option's tally, where the plan may decide."""
    return {
        # Pure ε where the best option keeps it.
        "delta": delta if option.delta else None,
        "rows": _published_rows(option, records, rows),
        "count_share": option.count_share if count_share is None else count_share,
        "rounded": option.rounded if rounded is None else rounded,
    }


def _published_rows(option: Option, records: int | None, rows: int | str) -> int | str:
    """What was planned for a declared number of records, else what suits the paid count. The rows of least
    bound are too many for most data: of a method that has them, fewer are published in either case.
    """
    if records is None or rows != "auto" or method_named(option.method).undeclared_sizes:
        return rows
    return option.rows


class PlannedOptions(TypedDict):
    """The parameters of a release request that follow from a plan unless they are given."""

    delta: float | None
    rows: int | str
    count_share: float | Fraction
    rounded: bool | None


def _given_sizes(rows: int | str, width: int | None) -> dict[str, int]:
    sizes = {"rows": None if isinstance(rows, str) else rows, "width": width}
    return {name: value for name, value in sizes.items() if value is not None}


def planned_tally(
    option: Option,
    kernel: Kernel,
    *,
    bounds: DeclaredBounds | None,
    columns: Sequence[str] | None = None,
    seed: int = 0,
    max_per_unit: int | None = None,
    **sizes: int,
) -> Tally:
    """An empty tally of the method and the sizes of an option; ``sizes`` replace those.

    >>> import hushsum as hs
    >>> kernel = hs.GaussianKernel(dim=1, bandwidth=1.0)
    >>> best = hs.plan(records=10_000, kernel=kernel, bounds=(0, 10), epsilon=1.0).best
    >>> planned_tally(best, kernel, bounds=(0, 10)).basis.name
    'grid-weights'
    """
    method = method_named(option.method)
    assert method.tally is not None
    settings = {**option.sizes, **sizes}
    if "seed" in method.settings:
        settings["seed"] = seed
    return method.tally(kernel, bounds=bounds, columns=columns, max_per_unit=max_per_unit, **settings)


def _steps(
    steps: DeclaredSteps | None, kernel: Kernel, bounds: DeclaredBounds | None, names: Sequence[str] | None
) -> Steps | None:
    """One step, or None, for each column, in their order."""
    if steps is None:
        return None
    if kernel.dim is None or bounds is None:
        raise UsageError(
            parameter="steps",
            rule="need the bounds of columns of numbers",
            got="no bounds",
            remedy="declare bounds, or leave steps out",
        )
    box, known = declared_bounds(bounds, dim=kernel.dim, columns=names)
    assert box is not None
    return declared_steps(steps, box, known)


def _with_settings(name: str, given: dict[str, int]) -> str:
    """The method, or under ``"auto"`` the one planned method that has the given sizes."""

    def takes(method: Method) -> bool:
        return method.predict is not None and set(given) <= set(method.settings)

    if name != AUTO:
        if not takes(method_named(name)):
            raise UsageError(
                rule=f"{name} has no {' or '.join(given)}", remedy="leave that out, or choose another method"
            )
        return name
    fitting = [method.name for method in all_methods() if takes(method)]
    return fitting[0] if given and len(fitting) == 1 else AUTO
