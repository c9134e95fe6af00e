"""From files of points to a private heat map: release once, then write pictures, pages and exports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from hushsum.errors import UsageError
from hushsum.files import FileKind
from hushsum.operations._deliver import Approve, FunctionReleased, LedgerOptions, release_records
from hushsum.operations._files import (
    Progress,
    RecordFiles,
    check_answers_output,
    check_function_output,
    kind_of,
    open_function,
)
from hushsum.planning import KernelSpec, MethodSpec
from hushsum.plotting import MAP_FORMATS, MAP_METHOD, MAP_SIZE, HeatMap, check_format, map_kernel
from hushsum.privacy import ReleaseRequest
from hushsum.records import DeclaredBounds
from hushsum.releases import ReleasedFunction

FUNCTION: Final = ".hush"


@dataclass(frozen=True, slots=True)
class MapChoice:
    """The settings of a map, all of them public. The bandwidth is in metres where it is ``geographic``."""

    bandwidth: float | None = None
    bounds: DeclaredBounds | None = None
    geographic: bool = True
    size: int = MAP_SIZE
    level: float = 0.95


@dataclass(frozen=True, slots=True)
class MapWritten:
    """The files of a map, and its release; None where an earlier one was drawn."""

    outputs: tuple[str, ...]
    function: ReleasedFunction
    released: FunctionReleased | None

    def as_json(self) -> dict[str, Any]:
        """For a machine."""
        made = {} if self.released is None else {"release": self.released.as_json()}
        return {"outputs": list(self.outputs), "claim": self.function.claim.in_numbers(), **made}


def is_released(path: str) -> bool:
    """Whether a source is a released function, which is drawn without spending anything."""
    return Path(path).is_file() and kind_of(Path(path)) is FileKind.RELEASED


def draw_heat_map(source: str, outputs: Sequence[str], choice: MapChoice) -> MapWritten:
    """Write the maps of a released function of two columns. Spends nothing."""
    _check_outputs(outputs, inputs=[source])
    function = open_function(source)
    _save(function, outputs, choice)
    return MapWritten(tuple(outputs), function, None)


def make_heat_map(
    records: RecordFiles,
    outputs: Sequence[str],
    request: ReleaseRequest,
    choice: MapChoice,
    *,
    declared_records: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    approve: Approve | None = None,
    ledger: LedgerOptions | None = None,
) -> MapWritten | None:
    """Release the density of points on a grid, and write its maps; None where a person declined.

    The released function is kept in a ``.hush`` file: that of the outputs, or one beside the first of them.
    Further maps are drawn from it without spending anything.

    Raises
    ------
    UsageError, DataRefused, ClaimError, BudgetExhausted
        as :func:`hushsum.operations._deliver.release_records`; everything that can be refused is refused
        before anything is spent.
    """
    _check_outputs(outputs, inputs=records.paths)
    if choice.bounds is None or len(choice.bounds) != 2:
        rule = "must be declared for a heat map, low:high for each of two columns"
        got = "none" if choice.bounds is None else len(choice.bounds)
        raise UsageError("bounds", rule, got=got, remedy="such as -74.3:-73.7,40.5:40.9")
    if choice.bandwidth is None:
        remedy = "give the distance over which points are smoothed, in metres for longitude and latitude"
        raise UsageError("bandwidth", "must be given for a heat map", got="none", remedy=remedy)
    kept = next((each for each in outputs if Path(each).suffix.lower() == FUNCTION), None)
    target = str(Path(outputs[0]).with_suffix(FUNCTION)) if kept is None else kept
    check_function_output(target, inputs=records.paths, interactive=approve is not None)
    kernel, bandwidth = map_kernel(choice.bounds, choice.bandwidth, geographic=choice.geographic)
    released = release_records(
        replace(records, bounds=choice.bounds),
        target,
        request,
        kernel=KernelSpec(kernel=kernel, bandwidth=bandwidth),
        method=MethodSpec(method=MAP_METHOD, records=declared_records),
        threads=threads,
        progress=progress,
        approve=approve,
        ledger=ledger,
    )
    if released is None:
        return None
    _save(released.function, [each for each in outputs if each != target], choice)
    return MapWritten((*outputs, *([] if kept is not None else [target])), released.function, released)


def _check_outputs(outputs: Sequence[str], *, inputs: Sequence[str]) -> None:
    for each in outputs:
        if check_format(each, MAP_FORMATS).suffix.lower() != FUNCTION:
            check_answers_output(each, inputs=inputs)


def _save(function: ReleasedFunction, outputs: Sequence[str], choice: MapChoice) -> None:
    drawn = HeatMap(function, choice.geographic, choice.level)
    for each in outputs:
        drawn.save(each, size=choice.size)
