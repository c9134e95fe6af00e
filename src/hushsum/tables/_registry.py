"""The bases there are, by name, and their JSON in the headers of files."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, TypeVar

from hushsum.errors import FileRefused
from hushsum.files import canonical_json
from hushsum.kernels import kernel_as_json, kernel_from_json
from hushsum.tables._base import Basis, Reading

B = TypeVar("B", bound=type[Basis])
_BASES: dict[str, type[Basis]] = {}


def register(basis: B) -> B:
    """Make a basis known by its name, for files."""
    _BASES[basis.name] = basis
    return basis


def load_baselines() -> None:
    """Import the published methods that stand apart: they register their bases, methods, files and audits."""
    importlib.import_module("hushsum.baselines")


def all_bases() -> list[type[Basis]]:
    """The registered bases, in the order of their names."""
    load_baselines()
    return [_BASES[name] for name in sorted(_BASES)]


def basis_as_json(basis: Basis) -> dict[str, Any]:
    """A basis for a file's header."""
    return basis.description()


def basis_from_json(data: dict[str, Any]) -> Basis:
    """The basis that a file's header describes."""
    name = data.get("name")
    if name not in _BASES:
        load_baselines()
    if name not in _BASES:
        raise FileRefused(
            f"the file uses the basis {name!r}, which this version of Hushsum does not have",
            remedy="install a later one",
        )
    basis = _BASES[name].from_parameters(data["parameters"])
    if canonical_json(basis.parameters()) != canonical_json(data["parameters"]):
        raise ValueError("a basis has one description")
    kernel = basis.counted_kernel()
    if kernel is not None and basis.bounds is not None and basis.bounds.dim != kernel.dim:
        raise ValueError("bounds of another number of columns")
    return basis


def reading_as_json(reading: Reading) -> dict[str, Any]:
    """``basis`` and ``kernel`` of a file's header; no kernel where the basis is counted for one."""
    counted = reading.basis.counted_kernel() is not None
    return {
        "basis": basis_as_json(reading.basis),
        "kernel": None if counted else kernel_as_json(reading.kernel),
    }


def reading_from_json(header: Mapping[str, Any]) -> Reading:
    """The reading that a file's header describes."""
    kernel = header["kernel"]
    return basis_from_json(header["basis"]).reading(None if kernel is None else kernel_from_json(kernel))
