"""What the transport adds to the rules' own messages: how a conversation opens, is refused, and ends.

``curator: Opening → owner: Ready | Refusal``, then for each step ``Broadcast → Answer | Refusal``, in the end
``Ending → Ready``. Every frame is one message; a frame that is not the one due is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from hushsum.errors import FileRefused
from hushsum.summarize.messages import RunTerms
from hushsum.transport.serialization import check_spelling, pack, unpack

MOST_OPENING: Final = 1 << 22
MOST_BROADCAST: Final = 1 << 20
MOST_COLUMNS: Final = 1 << 12
_ROOM: Final = 1 << 12


@dataclass(frozen=True, slots=True)
class Opening:
    """The first message: the public terms, and which columns are compared and which only carried along.

    Names of columns come from the curator. An owner compares them with what it allows, and reveals nothing
    about its own. ``check`` is that of the hash secret, where hashes are sent.
    """

    terms: RunTerms
    compared: tuple[str, ...]
    carried: tuple[str, ...] = ()
    check: str = ""

    def to_bytes(self) -> bytes:
        """The one spelling of this opening."""
        spelled = np.frombuffer(self.terms.to_bytes(), np.int8)
        names = {"compared": list(self.compared), "carried": list(self.carried)}
        return pack("opening", {**names, "check": self.check}, {"terms": spelled})

    @classmethod
    def from_bytes(cls, data: bytes) -> Opening:
        """The opening back; FileRefused if it is none."""
        _, values, arrays = unpack(data, "opening", most=MOST_OPENING)
        try:
            terms = RunTerms.from_bytes(arrays["terms"].astype(np.int8).tobytes())
            compared, carried = _names(values["compared"]), _names(values["carried"])
            if not compared or len(set(compared + carried)) != len(compared + carried):
                raise ValueError("names")
            check = values["check"]
            if not isinstance(check, str) or bool(check) != terms.hashed or len(check) > 200:
                raise ValueError("check")
            opening = cls(terms, compared, carried, check)
            check_spelling(opening, data)
            return opening
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
            raise FileRefused(rule="the opening of this run is damaged or of a later version") from None


def most_answer(terms: RunTerms) -> int:
    """The longest answer that the terms allow, in bytes.

    An owner sends its cap at most; without one far more than a summary has, and not without end.
    """
    width = terms.features.width if terms.hashed else terms.features.dim
    points = 16 * terms.size + 4096 if terms.cap is None else terms.cap
    return points * (width + terms.extra) * 8 + _ROOM


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MOST_COLUMNS:
        raise TypeError("names")
    if not all(isinstance(each, str) and 0 < len(each) <= 200 for each in value):
        raise ValueError("names")
    return tuple(value)
