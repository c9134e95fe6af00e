"""Predict what a release will cost in error, from declared quantities or public data."""

from __future__ import annotations

import filecmp
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hushsum.bases.base import Reading
from hushsum.errors import Parameter, UsageError
from hushsum.jobs.kernel_and_method import KernelChoice, step_of_columns
from hushsum.kernels.base import Kernel
from hushsum.methods.registry import all_methods
from hushsum.planning.error_by_trust import CENTRAL
from hushsum.planning.plan import plan
from hushsum.planning.plan_result import Plan
from hushsum.planning.public_sample import kernel_of_sample
from hushsum.privacy.calibration import COUNT_SHARE
from hushsum.records.arrow import pyarrow
from hushsum.records.cell_format import PLAIN, CellFormat
from hushsum.records.record_batches import open_batches

MOST_PUBLIC_RECORDS = 1_000_000
"""As many records of a public file are read; more would not change the estimate."""


@dataclass(frozen=True, slots=True)
class PublicFile:
    """A file of public records that resemble the private ones.

    ``left_out`` is a column that is not read, such as the target of a model. ``name`` is what error messages
    call the file; by default its path. ``cells`` are read as declared.
    """

    path: str
    columns: tuple[str, ...] | None = None
    set_column: str | None = None
    left_out: str | None = None
    name: str | None = None
    cells: CellFormat = PLAIN


@dataclass(frozen=True, slots=True)
class ReleasePlanned:
    """A plan, and which methods could be compared too if bounds were declared."""

    plan: Plan
    needing_bounds: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The plan for a machine; the best option is marked."""
        best = self.plan.best
        return {
            "records": self.plan.records,
            "density": self.plan.density,
            "basis": self.plan.basis,
            "options": [
                {**each, "best": option is best}
                for each, option in zip(self.plan.as_dicts(), self.plan.options, strict=True)
            ],
        }


def methods_needing_bounds(kernel: Kernel) -> tuple[str, ...]:
    """The methods that could count this kernel if bounds were declared.

    >>> from hushsum.kernels import GaussianKernel
    >>> "grid" in methods_needing_bounds(GaussianKernel(dim=2, bandwidth=1.0))
    True
    """
    counting = (each for each in all_methods() if each.predict is not None and each.tally is not None)
    return tuple(each.name for each in counting if each.needs_bounds and each.suits(kernel))


def plan_release(
    *,
    records: int,
    kernel: KernelChoice,
    dim: int | None = None,
    epsilon: Sequence[float] | None = None,
    delta: float | None = None,
    rho: float | None = None,
    rows: Sequence[int] | None = None,
    width: int | None = None,
    method: str = "auto",
    bounds: tuple[tuple[float, float], ...] | tuple[float, float] | None = None,
    density: float | None = None,
    public: PublicFile | None = None,
    relation: str = "add/remove",
    max_per_unit: int | None = None,
    reading: Reading | None = None,
    error: float | None = None,
    steps: Sequence[float] | None = None,
    trust: str = CENTRAL,
    sites: int | None = None,
    dropouts: int = 0,
    colluding: int | None = None,
) -> ReleasePlanned:
    """The predicted error of each method of release; see :func:`hushsum.plan`. No private data is read.

    The number of columns is taken from the public file where ``dim`` is not given. With the ``reading`` of a
    tally that exists the plan is for that one, and its kernel replaces ``kernel``. Otherwise the best option
    is the one that a release of records takes. ``steps`` has one number for all columns, or one for each, 0
    for none.
    """
    if density is not None and public is not None:
        raise UsageError(
            parameter="density",
            rule=("and ", Parameter("public"), " exclude each other"),
            remedy="give one of them",
        )
    sample = None if public is None else read_public(public)
    if dim is None and sample is not None and not kernel.takes_sets:
        dim = int(sample.num_columns)
    if sample is not None and reading is None and kernel.bandwidth is None and not kernel.takes_sets:
        found = kernel_of_sample(
            kernel.name,
            dim=dim,
            bandwidth=None,
            public=sample,
            records=records,
            bounds=bounds,
            scale=kernel.scale,
        )
        kernel = kernel.like(found)
    chosen = kernel.example(dim) if reading is None else reading.kernel
    return ReleasePlanned(
        needing_bounds=methods_needing_bounds(chosen) if bounds is None else (),
        plan=plan(
            records=records,
            kernel=chosen,
            epsilon=None if epsilon is None else list(epsilon),
            delta=delta,
            rho=rho,
            rows=None if rows is None else list(rows),
            width=width,
            method=method,
            bounds=bounds,
            density=density,
            public=sample,
            relation=relation,
            max_per_unit=max_per_unit,
            reading=reading,
            error=error,
            steps=None if steps is None else step_of_columns(steps),
            # A tally that exists, or is made at several sites, is released with the usual share.
            count_share=COUNT_SHARE if reading is not None or trust != CENTRAL else None,
            tallies_only=reading is not None or trust != CENTRAL,
            trust=trust,
            sites=sites,
            dropouts=dropouts,
            colluding=colluding,
        ),
    )


def refuse_private_file(public: PublicFile, paths: Sequence[str]) -> None:
    """Refuse a file of private records in place of public ones, by its path or by its bytes.

    Raises
    ------
    UsageError
        for such a file. A part of the private records in another file is not noticed: whoever declares a
        file public answers for it.
    """
    for path in paths:
        if path == public.path or (_is_file(path) and _is_file(public.path) and _alike(path, public.path)):
            raise UsageError(
                parameter="public",
                rule="must be a file of public records",
                got="the private records",
                remedy="give rows that anybody may see, or leave it out",
            )


def _is_file(path: str) -> bool:
    return Path(path).is_file()


def _alike(one: str, other: str) -> bool:
    return filecmp.cmp(one, other, shallow=False)


def read_public(public: PublicFile) -> Any:
    """The first records of a public file, as an Arrow table."""
    batches: list[Any] = []
    total = 0
    with open_batches(
        public.path,
        columns=public.columns,
        set_column=public.set_column,
        unit_column=public.left_out,
        name=public.name,
        cells=public.cells,
    ) as stream:
        for batch, _ in stream:
            has = public.left_out is not None and public.left_out in batch.schema.names
            batches.append(batch.drop_columns([public.left_out]) if has else batch)
            total += batch.num_rows
            if total >= MOST_PUBLIC_RECORDS:
                break
    return pyarrow().Table.from_batches(batches).slice(0, MOST_PUBLIC_RECORDS)
