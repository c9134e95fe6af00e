"""Jobs of secure aggregation: a site that is left out, and runs that follow each other."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import HushsumError, PeerLost, PeerRefused
from hushsum.ledger import DatasetTerms, Ledger
from hushsum.operations import LedgerOptions
from hushsum.parties import Address, Coordinator, Identity, PartySpec, Patience, listener
from hushsum.parties.secure_aggregation import (
    MASKED,
    Aggregated,
    ServerState,
    SiteRequest,
    TermsRequest,
    join_as_site,
    read_terms,
    run_server,
    write_terms,
)
from hushsum.privacy import ReleaseRequest
from tests.free_ports import free_port
from tests.memory_store import MemoryStore

PATIENCE = Patience(wait=60.0, transfer=60.0, lost=60.0)


class Sites:
    """Sites in one folder, of which the first keeps a ledger; each takes part in a thread."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder = folder
        self.names = [f"site{number}" for number in range(count)]
        for number, name in enumerate(self.names):
            tally = hs.race(hs.EuclideanKernel(dim=1, bandwidth=1.0), rows=3, width=4)
            tally.add(np.full((5, 1), float(number)))
            tally.save(self.path(f"{name}.tally"))
        made = {name: Identity.create(self.path(f"{name}.key")) for name in [*self.names, "server"]}
        self.prints = {name: each.fingerprint for name, each in made.items()}
        self.server = made["server"]
        Ledger.create(self.path("ledger.db")).create_dataset("patients", DatasetTerms.of(epsilon=5.0))
        self.ledger = LedgerOptions(self.path("ledger.db"), "patients")
        self.port = free_port()
        self.errors: dict[str, HushsumError] = {}

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def terms(self, dropouts: int = 0) -> str:
        sites = [self.prints[name] for name in self.names]
        request = TermsRequest(release=ReleaseRequest(epsilon=1.0), dropouts=dropouts, colluding=0)
        output = self.path("run.terms")
        write_terms(self.path("site0.tally"), request, sites, output)
        return output

    def join(self, name: str, patience: Patience = PATIENCE) -> None:
        request = SiteRequest(
            terms=self.path("run.terms"),
            party=PartySpec(key=self.path(f"{name}.key"), state=self.path(f"{name}.federate")),
            ledger=self.ledger if name == self.names[0] else LedgerOptions(),
        )
        server = Address("127.0.0.1", self.port, self.prints["server"])
        tally = self.path(f"{name}.tally")
        try:
            join_as_site(request, tally, server, patience=patience, log=lambda _: None)
        except HushsumError as error:
            self.errors[name] = error

    def start(self) -> list[threading.Thread]:
        threads = [threading.Thread(target=self.join, args=(name,), daemon=True) for name in self.names]
        for each in threads:
            each.start()
        return threads

    def run(self) -> Aggregated:
        threads = self.start()
        made = run_server(
            self.path("run.terms"),
            PartySpec(key=self.path("server.key")),
            self.path("all.hush"),
            Address("127.0.0.1", self.port),
            patience=PATIENCE,
            log=lambda _: None,
        )
        for each in threads:
            each.join(60.0)
        return made

    def debits(self) -> int:
        return len(Ledger(self.path("ledger.db")).history("patients"))


def test_runs_follow_each_other_in_the_same_folders(tmp_path: Path) -> None:
    here = Sites(tmp_path, 3)
    runs = set()
    for number in (1, 2):
        here.terms()
        made = here.run()
        runs.add(made.terms.run)
        assert here.errors == {}
        assert here.debits() == number
    assert len(runs) == 2
    # The terms of a run that has ended begin no second one: the same keys would mask another table.
    here.join("site0")
    assert "the run has ended at this site" in str(here.errors["site0"])
    assert here.debits() == 2


def test_a_site_that_was_left_out_is_told_what_it_has_spent(tmp_path: Path) -> None:
    here = Sites(tmp_path, 4)
    terms = read_terms(here.terms(dropouts=1))
    late = here.prints["site0"]

    class Closed(ServerState):
        """As if the step had ended while the table of one site was on its way."""

        def take(self, site: str, data: bytes) -> None:
            if site == late and self.step == MASKED:
                raise PeerRefused("the reply to step 'masked' came too late")
            super().take(site, data)

    threads = here.start()
    with listener(Address("127.0.0.1", here.port)) as place:
        state = Closed(terms, MemoryStore())
        patience = Patience(wait=60.0, transfer=60.0, lost=0.5)
        Coordinator(here.server, state, patience=patience).serve(place)
    for each in threads:
        each.join(60.0)
    assert late not in state.survivors
    assert list(here.errors) == ["site0"]
    said = str(here.errors["site0"])
    assert "came too late" in said
    assert "This site's ledger was debited ε = 1 for this run (entry federate-" in said
    assert "stays spent" in said
    assert here.debits() == 1


@pytest.mark.parametrize("name", ["site0", "site1"])
def test_a_site_that_finds_no_server_is_told_that_nothing_was_spent(tmp_path: Path, name: str) -> None:
    here = Sites(tmp_path, 3)
    here.terms()
    here.join(name, Patience(wait=0.1, transfer=1.0, lost=0.1))
    assert isinstance(here.errors[name], PeerLost)
    assert "Nothing was spent at this site." in str(here.errors[name])
    assert here.debits() == 0
