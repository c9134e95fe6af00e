"""Owners and a curator in one process, on real sockets with real keys."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np

from hushsum.jobs.summarize_records import ColumnBlocks
from hushsum.summarize.features import SummaryFeatures
from hushsum.summarize.hash_secret import HashSecret
from hushsum.summarize.messages import RunTerms
from hushsum.summarize.owner_process import OwnerProcess
from hushsum.summarize.transport_messages import Opening
from hushsum.transport.addresses import Patience
from hushsum.transport.peer_identity import Identity
from hushsum.transport.state_folder import StateFolder
from hushsum.transport.tls_connection import TlsConnection, accept, connect

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


@contextmanager
def linked(folder: Path, *, transfer: float = 10.0) -> Iterator[tuple[TlsConnection, TlsConnection]]:
    """Both ends of a connection between two parties that have pinned each other."""
    server, client = identities(folder, "server", "client")
    listener = socket.create_server(("127.0.0.1", 0))
    ends: list[TlsConnection] = []

    def serve() -> None:
        context = server.server_context([client.fingerprint])
        ends.append(accept(listener, context, wait=10, handshake=10, transfer=transfer))

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
    """A running owner: where it listens, and what it logged."""

    identity: Identity
    port: int
    log: list[str] = field(default_factory=list)
    paid: list[str] = field(default_factory=list)
    problem: list[BaseException] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)


@contextmanager
def owner_running(
    identity: Identity,
    peer: Identity,
    folder: Path,
    *,
    seed: int = 0,
    cap: int | None = None,
    secret: HashSecret | None = None,
    port: int = 0,
    patience: Patience = QUICK,
) -> Iterator[Desk]:
    """An owner in a thread; the listener is closed at the end, which ends it."""
    listener = socket.create_server(("127.0.0.1", port))
    desk = Desk(identity, listener.getsockname()[1])

    def serve() -> None:
        try:
            with StateFolder(folder) as state_folder:
                OwnerProcess(
                    identity,
                    [peer.fingerprint],
                    records(seed),
                    state_folder,
                    cap=cap,
                    secret=secret,
                    pay=lambda terms: desk.paid.append(terms.run),
                    patience=patience,
                    log=desk.log.append,
                ).serve(listener)
        except BaseException as problem:
            desk.problem.append(problem)
        finally:
            desk.over.set()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield desk
    finally:
        # Wakes the thread up if it still waits for somebody.
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(30)
        listener.close()
        assert not thread.is_alive()
