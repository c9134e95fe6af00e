"""Owners and a curator as processes: killed, resumed, lost, and unknown."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet
import pytest
from tests.ledger_fixtures import state
from tests.summarize_parties import Market, market, wait_for

from hushsum.ledger import Charge, DatasetTerms, Kind, Ledger
from hushsum.parties.summarization import HashSecret, SummaryFeatures

__all__ = ["state"]


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Market]:
    with market(tmp_path, 3) as made:
        yield made


def summary_of(made: Market) -> set[tuple[float, ...]]:
    """The points in the summary's file; every one of them is a record of an owner."""
    table = parquet.read_table(made.folder / "s.parquet")
    assert table.column_names == ["a", "b", "label"]
    rows = {tuple(row) for row in np.column_stack([table.column(i).to_numpy() for i in range(3)])}
    known = {tuple(row) for i in range(made.owners) for row in made.records(i)}
    assert rows <= known
    assert len(rows) == table.num_rows
    return rows


def test_a_run_with_ledgers_from_keys_to_summary(three: Market) -> None:
    ledger = Ledger.create(three.folder / "book.db")
    ledger.create_dataset("patients", DatasetTerms.of(rho=3.0))
    ledger.create_dataset("target", DatasetTerms.of(rho=1.0))
    shown = three.run("summarize", "keys", "curator.key", "--json").json()
    assert shown == {"file": "curator.key", "fingerprint": three.curator_key.fingerprint, "made": False}
    booked = three.owner(0, "--ledger", "book.db", "--dataset", "patients")
    others = [three.owner(1), three.owner(2)]
    curator = three.curator("--ledger", "book.db", "--dataset", "target", "--debit-rho")
    made = curator.json()
    assert "listening on" in curator.err
    assert made["lost"] == {}
    assert (made["claim"]["epsilon"], made["claim"]["delta"]) == (4.0, 1e-5)
    assert made["size"] == len(summary_of(three)) == sum(made["by_owner"].values())
    took_part = [booked.json(), *(each.json() for each in others)]
    assert sum(each["points_sent"] for each in took_part) == made["seen"]
    (entry,) = ledger.history("patients")
    assert entry.step is Kind.PUBLISHED
    assert entry.key == took_part[0]["idempotency_key"]
    assert ledger.account("patients").spent == Charge(rho=Fraction(took_part[0]["claim"]["exact"]["rho"]))
    assert ledger.account("target").spent == Charge(
        rho=Fraction(made["claims"]["validation"]["exact"]["rho"])
    )
    assert ledger.verify().holds
    said = "".join(each.err for each in three.parties)
    assert not any(f"{abs(value):.4f}" in said for i in range(3) for value in three.records(i)[:, :2].ravel())
    # The run has ended: it is neither joined nor paid again, and its summary can be written again.
    again = three.run(
        "summarize", "owner", "o0.csv", "--curator", f"127.0.0.1:{three.port}@{'00' * 32}", "--key", "o0.key"
    )
    assert again.ended() == 2
    assert "has ended" in again.err


def test_files_are_read_as_each_party_declares_them(three: Market) -> None:
    """The first owner and the consumer have semicolons, decimal commas and another encoding."""
    for name, header in (("o0.csv", "a;b;label"), ("v.csv", "a;b")):
        lines = (three.folder / name).read_text().replace(",", ";").replace(".", ",").splitlines()[1:]
        (three.folder / name).write_bytes("\r\n".join([header, *lines, ""]).encode("utf-16"))
    german = ("--decimal", ",", "--encoding", "utf-16")
    refused = three.run(
        *("summarize", "owner", "o0.csv", "--curator", f"127.0.0.1:1@{'00' * 32}", "--key", "o0.key"),
        *german[2:],
    )
    assert refused.ended() == 6
    assert "give --decimal ," in refused.err
    secret = ("summarize", "validation", "v.csv", "--hashes", "owners.secret", "-o", "v.target")
    three.run("summarize", "secret", "owners.secret", "--json").json()
    promise = ("--epsilon", "4", "--delta", "1e-5", "--bandwidth", "1", "--json")
    assert three.run(*secret, *promise, *german).json()["columns"] == ["a", "b"]
    three.owner(0, *german)
    three.owner(1)
    three.owner(2)
    made = three.curator(*german).json()
    assert made["size"] == len(summary_of(three)) == sum(made["by_owner"].values())
    assert made["by_owner"][three.keys[0].fingerprint] > 0


def test_a_killed_curator_goes_on_where_it_was(three: Market) -> None:
    ledger = Ledger.create(three.folder / "book.db")
    ledger.create_dataset("patients", DatasetTerms.of(rho=3.0))
    owners = [three.owner(i, "--ledger", "book.db", "--dataset", "patients") for i in range(3)]
    for _ in range(2):
        before = three.step()
        curator = three.curator("--pace", "0.2")
        wait_for(partial(three.went_beyond, before))
        curator.kill()
    made = three.curator().json()
    # An owner refuses another broadcast under a number that it has answered, so none was drawn again.
    assert made["lost"] == {}
    assert made["size"] == len(summary_of(three))
    assert {each.json()["run"] for each in owners} == {made["run"]}
    assert len(ledger.history("patients")) == 3
    assert ledger.account("patients").spent.rho == 3 * Fraction(made_rho(owners[0].json()))


def made_rho(took_part: dict[str, dict[str, dict[str, str]]]) -> str:
    return took_part["claim"]["exact"]["rho"]


def test_a_killed_owner_comes_back(three: Market) -> None:
    ledger = Ledger.create(three.folder / "book.db")
    ledger.create_dataset("patients", DatasetTerms.of(rho=3.0))
    booked = ("--ledger", "book.db", "--dataset", "patients")
    killed, *others = [three.owner(0, *booked), three.owner(1), three.owner(2)]
    curator = three.curator("--pace", "0.2")
    wait_for(lambda: three.step() >= 2)
    killed.kill()
    back = three.owner(0, *booked)
    made = curator.json()
    assert made["lost"] == {}
    assert "resumed the run" in back.err
    sent = [each.json()["points_sent"] for each in (back, *others)]
    assert sum(sent) == made["seen"] >= len(summary_of(three))
    assert len(ledger.history("patients")) == 1


def test_an_owner_lost_for_good_is_told_to_the_consumer_alone(three: Market) -> None:
    lost, *others = [three.owner(i) for i in range(3)]
    curator = three.curator("--pace", "0.2", "--patience", "1")
    wait_for(lambda: three.step() >= 2)
    lost.kill()
    made = curator.json()
    name = three.keys[0].fingerprint
    assert set(made["lost"]) == {name}
    assert made["lost"][name] >= 2
    assert "continuing without owner" in curator.err
    assert made["size"] == len(summary_of(three))
    for each in others:
        each.json()
        assert name[:12] not in each.err + each.out


def test_other_terms_are_refused(three: Market) -> None:
    owners = [three.owner(0, "--cap", "15"), three.owner(1), three.owner(2)]
    greedy = three.curator("--rule", "fresh")
    assert greedy.ended() == 1
    assert "cap=15" in greedy.err
    other = three.curator("--rule", "threshold")
    assert other.ended() == 2
    assert "other terms" in other.err
    # The other two had accepted, but nothing was broadcast: they are free for another run.
    made = three.curator("--state", "new", "--cap", "15").json()
    assert made["by_owner"][three.keys[0].fingerprint] <= owners[0].json()["points_sent"] <= 15
    assert [each.ended() for each in owners] == [0, 0, 0]


def test_a_stranger_gets_nothing_from_an_owner(three: Market) -> None:
    three.run("summarize", "keys", "stranger.key").ended()
    owner = three.owner(0)
    three.curator("--wait", "1", key="stranger.key")
    assert owner.ended() == 1
    assert "does not hold the pinned key" in owner.err


def test_a_curator_that_is_sent_hashes_alone(three: Market) -> None:
    ledger = Ledger.create(three.folder / "book.db")
    ledger.create_dataset("target", DatasetTerms.of(rho=1.0))
    shown = three.run("summarize", "secret", "owners.secret", "--json").json()
    same = ("--epsilon", "4", "--delta", "1e-5", "--bandwidth", "1", "--features", "40")
    release = ("validation", "v.csv", "--hashes", "owners.secret", *same, "-o", "v.target", "--json")
    booked = ("--ledger", "book.db", "--dataset", "target", "--debit-rho")
    released = three.run("summarize", *release, *booked).json()
    assert released["check"] == shown["check"]
    again = three.run("summarize", *release, *booked)
    assert again.ended() == 2
    assert "released once" in again.err
    owners = [three.owner(i, "--hashes", "owners.secret") for i in range(3)]
    # What asks for points is refused, and so is a release under other options.
    plain = three.curator()
    assert plain.ended() == 1
    assert "sends hashes only" in plain.err
    hashes = ("--hashes", "--validation", "v.target", "--state", "hashed")
    other = three.curator(*hashes, "--validation-share", "0.5")
    assert other.ended() == 2
    assert "another --epsilon, --delta or --validation-share" in other.err
    curator = three.curator(*hashes, "--pace", "0.2")
    wait_for(lambda: three.step("hashed") >= 2)
    curator.kill()
    made = three.curator(*hashes).json()
    table = parquet.read_table(three.folder / "s.parquet")
    assert table.column_names == ["hashes", "label"]
    rows = np.asarray(table["hashes"].combine_chunks().flatten()).reshape(table.num_rows, -1)
    secret = HashSecret.load(three.folder / "owners.secret")
    features = secret.features(SummaryFeatures(dim=2, bandwidth=1.0, features=40, seed=0))
    known = {row.tobytes() for i in range(3) for row in features.hashes(three.records(i)[:, :2])}
    assert {row.astype(np.int16).tobytes() for row in rows} <= known
    assert made["size"] == table.num_rows > 0
    assert made["claims"]["validation"]["exact"] == released["claim"]["exact"]
    assert sum(each.json()["points_sent"] for each in owners) == made["seen"]
    assert (ledger.history("target")[0].step, len(ledger.history("target"))) == (Kind.PUBLISHED, 1)
    # Nothing that the curator's folder holds has the seed in it.
    for file in (three.folder / "hashed").iterdir():
        assert str(features.seed).encode() not in file.read_bytes()


def test_a_broken_command_line_is_told_in_one_sentence(three: Market) -> None:
    place = ("--curator", f"127.0.0.1:1@{three.curator_key.fingerprint}")
    key = ("--key", "o0.key")
    refusals = [
        (("owner", "o0.csv", "--curator", "nowhere", *key), "HOST:PORT@FINGERPRINT"),
        (("owner", "o0.csv", "--curator", "127.0.0.1:1@ab", *key), "64 hexadecimal"),
        (("owner", "o0.csv", *place, "--key", "missing.key"), "no key file"),
        (("owner", "missing.csv", *place, *key), "does not exist"),
        (("owner", "o0.csv", *place, *key, "--columns", "salary"), "must name columns of the data"),
        (("owner", "o0.csv", *place, *key, "--cap", "0"), "at least 1"),
        (("owner", "o0.csv", *place, *key, "--ledger", "book.db"), "go together"),
    ]
    for arguments, said in refusals:
        party = three.run("summarize", *arguments)
        assert party.ended() == 2
        assert said in party.err
        assert party.out == ""
    assert not (three.folder / "o0.csv.summarize").exists()
