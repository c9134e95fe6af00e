"""Every error Hushsum raises on purpose.

::

    HushsumError
    ├── UsageError            a parameter breaks a rule                         exit 2, also a ValueError
    │   ├── ClaimError        a privacy parameter cannot be claimed             exit 2
    │   ├── QuestionsSpent    a served function answers no more new points      exit 2
    │   ├── QuotaExceeded     an owner would keep more than a service allows    exit 2
    │   ├── StreamInUse       another process has the stream open               exit 2
    │   ├── AlreadyPublished  this release was made before, its bytes are gone  exit 2
    │   └── AlreadyReleased   a model that was released takes no more records   exit 2, an AttributeError
    ├── BudgetExhausted       the ledger has not enough left                    exit 3
    ├── LedgerUnavailable     the ledger cannot be reached or kept durably      exit 1
    ├── ServiceRefused        a remote service cannot be reached, or refuses    exit 1
    ├── IncompatibleTallies   two tallies do not add the same vectors           exit 4
    ├── FileRefused           a file is damaged, unsupported or of another kind exit 5
    ├── DataRefused           records break a rule; nothing was added           exit 6, also a ValueError
    │   └── CounterOverflow   a counter would leave its range                   exit 6
    ├── PeerRefused           another party breaks the protocol, or is unknown  exit 1
    ├── PeerLost              another party cannot be reached, or went away     exit 1
    └── SecretRefused         something secret was about to leave               exit 2, also a TypeError

    UserWarning
    ├── SuspiciousParameter   a declared parameter looks read off the records, or does not fit; for the owner
    ├── PublicAssumption      a model takes something of the records as public knowledge
    ├── RepeatedSpending      a model, or a copy of it or of a stream, may spend again
    └── RepeatedRecords       files with equal contents are counted, each of them

An error is data: ``parameter``, ``rule``, ``got`` and ``remedy``, and the ``kind``, the exit code and the
HTTP status of its class. Each surface renders them in its own spelling: ``str(error)`` in that of Python,
``error.words(surface)`` in that of a command line or of the service. The service's problem documents and the
exceptions that the client raises are made from the same table, ``KINDS``. No error contains a data value.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from hushsum.error_text import (
    PYTHON,
    SERVICE,
    Argument,
    FilePath,
    Parameter,
    Part,
    PerSurface,
    Surface,
    Words,
    parts_of,
    render,
    words_as_json,
    words_from_json,
)

__all__ = [
    "KINDS",
    "PYTHON",
    "SERVICE",
    "AlreadyPublished",
    "AlreadyReleased",
    "Argument",
    "BudgetExhausted",
    "ClaimError",
    "CounterOverflow",
    "DataRefused",
    "FilePath",
    "FileRefused",
    "HushsumError",
    "IncompatibleTallies",
    "LedgerUnavailable",
    "Parameter",
    "Part",
    "PeerLost",
    "PeerRefused",
    "PerSurface",
    "PublicAssumption",
    "QuestionsSpent",
    "QuotaExceeded",
    "RepeatedSpending",
    "SecretRefused",
    "ServiceRefused",
    "StreamInUse",
    "Surface",
    "SuspiciousParameter",
    "UsageError",
    "Words",
    "error_from_json",
    "render",
    "shown",
]


class HushsumError(Exception):
    """The root of the tree.

    Parameters
    ----------
    subject : str or tuple of parts
        the parameter that breaks the rule, by its name in Python; without a rule, the whole sentence.
    rule : str or tuple of parts, optional
        what must hold; after the parameter it continues the sentence.
    got : optional
        what was given instead: a number as it is, a phrase such as ``"an empty list"``, of any other object
        its type. Pass text that a caller gave through ``shown``.
    remedy : str or tuple of parts, optional
        what helps.

    Examples
    --------
    >>> error = UsageError("width", "must be at least 2", got=1, remedy="try 1000")
    >>> str(error)
    'width must be at least 2, got 1; try 1000'
    >>> error.words(Surface("command line", {"width": "--width"}))
    '--width must be at least 2, got 1; try 1000'
    """

    kind: ClassVar[str] = "refused"
    """The stable name of the class, for programs."""
    exit_code: ClassVar[int] = 1
    """What the command line exits with."""
    status: ClassVar[int] = 500
    """The HTTP status of the service's response."""

    parameter: str | None
    rule: Words
    got: str | None
    remedy: Words | None

    def __init__(
        self,
        subject: Words | None = "",
        rule: Words | None = None,
        *,
        got: object = None,
        remedy: Words | None = None,
    ) -> None:
        if rule is None:
            subject, rule = None, subject or ""
        self.parameter = None if subject is None else str(subject)
        self.rule = rule
        self.got = got if got is None or isinstance(got, str) else shown(got)
        self.remedy = remedy
        super().__init__(self.words(PYTHON))

    def words(self, surface: Surface) -> str:
        """The message, in the spelling of a surface."""
        return render(self.parts(), surface)

    def parts(self) -> tuple[Part, ...]:
        """The message as a phrase, to be a part of another error's."""
        parts: list[Part] = []
        if self.parameter is not None:
            parts += [Parameter(self.parameter), " "]
        parts += parts_of(self.rule)
        if self.got is not None:
            parts.append(f", got {self.got}")
        if self.remedy is not None:
            parts += ["; ", *parts_of(self.remedy)]
        return tuple(parts)

    def names_file(self, path: str) -> bool:
        """Whether the message names this file."""
        return any(isinstance(each, FilePath) and os.fspath(each.path) == path for each in self.parts())

    def as_json(self) -> dict[str, Any]:
        """What the error is about, for a problem document; ``error_from_json`` reads it.

        >>> UsageError("width", "must be at least 2", got=1).as_json()
        {'parameter': 'width', 'rule': 'must be at least 2', 'got': '1', 'remedy': None}
        """
        return {
            "parameter": self.parameter,
            "rule": words_as_json(self.rule),
            "got": self.got,
            "remedy": None if self.remedy is None else words_as_json(self.remedy),
        }


class UsageError(HushsumError, ValueError):
    """A parameter breaks a rule that does not depend on the data."""

    kind = "parameter-refused"
    exit_code = 2
    status = 422


class ClaimError(UsageError):
    """A privacy parameter, or a combination of them, cannot be claimed."""

    kind = "claim-refused"


class QuestionsSpent(UsageError):
    """A served function has answered as many distinct points as it may; those it continues to answer."""

    kind = "questions-spent"
    status = 409


class StreamInUse(UsageError):
    """Another process has the stream open; it can be opened when that process has closed it."""

    kind = "stream-in-use"
    status = 409


class AlreadyPublished(UsageError):
    """A release with this key reached its reader before; it is neither drawn nor delivered again.

    ``sha256`` is that of the bytes that were published.
    """

    kind = "already-published"
    status = 409

    def __init__(
        self, subject: Words | None = "", rule: Words | None = None, *, sha256: str = "", **about: Any
    ) -> None:
        super().__init__(subject, rule, **about)
        self.sha256 = sha256

    def as_json(self) -> dict[str, Any]:
        """What the error is about, with the SHA-256 of the published bytes."""
        return super().as_json() | {"sha256": self.sha256}


class AlreadyReleased(UsageError, AttributeError):
    """A model that was released takes no more records: its release was paid for once, as it is.

    An ``AttributeError`` too, because from the release on a model has no ``partial_fit``: ``hasattr`` returns
    False.
    """

    kind = "already-released"
    status = 409


class QuotaExceeded(UsageError):
    """An owner would keep more in a service than one owner may."""

    kind = "quota-exceeded"
    status = 409


class BudgetExhausted(HushsumError):
    """The ledger has less left than the release would spend; nothing was released."""

    kind = "budget-exhausted"
    exit_code = 3
    status = 409


class LedgerUnavailable(HushsumError):
    """The ledger, or the mark that goes with it, could not be reached or written; repeat with the same
    key.
    """

    kind = "ledger-unavailable"
    status = 503


class ServiceRefused(HushsumError):
    """A remote service cannot be reached, does not know the token, or refuses the request."""

    kind = "service-refused"
    status = 502


class IncompatibleTallies(HushsumError):
    """Two tallies have different fingerprints, so their sum would mean nothing."""

    kind = "incompatible-tallies"
    exit_code = 4
    status = 409


class FileRefused(HushsumError):
    """A file is damaged, of a later version, or of another kind."""

    kind = "file-refused"
    exit_code = 5
    status = 422


class DataRefused(HushsumError, ValueError):
    """Records break a rule; the tally is as it was before."""

    kind = "data-refused"
    exit_code = 6
    status = 422


class CounterOverflow(DataRefused):
    """A counter would leave the range of its integers; the tally is as it was before."""

    kind = "counter-overflow"


class PeerRefused(HushsumError):
    """Another party of a protocol broke a rule, or does not hold the key that it should."""

    kind = "peer-refused"
    status = 502


class PeerLost(HushsumError):
    """Another party of a protocol cannot be reached, or went away; the run can be resumed."""

    kind = "peer-lost"
    status = 504


class SecretRefused(HushsumError, TypeError):
    """Something secret was about to leave through an interface meant for public things."""

    kind = "secret-refused"
    exit_code = 2


def _classes(root: type[HushsumError]) -> Iterator[type[HushsumError]]:
    yield root
    for each in root.__subclasses__():
        yield from _classes(each)


KINDS: Final[dict[str, type[HushsumError]]] = {each.kind: each for each in _classes(HushsumError)}
"""The table: every class by its stable name, with its exit code and HTTP status."""


# What the service refuses before a call of the library: the caller's usage too.
_REQUEST_KINDS: Final[dict[str, type[HushsumError]]] = {
    "request-refused": UsageError,
    "not-confirmed": UsageError,
    "unknown-analyst": UsageError,
}


def error_from_json(kind: str, about: Mapping[str, Any]) -> HushsumError:
    """The error that a problem document describes; an unknown kind is a ``ServiceRefused``.

    >>> refused = UsageError("width", "must be at least 2", got=1, remedy="try 1000")
    >>> again = error_from_json(refused.kind, refused.as_json())
    >>> type(again).__name__, str(again) == str(refused)
    ('UsageError', True)
    """
    made = (KINDS | _REQUEST_KINDS).get(kind, ServiceRefused)
    more = {"sha256": str(about["sha256"])} if made is AlreadyPublished and "sha256" in about else {}
    parameter, got, remedy = about.get("parameter"), about.get("got"), about.get("remedy")
    return made(
        None if parameter is None else str(parameter),
        words_from_json(about.get("rule", "")),
        got=None if got is None else str(got),
        remedy=None if remedy is None else words_from_json(remedy),
        **more,
    )


class SuspiciousParameter(UserWarning):
    """A declared parameter looks as if it had been read off the private records, or does not fit them.

    It depends on the data, so it is for the owner's eyes only; it shows no value. Silence it with
    ``warnings.simplefilter("ignore", hushsum.errors.SuspiciousParameter)`` where the number has another
    source.
    """


class PublicAssumption(UserWarning):
    """A model takes something that it found in the records as public knowledge; its claim holds under that.

    The assumption is written into what the model releases. Declare the thing, such as ``classes=[...]``, and
    nothing is assumed.
    """


class RepeatedSpending(UserWarning):
    """A model or one of its clones releases again: what each spent adds up if they saw the same records.

    A search over parameters and a cross-validation do that once for every fit. Choose parameters on public
    data, or pay for the choice with ``hushsum.methods.choose``. Or a stream goes on where none of its steps
    were noted, so that an older copy of its state, which would draw steps again, would not be refused.
    """


class RepeatedRecords(UserWarning):
    """Two files have the same contents, and both are counted; for the owner's eyes only."""


def shown(value: object) -> str:
    """A refused parameter in a message: a number or a name as it is, of anything else the type alone.

    Who mixes up two arguments passes records here, and messages end in logs.

    >>> shown(-1), shown([3.5])
    ('-1', 'a list')
    """
    if isinstance(value, bool | int | float) or (isinstance(value, str) and len(value) <= 40):
        return repr(value)
    return f"a {type(value).__name__}"
