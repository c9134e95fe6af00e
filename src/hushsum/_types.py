"""Types that every package shares: arrays, files, numbers, roles, and what is secret."""

from __future__ import annotations

import os
from decimal import Decimal
from numbers import Real
from typing import IO, TYPE_CHECKING, Any, ClassVar, NoReturn, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import SecretRefused

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Rows = NDArray[np.float32]
"""Records or queries in the single precision that the native loops read."""

Box = list[tuple[float, float]]
"""The declared bounds of the columns, one pair for each."""

PathOrFile = str | os.PathLike[str] | IO[bytes]
"""Where a file is read from or written to: a path, or an open binary file."""


def is_number(value: object) -> TypeGuard[float]:
    """Whether a parameter is a real number; the one rule for all numeric parameters.

    Texts and truth values are not numbers, although ``float`` takes both.

    >>> is_number(np.float32(0.1)), is_number("1"), is_number(True), is_number(np.True_)
    (True, False, False, False)
    """
    return isinstance(value, Real | Decimal) and not isinstance(value, bool | np.bool_)


if TYPE_CHECKING:
    # Type checkers know the type of protocols as that of abstract classes.
    from abc import ABCMeta as _ProtocolType
else:
    _ProtocolType = type(Protocol)


class RoleType(_ProtocolType):
    """The type of runtime-checkable protocols whose instances usually derive from them.

    ``isinstance`` then looks at the class alone. In Python 3.11 the check of a protocol reads every member,
    0.2 ms each time, which is longer than adding a record to a tally takes.
    """

    def __instancecheck__(cls, instance: Any) -> bool:
        return cls in type(instance).__mro__ or super().__instancecheck__(instance)


class Secret:
    """What holds private values: it shows none of them, and is neither pickled nor copied."""

    __slots__ = ()
    REFUSAL: ClassVar[tuple[str, str | None]] = (
        "private records and sums must not be pickled or copied",
        "release the model and share that",
    )
    """What the refusal says, and its remedy."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} CONFIDENTIAL>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        rule, remedy = self.REFUSAL
        raise SecretRefused(rule, remedy=remedy)
