"""Choose bounds or a bandwidth from the records, privately."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import UsageError
from hushsum.kernels import check_cap, kernel_as_json, kernel_in_words
from hushsum.methods import choose_kernel, private_bounds
from hushsum.planning import KernelSpec
from hushsum.privacy import PERMUTE_AND_FLIP, Claim, ReleaseRequest, choice_claim
from hushsum.records import numbers_of, refuse_repeated

from ._files import RecordFiles, open_file


@dataclass(frozen=True, slots=True)
class Chosen:
    """What was chosen, in words and as JSON, and the claim of the choice. All of it is public."""

    facts: list[tuple[str, str]]
    chosen: dict[str, Any]
    claim: Claim

    def as_json(self) -> dict[str, Any]:
        """The choice for a machine."""
        return {**self.chosen, "claim": self.claim.in_numbers()}


def choose_bounds(
    records: RecordFiles,
    request: ReleaseRequest,
    *,
    within: Sequence[tuple[float, float]],
    tail: float = 0.01,
    grid: int = 1000,
    approve: Callable[[Claim], bool] | None = None,
) -> Chosen | None:
    """Bounds for every column of files, which must fit into memory; None if ``approve`` says no.

    Raises
    ------
    UsageError
        wrong parameters, a file or column that is not there.
    DataRefused
        records that break a rule; nothing is spent.
    """
    claim = _claim(records, request)
    values, names, shared = _read(records, request)
    if approve is not None and not approve(claim):
        return None
    box = within[0] if len(within) == 1 else within
    found = private_bounds(values, within=box, tail=tail, grid=grid, **shared)
    ranges = list(zip(names, found, strict=True))
    facts = [(name, f"{low:g} to {high:g}") for name, (low, high) in ranges]
    option = ",".join(f"{low:g}:{high:g}" for low, high in found)
    listed = [{"column": name, "low": low, "high": high} for name, (low, high) in ranges]
    return Chosen([*facts, ("option", f"--bounds {option}")], {"bounds": listed}, found.claim)


def choose_bandwidth(
    records: RecordFiles,
    request: ReleaseRequest,
    *,
    kernel: KernelSpec,
    candidates: Sequence[float],
    density: float = 0.05,
    approve: Callable[[Claim], bool] | None = None,
) -> Chosen | None:
    """One of several bandwidths for the records of files, which must fit into memory; None if ``approve``
    says no. Raises as `choose_bounds` does.
    """
    if kernel.takes_sets:
        rule = "must have a bandwidth to choose"
        raise UsageError("kernel", rule, got=repr(kernel.name), remedy="use euclidean or manhattan")
    claim = _claim(records, request)
    values, names, shared = _read(records, request)
    kernels = [replace(kernel, bandwidth=each).build(len(names)) for each in candidates]
    if approve is not None and not approve(claim):
        return None
    found = choose_kernel(values, kernels, density=density, **shared)
    chosen = {"kernel": kernel_as_json(found.candidate)}
    return Chosen([("kernel", kernel_in_words(found.candidate))], chosen, found.claim)


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


def _read(
    records: RecordFiles, request: ReleaseRequest
) -> tuple[NDArray[np.float64], tuple[str, ...], dict[str, Any]]:
    """All records of the files, the names of their columns, and what every private choice takes beside."""
    refuse_repeated(records.paths)
    columns: Sequence[str] | None = records.columns
    values: list[NDArray[np.float64]] = []
    units: list[Any] = []
    for path in records.paths:
        with open_file(records, path, columns) as stream:
            columns = stream.column_names
            for batch, persons in stream:
                parts = numbers_of(batch, dim=len(columns))
                values.append(np.concatenate([part.values.astype(np.float64) for part in parts], axis=1))
                units.extend([] if persons is None else persons.to_pylist())
    if columns is None:
        raise UsageError("files", "must be at least one file of records", got="none")
    shared = {"max_per_unit": records.max_per_unit, "units": None if records.unit_column is None else units}
    for name in ("epsilon", "relation", "budget", "idempotency_key", "insecure_noise_seed"):
        shared[name] = getattr(request, name)
    return np.concatenate(values), tuple(columns), shared
