"""A party's ledger is damaged or put back while it talks to a peer: what the ledger says stays with it.

`FileRefused` is raised for damaged messages, which are reported to the peer, and for damaged ledgers, whose
text names files and entries. Before this test the second kind reached the server of a secure aggregation.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hushsum.errors import FileRefused, LedgerUnavailable
from hushsum.ledger import DatasetTerms, Ledger
from hushsum.parties import Address, Participant, RunSpending, StateFolder, _runtime
from hushsum.parties import _runtime as control_messages
from hushsum.parties.secure_aggregation import MASKED, SiteState
from hushsum.parties.summarization import OwnerMachine, RunTerms, owner_spending
from hushsum.privacy import Booking, stage
from tests.aggregation_runs import Run, small_terms
from tests.unit.parties.summarization.parties import identities, opening_for, records, terms_for
from tests.unit.parties.summarization.test_owner_process import step


class Peer:
    """A connection on which a peer says prepared things, and hears the replies."""

    def __init__(self, *said: bytes) -> None:
        self._said = list(said)
        self.heard: list[bytes] = []

    def receive(self, *, most: int, wait: float) -> bytes:
        return self._said.pop(0)

    def send(self, data: bytes) -> None:
        self.heard.append(data)

    def reason(self) -> str:
        return control_messages.reason_in(control_messages.control_in(self.heard[-1], "refusal")[1])


def a_backup_put_back(ledger: Path, backup: Path) -> None:
    shutil.copy(backup, ledger)


def changed_bytes(ledger: Path, backup: Path) -> None:
    ledger.write_bytes(bytes(byte ^ 0x55 for byte in ledger.read_bytes()))


def cut_off(ledger: Path, backup: Path) -> None:
    ledger.write_bytes(ledger.read_bytes()[:5000])


@pytest.mark.parametrize(
    "damage", [a_backup_put_back, changed_bytes, cut_off], ids=lambda each: each.__name__
)
def test_the_server_learns_nothing_of_a_damaged_ledger(tmp_path: Path, damage: Any) -> None:
    place, backup = tmp_path / "hospital-ledger.db", tmp_path / "backup.db"
    ledger = Ledger.create(place, state=tmp_path / "guards")
    ledger.create_dataset("patients", DatasetTerms.of(epsilon=5.0))
    budget = ledger.dataset("patients")
    shutil.copy(place, backup)
    run = Run(small_terms(3))
    budget.debit(run.terms.claim, subject={}, idempotency_key="before")
    run.until(MASKED)
    me = run.terms.sites[0]
    spending = Booking(budget, "this run")
    damage(place, backup)
    state = SiteState(
        run.keys[me],
        run.terms,
        lambda: np.zeros(13, np.int64),
        run.stores[me],
        stage=lambda make: stage(spending, run.terms.claim, {}, make).payload,
    )
    request = run.server.request_for(me)
    assert request is not None
    server: Any = Peer(request)
    process = Participant(run.keys[me], Address("127.0.0.1", 1), state)
    with pytest.raises(_runtime._Refused) as raised:
        process._converse(server)
    error = raised.value.error
    assert isinstance(error, FileRefused | LedgerUnavailable)
    assert server.reason() == "the site's ledger does not allow this run"
    assert all(str(error).encode() not in each and b"ledger.db" not in each for each in server.heard)
    assert not state.sent_table


@pytest.mark.parametrize("moment", ["afford", "staged_bytes", "settle"])
def test_a_curator_learns_nothing_of_a_damaged_ledger(tmp_path: Path, moment: str) -> None:
    owner, _ = identities(tmp_path, "owner", "curator")

    def damaged(*_: object) -> None:
        raise FileRefused("entry 17 of hospital-ledger.db was changed")

    def spending(terms: RunTerms) -> RunSpending:
        made = owner_spending(terms, ledger=None, fingerprint=owner.fingerprint)
        setattr(made, moment, damaged)
        return made

    said: list[str] = []
    with StateFolder(tmp_path / "state") as folder:
        machine = OwnerMachine(owner, records(0), folder, spending=spending, log=said.append)
        opening = opening_for(terms_for(owner)).to_bytes()
        peer: Any = Peer(opening, step(1).to_bytes(), control_messages.control("ending", run="run-1"))
        process = Participant(owner, Address("127.0.0.1", 1), machine, log=said.append)
        with pytest.raises(_runtime._Refused):
            process._converse(peer)
    assert peer.reason() == "this owner's ledger or state does not allow this run"
    assert all(b"hospital" not in each for each in peer.heard)
    # The owner itself reads what is wrong.
    assert any("entry 17" in each for each in said)
