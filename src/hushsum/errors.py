"""Every error Hushsum raises on purpose, and its text.

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
HTTP status of its class. The rule and the remedy are phrases, of which some parts, such as the name of a
parameter, are spelled as Python, a command line or the service does: ``str(error)`` in that of Python,
``error.words(surface)`` in that of a command line or of the service. The service's problem documents and the
exceptions that the client raises are made from the same table, ``KINDS``. No error contains a data value.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import EllipsisType
from typing import Any, ClassVar, Final

KINDS: Final[dict[str, type[HushsumError]]] = {}
"""The table: every class by its stable name, with its exit code and HTTP status."""


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

    def __init_subclass__(cls, *, kind: str, exit_code: int | None = None, status: int | None = None) -> None:
        super().__init_subclass__()
        cls.kind, KINDS[kind] = kind, cls
        cls.exit_code = cls.exit_code if exit_code is None else exit_code
        cls.status = cls.status if status is None else status

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


KINDS[HushsumError.kind] = HushsumError


class UsageError(HushsumError, ValueError, kind="parameter-refused", exit_code=2, status=422):
    """A parameter breaks a rule that does not depend on the data."""


class ClaimError(UsageError, kind="claim-refused"):
    """A privacy parameter, or a combination of them, cannot be claimed."""


class QuestionsSpent(UsageError, kind="questions-spent", status=409):
    """A served function has answered as many distinct points as it may; those it continues to answer."""


class StreamInUse(UsageError, kind="stream-in-use", status=409):
    """Another process has the stream open; it can be opened when that process has closed it."""


class AlreadyPublished(UsageError, kind="already-published", status=409):
    """A release with this key reached its reader before; it is neither drawn nor delivered again.

    ``sha256`` is that of the bytes that were published.
    """

    def __init__(
        self, subject: Words | None = "", rule: Words | None = None, *, sha256: str = "", **about: Any
    ) -> None:
        super().__init__(subject, rule, **about)
        self.sha256 = sha256

    def as_json(self) -> dict[str, Any]:
        """What the error is about, with the SHA-256 of the published bytes."""
        return super().as_json() | {"sha256": self.sha256}


class AlreadyReleased(UsageError, AttributeError, kind="already-released", status=409):
    """A model that was released takes no more records: its release was paid for once, as it is.

    An ``AttributeError`` too, because from the release on a model has no ``partial_fit``: ``hasattr`` returns
    False.
    """


class QuotaExceeded(UsageError, kind="quota-exceeded", status=409):
    """An owner would keep more in a service than one owner may."""


class BudgetExhausted(HushsumError, kind="budget-exhausted", exit_code=3, status=409):
    """The ledger has less left than the release would spend; nothing was released."""


class LedgerUnavailable(HushsumError, kind="ledger-unavailable", status=503):
    """The ledger, or the mark that goes with it, could not be reached or written; repeat with the same
    key.
    """


class ServiceRefused(HushsumError, kind="service-refused", status=502):
    """A remote service cannot be reached, does not know the token, or refuses the request."""


class IncompatibleTallies(HushsumError, kind="incompatible-tallies", exit_code=4, status=409):
    """Two tallies have different fingerprints, so their sum would mean nothing."""


class FileRefused(HushsumError, kind="file-refused", exit_code=5, status=422):
    """A file is damaged, of a later version, or of another kind."""


class DataRefused(HushsumError, ValueError, kind="data-refused", exit_code=6, status=422):
    """Records break a rule; the tally is as it was before."""


class CounterOverflow(DataRefused, kind="counter-overflow"):
    """A counter would leave the range of its integers; the tally is as it was before."""


class PeerRefused(HushsumError, kind="peer-refused", status=502):
    """Another party of a protocol broke a rule, or does not hold the key that it should."""


class PeerLost(HushsumError, kind="peer-lost", status=504):
    """Another party of a protocol cannot be reached, or went away; the run can be resumed."""


class SecretRefused(HushsumError, TypeError, kind="secret-refused", exit_code=2):
    """Something secret was about to leave through an interface meant for public things."""


# What the service refuses before a call of the library: the caller's usage too.
_REQUEST_KINDS: Final = dict.fromkeys(("request-refused", "not-confirmed", "unknown-analyst"), UsageError)


def error_from_json(kind: str, about: Mapping[str, Any]) -> HushsumError:
    """The error that a problem document describes; an unknown kind is a ``ServiceRefused``.

    >>> refused = UsageError("width", "must be at least 2", got=1, remedy="try 1000")
    >>> again = error_from_json(refused.kind, refused.as_json())
    >>> type(again).__name__, str(again) == str(refused)
    ('UsageError', True)
    """
    made = _REQUEST_KINDS.get(kind, KINDS.get(kind, ServiceRefused))
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


@dataclass(frozen=True, slots=True)
class Surface:
    """Where an error is shown, which decides how parameters are spelled.

    ``options`` are the options of the command that runs, by the name of the parameter; on a command line a
    parameter without an option keeps its name.

    Examples
    --------
    >>> COMMAND_LINE = Surface("command line", {"allow_large_delta": "--allow-large-delta"})
    >>> [each.parameter("allow_large_delta") for each in (PYTHON, COMMAND_LINE, SERVICE)]
    ['allow_large_delta', '--allow-large-delta', 'allow_large_delta']
    """

    name: str
    options: Mapping[str, str] = field(default_factory=dict)

    def parameter(self, name: str) -> str:
        """The name of a parameter."""
        return self.options.get(name, name)


PYTHON: Final = Surface("python")
SERVICE: Final = Surface("service")


@dataclass(frozen=True, slots=True)
class Parameter:
    """The name of a parameter inside a rule or a remedy."""

    name: str

    def words(self, surface: Surface) -> str:
        """The name of the argument, option or JSON field."""
        return surface.parameter(self.name)

    def as_json(self) -> dict[str, Any]:
        """Its fields, as a problem document has them."""
        return {"parameter": self.name}


@dataclass(frozen=True, slots=True)
class Argument:
    """A parameter with a value to give, inside a rule or a remedy; ``...`` is any value.

    >>> Argument("delta", 1e-6).words(PYTHON), Argument("delta", 0.001).words(SERVICE)
    ('delta=1e-6', '"delta": 0.001')
    """

    name: str
    value: bool | float | str | EllipsisType = ...

    def words(self, surface: Surface) -> str:
        """The argument, option or JSON field."""
        name = surface.parameter(self.name)
        if surface.name == PYTHON.name:
            return f"{name}=..." if self.value is ... else f"{name}={_written(self.value)}"
        if self.value is ... or self.value is True:
            return name
        if surface.name == SERVICE.name:
            return f"{json.dumps(name)}: {json.dumps(self.value)}"
        return f"{name} {self.value if isinstance(self.value, str) else _written(self.value)}"

    def as_json(self) -> dict[str, Any]:
        """Its fields, as a problem document has them."""
        return {"argument": self.name} | ({} if self.value is ... else {"value": self.value})


def _written(value: bool | float | str) -> str:
    """A value as people write it: 1e-6, not 1e-06."""
    return re.sub(r"e([+-])0+(?=[0-9])", r"e\1", repr(value)) if isinstance(value, float) else repr(value)


@dataclass(frozen=True, slots=True)
class PerSurface:
    """A phrase that differs by more than the spelling of a parameter, such as the call or command to use.

    >>> PerSurface("read it with hushsum.load", "query it with: hushsum query", "query it").words(SERVICE)
    'query it'
    """

    python: str
    command_line: str
    service: str

    def words(self, surface: Surface) -> str:
        """The phrase of this surface."""
        known = {PYTHON.name: self.python, SERVICE.name: self.service}
        return known.get(surface.name, self.command_line)

    def as_json(self) -> dict[str, Any]:
        """Its fields, as a problem document has them."""
        return {"python": self.python, "command_line": self.command_line, "service": self.service}


@dataclass(frozen=True, slots=True)
class FilePath:
    """The path of a file or folder. The service shows names alone, not the paths of its own machine.

    >>> FilePath("/srv/a.tally").words(PYTHON), FilePath("/srv/a.tally").words(SERVICE)
    ('/srv/a.tally', 'the file')
    """

    path: str | os.PathLike[str]
    service: str = "the file"
    quoted: bool = False

    def words(self, surface: Surface) -> str:
        """The path, or what the service calls it."""
        path = os.fspath(self.path)
        if surface.name == SERVICE.name and os.sep in path:
            return self.service
        return repr(path) if self.quoted else path

    def as_json(self) -> str:
        """What the service calls it: a problem document leaves the machine."""
        return self.words(SERVICE)


Part = str | Parameter | Argument | PerSurface | FilePath
Words = Part | tuple[Part, ...]
"""A phrase: text, and parts that each surface spells in its own way."""


def render(words: Words, surface: Surface) -> str:
    """A phrase as a surface shows it.

    >>> render(("declare ", Argument("population"), ", or a smaller delta"), PYTHON)
    'declare population=..., or a smaller delta'
    """
    return "".join(each if isinstance(each, str) else each.words(surface) for each in parts_of(words))


def parts_of(words: Words) -> tuple[Part, ...]:
    """A phrase as its parts."""
    return words if isinstance(words, tuple) else (words,)


def words_as_json(words: Words) -> Any:
    """A phrase in a problem document; `words_from_json` reads it."""
    if isinstance(words, tuple):
        return [words_as_json(each) for each in words]
    return words if isinstance(words, str) else words.as_json()


def words_from_json(found: Any) -> Words:
    """The phrase in a problem document."""
    if isinstance(found, list):
        return tuple(_part_from_json(each) for each in found)
    return _part_from_json(found)


def _part_from_json(found: Any) -> Part:
    if isinstance(found, Mapping) and "argument" in found:
        return Argument(str(found["argument"]), found.get("value", ...))
    if isinstance(found, Mapping) and "parameter" in found:
        return Parameter(str(found["parameter"]))
    if isinstance(found, Mapping) and "file" in found:
        return FilePath(str(found["file"]), str(found["service"]), bool(found["quoted"]))
    if isinstance(found, Mapping):
        names = ("python", "command_line", "service")
        return PerSurface(*(str(found.get(each, "")) for each in names))
    return str(found)
