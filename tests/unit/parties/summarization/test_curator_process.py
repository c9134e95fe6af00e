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

from hushsum.errors import FileRefused, PeerLost, PeerRefused
from hushsum.files import unpack
from hushsum.parties import (
    Coordinator,
    Identity,
    Participant,
    Patience,
    StateFolder,
    _runtime,
    connect,
    short,
)
from hushsum.parties import _runtime as control_messages
from hushsum.parties.summarization import (
    Answer,
    Broadcast,
    CuratorMachine,
    CuratorState,
    NoisyTarget,
    Opening,
    OwnerMachine,
    RunTerms,
    release_target,
)
from tests.unit.parties.summarization.parties import (
    FEATURES,
    QUICK,
    Desk,
    identities,
    noted_in,
    opening_for,
    owner_running,
    place,
    records,
    terms_for,
    where,
)

IMPATIENT = Patience(wait=2.0, transfer=20.0, lost=0.3)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_runtime, "_LONGEST_PAUSE", 0.1)
    monkeypatch.setattr(_runtime, "_GRACE", 1.0)


class Crash(Exception):
    """The process died here."""


@pytest.fixture(scope="module")
def target() -> NoisyTarget:
    return release_target(FEATURES, np.random.default_rng(5).normal(size=(50, 2)), Fraction(1))


def held(
    curator: Identity,
    terms: RunTerms,
    target: NoisyTarget,
    listening: socket.socket,
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
        machine = CuratorMachine(opening_for(terms), state)
        Coordinator(curator, machine, patience=patience, log=log).serve(listening)
    return state


@contextmanager
def owners_running(
    owners: list[Identity], curator: Identity, folder: Path, *, patience: Patience = QUICK
) -> Iterator[tuple[dict[str, Desk], socket.socket]]:
    with place() as listening, ExitStack() as stack:
        desks = {
            each.fingerprint: stack.enter_context(
                owner_running(
                    each, curator, folder / f"run{i}", seed=i, patience=patience, listening=listening
                )
            )
            for i, each in enumerate(owners)
        }
        yield desks, listening


@pytest.mark.parametrize("rule", ["fresh", "threshold", "auction"])
def test_every_rule_runs_to_its_end(rule: str, tmp_path: Path, target: NoisyTarget) -> None:
    *owners, curator = identities(tmp_path, "a", "b", "c", "curator")
    terms = terms_for(*owners, rule=rule)
    if rule == "auction":
        terms = dataclasses.replace(terms, rate=Fraction(1, 10), batch=1)
    with owners_running(owners, curator, tmp_path) as (desks, listening):
        state = held(curator, terms, target, listening, tmp_path / "curator")
    assert state.done
    assert state.lost == {}
    assert all(not desk.problem for desk in desks.values())


def test_answers_are_taken_in_the_order_of_the_terms(target: NoisyTarget, tmp_path: Path) -> None:
    """So the summary does not depend on who is faster."""
    first, second = identities(tmp_path, "a", "b")
    terms = terms_for(first, second, rounds=1)
    collected = []
    for order in ([first, second], [second, first]):
        state = CuratorState(terms, target, insecure_noise_seed=1)
        machine = CuratorMachine(opening_for(terms), state)
        for each in order:
            machine.greeted(each.fingerprint, control_messages.control("ready", run="run-1"))
        machine.close_step()
        machine.open_step()
        for each in order:
            points = np.full((3, 2), float(each is first))
            answer = Answer("run-1", 1, each.fingerprint, points, np.zeros((3, 1)))
            machine.take(each.fingerprint, answer.to_bytes())
        machine.close_step()
        collected.append(state.collected.owners.tolist())
    assert collected == [[0, 0, 0, 1, 1, 1]] * 2


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

    with owners_running(owners, curator, tmp_path) as (desks, listening):
        for _ in range(2 * terms.rounds):
            with pytest.raises(Crash):
                held(curator, terms, target, listening, tmp_path / "curator", crash=crash)
        state = held(curator, terms, target, listening, tmp_path / "curator", crash=crash)
    assert len(died) == 2 * terms.rounds
    assert state.lost == {}
    assert all(desk.paid == ["run-1"] for desk in desks.values())
    assert {number: len(digests) for number, digests in heard.items()} == dict.fromkeys(range(1, 5), 1)
    assert len(state.collected) == 2 * 4 * 3


def test_an_owner_that_comes_back_is_not_lost(tmp_path: Path, target: NoisyTarget) -> None:
    """It dies after its first answer; another process goes on where it stopped."""
    *owners, curator = identities(tmp_path, "a", "b", "curator")
    terms = terms_for(*owners)
    first, second = owners
    with place() as listening, owner_running(first, curator, tmp_path / "run0", listening=listening):
        leaving = threading.Thread(
            target=_dies_after_one_answer, args=(second, curator, tmp_path / "run1", listening)
        )
        leaving.start()
        result: list[CuratorState] = []
        thread = threading.Thread(
            target=lambda: result.append(held(curator, terms, target, listening, tmp_path / "curator"))
        )
        thread.start()
        leaving.join(30)
        with owner_running(second, curator, tmp_path / "run1", seed=1, listening=listening) as back:
            thread.join(60)
    assert not back.problem
    assert result[0].lost == {}
    assert len(result[0].collected) == 2 * 4 * 3


def _dies_after_one_answer(
    identity: Identity, curator: Identity, folder: Path, listening: socket.socket
) -> None:
    """An owner whose process ends as if killed, when its first answer has left."""

    def crash() -> None:
        if machine.state.step:
            raise Crash

    with StateFolder(folder) as state_folder, suppress(Crash):
        machine = OwnerMachine(identity, records(1), state_folder)
        Participant(identity, where(listening, curator), machine, patience=QUICK).take_part(crash)


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
    with place() as listening, owner_running(staying, curator, tmp_path / "run0", listening=listening):

        def serve() -> None:
            ended = False
            while not ended:
                with CrashingFolder(tmp_path / "run1", died) as state_folder, suppress(Crash):
                    ended = state_folder.get("ended") is not None
                    if not ended:
                        machine = OwnerMachine(crashing, records(1), state_folder, spending=noted_in(paid))
                        Participant(crashing, where(listening, curator), machine, patience=QUICK).take_part()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        state = held(curator, terms, target, listening, tmp_path / "curator")
        thread.join(30)
    assert not thread.is_alive()
    stores = [("opening", 0), *(("state", step) for step in range(1, 5)), ("ended", 0)]
    assert died == [(*each, when) for each in stores for when in ("before", "after")]
    assert set(paid) == {"run-1"}
    assert state.lost == {}
    assert {each: len(found) for each, found in reported.items()} == {
        (owner, step): 1 for owner in terms.owners for step in range(1, 5)
    }


def test_an_owner_that_never_comes_is_lost_and_the_others_go_on(tmp_path: Path, target: NoisyTarget) -> None:
    *owners, curator = identities(tmp_path, "a", "b", "curator")
    log: list[str] = []
    with owners_running(owners[:1], curator, tmp_path) as (_, listening):
        state = held(
            curator,
            terms_for(*owners),
            target,
            listening,
            tmp_path / "curator",
            patience=IMPATIENT,
            log=log.append,
        )
    assert state.lost == {owners[1].fingerprint: 0}
    assert any(f"continuing without owner {short(owners[1].fingerprint)}" in line for line in log)
    with place() as listening, pytest.raises(PeerLost, match="no owner is left"):
        held(curator, terms_for(owners[1]), target, listening, tmp_path / "other", patience=IMPATIENT)


@contextmanager
def cheating(
    identity: Identity, curator: Identity, listening: socket.socket, reply: Callable[[Broadcast], bytes]
) -> Iterator[None]:
    """An owner that answers whatever ``reply`` makes up."""

    def cheat() -> None:
        address = where(listening, curator)
        with (
            suppress(PeerLost, PeerRefused, FileRefused),
            connect(
                identity, address.host, address.port, curator.fingerprint, timeout=20, transfer=5
            ) as link,
        ):
            run = Opening.from_bytes(link.receive(most=1 << 20, wait=10)).terms.run
            link.send(control_messages.control("ready", run=run))
            while True:
                link.send(reply(Broadcast.from_bytes(link.receive(most=1 << 20, wait=10))))

    thread = threading.Thread(target=cheat, daemon=True)
    thread.start()
    yield
    thread.join(30)


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
    "a refusal": lambda me, _: lambda _: control_messages.control("refusal", reason="I had enough"),
    "not an answer": lambda me, _: lambda _: control_messages.control("ready", run="run-1"),
}


@pytest.mark.parametrize("cheat", CHEATS)
def test_an_owner_that_breaks_the_rule_is_lost_and_nothing_of_it_kept(
    cheat: str, tmp_path: Path, target: NoisyTarget
) -> None:
    honest, cheater, curator = identities(tmp_path, "honest", "cheater", "curator")
    terms = terms_for(honest, cheater, rounds=2)
    reply = CHEATS[cheat](cheater.fingerprint, honest.fingerprint)
    log: list[str] = []
    with (
        owners_running([honest], curator, tmp_path) as (desks, listening),
        cheating(cheater, curator, listening, reply),
    ):
        state = held(
            curator, terms, target, listening, tmp_path / "curator", patience=IMPATIENT, log=log.append
        )
    assert state.lost == {cheater.fingerprint: 1}
    assert set(state.collected.owners) == {0}
    assert any(f"refused owner {short(cheater.fingerprint)}" in line for line in log)
    assert not desks[honest.fingerprint].problem


def test_a_refusal_of_the_terms_stops_the_run_before_anything_is_drawn(
    tmp_path: Path, target: NoisyTarget
) -> None:
    owner, other, curator = identities(tmp_path, "a", "b", "curator")
    terms = terms_for(owner, other)
    with place() as listening, ExitStack() as stack:
        for each, cap in ((owner, 1), (other, None)):
            running = owner_running(each, curator, tmp_path / f"run{cap}", cap=cap, listening=listening)
            desk = stack.enter_context(running)
        with pytest.raises(PeerRefused, match=r"limits the points .* cap=1"):
            held(curator, terms, target, listening, tmp_path / "curator")
        assert StateFolder(tmp_path / "curator").get("state") is None
        # They wait for other terms, and take part under those.
        agreed = dataclasses.replace(terms, run="run-2", cap=1)
        assert held(curator, agreed, target, listening, tmp_path / "new").lost == {}
        assert desk.paid == ["run-2"]


def test_parties_with_other_keys_do_not_connect(tmp_path: Path, target: NoisyTarget) -> None:
    owner, other, curator = identities(tmp_path, "a", "b", "curator")
    log: list[str] = []
    with place() as listening:
        pinned_another = owner_running(owner, other, tmp_path / "one", listening=listening)
        unknown = owner_running(other, curator, tmp_path / "two", listening=listening)
        with pinned_another as first, unknown as second, pytest.raises(PeerLost, match="no owner is left"):
            held(
                curator,
                terms_for(owner),
                target,
                listening,
                tmp_path / "curator",
                patience=IMPATIENT,
                log=log.append,
            )
    assert "does not hold the pinned key" in str(first.problem[0])
    assert "does not accept this side's key" in str(second.problem[0])
    assert any("does not hold a pinned key" in line for line in log)
    assert first.paid == second.paid == []
