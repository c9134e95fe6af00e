"""The curator's process: it connects to every owner, and carries the rule's messages there and back.

What is drawn and what is taken is decided by `CuratorState`, which stores every draw before it can be read.
So a process that starts again with the stored state sends what was drawn, never something new.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import TypeVar

from hushsum.errors import FileRefused, HushsumError, PeerLost, PeerRefused
from hushsum.summarize import transport_messages
from hushsum.summarize.curator import CuratorState
from hushsum.summarize.messages import Answer, Broadcast
from hushsum.transport import control_messages
from hushsum.transport.addresses import Address, Log, Patience, short
from hushsum.transport.peer_identity import Identity
from hushsum.transport.tls_connection import TlsConnection, connect

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 2.0
_CONNECT = 20.0
_MOST_THREADS = 64

T = TypeVar("T")


class Peer:
    """One owner as the curator reaches it: connects again whenever the connection ended."""

    def __init__(
        self,
        identity: Identity,
        address: Address,
        fingerprint: str,
        opening: bytes,
        most: int,
        patience: Patience,
    ) -> None:
        self.fingerprint = fingerprint
        self._identity = identity
        self._address = address
        self._opening = opening
        self._most = most
        self._patience = patience
        self._connection: TlsConnection | None = None

    def ready(self, stop: threading.Event) -> None:
        """Wait until the owner has accepted the terms.

        Raises
        ------
        PeerLost
            if it could not be reached for the time of ``patience.lost``.
        PeerRefused
            if it does not take part.
        """
        self._again(self._opened, stop)

    def ask(self, broadcast: Broadcast, stop: threading.Event) -> Answer:
        """The owner's answer, however often the connection ends on the way.

        Raises
        ------
        PeerLost, PeerRefused
            as `ready` does, and for an answer that is none.
        """
        data = broadcast.to_bytes()

        def exchange() -> Answer:
            connection = self._opened()
            connection.send(data)
            received = connection.receive(most=self._most, wait=self._patience.wait)
            kind, values = control_messages.kind_of(received, "answer", "refusal")
            if kind == "refusal":
                raise PeerRefused(rule=f"it refused: {control_messages.reason_in(values)}")
            answer = Answer.from_bytes(received, most=self._most)
            if answer.owner != self.fingerprint:
                raise PeerRefused(rule="it answered in the name of another owner")
            return answer

        return self._again(exchange, stop)

    def end(self, run: str) -> None:
        """Tell the owner that the run is over; one attempt, for nothing depends on it."""
        try:
            connection = self._opened()
            connection.send(control_messages.ending(run))
            connection.receive(most=control_messages.MOST_CONTROL, wait=self._patience.transfer)
        except HushsumError:
            pass
        finally:
            self.close()

    def close(self) -> None:
        """End the connection; the next message opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _opened(self) -> TlsConnection:
        if self._connection is not None:
            return self._connection
        connection = connect(
            self._identity,
            self._address.host,
            self._address.port,
            self.fingerprint,
            timeout=min(_CONNECT, self._patience.wait),
            transfer=self._patience.transfer,
        )
        try:
            connection.send(self._opening)
            received = connection.receive(most=control_messages.MOST_CONTROL, wait=self._patience.wait)
            kind, values = control_messages.kind_of(received, "ready", "refusal")
            if kind == "refusal":
                raise PeerRefused(rule=f"it does not take part: {control_messages.reason_in(values)}")
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _again(self, attempt: Callable[[], T], stop: threading.Event) -> T:
        deadline = time.monotonic() + self._patience.lost
        pause = _FIRST_PAUSE
        while True:
            try:
                return attempt()
            except PeerLost:
                self.close()
                if time.monotonic() + pause > deadline or stop.wait(pause):
                    raise
                pause = min(2 * pause, _LONGEST_PAUSE)
            except FileRefused as refused:
                self.close()
                raise PeerRefused(rule=f"it sent something that is not an answer: {refused}") from None
            except PeerRefused:
                self.close()
                raise


class CuratorProcess:
    """All owners of one run.

    A round begins on a tick of a fixed clock, ``pace`` seconds apart, so that its length reveals to an owner
    nothing about the others while all answer within a tick. An owner that refuses, breaks the rule, or cannot
    be reached for ``patience.lost`` seconds is lost for good; ``log`` is notified, the other owners are not.
    """

    def __init__(
        self,
        identity: Identity,
        addresses: Mapping[str, Address],
        opening: transport_messages.Opening,
        state: CuratorState,
        *,
        pace: float = 1.0,
        patience: Patience | None = None,
        log: Log = lambda _: None,
        progress: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._state = state
        self._pace = pace
        self._log = log
        self._progress = progress
        self._patience = patience or Patience()
        self._stop = threading.Event()
        spelled, most = opening.to_bytes(), transport_messages.most_answer(opening.terms)
        self._peers = {
            name: Peer(identity, addresses[name], name, spelled, most, self._patience)
            for name in opening.terms.owners
        }
        self._pool = ThreadPoolExecutor(min(len(self._peers), _MOST_THREADS), "hushsum-owner")

    def __enter__(self) -> CuratorProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        for peer in self._peers.values():
            peer.close()
        self._pool.shutdown(wait=kind is None, cancel_futures=True)

    def gather(self) -> None:
        """Wait until every owner has accepted the terms, before anything is drawn.

        An owner that does not come is lost.

        Raises
        ------
        PeerRefused
            if an owner refuses the terms, or does not hold its key: that is for people to settle.
        """
        waiting = {name: self._pool.submit(peer.ready, self._stop) for name, peer in self._present()}
        refused = ""
        for name, future in waiting.items():
            try:
                future.result()
            except PeerLost as reason:
                self._lose(name, reason)
            except PeerRefused as reason:
                refused = refused or f"owner {short(name)}: {reason}"
        if refused:
            raise PeerRefused(rule=f"{refused}", remedy="settle that and start again, nothing is spent twice")
        self._check_present()

    def run(self) -> None:
        """Hold all rounds that are left.

        Raises
        ------
        PeerLost
            if no owner is left.
        """
        state = self._state
        started = time.monotonic()
        while not state.done:
            self._progress(state.round / state.terms.rounds)
            if not state.awaited:
                self._tick(started)
                state.advance()
            self._hold()
            self._check_present()
        self._progress(1.0)

    def end(self) -> None:
        """Tell the owners that the run is over."""
        run = self._state.terms.run
        list(self._pool.map(lambda named: named[1].end(run), self._present()))

    def _hold(self) -> None:
        """One step: ask all who have not answered, then take the answers in the owners' order."""
        outgoing = self._state.outgoing()
        requested = {
            name: self._pool.submit(self._peers[name].ask, broadcast, self._stop)
            for name, broadcast in outgoing.items()
        }
        for name, future in requested.items():
            try:
                self._state.take(future.result())
            except (PeerLost, PeerRefused, FileRefused) as reason:
                self._lose(name, reason)

    def _lose(self, name: str, reason: HushsumError) -> None:
        self._peers[name].close()
        self._state.lose(name)
        self._log(f"continuing without owner {short(name)}: {reason}")

    def _present(self) -> list[tuple[str, Peer]]:
        return [(name, peer) for name, peer in self._peers.items() if name not in self._state.lost]

    def _check_present(self) -> None:
        if not self._present():
            raise PeerLost(rule="no owner is left", remedy="start the owners, and then this command again")

    def _tick(self, started: float) -> None:
        """Wait for the next tick of the clock."""
        if self._pace > 0:
            passed = time.monotonic() - started
            self._stop.wait(self._pace - passed % self._pace)
