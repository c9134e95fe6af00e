"""Patterns of tallies: what must be known to count apart and to merge; and tallies as messages."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass

from hushsum.bases.registry import basis_as_json, basis_from_json
from hushsum.errors import UsageError
from hushsum.files.container import Buffer, FileKind, Header, build_from, canonical_json, read_container
from hushsum.files.encryption import stored_size, write_confidential
from hushsum.kernels.registry import kernel_as_json, kernel_from_json
from hushsum.tally.file import build, described, payload_size
from hushsum.tally.tally import Tally


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
                }
            ).decode()
        )

    def empty(self) -> Tally:
        """An empty tally of this pattern."""
        found = json.loads(self.public)
        kernel = None if found["kernel"] is None else kernel_from_json(found["kernel"])
        return Tally(basis_from_json(found["basis"]), kernel, max_per_unit=found["max_per_unit"])


def is_empty(tally: Tally) -> bool:
    """Whether nothing was ever counted in a tally."""
    return not tally._state()["moves"]


def tally_as_bytes(tally: Tally) -> bytes:
    """A tally as a message, for encryption by the caller: its length does not depend on its counts."""
    stream = io.BytesIO()
    with tally._held():
        header, sections = described(tally, encrypted=True)
        write_confidential(stream, FileKind.TALLY, header, sections, encryption_key=None)
    return stream.getvalue()


def tally_from_bytes(data: Buffer) -> Tally:
    """The tally of a message.

    Raises
    ------
    FileRefused
        if the bytes are damaged.
    """

    def built(header: Header, payload: memoryview) -> Tally:
        if header["encryption"] is not None:
            raise ValueError("encryption")
        return build(header, payload)

    header, payload = read_container(io.BytesIO(data), FileKind.TALLY, stored_size(payload_size))
    return build_from(header, payload, built)
