"""Predict what a release will cost in error, from declared quantities or public data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from hushsum.bases.base import Reading
from hushsum.errors import Parameter, UsageError
from hushsum.jobs.kernel_and_method import KernelChoice, step_of_columns
from hushsum.kernels.base import ColumnKernel
from hushsum.methods.registry import all_methods
from hushsum.planning.plan import Plan, plan
from hushsum.planning.public_sample import kernel_of_sample
from hushsum.privacy.calibration import COUNT_SHARE
from hushsum.records.arrow import pyarrow
from hushsum.records.streams import open_batches

MOST_PUBLIC_RECORDS = 1_000_000
"""As many records of a public file are read; more would not change the estimate."""


@dataclass(frozen=True, slots=True)
class PublicFile:
    """A file of public records that resemble the private ones."""

    path: str
    columns: tuple[str, ...] | None = None
    set_column: str | None = None


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
) -> ReleasePlanned:
    """The predicted error of each method of release; see :func:`hushsum.plan`. No private data is read.

    The number of columns is taken from the public file where ``dim`` is not given. With the ``reading`` of a
    tally that exists the plan is for that one, and its kernel replaces ``kernel``. Methods that count in a
    tally are compared. ``steps`` has one number for all columns, or one for each, 0 for none.
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
        found = kernel_of_sample(kernel.name, dim=dim, bandwidth=None, public=sample, records=records)
        kernel = replace(kernel, bandwidth=found.bandwidth) if isinstance(found, ColumnKernel) else kernel
    chosen = kernel.example(dim) if reading is None else reading.kernel
    counting = (each for each in all_methods() if each.predict is not None and each.tally is not None)
    bounded = (each for each in counting if each.needs_bounds)
    return ReleasePlanned(
        needing_bounds=tuple(each.name for each in bounded if bounds is None and each.suits(chosen)),
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
            # What a release of a tally takes unless another share is given.
            count_share=COUNT_SHARE,
            tallies_only=True,
        ),
    )


def read_public(public: PublicFile) -> Any:
    """The first records of a public file, as an Arrow table."""
    batches: list[Any] = []
    total = 0
    with open_batches(public.path, columns=public.columns, set_column=public.set_column) as stream:
        for batch, _ in stream:
            batches.append(batch)
            total += batch.num_rows
            if total >= MOST_PUBLIC_RECORDS:
                break
    return pyarrow().Table.from_batches(batches).slice(0, MOST_PUBLIC_RECORDS)
