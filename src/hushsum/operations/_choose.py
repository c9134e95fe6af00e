"""Choose bounds or a bandwidth from the records, privately."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import UsageError
from hushsum.kernels import Kernel, check_cap, kernel_as_json
from hushsum.methods import Choice, PrivateBounds, choose_kernel, private_bounds
from hushsum.operations._files import RecordFiles, refuse_repeated
from hushsum.planning import KernelSpec
from hushsum.privacy import PERMUTE_AND_FLIP, Budget, Claim, Promise, choice_claim
from hushsum.records import numbers_of, open_batches

Approve = Callable[[Claim], bool]


@dataclass(frozen=True, slots=True)
class ChoiceTerms:
    """What a choice costs, whom it protects, and where it is debited."""

    epsilon: float
    relation: str = "add/remove"
    max_per_unit: int | None = None
    budget: Budget | None = None
    idempotency_key: str | None = None
    insecure_noise_seed: int | None = None

    @property
    def claim(self) -> Claim:
        """What the choice will claim, known before anything is drawn."""
        return choice_claim(
            Promise.of(epsilon=self.epsilon),
            PERMUTE_AND_FLIP,
            relation=self.relation,
            max_per_unit=self.max_per_unit,
            insecure_noise_seed=self.insecure_noise_seed,
        )

    def arguments(self, units: object) -> dict[str, Any]:
        """The keyword arguments of the call."""
        return {
            "epsilon": self.epsilon,
            "relation": self.relation,
            "units": units,
            "max_per_unit": self.max_per_unit,
            "budget": self.budget,
            "idempotency_key": self.idempotency_key,
            "insecure_noise_seed": self.insecure_noise_seed,
        }


@dataclass(frozen=True, slots=True)
class BoundsChosen:
    """Bounds by column. All of it is public."""

    columns: tuple[str, ...]
    bounds: PrivateBounds

    def as_json(self) -> dict[str, Any]:
        """The bounds for a machine."""
        return {
            "bounds": [
                {"column": name, "low": low, "high": high}
                for name, (low, high) in zip(self.columns, self.bounds, strict=True)
            ],
            "claim": self.bounds.claim.in_numbers(),
        }


@dataclass(frozen=True, slots=True)
class KernelChosen:
    """The kernel that was chosen. All of it is public."""

    choice: Choice[Kernel]

    def as_json(self) -> dict[str, Any]:
        """The kernel for a machine."""
        claim = self.choice.claim
        return {
            "kernel": kernel_as_json(self.choice.candidate),
            "claim": claim.in_numbers(),
        }


def choose_bounds(
    records: RecordFiles,
    terms: ChoiceTerms,
    *,
    within: Sequence[tuple[float, float]],
    tail: float = 0.01,
    grid: int = 1000,
    approve: Approve | None = None,
) -> BoundsChosen | None:
    """Bounds for every column of files, which must fit into memory; None if ``approve`` says no.

    Raises
    ------
    UsageError
        wrong parameters, a file or column that is not there.
    DataRefused
        records that break a rule; nothing is spent.
    """
    values, names, units = _read(records, terms)
    if approve is not None and not approve(terms.claim):
        return None
    box = within[0] if len(within) == 1 else within
    return BoundsChosen(
        names, private_bounds(values, within=box, tail=tail, grid=grid, **terms.arguments(units))
    )


def choose_bandwidth(
    records: RecordFiles,
    terms: ChoiceTerms,
    *,
    kernel: KernelSpec,
    candidates: Sequence[float],
    density: float = 0.05,
    approve: Approve | None = None,
) -> KernelChosen | None:
    """One of several bandwidths for the records of files, which must fit into memory; None if ``approve``
    says no. Raises as `choose_bounds` does.
    """
    if kernel.takes_sets:
        raise UsageError(
            "kernel",
            "must have a bandwidth to choose",
            got=repr(kernel.name),
            remedy="use euclidean or manhattan",
        )
    values, names, units = _read(records, terms)
    kernels = [replace(kernel, bandwidth=each).build(len(names)) for each in candidates]
    if approve is not None and not approve(terms.claim):
        return None
    return KernelChosen(choose_kernel(values, kernels, density=density, **terms.arguments(units)))


def _read(
    records: RecordFiles, terms: ChoiceTerms
) -> tuple[NDArray[np.float64], tuple[str, ...], list[Any] | None]:
    """All records of the files, the names of their columns, and whose they are."""
    check_cap(records.unit_column, terms.max_per_unit, parameter="unit_column")
    records.cells.check_relation(str(terms.relation))
    # An invalid claim is reported before a large file is read.
    _ = terms.claim
    refuse_repeated(records.paths)
    columns: Sequence[str] | None = records.columns
    values: list[NDArray[np.float64]] = []
    units: list[Any] = []
    for path in records.paths:
        with open_batches(
            path, columns=columns, unit_column=records.unit_column, cells=records.cells
        ) as stream:
            columns = stream.column_names
            for batch, persons in stream:
                parts = numbers_of(batch, dim=len(columns))
                values.append(np.concatenate([part.values.astype(np.float64) for part in parts], axis=1))
                units.extend([] if persons is None else persons.to_pylist())
    if columns is None:
        raise UsageError("files", "must be at least one file of records", got="none")
    return np.concatenate(values), tuple(columns), units if records.unit_column is not None else None
