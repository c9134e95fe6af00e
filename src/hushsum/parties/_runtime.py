"""The runtime of all protocols: messages, the state that outlives a crash, and the processes.

A protocol is two state machines without input, output and clocks: `Coordinated` and `Participating`. The
coordinator sends every participant the request of the open step and takes its reply; `Coordinator` and
`Participant` carry these bytes over TLS, connect again, end steps by a clock, and pass on why one side stops.
Messages are declared fields, in the self-checking layout of `hushsum.files`. What must survive a crash, the
machines store in a `StateFolder` of one process, durably, before it can be read.
"""

from __future__ import annotations

import fcntl
import hashlib
import math
import os
import re
import socket
import threading
import time
import typing
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from types import NoneType
from typing import Any, ClassVar, Final, NoReturn, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats, Integers, Secret
from hushsum.declaration import request, required, setting
from hushsum.errors import (
    AlreadyPublished,
    FileRefused,
    HushsumError,
    Parameter,
    PeerLost,
    PeerRefused,
    UsageError,
)
from hushsum.files import atomic_file, check_spelling, pack, seal, stored_rational, unpack, unseal
from hushsum.operations import LedgerOptions
from hushsum.parties._tls import Identity, TlsConnection, connect, fingerprint_of, incoming, secured, short
from hushsum.privacy import Booking, Claim, StagedRelease, stage

Log = Callable[[str], None]
NO_LEDGER: Final = LedgerOptions()
_HANDSHAKE: Final = 20.0
_TICK: Final = 0.05
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 2.0
# A participant that still runs connects again within this time.
_GRACE: Final = 3 * _LONGEST_PAUSE

# Connections under way that have not proven a key; further ones are closed at once.
_MOST_HANDSHAKES: Final = 64

# Connections of one key at once: a party needs one, and a few more while lost ones time out.
_MOST_OF_A_PARTY: Final = 8


@dataclass(frozen=True, slots=True)
class Address:
    """Where a peer listens, and the key that it must hold."""

    host: str
    port: int
    fingerprint: str = ""


_waiting = partial(setting, group="Waiting", metavar="SECONDS")


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds: until a peer comes or a message begins, until a peer that went away is given up, and for one
    message to pass.
    """

    wait: float = _waiting(3600.0, "How long to wait for the others to start.", above=0)
    lost: float = _waiting(60.0, "Continue without a party that is away for this time.", name="patience")
    transfer: float = 120.0


@dataclass(frozen=True, slots=True)
class ParticipantPatience(Patience):
    """How long a participant waits for its peer, which people may have to start again."""

    lost: float = _waiting(600.0, "Give up when the other side is away for this time.", name="patience")


class Result:
    """How an operation ended, as a dataclass whose fields are what a machine is shown."""

    __slots__ = ()

    def as_json(self) -> dict[str, Any]:
        """The fields by name; a claim in numbers."""
        ended: Any = self
        values = {each.name: getattr(self, each.name) for each in fields(ended)}
        return {name: each.in_numbers() if isinstance(each, Claim) else each for name, each in values.items()}


class RunSpending:
    """Debits a party's ledger once per run, under a key that a retry repeats; without a ledger nothing."""

    def __init__(
        self,
        protocol: str,
        ledger: LedgerOptions | None,
        fingerprint: str,
        run: str,
        claim: Claim,
        subject: Mapping[str, object],
    ) -> None:
        self.claim, self._subject = claim, subject
        self.key: str | None = None
        self._booking: Booking | None = None
        self._staged: StagedRelease | None = None
        if ledger is not None:
            named = f"{run} {fingerprint}".encode()
            self.key = f"{protocol}-{hashlib.sha256(named).hexdigest()[:40]}"
            self._budget = ledger.budget()
            self._booking = Booking(self._budget, self.key)

    @property
    def debited(self) -> bool:
        """Whether the ledger holds this run."""
        return self.key is not None and self._budget.find(self.key) is not None

    def afford(self) -> None:
        """Raise BudgetExhausted if less is left than the claim costs; debits nothing."""
        if self._booking is not None and not self.debited:
            self._budget.price(self.claim)

    def staged_bytes(self, make: Callable[[], bytes]) -> bytes:
        """Debit the claim, then make what the ledger keeps; a retry gets the bytes of the first attempt."""
        try:
            self._staged = stage(self._booking, self.claim, self._subject, make)
        except AlreadyPublished:
            raise UsageError("this run is closed in the ledger") from None
        return self._staged.payload

    def settle(self, *, sent: bool = False) -> None:
        """Record that the run has ended; after a crash the bytes were staged by an earlier process.

        A party that has ``sent`` nothing, and whose ledger does not hold this run, owes nothing.
        """
        if self._booking is None or not (sent or self.debited):
            return
        with suppress(AlreadyPublished):
            staged = self._staged or stage(self._booking, self.claim, self._subject, _nothing)
            staged.publish()

    def in_words(self, *, sent: bool) -> str:
        """What a site that was dropped, or lost the server, has spent."""
        claim = self.claim
        amount = f"ρ = {claim.rho:.15g}" if claim.epsilon is None else f"ε = {claim.epsilon:.15g}"
        if self.debited:
            spent = f"This site's ledger was debited {amount} for this run (entry {self.key})"
        elif sent:
            spent = f"This site's masked table may have left and {amount} counts as spent"
        else:
            return "Nothing was spent at this site."
        return f"{spent}; that stays spent, and repeating the command spends nothing more."


def _nothing() -> bytes:
    raise UsageError("the ledger holds nothing that this run staged")


@request
class PartySpec:
    """What the process of every party needs."""

    key: str = required("This party's key file.", metavar="FILE")
    state: str | None = setting(
        None, "Folder for the state of runs. [default: beside the file]", metavar="DIR"
    )


def parse_address(text: str, parameter: str, *, pinned: bool = False) -> Address:
    """``HOST:PORT``, or if ``pinned`` ``HOST:PORT@FINGERPRINT``; an IPv6 address stands in brackets.

    >>> parse_address("[::1]:7000", "listen")
    Address(host='::1', port=7000, fingerprint='')
    """
    place, at, fingerprint = text.rpartition("@") if pinned else (text, "@", "")
    host, colon, port = place.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not at or not colon or not host or not port.isdecimal() or int(port) > 65535:
        form = "HOST:PORT@FINGERPRINT" if pinned else "HOST:PORT"
        remedy = "the command keys shows the fingerprint" if pinned else "such as 127.0.0.1:7000"
        raise UsageError(parameter, f"must be {form}", got=f"{text!r:.60}", remedy=remedy)
    return Address(host, int(port), fingerprint_of(fingerprint) if pinned else "")


def listener(address: Address, *, backlog: int = 4) -> socket.socket:
    """A socket that listens at an address.

    Raises
    ------
    UsageError
        if the address is taken, or not one of this machine.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server((address.host, address.port), family=family, backlog=backlog)
    except OSError as error:
        reason = (error.strerror or "refused").lower()
        raise UsageError(f"cannot listen on {address.host}:{address.port} ({reason})") from None


class Coordinated(Protocol):
    """The coordinator's side of a protocol; it holds no socket, and its methods are called by one thread at a
    time.
    """

    noun: str
    """What a participant is called in messages."""

    resumable: bool
    """Whether the run can be started again after `close_step` refused: participants then wait for that."""

    @property
    def run(self) -> str:
        """The name of the run."""

    @property
    def parties(self) -> tuple[str, ...]:
        """The fingerprints of all participants."""

    @property
    def step(self) -> Any:
        """The open step; a reply to another one is too late."""

    @property
    def done(self) -> bool:
        """Whether all steps are closed."""

    @property
    def members(self) -> Collection[str]:
        """Who takes part in the open step; when all are closed, who may learn that the run has ended."""

    @property
    def awaited(self) -> Collection[str]:
        """Who of them has not replied."""

    @property
    def most_reply(self) -> int:
        """The longest reply to the open step, in bytes."""

    def greeting(self, party: str) -> bytes:
        """What begins every connection, and is replied to before anything else; nothing if empty."""

    def greeted(self, party: str, data: bytes) -> None:
        """Take the reply to the greeting."""

    def request_for(self, party: str) -> bytes | None:
        """What a party is to be sent now; None if it is not awaited."""

    def take(self, party: str, data: bytes) -> None:
        """Take a reply to the open step; the same bytes again change nothing."""

    def refused(self, party: str, reason: HushsumError) -> None:
        """Take note that a party refused, or sent what the rule does not allow."""

    def open_step(self) -> None:
        """Begin the next step, unless one is open."""

    def close_step(self) -> None:
        """End the open step with those who replied.

        Raises
        ------
        PeerLost
            if they are too few; the run can be resumed.
        PeerRefused
            if the run cannot go on.
        """


class Participating(Protocol):
    """A participant's side of a protocol; it holds no socket."""

    noun: str
    """What the coordinator is called in messages."""

    @property
    def continued(self) -> tuple[type[HushsumError], ...]:
        """Errors after which the participant connects again, perhaps to other terms."""

    @property
    def most_request(self) -> int:
        """The length of the longest accepted request, in bytes."""

    def answer(self, request: bytes) -> bytes:
        """The reply, stored before it is returned; OwnRefusal for what concerns this party alone."""

    def end(self, run: str) -> bytes:
        """Take note that the run has ended, and say so."""

    def reason(self, error: HushsumError) -> str:
        """What the coordinator learns of a refusal."""


class Coordinator:
    """All participants of one run.

    A step ends when everybody who takes part has replied, or when those who have not are away for
    ``patience.lost`` seconds, or have not come to this process at all for ``patience.wait``. A party that
    comes back before continues where it was; one that is connected and silent for ``patience.wait`` seconds
    counts as away. However often it connects again, nobody is awaited for longer than that and the time of
    one transfer after a step was opened. With a ``pace`` steps are opened on the ticks of a fixed clock, so
    many seconds apart, whose length shows nobody how long the others took. Refusals are logged and sent to
    the party, in sentences without a data value; so is the reason when the coordinator gives up.
    """

    def __init__(
        self,
        identity: Identity,
        machine: Coordinated,
        *,
        patience: Patience | None = None,
        pace: float = 0.0,
        log: Log = lambda _: None,
    ) -> None:
        self._context = identity.server_context(machine.parties)
        self._machine = machine
        self._patience = patience or Patience()
        self._pace = pace
        self._log = log
        self._changed = threading.Condition()
        self._stopped = self._ended = False
        self._last_message: bytes | None = None
        self._told: set[str] = set()
        self._connections: Counter[str] = Counter()
        self._left: dict[str, float] = {}
        self._handshakes = threading.BoundedSemaphore(_MOST_HANDSHAKES)
        self._open: set[TlsConnection] = set()
        self._threads: list[threading.Thread] = []
        self._begun = self._step_begun = time.monotonic()

    def serve(
        self,
        listening: socket.socket,
        *,
        finish: Callable[[], None] = lambda: None,
        closed: Callable[[Any], None] = lambda _: None,
    ) -> None:
        """Take part until the run is done and the participants know.

        ``closed`` is called with every step that was closed, ``finish`` when all are and before anybody is
        notified.

        Raises
        ------
        PeerLost
            if too few replied in time; the run can be resumed with the same state.
        PeerRefused
            if the run cannot be finished.
        """
        admitting = threading.Thread(target=self._admit, args=(listening,), daemon=True)
        admitting.start()
        try:
            while not self._machine.done:
                if self._pace > 0 and not self._machine.awaited:
                    time.sleep(self._pace - (time.monotonic() - self._begun) % self._pace)
                step = self._finish_step()
                closed(step)
            finish()
            self._farewell()
        except (PeerLost, PeerRefused) as error:
            final = isinstance(error, PeerRefused) and not self._machine.resumable
            text = str(error if final else PeerLost(error.rule, got=error.got))
            self._give_up(control("refusal" if final else "giving up", reason=text))
            raise
        finally:
            with self._changed:
                self._stopped = True
                self._changed.notify_all()
                for connection in self._open:
                    connection.interrupt()
            admitting.join(_HANDSHAKE)
            deadline = time.monotonic() + 1.0
            for each in self._threads:
                each.join(max(deadline - time.monotonic(), 0.0))

    def _finish_step(self) -> Any:
        with self._changed:
            try:
                return self._step()
            except (PeerLost, PeerRefused):
                raise
            except BaseException:
                # What was drawn and could not be stored must not leave, before anybody else has the lock.
                self._stopped = True
                raise

    def _step(self) -> Any:
        self._machine.open_step()
        self._changed.notify_all()
        step = self._machine.step
        self._step_begun = time.monotonic()
        while any(self._expected(party) for party in self._machine.awaited):
            self._changed.wait(_TICK)
        for party in self._machine.awaited:
            self._log(f"step {step!r}: continuing without {self._machine.noun} {short(party)}")
        self._machine.close_step()
        self._changed.notify_all()
        return step

    def _expected(self, party: str) -> bool:
        """Whether a party is connected, or left so short a time ago that it may come back.

        Participants are started by people, one after the other, so those that have not come yet to this
        process have more time, also after it was started again; once they are here they reply at once.
        """
        if time.monotonic() - self._step_begun > self._patience.wait + self._patience.transfer:
            return False
        if self._connections[party]:
            return True
        if party in self._left:
            return time.monotonic() - self._left[party] < self._patience.lost
        return time.monotonic() - self._begun < self._patience.wait

    def _farewell(self) -> None:
        """Give the participants that are still connected the time of one transfer to hear that the run has
        ended.
        """
        deadline = time.monotonic() + min(self._patience.transfer, self._patience.lost)
        with self._changed:
            self._ended = True
            self._changed.notify_all()
            begun = time.monotonic()
            while time.monotonic() < deadline and any(
                self._connections[party] or time.monotonic() - self._left.get(party, begun) < _GRACE
                for party in set(self._machine.members) - self._told
            ):
                self._changed.wait(_TICK)

    def _give_up(self, message: bytes) -> None:
        """Send those who wait for a request this instead, within the time of one transfer."""
        deadline = time.monotonic() + min(self._patience.transfer, self._patience.lost)
        with self._changed:
            self._last_message, self._stopped = message, True
            self._changed.notify_all()
            awaited = set(self._machine.awaited)
            while time.monotonic() < deadline and any(
                count for party, count in self._connections.items() if party not in awaited
            ):
                self._changed.wait(_TICK)

    def _admit(self, listening: socket.socket) -> None:
        while not self._stopped:
            try:
                plain = incoming(listening, wait=_TICK)
            except TimeoutError:
                continue
            except OSError:
                return
            # In threads, so that who connects and says nothing holds up nobody else.
            if self._handshakes.acquire(blocking=False):
                self._threads = [each for each in self._threads if each.is_alive()]
                self._threads.append(threading.Thread(target=self._receive, args=(plain,), daemon=True))
                self._threads[-1].start()
            else:
                plain.close()

    def _receive(self, plain: socket.socket) -> None:
        try:
            connection = secured(plain, self._context, handshake=_HANDSHAKE, transfer=self._patience.transfer)
        except PeerRefused as refused:
            self._log(f"refused: {refused}")
            return
        finally:
            self._handshakes.release()
        self._converse(connection)

    def _converse(self, connection: TlsConnection) -> None:
        party, named = connection.peer, f"{self._machine.noun} {short(connection.peer)}"
        with connection:
            try:
                with self._counted(connection):
                    try:
                        self._greet(connection, party)
                        while self._exchange(connection, party):
                            pass
                    except (PeerRefused, FileRefused) as refused:
                        with self._changed:
                            self._machine.refused(party, refused)
                        raise
            except PeerLost:
                self._log(f"{named} went away")
            except HushsumError as refused:
                self._log(f"refused {named}: {refused}")
                with suppress(PeerLost):
                    connection.send(control("refusal", reason=str(refused)))

    @contextmanager
    def _counted(self, connection: TlsConnection) -> Iterator[None]:
        party = connection.peer
        with self._changed:
            if self._connections[party] >= _MOST_OF_A_PARTY:
                raise PeerRefused(f"this {self._machine.noun} has {_MOST_OF_A_PARTY} connections open")
            self._connections[party] += 1
            self._open.add(connection)
        try:
            yield
        finally:
            with self._changed:
                self._connections[party] -= 1
                self._open.discard(connection)
                self._left[party] = time.monotonic()
                self._changed.notify_all()

    def _greet(self, connection: TlsConnection, party: str) -> None:
        with self._changed:
            self._check_member(party)
            greeting = self._machine.greeting(party)
        if greeting:
            connection.send(greeting)
            data = connection.receive(most=MOST_CONTROL, wait=self._patience.wait)
            self._check_refusal(data)
            with self._changed:
                self._machine.greeted(party, data)
                self._changed.notify_all()

    def _exchange(self, connection: TlsConnection, party: str) -> bool:
        """One request and its reply; false when nothing follows."""
        with self._changed:
            request = self._due(party)
            step, most = self._machine.step, self._machine.most_reply
        if request is None:
            if self._last_message is not None:
                connection.send(self._last_message)
            return False
        connection.send(request)
        if self._ended:
            connection.receive(most=MOST_CONTROL, wait=self._patience.transfer)
            with self._changed:
                self._told.add(party)
                self._changed.notify_all()
            return False
        data = connection.receive(most=most + MOST_CONTROL, wait=self._patience.wait)
        self._check_refusal(data)
        with self._changed:
            if self._machine.step != step:
                raise PeerRefused(f"the reply to step {step!r} came too late")
            self._machine.take(party, data)
            self._changed.notify_all()
        return True

    def _due(self, party: str) -> bytes | None:
        """What a party is to be sent, once there is something; None when the process stops."""
        while not self._stopped:
            self._check_member(party)
            if self._ended:
                return control("ending", run=self._machine.run)
            request = self._machine.request_for(party)
            if request is not None:
                return request
            self._changed.wait(1.0)
        return None

    def _check_member(self, party: str) -> None:
        if party not in self._machine.members:
            noun, over = self._machine.noun, self._machine.done
            raise PeerRefused(
                f"the run is over without this {noun}"
                if over
                else f"this {noun} is not, or no longer, part of the run"
            )

    def _check_refusal(self, data: bytes) -> None:
        kind, values = control_in(data, "refusal")
        if kind:
            raise PeerRefused(f"it refused: {reason_in(values)}")


class _Refused(Exception):
    """This party refused what the coordinator sent, and has said so."""

    def __init__(self, error: HushsumError) -> None:
        super().__init__()
        self.error = error


class Participant:
    """One participant of a run. Its machine decides what to reply, and stores each reply before it is sent.

    It tries to connect for ``patience.wait`` seconds after its start. After a lost connection it connects
    again for ``patience.lost`` seconds, also to a coordinator that gave up and may be started again, which
    then repeats its request.
    """

    def __init__(
        self,
        identity: Identity,
        address: Address,
        machine: Participating,
        *,
        patience: Patience | None = None,
        log: Log = lambda _: None,
    ) -> None:
        self._identity = identity
        self._address = address
        self._machine = machine
        self._patience = patience or Patience()
        self._log = log
        self._gave_up: PeerLost | None = None

    def take_part(self, answered: Callable[[], None] = lambda: None) -> None:
        """Take part until the run has ended; ``answered`` is called when a reply has left.

        Raises
        ------
        PeerLost
            if the coordinator cannot be reached for so long, with its reason if it gave up; the run can be
            resumed.
        PeerRefused
            if one side refused what the other sent, or the run ended without this party.
        HushsumError
            of this party's own ledger; the coordinator learns only that it cannot take part.
        """
        deadline, pause = time.monotonic() + max(self._patience.wait, self._patience.lost), _FIRST_PAUSE
        logged = ""
        while True:
            reached: float | None = None
            try:
                with self._connected() as connection:
                    reached, self._gave_up = time.monotonic(), None
                    self._converse(connection, answered)
                    return
            except _Refused as refused:
                if not isinstance(refused.error, self._machine.continued):
                    raise refused.error from None
                lost = PeerLost(f"the {self._machine.noun} has not come with other terms")
            except PeerLost as error:
                lost = error
            now = time.monotonic()
            if reached is not None:
                # The coordinator was there until now, for however long it had nothing to request.
                deadline = now + self._patience.lost
                if now - reached > _LONGEST_PAUSE:
                    pause = _FIRST_PAUSE
            if now + pause > deadline:
                raise self._gave_up or lost from None
            if str(lost) != logged:
                logged = str(lost)
                self._log(f"{lost}; trying again for up to {deadline - now:.0f} seconds")
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _connected(self) -> TlsConnection:
        wait = min(_HANDSHAKE, self._patience.wait)
        transfer = self._patience.transfer
        where = self._address
        return connect(
            self._identity, where.host, where.port, where.fingerprint, timeout=wait, transfer=transfer
        )

    def _converse(self, connection: TlsConnection, answered: Callable[[], None] = lambda: None) -> None:
        """Answer what comes until the run has ended."""
        ended = False
        while not ended:
            try:
                data = connection.receive(most=self._machine.most_request, wait=self._patience.wait)
                kind, values = control_in(data, "ending", "refusal", "giving up")
                ended = kind == "ending"
                if ended:
                    reply = self._machine.end(str(values.get("run")))
                elif not kind:
                    reply = self._machine.answer(data)
            except PeerLost:
                raise
            except OwnRefusal as own:
                self._refuse(connection, own.error, own.reason)
            except HushsumError as error:
                self._refuse(connection, error, self._machine.reason(error))
            if kind == "refusal":
                raise PeerRefused(f"the {self._machine.noun} refused: {reason_in(values)}")
            if kind == "giving up":
                self._gave_up = PeerLost(
                    f"the {self._machine.noun} gave up: {reason_in(values)}",
                    remedy=f"repeat this command when the {self._machine.noun} is started again",
                )
                raise self._gave_up
            with suppress(PeerLost) if ended else nullcontext():
                connection.send(reply)
            if not ended:
                answered()

    def _refuse(self, connection: TlsConnection, error: HushsumError, reason: str) -> NoReturn:
        self._log(f"refused: {error}")
        with suppress(PeerLost):
            connection.send(control("refusal", reason=reason))
        raise _Refused(error) from None


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
SIGNED: Final = Field(_integer).optional()
"""An integer of either sign, or None."""

TEXT_OR_EMPTY: Final = Field(lambda value: _text(value, 0))
RATIONAL: Final = Field(stored_rational, str)
# What a field of a type holds, unless its annotation has a `Field` of its own.
_OF_TYPES: Final[dict[Any, Field]] = {
    str: Field(_text),
    int: Field(lambda value: _integer(value, 0)),
    bool: Field(lambda value: _of_type(bool, value)),
    Fraction: RATIONAL,
    tuple[str, ...]: Field(_texts, list),
    Floats: Field(_matrix, array=True),
    Integers: Field(_vector, lambda array: array.astype(np.int64), array=True),
}


def _field(hint: Any) -> Field:
    """The field that an annotation states."""
    stated = [each for each in getattr(hint, "__metadata__", ()) if isinstance(each, Field)]
    members = typing.get_args(hint)
    if stated or NoneType in members:
        return stated[0] if stated else _field(members[0]).optional()
    if hint in _OF_TYPES:
        return _OF_TYPES[hint]
    # A message inside another one.
    return Field(
        lambda array: hint.from_bytes(array.astype(np.int8).tobytes()),
        lambda message: np.frombuffer(message.to_bytes(), np.int8),
        array=True,
    )


@cache
def _declared(kind: Any) -> dict[str, Field]:
    hints = typing.get_type_hints(kind, include_extras=True)
    return {each.name: _field(hints[each.name]) for each in fields(kind)}


class Message:
    """A message as a dataclass, whose fields are read and written by their types; one spelling in bytes.

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


_NAME: Final = re.compile(r"[a-z0-9][a-z0-9.-]{0,120}")
_NOTICE: Final = "CONFIDENTIAL"
_WARNING: Final = (
    b"CONFIDENTIAL. The state of a run under way: private records, sums without noise, or secret keys.\n"
    b"Keep it until the run has ended; give it to nobody.\n"
)


class StateFolder:
    """A folder of mode 0700 with files of mode 0600, locked for one process at a time.

    A file appears whole or not at all, and `put` returns only when it is on the disk.

    Raises
    ------
    UsageError
        if another process works in the folder, or it holds other things.
    """

    __slots__ = ("_folder", "_lock")

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise UsageError("state", "must be a folder", got="a file") from None
        # A crash may have left an unfinished file, whose name begins with a dot.
        fresh = all(each.name[0] == "." for each in self._folder.iterdir())
        if not fresh and not (self._folder / _NOTICE).is_file():
            raise UsageError(f"the folder {str(folder)!r} holds other things than a run's state")
        os.chmod(self._folder, 0o700)
        self._lock = os.open(self._folder, os.O_RDONLY)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise UsageError(
                f"another process works in {str(folder)!r}",
                remedy=("wait for its end, or give another ", Parameter("state")),
            ) from None
        if fresh:
            self._write(_NOTICE, _WARNING)

    def put(self, name: str, data: bytes) -> None:
        """Keep bytes under a name, durably, in place of what it held."""
        if not _NAME.fullmatch(name):
            raise ValueError(f"no name of a file: {name!r}")
        self._write(name, data)

    def get(self, name: str) -> bytes | None:
        """What is kept under a name."""
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None

    def keep(self, name: str, data: bytes) -> bytes:
        """The bytes under a name; these, if there are none yet. What was stored first stays."""
        kept = self.get(name)
        if kept is not None:
            return kept
        self.put(name, data)
        return data

    def names(self, prefix: str = "") -> list[str]:
        """The sorted names that begin with ``prefix``, without unfinished files."""
        return sorted(
            each.name
            for each in self._folder.iterdir()
            if _NAME.fullmatch(each.name) and each.name.startswith(prefix)
        )

    def close(self) -> None:
        """Let another process work in the folder."""
        os.close(self._lock)

    def __enter__(self) -> StateFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, name: str, data: bytes) -> None:
        with atomic_file(self._folder / name, mode=0o600) as stream:
            stream.write(data)


class EncryptedState(Secret):
    """Named bytes in a `StateFolder`, each file encrypted and bound to its name.

    A copy of the folder without the key file tells nothing but sizes.
    """

    REFUSAL = "the state of a run holds a key and cannot be pickled", None
    __slots__ = ("_folder", "_key")

    def __init__(self, folder: StateFolder, identity: Identity) -> None:
        self._folder = folder
        self._key = identity.derived_key(b"state of an aggregation")

    def get(self, name: str) -> bytes | None:
        """What is kept under a name.

        Raises
        ------
        FileRefused
            if it was changed, or encrypted under another key file.
        """
        kept = self._folder.get(name)
        if kept is None:
            return None
        try:
            return bytes(unseal(self._key, kept, name.encode("ascii")))
        except FileRefused:
            raise FileRefused("the state of this run was changed, or belongs to another key file") from None

    def put(self, name: str, data: bytes) -> None:
        """Keep bytes, durably, before this returns."""
        self._folder.put(name, seal(self._key, [data], name.encode("ascii")))


class SecretStore(Protocol):
    """Durable bytes by name, which nobody else can read."""

    def get(self, name: str) -> bytes | None:
        """What is kept under a name."""

    def put(self, name: str, data: bytes) -> None:
        """Keep bytes, durably, before this returns."""
