"""Every error Hushsum raises on purpose.

::

    HushsumError
    ├── UsageError            a parameter breaks a rule                         exit 2, also a ValueError
    │   ├── ClaimError        a privacy parameter cannot be claimed             exit 2
    │   ├── QuestionsSpent    a served function answers no more new points      exit 2
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
    ├── SuspiciousParameter   a declared parameter looks read off the records; for the owner's eyes
    ├── PublicAssumption      a model takes something of the records as public knowledge
    ├── RepeatedSpending      a model, or a copy of it with the same records, spends again
    └── UnsoundRule           a published rule whose proof does not hold is run as it was published

A message says what is wrong, the rule, what was got and the remedy. It never contains a data value.
"""

from __future__ import annotations

from typing import ClassVar


class HushsumError(Exception):
    """The root of the tree; ``exit_code`` is what the command line ends with."""

    exit_code: ClassVar[int] = 1


class UsageError(HushsumError, ValueError):
    """A parameter breaks a rule that does not depend on the data."""

    exit_code = 2


class ClaimError(UsageError):
    """A privacy parameter, or a combination of them, cannot be claimed."""


class QuestionsSpent(UsageError):
    """A served function has answered as many distinct points as it may; those it answers for ever."""


class AlreadyPublished(UsageError):
    """A release with this key reached its reader before; it is neither drawn nor delivered again.

    ``sha256`` is that of the bytes that were published.
    """

    def __init__(self, message: str, sha256: str) -> None:
        super().__init__(message)
        self.sha256 = sha256


class AlreadyReleased(UsageError, AttributeError):
    """A model that was released takes no more records: its release was paid for once, as it is.

    An ``AttributeError`` too, because from the release on a model has no ``partial_fit``: whoever asks with
    ``hasattr`` is told so.
    """


class BudgetExhausted(HushsumError):
    """The ledger has less left than the release would spend; nothing was released."""

    exit_code = 3


class LedgerUnavailable(HushsumError):
    """The ledger, or the mark that goes with it, could not be reached or written; repeat with the same
    key.
    """


class ServiceRefused(HushsumError):
    """A remote service cannot be reached, does not know the token, or refuses what it was asked."""


class IncompatibleTallies(HushsumError):
    """Two tallies have different fingerprints, so their sum would mean nothing."""

    exit_code = 4


class FileRefused(HushsumError):
    """A file is damaged, of a later version, or of another kind."""

    exit_code = 5


class DataRefused(HushsumError, ValueError):
    """Records break a rule; the tally is as it was before."""

    exit_code = 6


class CounterOverflow(DataRefused):
    """A counter would leave the range of its integers; the tally is as it was before."""


class PeerRefused(HushsumError):
    """Another party of a protocol broke a rule, or does not hold the key that it should."""


class PeerLost(HushsumError):
    """Another party of a protocol cannot be reached, or went away; the run can be resumed."""


class SecretRefused(HushsumError, TypeError):
    """Something secret was about to leave through a door meant for public things."""

    exit_code = 2


class SuspiciousParameter(UserWarning):
    """A declared parameter looks as if it had been read off the private records.

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
    data, or pay for the choice with ``hushsum.choose``.
    """


class UnsoundRule(UserWarning):
    """A rule runs as it was published although it does not keep its claim; for reproducing figures.

    Its results carry the published figure under that name and claim nothing themselves.
    """


def shown(value: object) -> str:
    """A refused parameter in a message: a number or a name as it is, of anything else the type alone.

    Who mixes up two arguments passes records here, and messages end in logs.

    >>> shown(-1), shown([3.5])
    ('-1', 'a list')
    """
    if isinstance(value, bool | int | float) or (isinstance(value, str) and len(value) <= 40):
        return repr(value)
    return f"a {type(value).__name__}"
