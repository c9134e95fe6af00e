"""Owners and a curator in one process, on real sockets with real keys."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np

from hushsum.parties import (
    Address,
    Identity,
    Participant,
    Patience,
    RunSpending,
    StateFolder,
    connect,
    incoming,
)
from hushsum.parties._tls import TlsConnection, secured
from hushsum.parties.summarization import (
    HashSecret,
    Opening,
    OwnerMachine,
    RunTerms,
    SummaryFeatures,
    owners_claim,
)
from hushsum.records import ColumnBlocks

FEATURES = SummaryFeatures(dim=2, bandwidth=1.0, features=20, seed=1)
QUICK = Patience(wait=20.0, transfer=20.0, lost=10.0)


def identities(folder: Path, *names: str) -> list[Identity]:
    return [Identity.create(folder / f"{name}.key") for name in names]


def records(seed: int, size: int = 200) -> ColumnBlocks:
    values = np.random.default_rng(seed).normal(size=(size, 3))
    return ColumnBlocks({name: values[:, [i]] for i, name in enumerate("abc")})


def terms_for(
    *owners: Identity,
    rule: str = "fresh",
    rounds: int = 4,
    batch: int = 3,
    cap: int | None = None,
    hashed: bool = False,
) -> RunTerms:
    return RunTerms(
        run="run-1",
        rule=rule,
        features=FEATURES,
        owners=tuple(each.fingerprint for each in owners),
        size=rounds * batch,
        rounds=rounds,
        batch=batch,
        reach=2 * rounds * batch,
        cap=cap,
        rho=Fraction(1),
        extra=1,
        hashed=hashed,
    )


def opening_for(terms: RunTerms) -> Opening:
    return Opening(terms, ("a", "b"), ("c",))


def accepted(
    listening: socket.socket, identity: Identity, *peers: Identity, wait: float = 20.0
) -> TlsConnection:
    """The next connection of one of these peers."""
    context = identity.server_context([each.fingerprint for each in peers])
    return secured(incoming(listening, wait=wait), context, handshake=10.0, transfer=10.0)


@contextmanager
def linked(folder: Path, *, transfer: float = 10.0) -> Iterator[tuple[TlsConnection, TlsConnection]]:
    """Both ends of a connection between two parties that have pinned each other."""
    server, client = identities(folder, "server", "client")
    listener = socket.create_server(("127.0.0.1", 0))
    ends: list[TlsConnection] = []

    def serve() -> None:
        context = server.server_context([client.fingerprint])
        ends.append(secured(incoming(listener, wait=10), context, handshake=10, transfer=transfer))

    thread = threading.Thread(target=serve)
    thread.start()
    port = listener.getsockname()[1]
    near = connect(client, "127.0.0.1", port, server.fingerprint, timeout=10, transfer=transfer)
    thread.join()
    listener.close()
    with near, ends[0] as far:
        yield near, far


@dataclass
class Desk:
    """A running owner, where its curator listens, and what it logged."""

    identity: Identity
    listening: socket.socket
    log: list[str] = field(default_factory=list)
    paid: list[str] = field(default_factory=list)
    problem: list[BaseException] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)


class Stopped(Exception):
    """The test is over."""


@contextmanager
def place() -> Iterator[socket.socket]:
    """Where a curator listens."""
    with socket.create_server(("127.0.0.1", 0), backlog=16) as listening:
        yield listening


def where(listening: socket.socket, curator: Identity) -> Address:
    return Address("127.0.0.1", listening.getsockname()[1], curator.fingerprint)


def noted_in(paid: list[str]) -> Callable[[RunTerms], RunSpending]:
    """The spending of an owner without a ledger, which notes the runs that were paid for."""

    def spending(terms: RunTerms) -> RunSpending:
        class Noting(RunSpending):
            def staged_bytes(self, make: Callable[[], bytes]) -> bytes:
                paid.append(terms.run)
                return super().staged_bytes(make)

        return Noting("summarize", None, "", terms.run, owners_claim(terms), {})

    return spending


@contextmanager
def owner_running(
    identity: Identity,
    peer: Identity,
    folder: Path,
    *,
    seed: int = 0,
    cap: int | None = None,
    secret: HashSecret | None = None,
    listening: socket.socket | None = None,
    patience: Patience = QUICK,
) -> Iterator[Desk]:
    """An owner in a thread, which connects again until the end of the test."""
    with ExitStack() as stack:
        listens = listening or stack.enter_context(place())
        desk = Desk(identity, listens)
        stop = threading.Event()

        class Stoppable(Participant):
            def _connected(self) -> TlsConnection:
                if stop.is_set():
                    raise Stopped
                return super()._connected()

        def serve() -> None:
            try:
                with StateFolder(folder) as state_folder:
                    machine = OwnerMachine(
                        identity,
                        records(seed),
                        state_folder,
                        cap=cap,
                        secret=secret,
                        spending=noted_in(desk.paid),
                        log=desk.log.append,
                    )
                    address = where(listens, peer)
                    Stoppable(identity, address, machine, patience=patience, log=desk.log.append).take_part()
            except Stopped:
                pass
            except BaseException as problem:
                desk.problem.append(problem)
            finally:
                desk.over.set()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield desk
        finally:
            stop.set()
            # Whoever waits for a handshake is let go.
            listens.close()
            thread.join(30)
            assert not thread.is_alive()
