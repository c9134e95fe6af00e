"""An owner against curators that request more than was agreed, twice, or in the wrong order."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from hushsum.errors import PeerLost
from hushsum.files import unpack
from hushsum.parties import Identity, Patience
from hushsum.parties import _runtime as control_messages
from hushsum.parties._tls import TlsConnection
from hushsum.parties.summarization import Answer, Broadcast, Opening, RunTerms
from tests.unit.parties.summarization.parties import (
    FEATURES,
    Desk,
    accepted,
    identities,
    opening_for,
    owner_running,
    records,
    terms_for,
)


@contextmanager
def visit(curator: Identity, desk: Desk) -> Iterator[TlsConnection]:
    with accepted(desk.listening, curator, desk.identity) as link:
        yield link


def opened(link: TlsConnection, terms: RunTerms) -> tuple[str, str]:
    """What the owner says to these terms."""
    link.send(opening_for(terms).to_bytes())
    return said(link)


def said(link: TlsConnection) -> tuple[str, str]:
    data = link.receive(most=1 << 20, wait=20)
    kind, values, _ = unpack(data, "ready", "refusal", "answer")
    return kind, control_messages.reason_in(values) if kind == "refusal" else ""


def exchange(link: TlsConnection, payload: bytes) -> None:
    """Send and be answered; a peer that hangs up is noticed in one or the other."""
    link.send(payload)
    said(link)


def step(number: int, **changes: object) -> Broadcast:
    direction = np.random.default_rng(number).integers(-9, 9, FEATURES.width)
    requested = Broadcast("run-1", number, number, "send", direction, quota=3)
    return dataclasses.replace(requested, **changes)  # type: ignore[arg-type]


def requested(link: TlsConnection, broadcast: Broadcast) -> Answer:
    link.send(broadcast.to_bytes())
    return Answer.from_bytes(link.receive(most=1 << 20, wait=20))


@pytest.fixture
def parties(tmp_path: Path) -> tuple[Identity, Identity]:
    owner, curator = identities(tmp_path, "owner", "curator")
    return owner, curator


def test_it_answers_what_was_agreed_and_ends(parties: tuple[Identity, Identity], tmp_path: Path) -> None:
    owner, curator = parties
    known = {tuple(row) for row in records(0).choose("abc")}
    with owner_running(owner, curator, tmp_path / "run") as desk, visit(curator, desk) as link:
        assert opened(link, terms_for(owner)) == ("ready", "")
        sent = [requested(link, step(number)) for number in range(1, 5)]
        link.send(control_messages.control("ending", run="run-1"))
        assert said(link)[0] == "ready"
    rows = [tuple(row) for each in sent for row in np.hstack([each.points, each.extra])]
    assert len(rows) == len(set(rows)) == 12
    assert set(rows) <= known
    assert desk.paid == ["run-1"]
    assert not desk.problem


@pytest.mark.parametrize(
    ("broadcast", "reason"),
    [
        (step(2, quota=4), "more than the agreed batch"),
        (step(3), "broadcast 2 is due, got 3"),
        (step(1, quota=2), "broadcast 2 is due, got 1"),
        (step(2, run="run-2"), "another run"),
        (step(2, phase="bid"), "another phase"),
        (step(2, round=1), "another phase or round"),
        (step(2, threshold=-(1 << 50)), "another rule"),
        (step(2, direction=np.ones(3, np.int64)), "another width"),
        (step(2, direction=np.full(FEATURES.width, 1 << 40)), "outside its range"),
    ],
)
def test_what_the_rule_does_not_allow_is_refused(
    parties: tuple[Identity, Identity], tmp_path: Path, broadcast: Broadcast, reason: str
) -> None:
    owner, curator = parties
    with owner_running(owner, curator, tmp_path / "run") as desk:
        with visit(curator, desk) as link:
            opened(link, terms_for(owner))
            first = requested(link, step(1))
            link.send(broadcast.to_bytes())
            kind, reported = said(link)
            assert kind == "refusal"
            assert reason in reported
        with visit(curator, desk) as link:
            # Nothing has changed: the last answer is repeated, bit for bit, and the next round is due.
            opened(link, terms_for(owner))
            assert requested(link, step(1)).to_bytes() == first.to_bytes()
            assert requested(link, step(2)).step == 2
    assert any(reason in line for line in desk.log)


def test_the_rounds_are_over_after_the_last(parties: tuple[Identity, Identity], tmp_path: Path) -> None:
    owner, curator = parties
    with owner_running(owner, curator, tmp_path / "run") as desk, visit(curator, desk) as link:
        opened(link, terms_for(owner, rounds=1))
        requested(link, step(1))
        link.send(step(2).to_bytes())
        assert "rounds is over" in said(link)[1]


def test_the_cap_holds_and_must_be_in_the_terms(parties: tuple[Identity, Identity], tmp_path: Path) -> None:
    owner, curator = parties
    with owner_running(owner, curator, tmp_path / "run", cap=5) as desk:
        for terms in (terms_for(owner), terms_for(owner, cap=6)):
            with visit(curator, desk) as link:
                kind, reported = opened(link, terms)
                assert (kind, "limits the points" in reported) == ("refusal", True)
        with visit(curator, desk) as link:
            assert opened(link, terms_for(owner, cap=5)) == ("ready", "")
            assert [len(requested(link, step(number)).points) for number in range(1, 5)] == [3, 2, 0, 0]


def test_a_second_run_cannot_get_round_the_first(parties: tuple[Identity, Identity], tmp_path: Path) -> None:
    owner, curator = parties
    with owner_running(owner, curator, tmp_path / "run") as desk:
        with visit(curator, desk) as link:
            opened(link, dataclasses.replace(terms_for(owner), run="run-0"))
        assert desk.paid == [], "terms that were only shown cost nothing"
        with visit(curator, desk) as link:
            opened(link, terms_for(owner))
            requested(link, step(1))
        for other in (
            dataclasses.replace(terms_for(owner), run="run-2"),
            dataclasses.replace(terms_for(owner), batch=12),
        ):
            with visit(curator, desk) as link:
                kind, reported = opened(link, other)
                assert (kind, "another run" in reported) == ("refusal", True)
        assert desk.paid == ["run-1"]


@pytest.mark.parametrize(
    ("changes", "compared", "reason"),
    [
        ({"rho": None}, ("a", "b"), "keeps no promise"),
        ({"owners": ("somebody",)}, ("a", "b"), "do not name"),
        ({}, ("a", "salary"), "does not offer"),
        ({}, ("a",), "another width"),
    ],
)
def test_terms_that_are_not_acceptable_bind_nothing(
    parties: tuple[Identity, Identity],
    tmp_path: Path,
    changes: dict[str, object],
    compared: tuple[str, ...],
    reason: str,
) -> None:
    owner, curator = parties
    bad = dataclasses.replace(terms_for(owner), **changes)  # type: ignore[arg-type]
    with owner_running(owner, curator, tmp_path / "run") as desk:
        with visit(curator, desk) as link:
            link.send(Opening(bad, compared, ("c",)).to_bytes())
            kind, reported = said(link)
            assert (kind, reason in reported) == ("refusal", True)
        assert desk.paid == []
        with visit(curator, desk) as link:
            assert opened(link, terms_for(owner))[0] == "ready"


def test_noise_on_the_line_is_refused_and_logged_without_a_value(
    parties: tuple[Identity, Identity], tmp_path: Path
) -> None:
    owner, curator = parties
    values = [f"{value:.4f}" for value in records(0).choose("abc").ravel()]
    with owner_running(owner, curator, tmp_path / "run") as desk:
        for junk in (b"", b"junk", step(1).to_bytes(), control_messages.control("ending", run="run-1")):
            with visit(curator, desk) as link:
                link.send(junk)
                assert said(link)[0] == "refusal"
        with visit(curator, desk) as link, pytest.raises(PeerLost):
            exchange(link, bytes(1 << 23))
        with visit(curator, desk) as link:
            opened(link, terms_for(owner))
            link.send(control_messages.control("ending", run="run-2"))
            assert said(link)[0] == "refusal"
        with visit(curator, desk) as link:
            assert opened(link, terms_for(owner))[0] == "ready"
    text = "\n".join(desk.log)
    assert text.count("refused") == 6
    assert not any(value in text for value in values)


def test_it_goes_on_after_a_restart(parties: tuple[Identity, Identity], tmp_path: Path) -> None:
    owner, curator = parties
    with owner_running(owner, curator, tmp_path / "run") as desk, visit(curator, desk) as link:
        opened(link, terms_for(owner))
        first = [requested(link, step(number)).to_bytes() for number in (1, 2)]
    with owner_running(owner, curator, tmp_path / "run") as again, visit(curator, again) as link:
        opened(link, terms_for(owner))
        link.send(step(2, quota=2).to_bytes())
        assert said(link)[0] == "refusal"
    with owner_running(owner, curator, tmp_path / "run") as again, visit(curator, again) as link:
        opened(link, terms_for(owner))
        assert requested(link, step(2)).to_bytes() == first[1]
        third = requested(link, step(3))
    rows = {tuple(row) for row in Answer.from_bytes(first[0]).points}
    assert not rows & {tuple(row) for row in third.points}


def test_other_records_are_not_slipped_in(parties: tuple[Identity, Identity], tmp_path: Path) -> None:
    owner, curator = parties
    with owner_running(owner, curator, tmp_path / "run") as desk, visit(curator, desk) as link:
        opened(link, terms_for(owner))
        requested(link, step(1))
    with owner_running(owner, curator, tmp_path / "run", seed=1) as desk, visit(curator, desk) as link:
        kind, reported = opened(link, terms_for(owner))
        # That the records are others is the owner's affair.
        assert (kind, "ledger or state" in reported) == ("refusal", True)


def test_it_does_not_wait_for_ever(parties: tuple[Identity, Identity], tmp_path: Path) -> None:
    owner, curator = parties
    brief = Patience(wait=0.1, lost=0.1)
    with owner_running(owner, curator, tmp_path / "run", patience=brief) as desk:
        desk.over.wait(30)
    assert isinstance(desk.problem[0], PeerLost)
