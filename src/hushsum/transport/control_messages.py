"""The messages that every protocol between peers has: accepted, refused, given up, ended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from hushsum.errors import HushsumError
from hushsum.transport.serialization import pack, unpack

MOST_CONTROL: Final = 1 << 12
_MOST_REASON: Final = 400


class OwnRefusal(Exception):
    """What a party's own ledger, files or data refused: the request was in order.

    ``error`` is for that party alone, whatever its type: a damaged ledger and a damaged message are both
    `FileRefused`, and only the second concerns the peer.
    """

    def __init__(self, error: HushsumError) -> None:
        super().__init__()
        self.error = error


@contextmanager
def own_affairs() -> Iterator[None]:
    """Errors raised inside are this party's own, and become `OwnRefusal`."""
    try:
        yield
    except HushsumError as error:
        raise OwnRefusal(error) from None


def ready(run: str) -> bytes:
    """The sender takes part, or takes note of the end."""
    return pack("ready", {"run": run}, {})


def ending(run: str) -> bytes:
    """The run is over."""
    return pack("ending", {"run": run}, {})


def refusal(reason: str) -> bytes:
    """Why the sender does not go on, in a sentence without a data value."""
    return pack("refusal", {"reason": reason[:_MOST_REASON]}, {})


def giving_up(reason: str) -> bytes:
    """Why the sender stops waiting for others; the run can be resumed when it is started again."""
    return pack("giving up", {"reason": reason[:_MOST_REASON]}, {})


def kind_of(data: bytes, *kinds: str) -> tuple[str, dict[str, Any]]:
    """Which of these kinds a message is, and its values.

    Raises
    ------
    FileRefused
        if it is none of them.
    """
    kind, values, _ = unpack(data, *kinds)
    return kind, values


def reason_in(values: dict[str, Any]) -> str:
    """The reason of a refusal or of giving up; printable letters alone, whatever the peer sent."""
    reason = values.get("reason")
    if not isinstance(reason, str):
        return "it gave no reason"
    return "".join(letter for letter in reason[:_MOST_REASON] if letter.isprintable())
