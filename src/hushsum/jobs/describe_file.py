"""Say what a file is and what it claims."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hushsum.bases.adjacency_rows import AdjacencyRows
from hushsum.bases.marginals import Marginals
from hushsum.bases.registry import reading_from_json
from hushsum.files.container import FileKind
from hushsum.jobs.output_files import STANDARD, kind_of
from hushsum.kernels.base import Kernel
from hushsum.kernels.parameters import kernel_in_words
from hushsum.kernels.registry import kernel_as_json
from hushsum.privacy.claim import PERSON
from hushsum.records.bounds import Bounds
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.bundle import Bundle
from hushsum.releases.load import load_released
from hushsum.releases.noisy_table import NoisyTable
from hushsum.tally.file import public_header

MOST_LISTED: Final = 1000
"""How many numbers of an array a description lists."""


@dataclass(frozen=True, slots=True)
class FunctionDescription:
    """A released function, for whoever received its file. ``size`` is None when it was read from a pipe."""

    source: str
    function: ReleasedFunction
    size: int | None

    def as_json(self) -> dict[str, Any]:
        """The description for a machine."""
        return {**self.function.describe().as_json(), "source": self.source, "size": self.size}


@dataclass(frozen=True, slots=True)
class TallyDescription:
    """The public header of a confidential tally: no counts, and not how many persons it holds."""

    source: str
    warning: str
    basis: str
    kernel: Kernel
    rows: int
    width: int
    seed: int | None
    columns: tuple[str, ...] | None
    bounds: Bounds | None
    unit: str
    max_per_unit: int | None
    graph: str | None
    edge_lists: int
    add_remove_only: bool
    fingerprint: str
    encrypted: bool
    producer: str

    def as_json(self) -> dict[str, Any]:
        """The description for a machine."""
        return {
            "kind": "confidential tally",
            "source": self.source,
            "warning": self.warning,
            "basis": self.basis,
            "kernel": kernel_as_json(self.kernel),
            "rows": self.rows,
            "width": self.width,
            "seed": self.seed,
            "columns": None if self.columns is None else list(self.columns),
            "bounds": None if self.bounds is None else self.bounds.as_json(),
            "unit": self.unit,
            "max_per_unit": self.max_per_unit,
            "graph": self.graph,
            "edge_lists": self.edge_lists,
            "add_remove_only": self.add_remove_only,
            "fingerprint": self.fingerprint,
            "encrypted": self.encrypted,
            "producer": self.producer,
        }


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """A released model, for whoever received its file. ``size`` is None when it was read from a pipe."""

    source: str
    bundle: Bundle
    size: int | None

    @property
    def expected_errors(self) -> dict[tuple[str, ...], float]:
        """The expected error of each marginal of a synthesizer, by the names of its columns; else empty."""
        errors = self.bundle.arrays.get("expected_errors")
        found = [part.basis for part in self.bundle.parts.values() if isinstance(part, NoisyTable)]
        if errors is None or len(found) != 1 or not isinstance(basis := found[0], Marginals):
            return {}
        return dict(zip(basis.set_names(), errors.tolist(), strict=False))

    def as_json(self) -> dict[str, Any]:
        """The description for a machine."""
        about = self.bundle.about
        return {
            "kind": "released model",
            "source": self.source,
            "model": about.get("model"),
            "parameters": about.get("parameters"),
            "columns": about.get("feature_names"),
            "features": about.get("features"),
            "classes": (about.get("classes") or {}).get("values"),
            "assumptions": list(about.get("assumptions") or []),
            "claim": self.bundle.claim.in_numbers(),
            "bounds": (about.get("parameters") or {}).get("bounds"),
            "kernels": list({kernel_in_words(part.kernel): None for part in self.bundle.parts.values()}),
            "parts": list(self.bundle.parts),
            "arrays": {
                name: values.tolist() if values.size <= MOST_LISTED else {"shape": list(values.shape)}
                for name, values in self.bundle.arrays.items()
            },
            "expected_errors": [
                {"columns": list(names), "error": error} for names, error in self.expected_errors.items()
            ],
            "producer": self.bundle.producer,
            "size": self.size,
        }


def describe_file(source: str) -> FunctionDescription | ModelDescription | TallyDescription:
    """What a ``.hush`` or ``.tally`` file is; ``"-"`` reads a ``.hush`` file from standard input.

    Raises
    ------
    FileRefused
        if it is damaged or neither of them.
    """
    if source != STANDARD and kind_of(Path(source)) is FileKind.TALLY:
        return _describe_tally(source)
    released = load_released(sys.stdin.buffer if source == STANDARD else source)
    size = None if source == STANDARD else Path(source).stat().st_size
    if isinstance(released, Bundle):
        return ModelDescription(source, released, size)
    assert isinstance(released, ReleasedFunction)
    return FunctionDescription(source, released, size)


def _describe_tally(source: str) -> TallyDescription:
    header = public_header(source)
    reading = reading_from_json(header)
    basis = reading.basis
    rows, width = basis.shape
    units, lists = header["units"], header.get("edge_lists", 1)
    return TallyDescription(
        source=source,
        warning=str(header["warning"]),
        basis=basis.name,
        kernel=reading.kernel,
        rows=rows,
        width=width,
        seed=basis.parameters().get("seed"),
        columns=basis.columns,
        bounds=basis.bounds,
        unit=basis.units[0] if units is None else PERSON,
        max_per_unit=None if units is None else int(units["limit"]),
        graph=basis.graph_in_words(lists) if isinstance(basis, AdjacencyRows) else None,
        edge_lists=lists,
        add_remove_only=bool(header.get("add_remove_only", False)),
        fingerprint=basis.fingerprint,
        encrypted=header["encryption"] is not None,
        producer=str(header["producer"]),
    )
