"""A server and sites over TLS, in threads of one process: sums, lost peers, crashes, refusals."""

from __future__ import annotations

import copy
import pickle
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hushsum.errors import (
    BudgetExhausted,
    FileRefused,
    HushsumError,
    LedgerUnavailable,
    PeerLost,
    PeerRefused,
    SecretRefused,
    UsageError,
)
from hushsum.files import unpack
from hushsum.parties import (
    Address,
    Coordinator,
    EncryptedState,
    Identity,
    Participant,
    Patience,
    StateFolder,
    _runtime,
    connect,
)
from hushsum.parties import _runtime as control_messages
from hushsum.parties import secure_aggregation as site_module
from hushsum.parties.secure_aggregation import (
    CONSENT,
    KEYS,
    MASKED,
    OPENING,
    SHARES,
    AggregationTerms,
    ServerState,
    SiteState,
    split_secret,
)
from tests.aggregation_runs import Run, identity, small_terms, table_of
from tests.memory_store import MemoryStore

PATIENCE = Patience(wait=60.0, transfer=60.0, lost=60.0)
SERVER = 100
NOWHERE = Address("127.0.0.1", 1)


class Stage:
    """A server that listens, and threads for the sites."""

    def __init__(self, terms: AggregationTerms, *, patience: Patience = PATIENCE) -> None:
        self.terms = terms
        self.keys = {each.fingerprint: each for each in map(identity, range(len(terms.sites)))}
        self.store = MemoryStore()
        self.stores = {site: MemoryStore() for site in terms.sites}
        self.patience = patience
        self.site_patience = PATIENCE
        self.log: list[str] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.failed: list[BaseException] = []
        self.threads: list[threading.Thread] = []
        identity(SERVER)  # made before the threads ask for it

    def site(self, site: str) -> Participant:
        def draw() -> NDArray[np.int64]:
            return table_of(site, self.terms)

        state = SiteState(self.keys[site], self.terms, draw, self.stores[site])
        address = Address("127.0.0.1", self.listener.getsockname()[1], identity(SERVER).fingerprint)
        return Participant(self.keys[site], address, state, patience=self.site_patience, log=self.log.append)

    def start(self, site: str) -> None:
        def run() -> None:
            try:
                self.site(site).take_part()
            except (PeerLost, PeerRefused, FileRefused, OSError) as error:
                self.failed.append(error)

        self.threads.append(threading.Thread(target=run, daemon=True))
        self.threads[-1].start()

    def serve(self, made: type[Coordinator] = Coordinator) -> ServerState:
        state = ServerState(self.terms, self.store)
        process = made(identity(SERVER), state, patience=self.patience, log=self.log.append)
        process.serve(self.listener)
        return state

    def joined(self) -> None:
        for thread in self.threads:
            thread.join(60.0)


@contextmanager
def stage(terms: AggregationTerms, *, patience: Patience = PATIENCE) -> Iterator[Stage]:
    made = Stage(terms, patience=patience)
    with made.listener:
        yield made


def test_sites_and_a_server_open_the_sum() -> None:
    with stage(small_terms(4)) as here:
        for site in here.terms.sites:
            here.start(site)
        state = here.serve()
        here.joined()
    assert not here.failed
    assert np.array_equal(state.sum, sum(table_of(site, here.terms) for site in here.terms.sites))


def test_one_site_has_a_limited_number_of_connections() -> None:
    terms = small_terms(3)
    served: list[str] = []

    class Watched(Coordinator):
        def _exchange(self, connection: Any, site: str) -> bool:
            served.append(site)
            return super()._exchange(connection, site)

    with stage(terms) as here, ExitStack() as opened:
        port, first = here.listener.getsockname()[1], terms.sites[0]
        server = threading.Thread(target=lambda: here.serve(Watched), daemon=True)
        server.start()
        most = _runtime._MOST_OF_A_PARTY
        for number in range(most + 5):
            link = connect(
                here.keys[first], "127.0.0.1", port, identity(SERVER).fingerprint, timeout=60.0, transfer=60.0
            )
            opened.enter_context(link)
            said = link.receive(most=1 << 20, wait=60.0)
            if number >= most:
                with pytest.raises(PeerRefused, match="connections open"):
                    raise PeerRefused(control_messages.reason_in(unpack(said, "refusal")[1]))
        assert served == [first] * most
        opened.close()
        for site in terms.sites:
            here.start(site)
        server.join(60.0)
        here.joined()
    assert not here.failed


def test_a_site_that_never_comes_is_left_out() -> None:
    patience = Patience(wait=1.0, transfer=60.0, lost=60.0)
    with stage(small_terms(5, dropouts=1), patience=patience) as here:
        for site in here.terms.sites[1:]:
            here.start(site)
        state = here.serve()
        here.joined()
    assert len(state.survivors) == 4
    assert any("continuing without site" in line for line in here.log)


def test_a_site_that_came_and_left_is_not_awaited_as_long_as_one_that_never_came() -> None:
    class Silent(Coordinator):
        """As if the first site had been here and had left before it replied."""

        def _finish_step(self) -> None:
            self._left.setdefault(here.terms.sites[0], self._begun)
            super()._finish_step()

    patience = Patience(wait=3600.0, transfer=60.0, lost=0.5)
    with stage(small_terms(5, dropouts=1), patience=patience) as here:
        for site in here.terms.sites[1:]:
            here.start(site)
        state = here.serve(Silent)
        here.joined()
    assert len(state.survivors) == 4


def test_too_few_sites_end_the_server_and_it_can_be_started_again() -> None:
    terms = small_terms(3)
    with stage(terms, patience=Patience(wait=0.5, transfer=5.0, lost=0.5)) as here:
        here.start(terms.sites[0])
        with pytest.raises(PeerLost, match="at least 3 sites"):
            here.serve()
        here.patience = PATIENCE
        for site in terms.sites[1:]:
            here.start(site)
        state = here.serve()
        here.joined()
    assert np.array_equal(state.sum, sum(table_of(site, terms) for site in terms.sites))


def test_a_site_that_lost_its_state_is_refused_and_the_refusal_logged() -> None:
    terms = small_terms(4, dropouts=1)
    with stage(terms, patience=Patience(wait=60.0, transfer=60.0, lost=1.5)) as here:
        state = ServerState(terms, here.store)
        for site in terms.sites:
            request = state.request_for(site)
            assert request is not None
            state.take(
                site,
                SiteState(here.keys[site], terms, lambda: np.zeros(1, np.int64), here.stores[site]).answer(
                    request
                ),
            )
        state.close_step()
        here.stores[terms.sites[0]] = MemoryStore()
        for site in terms.sites:
            here.start(site)
        ended = here.serve()
        here.joined()
    assert len(ended.survivors) == 3
    assert any("out of order" in line for line in here.log)
    assert any("refused site" in line for line in here.log)


def test_a_site_that_comes_when_the_run_is_over_is_refused() -> None:
    terms = small_terms(4, dropouts=1)
    run = Run(terms)
    late = terms.sites[2]
    run.finish(lambda _: [late])
    process = Coordinator(identity(SERVER), run.server)
    process._ended = True
    with pytest.raises(PeerRefused, match="over without this site"):
        process._due(late)
    assert process._due(terms.sites[0]) == control_messages.control("ending", run=terms.run)


class Spoken:
    """A connection on which the server says one thing."""

    def __init__(self, said: bytes) -> None:
        self.said = said
        self.heard: list[bytes] = []

    def receive(self, *, most: int, wait: float) -> bytes:
        return self.said

    def send(self, data: bytes) -> None:
        self.heard.append(data)


def test_a_site_that_sent_no_table_refuses_that_the_run_has_ended() -> None:
    terms = small_terms(3)
    run = Run(terms)
    key = run.keys[terms.sites[0]]
    site = run.sites[terms.sites[0]]
    process = Participant(key, NOWHERE, site)
    for step in (KEYS, SHARES, MASKED):
        run.until(step)
        told: Any = Spoken(control_messages.control("ending", run=terms.run))
        with pytest.raises(_runtime._Refused) as refused:
            process._converse(told)
        assert "without this site's table" in str(refused.value.error)
        assert control_messages.control_in(told.heard[0], "refusal")[0]
    run.step()
    told = Spoken(control_messages.control("ending", run=terms.run))
    process._converse(told)
    assert control_messages.control_in(told.heard[0], "ready")[0]


class Clock:
    """A clock that moves when a caller sleeps or waits."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Lasting:
    """A connection that is lost after so many seconds, or on which the server says that the run has ended."""

    def __init__(self, clock: Clock, seconds: float, said: bytes | None = None) -> None:
        self.clock, self.seconds, self.said = clock, seconds, said

    def __enter__(self) -> Lasting:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def receive(self, *, most: int, wait: float) -> bytes:
        self.clock.sleep(self.seconds)
        if self.said is None:
            raise PeerLost("the connection ended")
        return self.said

    def send(self, data: bytes) -> None:
        pass


def site_with(
    connections: list[Lasting | None], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> Participant:
    """A site that has sent its table, to which the server gives these connections, or none."""
    run = Run(small_terms(3))
    run.until(CONSENT)
    me = run.terms.sites[0]
    process = Participant(
        run.keys[me], NOWHERE, run.sites[me], patience=Patience(wait=3600.0, transfer=60.0, lost=60.0)
    )

    def connected() -> Lasting:
        made = connections.pop(0) if connections else None
        if made is None:
            raise PeerLost("nobody answers")
        return made

    monkeypatch.setattr(_runtime, "time", clock)
    monkeypatch.setattr(process, "_connected", connected)
    return process


def test_a_site_that_was_connected_for_long_connects_again(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    ending = control_messages.control("ending", run=small_terms(3).run)
    # An hour without a word, because other sites are awaited; then the connection breaks for some seconds.
    broken = [Lasting(clock, 3000.0), None, None, Lasting(clock, 500.0), None, Lasting(clock, 1.0, ending)]
    site_with(broken, clock, monkeypatch).take_part()
    assert not broken


def test_a_site_gives_up_a_server_that_stays_away(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    process = site_with([Lasting(clock, 3000.0)], clock, monkeypatch)
    with pytest.raises(PeerLost):
        process.take_part()
    assert 3050.0 < clock.now - 1000.0 < 3070.0


def test_a_site_waits_for_a_server_that_has_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    ending = control_messages.control("ending", run=small_terms(3).run)
    # Nobody listens for half an hour: longer than a lost server is awaited, shorter than one to start.
    connections = [*[None] * 900, Lasting(clock, 1.0, ending)]
    process = site_with(connections, clock, monkeypatch)
    log: list[str] = []
    monkeypatch.setattr(process, "_log", log.append)
    process.take_part()
    assert not connections
    assert len(log) == 1
    assert "nobody answers" in log[0]


def test_a_server_that_starts_again_waits_for_sites_to_start_again(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(_runtime, "time", clock)
    run = Run(small_terms(3))
    run.until(SHARES)
    process = Coordinator(
        identity(SERVER), run.server, patience=Patience(wait=3600.0, transfer=60.0, lost=60.0)
    )
    came, late = run.terms.sites[:2]
    link: Any = Lasting(clock, 0.0)
    link.peer = came
    with process._counted(link):
        pass
    clock.sleep(1800.0)
    assert process._expected(late)
    assert not process._expected(came)
    clock.sleep(1801.0)
    assert not process._expected(late)


def test_waiting_sites_learn_why_the_server_gave_up() -> None:
    terms = small_terms(3)
    with stage(terms, patience=Patience(wait=0.5, transfer=20.0, lost=20.0)) as here:
        here.site_patience = Patience(wait=60.0, transfer=60.0, lost=0.2)
        for site in terms.sites[:2]:
            here.start(site)
        with pytest.raises(PeerLost, match="at least 3 sites"):
            here.serve()
        here.listener.close()
        here.joined()
    assert [type(error) for error in here.failed] == [PeerLost, PeerLost]
    for error in here.failed:
        assert "the server gave up: at least 3 sites must reply to step 'keys', got 2" in str(error)
    assert sum("gave up" in line for line in here.log) == 2


def test_sites_learn_that_a_run_cannot_be_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_module, "split_secret", lambda _, **how: split_secret(bytes(32), **how))
    with stage(small_terms(3)) as here:
        for site in here.terms.sites:
            here.start(site)
        with pytest.raises(PeerRefused, match="a new run"):
            here.serve()
        here.joined()
    assert [type(error) for error in here.failed] == [PeerRefused] * 3
    assert all("do not give its secret" in str(error) for error in here.failed)


def test_a_site_that_connects_again_and_again_does_not_hold_up_a_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    monkeypatch.setattr(_runtime, "time", clock)
    run = Run(small_terms(4, dropouts=1))
    stubborn = run.terms.sites[0]
    process = Coordinator(identity(SERVER), run.server, patience=Patience(wait=10.0, transfer=5.0, lost=3.0))
    process._connections[stubborn] = 1
    for site in run.terms.sites[1:]:
        run.exchange(site)
    begun = clock.now
    monkeypatch.setattr(process._changed, "wait", lambda seconds: clock.sleep(0.5))
    # While it is connected, and however often it was away for a moment, for the time of one reply.
    process._finish_step()
    assert 15.0 < clock.now - begun < 17.0
    assert run.server.members == run.terms.sites[1:]
    # The next step has a time of its own.
    process._connections[run.terms.sites[1]] = 1
    clock.sleep(100.0)
    process._step_begun = clock.now
    assert process._expected(run.terms.sites[1])


def test_who_connects_and_says_nothing_keeps_no_site_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_runtime, "_HANDSHAKE", 30.0)
    with stage(small_terms(3), patience=Patience(wait=20.0, transfer=20.0, lost=20.0)) as here:
        strangers = [socket.create_connection(here.listener.getsockname()) for _ in range(3)]
        for site in here.terms.sites:
            here.start(site)
        try:
            state = here.serve()
        finally:
            for each in strangers:
                each.close()
        here.joined()
    assert len(state.survivors) == 3


def test_more_strangers_than_handshakes_are_closed_at_once() -> None:
    run = Run(small_terms(3))
    process = Coordinator(identity(SERVER), run.server)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        for _ in range(_runtime._MOST_HANDSHAKES):
            assert process._handshakes.acquire(blocking=False)
        doors = threading.Thread(target=process._admit, args=(listener,), daemon=True)
        doors.start()
        with socket.create_connection(listener.getsockname(), timeout=30) as stranger:
            assert stranger.recv(1) == b""
        process._stopped = True
        doors.join(30)


def test_a_server_says_which_site_dealt_wrong_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(small_terms(3))
    run.until(SHARES)
    liar = run.terms.sites[1]
    with monkeypatch.context() as patch:
        patch.setattr(site_module, "split_secret", lambda secret, **how: split_secret(bytes(32), **how))
        run.exchange(liar)
    run.until(OPENING)
    for site in run.terms.sites:
        run.exchange(site)
    process = Coordinator(identity(SERVER), run.server)
    with pytest.raises(PeerRefused, match=f"site {liar[:12]}… dealt .* a new run"):
        process._finish_step()


@pytest.mark.parametrize(
    "error",
    [
        UsageError("this run is closed in the ledger"),
        BudgetExhausted("0.25 of ε is left"),
        LedgerUnavailable("the ledger is locked"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_the_own_ledger_refuses_is_said_at_the_site_and_not_to_the_server(error: HushsumError) -> None:
    run = Run(small_terms(3))
    run.until(MASKED)
    me = run.terms.sites[0]

    def refusing(make: object) -> bytes:
        raise error

    state = SiteState(run.keys[me], run.terms, lambda: np.zeros(13, np.int64), run.stores[me], stage=refusing)
    request = run.server.request_for(me)
    assert request is not None
    told: Any = Spoken(request)
    process = Participant(run.keys[me], NOWHERE, state)
    with pytest.raises(_runtime._Refused) as raised:
        process._converse(told)
    assert raised.value.error is error
    _, values = control_messages.control_in(told.heard[0], "refusal")
    assert control_messages.reason_in(values) == "the site's ledger does not allow this run"
    assert not state.sent_table


def test_state_on_disk_is_encrypted_and_bound_to_key_and_name(tmp_path: Path) -> None:
    with StateFolder(tmp_path / "state") as folder:
        kept = EncryptedState(folder, identity(0))
        kept.put(MASKED, b"a secret table")
        assert kept.get(MASKED) == b"a secret table"
        assert kept.get("keys") is None
        stored = (tmp_path / "state" / MASKED).read_bytes()
        assert b"secret" not in stored
        assert "secret" not in repr(kept)
        with pytest.raises(FileRefused, match="another key file"):
            EncryptedState(folder, identity(1)).get(MASKED)
        folder.put("keys", stored)
        with pytest.raises(FileRefused):
            kept.get("keys")
        folder.put(MASKED, stored[:-1] + bytes([stored[-1] ^ 1]))
        with pytest.raises(FileRefused):
            kept.get(MASKED)
        folder.put(MASKED, b"")
        with pytest.raises(FileRefused):
            kept.get(MASKED)


def test_the_state_of_a_run_cannot_be_pickled_or_copied(tmp_path: Path) -> None:
    memory = MemoryStore()
    memory.put(MASKED, b"a secret table")
    assert "secret" not in repr(memory)
    run = Run(small_terms(3))
    with StateFolder(tmp_path / "state") as folder:
        for each in (memory, EncryptedState(folder, identity(0)), run.sites[run.terms.sites[0]], run.server):
            for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
                with pytest.raises(SecretRefused):
                    pickle.dumps(each, protocol)
            with pytest.raises(SecretRefused):
                copy.copy(each)


def test_a_run_continues_from_disk(tmp_path: Path) -> None:
    terms = small_terms(3)
    site = terms.sites[0]
    me = next(identity(i) for i in range(3) if identity(i).fingerprint == site)
    replies = []
    for _ in range(2):
        with StateFolder(tmp_path / "state") as folder:
            state = SiteState(me, terms, lambda: np.zeros(1, np.int64), EncryptedState(folder, me))
            replies.append(state.answer(terms.to_bytes()))
    assert replies[0] == replies[1]


def test_signatures_and_derived_keys(tmp_path: Path) -> None:
    from hushsum.parties import verify

    one, other = identity(0), identity(1)
    signed = one.sign(b"text")
    assert verify(one.fingerprint, signed, b"text")
    assert not verify(one.fingerprint, signed, b"texts")
    assert not verify(other.fingerprint, signed, b"text")
    assert not verify("ff" * 32, signed, b"text")
    made = Identity.create(tmp_path / "k")
    again = Identity.load(tmp_path / "k")
    assert made.derived_key(b"a") == again.derived_key(b"a") != made.derived_key(b"b")
