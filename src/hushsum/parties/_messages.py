"""The messages of all protocols: declared fields, in the self-checking layout of `hushsum.files`."""

from __future__ import annotations

import math
import os
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import FileRefused, HushsumError, UsageError
from hushsum.files import check_spelling, pack, stored_rational, unpack


@dataclass(frozen=True, slots=True)
class Field:
    """How a field of a message is checked when it is read, and what is written for it.

    ``read`` raises ValueError, TypeError or another error of a malformed value. An ``array`` is written after
    the header.
    """

    read: Callable[[Any], Any]
    write: Callable[[Any], Any] = lambda value: value
    array: bool = False

    def optional(self) -> Field:
        """A field that holds the same or None."""
        return Field(
            lambda value: None if value is None else self.read(value),
            lambda value: None if value is None else self.write(value),
        )


def _of_type(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise TypeError(kind.__name__)
    return value


def _text(value: Any, least: int = 1) -> str:
    if not least <= len(_of_type(str, value)) <= MOST_TEXT:
        raise ValueError("text")
    return str(value)


def _integer(value: Any, least: int = -(1 << 53)) -> int:
    if not least <= _of_type(int, value) <= 1 << 53:
        raise ValueError("integer")
    return int(value)


def _texts(value: Any) -> tuple[str, ...]:
    if len(_of_type(list, value)) > MOST_LISTED:
        raise ValueError("texts")
    return tuple(map(_text, value))


def _matrix(array: NDArray[Any]) -> NDArray[Any]:
    if array.ndim != 2 or array.dtype != np.float64 or not math.isfinite(float(np.abs(array).sum())):
        raise ValueError("matrix")
    return array


def _vector(array: NDArray[Any]) -> NDArray[Any]:
    if array.ndim != 1 or array.dtype != np.int64:
        raise ValueError("vector")
    return array


MOST_TEXT: Final = 200
MOST_LISTED: Final = 1 << 12
TEXT: Final = Field(_text)
TEXT_OR_EMPTY: Final = Field(lambda value: _text(value, 0))
"""A text that may be empty."""

TEXTS: Final = Field(_texts, list)
INTEGER: Final = Field(_integer)
COUNT: Final = Field(lambda value: _integer(value, 0))
FLAG: Final = Field(lambda value: _of_type(bool, value))
RATIONAL: Final = Field(stored_rational, str)
MATRIX: Final = Field(_matrix, array=True)
VECTOR: Final = Field(_vector, lambda array: array.astype(np.int64), array=True)


def message_field(kind: type[Message]) -> Field:
    """A message inside another one."""
    return Field(
        lambda array: kind.from_bytes(array.astype(np.int8).tobytes()),
        lambda message: np.frombuffer(message.to_bytes(), np.int8),
        array=True,
    )


@cache
def _declared(kind: Any) -> dict[str, Field]:
    hints = typing.get_type_hints(kind, include_extras=True)
    return {
        each.name: next(one for one in hints[each.name].__metadata__ if isinstance(one, Field))
        for each in fields(kind)
    }


class Message:
    """A message as a dataclass whose fields are annotated with a `Field`; one spelling in bytes.

    Subclasses state their ``kind``, the ``most`` bytes that one is read from, and what is said of a damaged
    one; they check in ``check`` what concerns several fields.
    """

    __slots__ = ()
    kind: ClassVar[str]
    most: ClassVar[int | None] = None
    damaged: ClassVar[str] = ""

    def to_bytes(self) -> bytes:
        """The one spelling."""
        kind: Any = type(self)
        written = {name: each.write(getattr(self, name)) for name, each in _declared(kind).items()}
        arrays = {name: written.pop(name) for name, each in _declared(kind).items() if each.array}
        return pack(self.kind, written, arrays)

    @classmethod
    def from_bytes(cls, data: bytes, *, most: int | None = None) -> Self:
        """The message back, at most ``most`` bytes long.

        Raises
        ------
        FileRefused
            if it is damaged, of another kind, or has a field that is not as declared.
        """
        kind: Any = cls
        _, values, arrays = unpack(data, cls.kind, most=most or cls.most)
        try:
            read = {
                name: each.read((arrays if each.array else values)[name])
                for name, each in _declared(kind).items()
            }
            message = cls(**read)
            check_spelling(data, message.to_bytes())
            message.check()
        except FileRefused:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
            raise FileRefused(
                cls.damaged or f"this {cls.kind} has a number outside its range or of the wrong shape",
                remedy="check the peer" if not cls.damaged else "get a fresh copy",
            ) from None
        return message

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, maker: str) -> Self:
        """The message in a file; ``maker`` is the command that makes one.

        Raises
        ------
        UsageError
            if there is no such file.
        FileRefused
            if it holds none.
        """
        name, remedy = os.fspath(path), f"make it with: {maker}"
        try:
            with open(path, "rb") as stream:
                return cls.from_bytes(stream.read((cls.most or _MOST_IN_A_FILE) + 1))
        except FileNotFoundError:
            raise UsageError(f"no file {name!r}", remedy=remedy) from None
        except OSError:
            raise UsageError(f"{name!r} cannot be read", remedy=remedy) from None
        except FileRefused:
            raise FileRefused(f"{name!r} holds no {cls.kind}, or damaged ones", remedy=remedy) from None

    def check(self) -> None:
        """ValueError unless the fields agree."""


_MOST_IN_A_FILE: Final = 1 << 24
MOST_CONTROL: Final = 1 << 12
_MOST_REASON: Final = 400


class OwnRefusal(Exception):
    """What a party's own ledger, files or data refused: the request was in order.

    ``error`` is for that party alone, whatever its type: a damaged ledger and a damaged message are both
    `FileRefused`, and only the second concerns the peer. The peer is sent ``reason``.
    """

    def __init__(self, error: HushsumError, reason: str) -> None:
        super().__init__()
        self.error, self.reason = error, reason


@contextmanager
def own_affairs(reason: str, **by_type: str) -> Iterator[None]:
    """Errors raised inside are this party's own, and become `OwnRefusal`.

    ``by_type`` has other reasons, by the names of classes of errors.
    """
    try:
        yield
    except HushsumError as error:
        raise OwnRefusal(error, by_type.get(type(error).__name__, reason)) from None


def control(kind: str, **values: str) -> bytes:
    """A message of the runtime: ``ready`` and ``ending`` name the ``run``; ``refusal`` and ``giving up`` have
    a ``reason``, in a sentence without a data value.
    """
    return pack(kind, {name: text[:_MOST_REASON] for name, text in values.items()}, {})


def control_in(data: bytes, *kinds: str) -> tuple[str, dict[str, Any]]:
    """Which of these control messages this is, and its values; ``""`` if it is another message."""
    if len(data) <= MOST_CONTROL:
        with suppress(FileRefused):
            return unpack(data, *kinds)[:2]
    return "", {}


def reason_in(values: dict[str, Any]) -> str:
    """The reason of a refusal or of giving up; printable letters alone, whatever the peer sent."""
    reason = values.get("reason")
    if not isinstance(reason, str):
        return "it gave no reason"
    return "".join(letter for letter in reason[:_MOST_REASON] if letter.isprintable())
