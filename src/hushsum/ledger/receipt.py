"""A line to keep elsewhere, which proves later that the ledger still contains what it contained."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from hushsum.errors import FileRefused


@dataclass(frozen=True, slots=True)
class Receipt:
    """The head of a ledger's chain at some moment: it fixes every event up to ``sequence``."""

    ledger: str
    sequence: int
    hash: str

    def as_json(self) -> dict[str, Any]:
        """The receipt for a file."""
        return {"ledger": self.ledger, "sequence": self.sequence, "hash": self.hash}

    @classmethod
    def from_text(cls, text: str) -> Receipt:
        """Read a receipt.

        Raises
        ------
        FileRefused
            if the text is none.
        """
        try:
            data = json.loads(text)
            receipt = cls(data["ledger"], data["sequence"], data["hash"])
            if type(receipt.sequence) is not int or not all(
                isinstance(each, str) for each in (receipt.ledger, receipt.hash)
            ):
                raise ValueError
        except (ValueError, KeyError, TypeError):
            raise FileRefused(
                rule="this is not a receipt", remedy="give a file written by: hushsum ledger receipt"
            ) from None
        return receipt
