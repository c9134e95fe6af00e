"""Choose bounds or a bandwidth from the records, privately."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import UsageError
from hushsum.kernels import Kernel, check_cap, kernel_as_json, kernel_in_words
from hushsum.methods import choose_kernel, private_bounds
from hushsum.operations._files import RecordFiles
from hushsum.planning import KernelSpec
from hushsum.privacy import PERMUTE_AND_FLIP, Claim, ReleaseRequest, choice_claim
from hushsum.records import numbers_of, open_batches, refuse_repeated


@dataclass(frozen=True, slots=True)
class BoundsChosen:
    """Bounds by column. All of it is public."""

    bounds: dict[str, tuple[float, float]]
    claim: Claim

    def facts(self) -> list[tuple[str, str]]:
        """The bounds, and the option that takes them, in words."""
        option = ",".join(f"{low:g}:{high:g}" for low, high in self.bounds.values())
        named = [(name, f"{low:g} to {high:g}") for name, (low, high) in self.bounds.items()]
        return [*named, ("option", f"--bounds {option}")]

    def as_json(self) -> dict[str, Any]:
        """The bounds for a machine."""
        listed = [{"column": name, "low": low, "high": high} for name, (low, high) in self.bounds.items()]
        return {"bounds": listed, "claim": self.claim.in_numbers()}


@dataclass(frozen=True, slots=True)
class KernelChosen:
    """The kernel that was chosen. All of it is public."""

    kernel: Kernel
    claim: Claim

    def facts(self) -> list[tuple[str, str]]:
        """The kernel in words."""
        return [("kernel", kernel_in_words(self.kernel))]

    def as_json(self) -> dict[str, Any]:
        """The kernel for a machine."""
        return {"kernel": kernel_as_json(self.kernel), "claim": self.claim.in_numbers()}


def choose_bounds(
    records: RecordFiles,
    request: ReleaseRequest,
    *,
    within: Sequence[tuple[float, float]],
    tail: float = 0.01,
    grid: int = 1000,
    approve: Callable[[Claim], bool] | None = None,
) -> BoundsChosen | None:
    """Bounds for every column of files, which must fit into memory; None if ``approve`` says no.

    Raises
    ------
    UsageError
        wrong parameters, a file or column that is not there.
    DataRefused
        records that break a rule; nothing is spent.
    """
    claim = _claim(records, request)
    values, names, units = _read(records)
    if approve is not None and not approve(claim):
        return None
    box = within[0] if len(within) == 1 else within
    found = private_bounds(
        values, within=box, tail=tail, grid=grid, units=units, **_arguments(records, request)
    )
    return BoundsChosen(dict(zip(names, found, strict=True)), found.claim)


def choose_bandwidth(
    records: RecordFiles,
    request: ReleaseRequest,
    *,
    kernel: KernelSpec,
    candidates: Sequence[float],
    density: float = 0.05,
    approve: Callable[[Claim], bool] | None = None,
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
    claim = _claim(records, request)
    values, names, units = _read(records)
    kernels = [replace(kernel, bandwidth=each).build(len(names)) for each in candidates]
    if approve is not None and not approve(claim):
        return None
    found = choose_kernel(values, kernels, density=density, units=units, **_arguments(records, request))
    return KernelChosen(found.candidate, found.claim)


def _claim(records: RecordFiles, request: ReleaseRequest) -> Claim:
    """The claim of the choice, checked before a large file is read."""
    check_cap(records.unit_column, records.max_per_unit, parameter="unit_column")
    records.cells.check_relation(str(request.relation))
    return choice_claim(
        request.promise,
        PERMUTE_AND_FLIP,
        relation=request.relation,
        max_per_unit=records.max_per_unit,
        insecure_noise_seed=request.insecure_noise_seed,
    )


def _arguments(records: RecordFiles, request: ReleaseRequest) -> dict[str, Any]:
    """What every private choice takes."""
    names = ("epsilon", "relation", "budget", "idempotency_key", "insecure_noise_seed")
    return {"max_per_unit": records.max_per_unit, **{name: getattr(request, name) for name in names}}


def _read(records: RecordFiles) -> tuple[NDArray[np.float64], tuple[str, ...], list[Any] | None]:
    """All records of the files, the names of their columns, and whose they are."""
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
