"""Patterns of tallies: what must be known to count apart and to merge; and tallies as messages."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from hushsum.bases.registry import basis_as_json, basis_from_json
from hushsum.errors import UsageError
from hushsum.files.container import Buffer, Header, Section, build_from, canonical_json
from hushsum.kernels.registry import kernel_as_json, kernel_from_json
from hushsum.tally.file import build, described, payload_size
from hushsum.tally.tally import Tally

_LENGTH_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class TallyPattern:
    """Everything public of a tally, as JSON: what a worker needs to fill one like it.

    A basis or a kernel of one's own must be registered, that is imported, in the worker too.

    >>> import hushsum as hs
    >>> pattern = TallyPattern.of(hs.race(hs.EuclideanKernel(2, 1.0), rows=4, width=10))
    >>> pattern.empty().basis.shape
    (4, 10)
    """

    public: str

    @classmethod
    def of(cls, tally: object) -> TallyPattern:
        """The pattern of an empty tally.

        Raises
        ------
        UsageError
            if it is not a tally, or something was counted in it.
        """
        if not isinstance(tally, Tally):
            raise UsageError(parameter="tally", rule="must be an empty tally", got=type(tally).__name__)
        if not is_empty(tally):
            raise UsageError(
                parameter="tally",
                rule="must be empty",
                got="one with records",
                remedy="count into an empty one, and merge them",
            )
        return cls(
            canonical_json(
                {
                    "basis": basis_as_json(tally.basis),
                    "kernel": None if tally.kernel is None else kernel_as_json(tally.kernel),
                    "max_per_unit": tally.max_per_unit,
                    "add_remove_only": tally.add_remove_only,
                }
            ).decode()
        )

    def empty(self) -> Tally:
        """An empty tally of this pattern."""
        found = json.loads(self.public)
        kernel = None if found["kernel"] is None else kernel_from_json(found["kernel"])
        tally = Tally(basis_from_json(found["basis"]), kernel, max_per_unit=found["max_per_unit"])
        return tally.restrict_to_add_remove() if found["add_remove_only"] else tally


def is_empty(tally: Tally) -> bool:
    """Whether nothing was ever counted in a tally."""
    return not tally._state()["moves"]


def tally_as_pieces(tally: Tally) -> list[Buffer | Section]:
    """A tally as a message, for encryption by the caller: its length does not depend on its counts.

    The pieces refer to the tally, which must not change until they have been encrypted. They have no checksum
    of their own, since encryption authenticates them.
    """
    with tally._held():
        header, sections = described(tally, encrypted=True)
    encoded = canonical_json(header)
    return [len(encoded).to_bytes(_LENGTH_BYTES, "little"), encoded, *sections]


def tally_from_bytes(data: memoryview) -> Tally:
    """The tally of a message that has been decrypted.

    Raises
    ------
    FileRefused
        if nothing that `tally_as_pieces` returns has these bytes.
    """

    start = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "little")
    try:
        header: Header = json.loads(bytes(data[_LENGTH_BYTES:start]))
    except ValueError:
        header = {}

    def built(header: Header, payload: memoryview) -> Tally:
        if payload_size(header) != len(payload):
            raise ValueError("length")
        return build(header, payload)

    return build_from(header, data[start:], built)
