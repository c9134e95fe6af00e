"""A curator through crashes of its own, and among owners that break, cheat or vanish."""

from __future__ import annotations

import dataclasses
import hashlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from hushsum.errors import PeerLost, PeerRefused
from hushsum.summarize import transport_messages
from hushsum.summarize.curator import CuratorState
from hushsum.summarize.curator_process import CuratorProcess
from hushsum.summarize.messages import Answer, Broadcast, RunTerms
from hushsum.summarize.owner_process import OwnerProcess
from hushsum.summarize.target import NoisyTarget, release_target
from hushsum.transport import control_messages
from hushsum.transport.addresses import Address, Patience
from hushsum.transport.peer_identity import Identity
from hushsum.transport.serialization import unpack
from hushsum.transport.state_folder import StateFolder
from hushsum.transport.tls_connection import accept
from tests.free_ports import free_port
from tests.unit.summarize.parties import (
    FEATURES,
    QUICK,
    Desk,
    identities,
    opening_for,
    owner_running,
    records,
    terms_for,
)

IMPATIENT = Patience(wait=20.0, transfer=20.0, lost=0.3)


class Crash(Exception):
    """The process died here."""


@pytest.fixture(scope="module")
def target() -> NoisyTarget:
    return release_target(FEATURES, np.random.default_rng(5).normal(size=(50, 2)), Fraction(1))


def held(
    curator: Identity,
    terms: RunTerms,
    target: NoisyTarget,
    ports: dict[str, int],
    folder: Path,
    *,
    patience: Patience = QUICK,
    crash: Callable[[int], bool] = lambda _: False,
    log: Callable[[str], None] = lambda _: None,
) -> CuratorState:
    """The run, or what is left of it; dies where ``crash`` says so, by the number of the stored state."""
    with StateFolder(folder) as state_folder:

        def store(saved: bytes) -> None:
            number = state.step
            if crash(2 * number):
                raise Crash
            state_folder.put("state", saved)
            if crash(2 * number + 1):
                raise Crash

        state = CuratorState(terms, target, store=store)
        kept = state_folder.get("state")
        if kept is not None:
            state.restore(kept)
        addresses = {name: Address("127.0.0.1", port) for name, port in ports.items()}
        with CuratorProcess(
            curator, addresses, opening_for(terms), state, pace=0, patience=patience, log=log
        ) as process:
            if not state.step:
                process.gather()
            process.run()
            process.end()
    return state


@contextmanager
def owners_running(
    owners: list[Identity], curator: Identity, folder: Path, *, patience: Patience = QUICK
) -> Iterator[dict[str, Desk]]:
    with ExitStack() as stack:
        yield {
            each.fingerprint: stack.enter_context(
                owner_running(each, curator, folder / f"run{i}", seed=i, patience=patience)
            )
            for i, each in enumerate(owners)
        }


@pytest.mark.parametrize("rule", ["fresh", "threshold", "auction"])
def test_every_rule_runs_to_its_end(rule: str, tmp_path: Path, target: NoisyTarget) -> None:
    *owners, curator = identities(tmp_path, "a", "b", "c", "curator")
    terms = terms_for(*owners, rule=rule)
    if rule == "auction":
        terms = dataclasses.replace(terms, rate=Fraction(1, 10), batch=1)
    with owners_running(owners, curator, tmp_path) as desks:
        ports = {name: desk.port for name, desk in desks.items()}
        state = held(curator, terms, target, ports, tmp_path / "curator")
    assert state.done
    assert state.lost == {}
    assert all(not desk.problem for desk in desks.values())


def test_a_curator_that_crashes_at_every_store_draws_nothing_twice(
    tmp_path: Path, target: NoisyTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    *owners, curator = identities(tmp_path, "a", "b", "curator")
    terms = terms_for(*owners)
    heard: dict[int, set[str]] = {}
    read = Broadcast.from_bytes

    def overheard(data: bytes) -> Broadcast:
        broadcast = read(data)
        heard.setdefault(broadcast.step, set()).add(hashlib.sha256(data).hexdigest())
        return broadcast

    monkeypatch.setattr(Broadcast, "from_bytes", overheard)
    died: list[int] = []

    def crash(moment: int) -> bool:
        if moment in died:
            return False
        died.append(moment)
        return True

    with owners_running(owners, curator, tmp_path) as desks:
        ports = {name: desk.port for name, desk in desks.items()}
        for _ in range(2 * terms.rounds):
            with pytest.raises(Crash):
                held(curator, terms, target, ports, tmp_path / "curator", crash=crash)
        state = held(curator, terms, target, ports, tmp_path / "curator", crash=crash)
    assert len(died) == 2 * terms.rounds
    assert state.lost == {}
    assert all(desk.paid == ["run-1"] for desk in desks.values())
    assert {number: len(digests) for number, digests in heard.items()} == dict.fromkeys(range(1, 5), 1)
    assert len(state.collected) == 2 * 4 * 3


def test_an_owner_that_comes_back_is_not_lost(tmp_path: Path, target: NoisyTarget) -> None:
    """It dies after its first answer; another process goes on where it stopped, on the same port."""
    *owners, curator = identities(tmp_path, "a", "b", "curator")
    terms = terms_for(*owners)
    first, second = owners
    with owner_running(first, curator, tmp_path / "run0") as staying, ExitStack() as stack:
        leaving = stack.enter_context(_dying_after_one_answer(second, curator, tmp_path / "run1"))
        ports = {first.fingerprint: staying.port, second.fingerprint: leaving.port}
        result: list[CuratorState] = []
        thread = threading.Thread(
            target=lambda: result.append(held(curator, terms, target, ports, tmp_path / "curator"))
        )
        thread.start()
        leaving.over.wait(30)
        with owner_running(second, curator, tmp_path / "run1", seed=1, port=leaving.port) as back:
            thread.join(60)
    assert not back.problem
    assert result[0].lost == {}
    assert len(result[0].collected) == 2 * 4 * 3


@contextmanager
def _dying_after_one_answer(identity: Identity, curator: Identity, folder: Path) -> Iterator[Desk]:
    """An owner whose process ends as if killed, when its first answer has left."""
    listener = socket.create_server(("127.0.0.1", 0))
    desk = Desk(identity, listener.getsockname()[1])

    class Dying(OwnerProcess):
        def _reply(self, link: object) -> None:
            super()._reply(link)  # type: ignore[arg-type]
            raise Crash

    def serve() -> None:
        with StateFolder(folder) as state_folder:
            try:
                Dying(identity, [curator.fingerprint], records(1), state_folder, patience=QUICK).serve(
                    listener
                )
            except Crash:
                listener.close()
        desk.over.set()

    thread = threading.Thread(target=serve)
    thread.start()
    yield desk
    thread.join()


class CrashingFolder(StateFolder):
    """Dies once before and once after every durable write of a run."""

    __slots__ = ("_died",)

    def __init__(self, folder: Path, died: list[tuple[str, int, str]]) -> None:
        super().__init__(folder)
        self._died = died

    def put(self, name: str, data: bytes) -> None:
        step = unpack(data, "owner")[1]["step"] if name == "state" else 0
        for when in ("before", "after"):
            if (name, step, when) not in self._died:
                self._died.append((name, step, when))
                if when == "after":
                    super().put(name, data)
                raise Crash
        super().put(name, data)


@pytest.mark.parametrize("rule", ["fresh", "threshold"])
def test_an_owner_that_crashes_at_every_store_answers_nothing_twice(
    rule: str, tmp_path: Path, target: NoisyTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    staying, crashing, curator = identities(tmp_path, "a", "b", "curator")
    terms = terms_for(staying, crashing, rule=rule)
    reported: dict[tuple[str, int], set[str]] = {}
    read = Answer.from_bytes

    def overheard(data: bytes, *, most: int | None = None) -> Answer:
        answer = read(data, most=most)
        reported.setdefault((answer.owner, answer.step), set()).add(hashlib.sha256(data).hexdigest())
        return answer

    monkeypatch.setattr(Answer, "from_bytes", overheard)
    died: list[tuple[str, int, str]] = []
    paid: list[str] = []
    with owner_running(staying, curator, tmp_path / "run0") as desk:
        listener = socket.create_server(("127.0.0.1", 0))

        def serve() -> None:
            ended = False
            while not ended:
                with CrashingFolder(tmp_path / "run1", died) as state_folder, suppress(Crash):
                    ended = state_folder.get("ended") is not None
                    if not ended:
                        OwnerProcess(
                            crashing,
                            [curator.fingerprint],
                            records(1),
                            state_folder,
                            pay=lambda agreed: paid.append(agreed.run),
                            patience=QUICK,
                        ).serve(listener)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        ports = {staying.fingerprint: desk.port, crashing.fingerprint: listener.getsockname()[1]}
        state = held(curator, terms, target, ports, tmp_path / "curator")
        for _ in range(3):
            # The end is reported once by a run; here until it is stored.
            if thread.is_alive():
                with held_again(curator, terms, target, ports, tmp_path / "curator") as process:
                    process.end()
                thread.join(1)
        listener.close()
    assert not thread.is_alive()
    stores = [("opening", 0), *(("state", step) for step in range(1, 5)), ("ended", 0)]
    assert died == [(*each, when) for each in stores for when in ("before", "after")]
    assert set(paid) == {"run-1"}
    assert state.lost == {}
    assert {each: len(found) for each, found in reported.items()} == {
        (owner, step): 1 for owner in terms.owners for step in range(1, 5)
    }


@contextmanager
def held_again(
    curator: Identity, terms: RunTerms, target: NoisyTarget, ports: dict[str, int], folder: Path
) -> Iterator[CuratorProcess]:
    """The curator's process once more, after its run."""
    with StateFolder(folder) as state_folder:
        state = CuratorState(terms, target)
        state.restore(state_folder.get("state") or b"")
        addresses = {name: Address("127.0.0.1", port) for name, port in ports.items()}
        with CuratorProcess(curator, addresses, opening_for(terms), state, pace=0, patience=QUICK) as process:
            yield process


def test_an_owner_that_never_comes_is_lost_and_the_others_go_on(tmp_path: Path, target: NoisyTarget) -> None:
    *owners, curator = identities(tmp_path, "a", "b", "curator")
    port = free_port()
    log: list[str] = []
    with owner_running(owners[0], curator, tmp_path / "run") as desk:
        ports = {owners[0].fingerprint: desk.port, owners[1].fingerprint: port}
        state = held(
            curator,
            terms_for(*owners),
            target,
            ports,
            tmp_path / "curator",
            patience=IMPATIENT,
            log=log.append,
        )
    assert state.lost == {owners[1].fingerprint: 0}
    assert "continuing without owner" in log[0]
    with pytest.raises(PeerLost, match="no owner is left"):
        held(curator, terms_for(owners[1]), target, ports, tmp_path / "other", patience=IMPATIENT)


@contextmanager
def cheating(identity: Identity, curator: Identity, reply: Callable[[Broadcast], bytes]) -> Iterator[int]:
    """An owner that answers whatever ``reply`` makes up."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        context = identity.server_context([curator.fingerprint])
        while True:
            try:
                link = accept(listener, context, wait=20, handshake=5, transfer=5)
            except (PeerRefused, OSError, ValueError):
                return
            with link:
                try:
                    run = transport_messages.Opening.from_bytes(link.receive(most=1 << 20, wait=10)).terms.run
                    link.send(control_messages.ready(run))
                    while True:
                        data = link.receive(most=1 << 20, wait=10)
                        link.send(reply(Broadcast.from_bytes(data)))
                except Exception:
                    continue

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(30)
        listener.close()


def _answer(owner: str, **changes: object) -> Callable[[Broadcast], bytes]:
    def reply(broadcast: Broadcast) -> bytes:
        good = Answer(broadcast.run, broadcast.step, owner, np.zeros((3, 2)), np.zeros((3, 1)))
        return dataclasses.replace(good, **changes).to_bytes()  # type: ignore[arg-type]

    return reply


CHEATS: dict[str, Callable[[str, str], Callable[[Broadcast], bytes]]] = {
    "too many points": lambda me, _: _answer(me, points=np.zeros((4, 2)), extra=np.zeros((4, 1))),
    "wrong columns": lambda me, _: _answer(me, points=np.zeros((3, 5))),
    "not a number": lambda me, _: _answer(me, points=np.full((3, 2), np.nan)),
    "another step": lambda me, _: _answer(me, step=7),
    "another run": lambda me, _: _answer(me, run="run-0"),
    "another's name": lambda _, other: _answer(other),
    "too long": lambda me, _: lambda _: bytes(1 << 22),
    "nonsense": lambda me, _: lambda _: b"nonsense",
    "a refusal": lambda me, _: lambda _: control_messages.refusal("I had enough"),
    "not an answer": lambda me, _: lambda _: control_messages.ready("run-1"),
}


@pytest.mark.parametrize("cheat", CHEATS)
def test_an_owner_that_breaks_the_rule_is_lost_and_nothing_of_it_kept(
    cheat: str, tmp_path: Path, target: NoisyTarget
) -> None:
    honest, cheater, curator = identities(tmp_path, "honest", "cheater", "curator")
    terms = terms_for(honest, cheater, rounds=2)
    reply = CHEATS[cheat](cheater.fingerprint, honest.fingerprint)
    log: list[str] = []
    with owner_running(honest, curator, tmp_path / "run") as desk, cheating(cheater, curator, reply) as port:
        ports = {honest.fingerprint: desk.port, cheater.fingerprint: port}
        state = held(curator, terms, target, ports, tmp_path / "curator", patience=IMPATIENT, log=log.append)
    assert state.lost == {cheater.fingerprint: 1}
    assert set(state.collected.owners) == {0}
    assert len(log) == 1
    assert not desk.problem


def test_a_refusal_of_the_terms_stops_the_run_before_anything_is_drawn(
    tmp_path: Path, target: NoisyTarget
) -> None:
    owner, other, curator = identities(tmp_path, "a", "b", "curator")
    terms = terms_for(owner)
    with owner_running(owner, curator, tmp_path / "run", cap=1) as desk:
        ports = {owner.fingerprint: desk.port}
        with pytest.raises(PeerRefused, match=r"limits the points .* cap=1"):
            held(curator, terms, target, ports, tmp_path / "curator")
        with pytest.raises(PeerRefused, match="does not hold the pinned key"):
            held(curator, terms_for(other), target, {other.fingerprint: desk.port}, tmp_path / "curator")
        assert StateFolder(tmp_path / "curator").get("state") is None
        with pytest.raises(PeerRefused, match="does not accept this side's key"):
            held(other, terms, target, ports, tmp_path / "third")
