"""Secure aggregation under random schedules; `benchmarks/coverage` runs 10⁵ of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hushsum.parties import secure_aggregation as protocol
from hushsum.parties.secure_aggregation import (
    CONSENT,
    KEYS,
    MASKED,
    OPENING,
    AggregationTerms,
    ServerState,
    SiteState,
)
from tests.aggregation_schedules import honest_schedule, lying_schedule, repeated_checks_once, split_schedule
from tests.memory_store import MemoryStore


@pytest.fixture(autouse=True, scope="module")
def _quick() -> Iterator[None]:
    with repeated_checks_once():
        yield


@pytest.mark.parametrize("start", [0, 50])
def test_no_schedule_gives_a_wrong_sum(start: int) -> None:
    ended = Counter(honest_schedule(seed) for seed in range(start, start + 50))
    # The faults must leave runs to check.
    assert ended["opened"] >= 30


def test_no_server_gets_both_kinds_of_shares_of_one_site() -> None:
    opened = [lying_schedule(seed) for seed in range(80)]
    # Servers that happen to show everybody the same list do open the sum.
    assert sum(each > 0 for each in opened) >= 40


def test_no_server_gets_less_than_the_sum_by_showing_different_lists() -> None:
    opened = [split_schedule(seed) for seed in range(100)]
    # Where enough sites saw the same list, these open what they agreed on.
    assert sum(each > 0 for each in opened) >= 30
    assert sum(each == 0 for each in opened) >= 10


Fault = Callable[[pytest.MonkeyPatch], None]


def of_sites(patch: pytest.MonkeyPatch, name: str, fault: Callable[..., Any]) -> None:
    """Replace a function of the protocol while a site answers; the server calls the right one."""
    answer = SiteState.answer

    def faulty(state: SiteState, request: bytes) -> bytes:
        with pytest.MonkeyPatch.context() as within:
            within.setattr(protocol, name, fault)
            return answer(state, request)

    patch.setattr(SiteState, "answer", faulty)


def signs_two_lists(patch: pytest.MonkeyPatch) -> None:
    answer = SiteState.answer

    def forgetful(state: SiteState, request: bytes) -> bytes:
        if b'"kind":"survivors"' in request:
            state._replies.pop(CONSENT, None)
        if b'"kind":"survivors"' in request or b'"kind":"consents"' in request:
            state._replies.pop(OPENING, None)
        return answer(state, request)

    patch.setattr(SiteState, "answer", forgetful)


def reveals_both_kinds(patch: pytest.MonkeyPatch) -> None:
    signed = protocol.signed_reply

    def generous(identity, kind, terms, values, arrays):  # type: ignore[no-untyped-def]
        return signed(identity, kind, terms, values, {**arrays, **_more(kind)})

    held: list[Any] = []

    def _more(kind: str) -> dict[str, Any]:
        return {"more": held[-1]} if kind == OPENING else {}

    opening = SiteState._opening

    def watched(state: SiteState, request: bytes, values: object, arrays: object) -> object:
        held.append(state._arrays[MASKED]["held"])
        return opening(state, request, values, arrays)

    patch.setattr(SiteState, "_opening", watched)
    patch.setattr(protocol, "signed_reply", generous)


def forgets_its_table_in_a_crash(patch: pytest.MonkeyPatch) -> None:
    put = MemoryStore.put
    patch.setattr(MemoryStore, "put", lambda store, name, data: name == MASKED or put(store, name, data))


def draws_new_keys_after_a_crash(patch: pytest.MonkeyPatch) -> None:
    put = MemoryStore.put
    patch.setattr(MemoryStore, "put", lambda store, name, data: name == KEYS or put(store, name, data))


def masks_with_the_key_of_another_run(patch: pytest.MonkeyPatch) -> None:
    secrets = [protocol.new_secret() for _ in range(100)]
    of_sites(patch, "new_secret", lambda: secrets.pop() if len(secrets) > 1 else secrets[0])


def leaves_out_the_pairwise_masks(patch: pytest.MonkeyPatch) -> None:
    # Of every site, so the sum stays right.
    add_mask, pair_keys = protocol.add_mask, set[bytes]()
    agreed = protocol.agreed_key

    def noted(secret: bytes, peer: bytes, salt: bytes, purpose: bytes) -> bytes:
        key = agreed(secret, peer, salt, purpose)
        if purpose.startswith(b"pairwise"):
            pair_keys.add(key)
        return key

    def skipping(vector: protocol.Ring, key: bytes, *, sign: int) -> None:
        if key not in pair_keys:
            add_mask(vector, key, sign=sign)

    of_sites(patch, "agreed_key", noted)
    of_sites(patch, "add_mask", skipping)


def leaves_out_the_self_mask(patch: pytest.MonkeyPatch) -> None:
    of_sites(patch, "self_mask_key", lambda seed, salt, name: bytes(32))


def opens_for_too_few(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SiteState, "_enough", lambda state, sites, what: None)


def everybody_continues_with_one_fewer(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        AggregationTerms, "least", property(lambda terms: max(2, len(terms.sites) - terms.dropouts - 1))
    )


def server_adds_a_duplicate_twice(patch: pytest.MonkeyPatch) -> None:
    take = ServerState.take

    def again(state: ServerState, name: str, data: bytes) -> None:
        if state.step == MASKED and name in state._replies[MASKED]:
            del state._replies[MASKED][name]
        take(state, name, data)

    patch.setattr(ServerState, "take", again)


def server_forgets_who_dropped_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ServerState, "_remove_pairs", lambda state, total, gone, secret: None)


def sites_do_not_compare_what_they_saw(patch: pytest.MonkeyPatch) -> None:
    """They sign lists of survivors with sites that they have no mask for, and whatever others have seen."""
    consent = SiteState._consent

    def careless(state: SiteState, request: bytes, values: object, arrays: object) -> object:
        notes = state._notes[MASKED]
        state._notes[MASKED] = {**notes, "senders": list(state.terms.sites)}
        try:
            return consent(state, request, values, arrays)
        finally:
            state._notes[MASKED] = notes

    patch.setattr(SiteState, "_consent", careless)
    patch.setattr(protocol, "transcript", lambda terms, keys, senders: "00" * 32)


HONEST = {
    forgets_its_table_in_a_crash: "drawn twice|two tables",
    draws_new_keys_after_a_crash: "answered twice|wrong sum",
    masks_with_the_key_of_another_run: "served two runs",
    leaves_out_the_pairwise_masks: "one table was opened",
    leaves_out_the_self_mask: "wrong sum",
    everybody_continues_with_one_fewer: "too few tables",
    server_adds_a_duplicate_twice: "wrong sum",
    server_forgets_who_dropped_out: "wrong sum",
}
LYING = {
    signs_two_lists: "both kinds",
    reveals_both_kinds: "both kinds",
    opens_for_too_few: "too few tables",
    leaves_out_the_pairwise_masks: "one table was opened",
}
SPLIT = {
    sites_do_not_compare_what_they_saw: "one table was opened|too few was opened",
    leaves_out_the_pairwise_masks: "one table was opened",
    reveals_both_kinds: "both kinds",
}
CASES = [
    (schedule, *each)
    for schedule, faults in ((honest_schedule, HONEST), (lying_schedule, LYING), (split_schedule, SPLIT))
    for each in faults.items()
]


@pytest.mark.parametrize(
    ("schedule", "fault", "found"), CASES, ids=[f"{c[0].__name__}-{c[1].__name__}" for c in CASES]
)
def test_a_fault_in_the_machines_is_found(
    schedule: Callable[[int], object], fault: Fault, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)
    for seed in range(60):
        try:
            schedule(seed)
        except AssertionError as broken:
            # A fault may first show itself by its lesser consequences, such as a refused request.
            if re.search(found, str(broken)):
                return
    pytest.fail("not found")
