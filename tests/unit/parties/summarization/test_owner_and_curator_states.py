"""The two state machines: order, replays, crashes, caps and what a peer may not do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hushsum.baselines.summarization import PublishedParameters
from hushsum.errors import ClaimError, FileRefused, UsageError
from hushsum.parties.summarization import (
    AUCTION,
    FRESH,
    RULES,
    THRESHOLD,
    Answer,
    Broadcast,
    CuratorState,
    OwnerState,
    RunTerms,
    claims_of,
    summary_of,
)
from tests.unit.parties.summarization.neighbouring_runs import parties, play, records, terms_of


@pytest.mark.parametrize("rule", RULES)
def test_a_run_ends_after_the_agreed_rounds_with_points_of_the_owners(rule: str) -> None:
    curator, owners = parties(terms_of(rule))
    play(curator, owners)
    summary = summary_of(curator, records(9))
    mine = {tuple(row) for i in (0, 1) for row in records(i)}
    assert curator.done
    assert all(tuple(row) in mine for row in summary.points)
    assert summary.seen == len(curator.collected) == sum(owner.sent for owner in owners.values())
    assert len({tuple(row) for row in curator.collected.points}) == summary.seen, "a point was sent twice"
    with pytest.raises(UsageError, match="rounds is over"):
        curator.advance()


@pytest.mark.parametrize("rule", RULES)
def test_a_restored_curator_sends_the_same_bytes_and_ends_the_same(rule: str) -> None:
    kept: list[bytes] = []
    terms = terms_of(rule)
    first, owners = parties(terms)
    first._store = kept.append
    while not first.done:
        first.advance()
        shown = {name: each.to_bytes() for name, each in first.outgoing().items()}
        second = CuratorState(terms, first.target, insecure_noise_seed=1)
        second.restore(kept[-1])
        assert {name: each.to_bytes() for name, each in second.outgoing().items()} == shown
        answers = [owners[name].answer(each) for name, each in first.outgoing().items()]
        for answer in answers:
            first.take(answer)
            second.take(answer)
        assert first.save() == second.save()


@pytest.mark.parametrize("rule", RULES)
def test_the_state_is_stored_before_a_broadcast_can_be_read(rule: str) -> None:
    curator, _ = parties(terms_of(rule))
    seen: list[bool] = []
    curator._store = lambda data: seen.append(b"curator" in data)
    assert curator.outgoing() == {}
    curator.advance()
    assert seen == [True]


@pytest.mark.parametrize("rule", RULES)
def test_a_restored_owner_repeats_its_answer_and_refuses_another_under_the_same_number(rule: str) -> None:
    terms = terms_of(rule)
    curator, owners = parties(terms)
    curator.advance()
    broadcast = curator.outgoing()["a"]
    answer = owners["a"].answer(broadcast)
    again = OwnerState("a", records(0), terms)
    again.restore(owners["a"].save())
    assert again.answer(broadcast).to_bytes() == answer.to_bytes()
    with pytest.raises(FileRefused, match="answered once"):
        again.answer(replace(broadcast, direction=broadcast.direction[::-1].copy()))
    with pytest.raises(FileRefused, match="other records"):
        OwnerState("a", records(1), terms).restore(owners["a"].save())


def test_an_owner_refuses_what_was_not_agreed() -> None:
    terms = terms_of(THRESHOLD)
    curator, owners = parties(terms)
    curator.advance()
    broadcast, owner = curator.outgoing()["a"], owners["a"]
    bad = [
        replace(broadcast, run="another"),
        replace(broadcast, step=2, round=2),
        replace(broadcast, round=2),
        replace(broadcast, phase="bid"),
        replace(broadcast, threshold=None, quota=3),
        replace(broadcast, direction=broadcast.direction[:-1]),
        replace(broadcast, direction=np.full(40, 2**31)),
        replace(broadcast, chance=1 << 17),
    ]
    for each in bad:
        with pytest.raises(FileRefused):
            owner.answer(each)
    assert owner.sent == 0
    assert owner.step == 0
    owner.answer(broadcast)


def test_no_owner_sends_more_than_its_cap_whatever_is_asked() -> None:
    terms = terms_of(THRESHOLD, cap=5)
    owner = OwnerState("a", records(0), terms)
    direction = np.ones(40, np.int64)
    for step in range(1, 5):
        owner.answer(Broadcast(terms.run, step, step, "send", direction, threshold=-(1 << 52)))
    assert owner.sent == 5
    with pytest.raises(FileRefused, match="rounds is over"):
        owner.answer(Broadcast(terms.run, 5, 5, "send", direction, threshold=0))


@pytest.mark.parametrize("rule", [FRESH, THRESHOLD])
def test_the_curator_refuses_false_answers_and_keeps_nothing(rule: str) -> None:
    curator, owners = parties(terms_of(rule, cap=12))
    curator.advance()
    good = owners["a"].answer(curator.outgoing()["a"])
    many = np.zeros((13, 2))
    bad = [
        replace(good, run="another"),
        replace(good, step=7),
        replace(good, owner="c"),
        replace(good, points=np.zeros((1, 3)), extra=np.zeros((1, 0))),
        replace(good, points=np.full((1, 2), np.nan), extra=np.zeros((1, 0))),
        replace(good, points=many, extra=np.zeros((13, 0))),
        replace(good, extra=np.zeros((len(good.points), 1))),
    ]
    for each in bad:
        with pytest.raises(FileRefused):
            curator.take(each)
    assert len(curator.collected) == 0
    curator.take(good)
    with pytest.raises(FileRefused):
        curator.take(good)


def test_a_point_below_the_threshold_is_refused() -> None:
    curator, owners = parties(terms_of(THRESHOLD))
    curator.advance()
    for name, each in curator.outgoing().items():
        curator.take(owners[name].answer(each))
    curator.advance()
    broadcast = curator.outgoing()["a"]
    assert broadcast.threshold is not None
    gains = records(0)
    worst = min(gains, key=lambda row: curator.terms.features.hashes([row])[0] @ broadcast.direction)
    false = Answer(broadcast.run, broadcast.step, "a", worst[None], np.zeros((1, 0)))
    with pytest.raises(FileRefused, match="threshold"):
        curator.take(false)


def test_a_bid_is_verified() -> None:
    curator, owners = parties(terms_of(AUCTION, rate=0.001, rounds=8))
    answers: list[Answer] = []
    while not answers:
        curator.advance()
        for name, each in curator.outgoing().items():
            answer = owners[name].answer(each)
            if len(answer.points):
                answers.append(answer)
            else:
                curator.take(answer)
    with pytest.raises(FileRefused, match="worth its bid"):
        curator.take(replace(answers[0], points=answers[0].points + 0.5))
    curator.take(answers[0])


@pytest.mark.parametrize("rule", RULES)
def test_a_lost_owner_is_told_to_the_consumer_and_the_run_goes_on(rule: str) -> None:
    curator, owners = parties(terms_of(rule))
    curator.advance()
    curator.lose("b")
    curator.take(owners["a"].answer(curator.outgoing()["a"]))
    play(curator, owners)
    assert summary_of(curator).lost == {"b": 1}
    assert summary_of(curator).values["b"] == 0.0


def test_the_claims_add_up_over_rounds() -> None:
    curator, _ = parties(terms_of(FRESH))
    claims = claims_of(curator)
    assert claims.owners.rho == 1.0
    assert claims.together.rho == 2.0
    assert claims.epsilon(1e-5) > PublishedParameters().composed(curator.terms.size)[0]
    assert "No protection" in claims.owners.sentence(), "seeded noise claims nothing"


def test_an_auction_whose_answers_spend_everything_is_refused() -> None:
    with pytest.raises(ClaimError, match="smaller rate"):
        parties(terms_of(AUCTION, rate=5))


def test_hashes_are_sent_instead_of_points_and_the_terms_hide_the_seed() -> None:
    terms = terms_of(FRESH, hashed=True)
    curator, owners = parties(terms)
    play(curator, owners)
    assert curator.collected.points.shape[1] == terms.features.width
    assert RunTerms.from_bytes(terms.to_bytes()).features.seed == 0
    with pytest.raises(UsageError, match="seed that owners share"):
        OwnerState("a", records(0), terms)
    with pytest.raises(UsageError, match="unless hashes are sent"):
        OwnerState("a", records(0), terms_of(FRESH), features=replace(terms.features, seed=8))
    with pytest.raises(UsageError, match="up to the seed"):
        OwnerState("a", records(0), terms, features=replace(terms.features, features=3))
    curator, owners = parties(terms_of(FRESH, hashed=True))
    curator.advance()
    answer = owners["a"].answer(curator.outgoing()["a"])
    with pytest.raises(FileRefused, match="hashes"):
        curator.take(replace(answer, points=answer.points + 0.5))
