"""Secure aggregation: right sums with any dropouts, and everything that must be refused."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hushsum as hs
from hushsum.errors import BudgetExhausted, FileRefused, PeerLost, PeerRefused, UsageError
from hushsum.files import pack, unpack
from hushsum.models import NumberColumn
from hushsum.parties import OwnRefusal
from hushsum.parties import secure_aggregation as messages
from hushsum.parties import secure_aggregation as site_module
from hushsum.parties.secure_aggregation import (
    CONSENT,
    KEYS,
    MASKED,
    OPENING,
    SHARES,
    STEPS,
    AggregationTerms,
    ServerState,
    SiteState,
    released_sum,
    split_secret,
)
from hushsum.privacy import Mechanism, ReleaseRequest
from hushsum.tally import sums_with_share
from tests.aggregation_runs import Run, identity, small_tally, small_terms, table_of
from tests.memory_store import MemoryStore


def resigned(run: Run, site: str, data: bytes, **changed: NDArray[Any]) -> bytes:
    """A reply with other arrays, signed by its site: what a malicious site can send."""
    body = data[:-64]
    kind, values, arrays = unpack(body, *STEPS)
    values = {name: each for name, each in values.items() if name not in ("terms", "sender")}
    return messages.signed_reply(run.keys[site], kind, run.terms, values, {**arrays, **changed})


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("gone", [1, 2])
def test_the_sum_is_that_of_the_survivors(step: str, gone: int) -> None:
    run = Run(small_terms(7, dropouts=2, colluding=1))
    total = run.finish(lambda now: run.terms.sites[:gone] if now == step else ())
    left = 0 if step in (CONSENT, OPENING) else gone
    assert len(run.server.survivors) == 7 - left
    assert np.array_equal(total, run.expected())


def test_different_sites_may_leave_at_different_steps() -> None:
    run = Run(small_terms(7, dropouts=3))
    leaving = {SHARES: run.terms.sites[:1], MASKED: run.terms.sites[1:2], OPENING: run.terms.sites[2:3]}
    assert np.array_equal(run.finish(lambda now: leaving.get(now, ())), run.expected())
    assert len(run.server.survivors) == 5


def test_a_masked_table_shows_nothing_of_the_table() -> None:
    run = Run(small_terms(3))
    run.until(MASKED)
    site = run.terms.sites[0]
    request = run.server.request_for(site)
    assert request is not None
    masked = messages.read_reply(run.sites[site].answer(request), MASKED, run.terms).arrays["masked"]
    # 13 words of 32 bits agree with those of the table by chance once in 10⁸ runs.
    assert not (masked == table_of(site, run.terms).astype(np.int32)).any()


def test_a_wrong_share_is_refused_and_the_right_one_still_taken() -> None:
    run = Run(small_terms(3))
    run.until(OPENING)
    site = run.terms.sites[0]
    request = run.server.request_for(site)
    assert request is not None
    reply = run.sites[site].answer(request)
    shares = messages.read_reply(reply, OPENING, run.terms).arrays["self"].copy()
    shares[1, 5] ^= 1
    with pytest.raises(PeerRefused, match="not the one that was dealt"):
        run.server.take(site, resigned(run, site, reply, self=shares))
    run.server.take(site, reply)
    assert np.array_equal(run.finish(), run.expected())


def test_shares_that_join_to_another_seed_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(small_terms(3))
    run.until(SHARES)
    liar = run.terms.sites[0]
    other = iter([b"\x07" * 32])
    with monkeypatch.context() as patch:
        # The seed is split first; then the mask key, rightly.
        patch.setattr(
            site_module, "split_secret", lambda secret, **how: split_secret(next(other, secret), **how)
        )
        run.exchange(liar)
    with pytest.raises(PeerRefused, match="do not give its secret"):
        run.finish()
    assert run.server.step == OPENING
    with pytest.raises(PeerRefused, match="not been opened"):
        _ = run.server.sum


def test_a_digest_of_a_seed_has_its_length() -> None:
    run = Run(small_terms(3))
    run.until(SHARES)
    site = run.terms.sites[0]
    request = run.server.request_for(site)
    assert request is not None
    reply = messages.read_reply(run.sites[site].answer(request), SHARES, run.terms)
    for wrong in ("", "00" * 31, 7, None):
        values = {**reply.values, "seed": wrong}
        data = messages.signed_reply(run.keys[site], SHARES, run.terms, values, reply.arrays)
        with pytest.raises(FileRefused, match="malformed"):
            run.server.take(site, data)


def test_replies_of_another_run_or_of_another_site_are_refused() -> None:
    earlier, run = Run(small_terms(3, run="earlier")), Run(small_terms(3))
    for each in (earlier, run):
        each.until(SHARES)
    one, other = run.terms.sites[:2]
    replayed = earlier.server.request_for(one)
    mine, theirs = run.server.request_for(one), run.server.request_for(other)
    assert replayed is not None
    assert mine is not None
    assert theirs is not None
    with pytest.raises(PeerRefused, match="another run"):
        run.server.take(one, earlier.sites[one].answer(replayed))
    with pytest.raises(PeerRefused, match="must not come from"):
        run.server.take(one, run.sites[other].answer(theirs))
    with pytest.raises(PeerRefused, match="another run"):
        run.sites[one].answer(replayed)
    unsigned = run.sites[one].answer(mine)[:-64] + bytes(64)
    with pytest.raises(PeerRefused, match="signature"):
        run.server.take(one, unsigned)


def test_a_sealed_share_of_another_sender_is_refused() -> None:
    run = Run(small_terms(4))
    run.until(MASKED)
    site = run.terms.sites[0]
    request = run.server.request_for(site)
    assert request is not None
    _, values, arrays = unpack(request, "deliveries")
    swapped = pack("deliveries", values, {"sealed": arrays["sealed"][[1, 0, 2]]})
    with pytest.raises(PeerRefused, match="sealed share"):
        run.sites[site].answer(swapped)
    assert run.drawn[site] == 0
    changed = arrays["sealed"].copy()
    changed[0, 0] ^= 1
    with pytest.raises(PeerRefused, match="sealed share"):
        run.sites[site].answer(pack("deliveries", values, {"sealed": changed}))


def test_both_kinds_of_shares_of_one_site_are_not_given() -> None:
    run = Run(small_terms(5, dropouts=1))
    run.until(CONSENT)
    site, victim = run.terms.sites[:2]
    everybody = pack("survivors", {"sites": list(run.terms.sites)}, {})
    without = pack("survivors", {"sites": [each for each in run.terms.sites if each != victim]}, {})
    first = run.sites[site].answer(everybody)
    with pytest.raises(PeerRefused, match="with other contents"):
        run.sites[site].answer(without)
    assert run.sites[site].answer(everybody) == first
    run.until(OPENING)
    request = run.server.request_for(site)
    assert request is not None
    opening = messages.read_reply(run.sites[site].answer(request), OPENING, run.terms)
    assert opening.arrays["self"].shape[0] == 5
    assert opening.arrays["pairwise"].shape[0] == 0


def test_a_server_that_shows_different_lists_gets_no_share() -> None:
    run = Run(small_terms(5, dropouts=1))
    run.until(CONSENT)
    sites, victim = run.terms.sites, run.terms.sites[4]
    lists = {
        site: pack("survivors", {"sites": [each for each in sites if each != victim or site > sites[1]]}, {})
        for site in sites[:4]
    }
    consents = {site: run.sites[site].answer(lists[site]) for site in sites[:4]}
    for site in sites[:4]:
        with pytest.raises(PeerRefused, match="different lists"):
            run.sites[site].answer(messages.bundle("consents", consents))
    # Those who saw one list are too few.
    with pytest.raises(PeerRefused, match="at least 4"):
        run.sites[sites[0]].answer(messages.bundle("consents", {site: consents[site] for site in sites[:2]}))


def test_a_server_that_claims_that_a_site_dropped_out_is_refused_by_it() -> None:
    run = Run(small_terms(5, dropouts=1))
    run.until(CONSENT)
    liar = pack("survivors", {"sites": list(run.terms.sites[1:])}, {})
    with pytest.raises(PeerRefused, match="claims that this site dropped out"):
        run.sites[run.terms.sites[0]].answer(liar)


def test_a_site_that_joins_twice_is_refused() -> None:
    run = Run(small_terms(3))
    site = run.terms.sites[0]
    request = run.server.request_for(site)
    assert request is not None
    first = run.sites[site].answer(request)
    run.server.take(site, first)
    run.server.take(site, first)
    run.stores[site] = MemoryStore()
    with pytest.raises(PeerRefused, match="joined before"):
        run.server.take(site, run.started(site).answer(request))
    listed = messages.bundle("roster", dict.fromkeys(run.terms.sites[:2], first))
    with pytest.raises(PeerRefused, match="names a site that it must not come from"):
        run.sites[site].answer(listed)


@pytest.mark.parametrize("step", STEPS)
def test_too_few_sites_open_nothing(step: str) -> None:
    run = Run(small_terms(5, dropouts=1))
    run.until(step)
    with pytest.raises(PeerLost, match="at least 4 sites"):
        run.step(run.terms.sites[:2])
    with pytest.raises(PeerRefused, match="not been opened"):
        _ = run.server.sum
    # Those who are late may still come.
    assert np.array_equal(run.finish(), run.expected())


def test_a_site_signs_no_list_that_is_too_short() -> None:
    run = Run(small_terms(5, dropouts=1))
    run.until(CONSENT)
    short = pack("survivors", {"sites": list(run.terms.sites[:3])}, {})
    with pytest.raises(PeerRefused, match="at least 4 sites"):
        run.sites[run.terms.sites[0]].answer(short)


def test_a_table_of_the_wrong_shape_is_refused_by_both_sides() -> None:
    run = Run(small_terms(3))
    run.until(MASKED)
    site = run.terms.sites[0]
    request = run.server.request_for(site)
    assert request is not None
    fewer = SiteState(run.keys[site], run.terms, lambda: np.zeros(5, np.int64), run.stores[site])
    with pytest.raises(OwnRefusal) as own:
        fewer.answer(request)
    assert "shape of the terms" in str(own.value.error)
    reply = run.sites[site].answer(request)
    for wrong in (
        np.zeros(5, np.int32),
        np.zeros(13, np.int64),
        np.zeros(13, np.int16),
        np.zeros(13),
        np.zeros((13, 1), np.int32),
    ):
        with pytest.raises((PeerRefused, FileRefused), match=r"shape of the terms|must be at most"):
            run.server.take(site, resigned(run, site, reply, masked=wrong))


def test_a_bundle_of_other_types_is_refused() -> None:
    run = Run(small_terms(3))
    run.until(SHARES)
    site = run.terms.sites[0]
    request = run.server.request_for(site)
    assert request is not None
    _, values, arrays = unpack(request, "roster")
    whole = arrays[site]
    wrong: list[dict[str, NDArray[Any]]] = [
        {**arrays, site: np.full(len(whole), np.nan)},
        {**arrays, site: whole.astype(np.int64)},
        {**arrays, site: whole[:-1]},
        {**arrays, site: np.empty(0, np.int8)},
        {**arrays, "nobody": whole},
        {"nobody" if each == site else each: array for each, array in arrays.items()},
        {},
    ]
    for each in wrong:
        with pytest.raises((FileRefused, PeerRefused)):
            run.sites[site].answer(pack("roster", values, each))
    assert run.sites[site].steps == 1


def test_a_tally_of_another_fingerprint_or_cap_is_refused() -> None:
    terms = small_terms(3)
    terms.check_tally(small_tally())
    kernel = hs.EuclideanKernel(dim=1, bandwidth=1.0)
    with pytest.raises(UsageError, match="fingerprint"):
        terms.check_tally(hs.race(kernel, rows=3, width=4, seed=1))
    with pytest.raises(hs.errors.HushsumError, match="unit"):
        terms.check_tally(hs.race(kernel, rows=3, width=4, max_per_unit=2))


def test_messages_that_are_too_long_are_refused_unread() -> None:
    run = Run(small_terms(3))
    site = run.terms.sites[0]
    with pytest.raises(FileRefused, match="that long"):
        run.sites[site].answer(bytes(messages.most_request(run.terms) + 1))
    with pytest.raises(FileRefused, match="at most"):
        run.server.take(site, bytes(messages.most_reply(run.terms, KEYS) + 1))


def test_terms_other_than_those_agreed_are_refused() -> None:
    run = Run(small_terms(3))
    other = small_terms(3, epsilon=5.0)
    with pytest.raises(PeerRefused, match="agreed to"):
        run.sites[run.terms.sites[0]].answer(other.to_bytes())
    with pytest.raises(PeerRefused, match="do not name"):
        SiteState(identity(9), run.terms, lambda: np.zeros(13, np.int64), MemoryStore())
    with pytest.raises(PeerRefused, match="another run"):
        SiteState(
            run.keys[run.terms.sites[0]],
            other,
            lambda: np.zeros(13, np.int64),
            run.stores[run.terms.sites[0]],
        )


def test_steps_out_of_order_are_refused() -> None:
    run = Run(small_terms(3))
    with pytest.raises(PeerRefused, match="out of order"):
        run.sites[run.terms.sites[0]].answer(pack("survivors", {"sites": list(run.terms.sites)}, {}))


@pytest.mark.parametrize("step", STEPS)
def test_both_sides_resume_after_a_crash_at_any_step(step: str) -> None:
    run = Run(small_terms(4, dropouts=1))
    run.until(step)
    site = run.terms.sites[0]
    request = run.server.request_for(site)
    assert request is not None
    before = run.sites[site].answer(request)
    run.crash_site(site)
    assert run.sites[site].answer(request) == before
    run.server.take(site, before)
    run.crash_server()
    assert site not in run.server.awaited
    run.server.take(site, before)
    assert np.array_equal(run.finish(), run.expected())
    run.crash_server()
    assert np.array_equal(run.server.sum, run.expected())
    assert set(run.drawn.values()) == {1}


class Fragile(MemoryStore):
    """A store whose machine dies when one step is to be kept, before or after it is."""

    def __init__(self, step: str, *, after: bool) -> None:
        super().__init__()
        self.step, self.after, self.alive = step, after, True

    def put(self, name: str, data: bytes) -> None:
        dies = self.alive and name == self.step
        if not dies or self.after:
            super().put(name, data)
        if dies:
            self.alive = False
            raise KeyboardInterrupt


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", STEPS)
def test_a_site_that_dies_while_it_answers_draws_and_debits_once(step: str, after: bool) -> None:
    run = Run(small_terms(4, dropouts=1))
    site = run.terms.sites[1]
    drawn: list[NDArray[np.int64]] = []
    ledger: list[bytes] = []

    def draw() -> NDArray[np.int64]:
        drawn.append(table_of(site, run.terms))
        return drawn[-1]

    def staged(make: Any) -> bytes:
        # As `hushsum.privacy.stage`: what was made is kept before anybody gets it.
        if not ledger:
            ledger.append(make())
        return ledger[0]

    store = Fragile(step, after=after)
    run.sites[site] = SiteState(run.keys[site], run.terms, draw, store, stage=staged)
    run.until(step)
    request = run.server.request_for(site)
    assert request is not None
    with pytest.raises(KeyboardInterrupt):
        run.sites[site].answer(request)
    run.sites[site] = SiteState(run.keys[site], run.terms, draw, store, stage=staged)
    assert np.array_equal(run.finish(), run.expected())
    assert len(run.server.survivors) == 4
    assert len(drawn) == len(ledger) == 1


POINTS = np.random.default_rng(0).uniform(1, 9, (300, 2))
GAUSSIAN = hs.GaussianKernel(dim=2, bandwidth=2.0)


def graph(folder: Path) -> hs.Tally:
    (folder / "edges.txt").write_text("".join(f"{u} {(7 * u + 3) % 40}\n" for u in range(40)))
    return hs.methods.count_graph(hs.records.read_edges(folder / "edges.txt"), rows=20, width=30)


LINEAR: dict[str, Callable[[Path], hs.Tally]] = {
    "hash rows": lambda _: hs.race(hs.EuclideanKernel(dim=2, bandwidth=1.0), rows=20, width=30).add(POINTS),
    "grid": lambda _: hs.grid(GAUSSIAN, bounds=(0, 10)).add(POINTS),
    "Fourier features": lambda _: hs.fourier_features(GAUSSIAN, features=20, bounds=(0, 10)).add(POINTS),
    "monomials": lambda _: hs.methods.monomials(
        hs.kernels.PolynomialKernel(dim=2, degree=2, radius=20.0)
    ).add(POINTS),
    "marginals": lambda _: hs.methods.marginals(
        [NumberColumn(0, 10, bins=3), NumberColumn(0, 10, bins=4)]
    ).add(POINTS),
    "adjacency rows": graph,
}


@pytest.mark.parametrize("promise", [{"epsilon": 5.0}, {"rho": 1.0}], ids=str)
@pytest.mark.parametrize("name", LINEAR)
def test_any_linear_basis_federates(name: str, promise: dict[str, Any], tmp_path: Path) -> None:
    tally = LINEAR[name](tmp_path)
    rows = tally.basis.shape[0]
    fingerprints = [identity(i).fingerprint for i in range(3)]
    terms = AggregationTerms.of(tally, ReleaseRequest(**promise, population=12_000), fingerprints)
    terms = AggregationTerms.from_bytes(terms.to_bytes())
    terms.check_tally(tally)
    run = Run(terms)
    drawn: list[NDArray[np.int64]] = []

    def draw() -> NDArray[np.int64]:
        drawn.append(sums_with_share(tally, rows, *terms.shares))
        return drawn[-1]

    for site in terms.sites:
        run.sites[site] = SiteState(run.keys[site], terms, draw, run.stores[site])
    total = run.finish()
    # Nothing wraps around, and nothing is in the sum but three tables with noise.
    assert np.array_equal(total, sum(drawn))
    assert len(drawn) == 3
    function = released_sum(terms, total, 3)
    law = None if "delta" in promise or "rho" in promise else "discrete laplace"
    central: Any = tally.release(**promise, rows=rows, mechanism=law)
    assert function.claim.mechanism in (central.claim.mechanism, Mechanism.of("skellam"))
    assert type(function) is type(central)
    assert function.claim.promise == central.claim.promise
    assert (function.claim.unit, function.claim.relation) == (central.claim.unit, central.claim.relation)
    # Two of three sites must suffice; Skellam noise, for small variances, costs up to 2 % of the deviation.
    assert 1.0 - 1e-6 < math.sqrt(function.noise.variance / (1.5 * central.noise.variance)) < 1.02


def test_nothing_leaves_that_the_ledger_refuses() -> None:
    run = Run(small_terms(3))
    run.until(MASKED)
    site = run.terms.sites[0]

    def refuse(make: object) -> bytes:
        raise BudgetExhausted("nothing is left")

    poor = SiteState(
        run.keys[site], run.terms, lambda: np.zeros(13, np.int64), run.stores[site], stage=refuse
    )
    request = run.server.request_for(site)
    assert request is not None
    with pytest.raises(OwnRefusal) as own:
        poor.answer(request)
    assert isinstance(own.value.error, BudgetExhausted)
    assert poor.steps == 2
    assert run.stores[site].get(MASKED) is None


def test_a_masked_table_that_was_staged_under_other_keys_is_not_sent() -> None:
    earlier, run = Run(small_terms(3)), Run(small_terms(3))
    for each in (earlier, run):
        each.until(MASKED)
    site = run.terms.sites[0]
    stale = earlier.server.request_for(site)
    request = run.server.request_for(site)
    assert stale is not None
    assert request is not None
    staged = earlier.sites[site].answer(stale)
    again = SiteState(
        run.keys[site], run.terms, lambda: np.zeros(13, np.int64), run.stores[site], stage=lambda _: staged
    )
    with pytest.raises(PeerRefused, match="under other keys"):
        again.answer(request)


def test_state_and_errors_show_no_secret() -> None:
    run = Run(small_terms(3))
    run.until(OPENING)
    for state in run.sites.values():
        assert len(repr(state)) < 60
    kept = run.stores[run.terms.sites[0]].get(KEYS)
    assert kept is not None
    with pytest.raises(FileRefused) as refused:
        run.server.take(run.terms.sites[0], kept)
    assert kept.hex()[:20] not in str(refused.value)


def test_a_site_forgets_its_secrets_when_the_run_has_ended() -> None:
    run = Run(small_terms(3))
    run.finish()
    site = run.terms.sites[0]
    run.sites[site].forget()
    assert all(run.stores[site].get(step) == b"" for step in STEPS)
    with pytest.raises(PeerRefused, match="has ended"):
        run.started(site)


def test_terms_are_read_back_and_damaged_ones_refused() -> None:
    terms = small_terms(5, dropouts=1, colluding=2)
    data = terms.to_bytes()
    assert AggregationTerms.from_bytes(data).claim == terms.claim
    for place in range(0, len(data), 7):
        with pytest.raises(FileRefused):
            AggregationTerms.from_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
    _, values, _ = unpack(data, "aggregation terms")
    wrong = [
        {"dropouts": 3},
        {"colluding": -1},
        {"sites": values["sites"][::-1]},
        {"sites": values["sites"][:1] * 5},
        {"request": {**values["request"], "epsilon": "0"}},
        {"request": {**values["request"], "epsilon": None}},
        {"request": {**values["request"], "unit": "node"}},
        {"per_unit": True},
        {"request": {**values["request"], "population": 0}},
        {"run": ""},
        {"request": {**values["request"], "relation": "any"}},
        {"request": {**values["request"], "further": 1}},
        {"further": 1},
    ]
    for change in wrong:
        with pytest.raises(FileRefused):
            AggregationTerms.from_bytes(pack("aggregation terms", {**values, **change}, {}))


@pytest.mark.parametrize(("sites", "dropouts", "colluding"), [(2, 1, 0), (3, 1, 1), (1, 0, 0), (4, 0, 4)])
def test_terms_that_could_not_be_kept_are_refused(sites: int, dropouts: int, colluding: int) -> None:
    with pytest.raises(UsageError):
        small_terms(sites, dropouts, colluding)


@pytest.mark.parametrize(
    "promise", [{"epsilon": 1.0}, {"rho": 0.02}, {"epsilon": 1.0, "delta": 1e-6}], ids=str
)
@pytest.mark.parametrize("relation", ["add/remove", "replace"])
def test_the_released_function_is_that_of_a_central_release(promise: dict[str, Any], relation: str) -> None:
    tallies = [small_tally().add([[float(i)]] * 3000) for i in range(4)]
    keys = {identity(i).fingerprint: i for i in range(4)}
    terms = AggregationTerms.of(
        tallies[0], ReleaseRequest(**promise, relation=relation), list(keys), dropouts=1, colluding=1
    )
    total = sum(sums_with_share(tallies[keys[site]], 3, *terms.shares) for site in terms.sites)
    assert isinstance(total, np.ndarray)
    function = released_sum(terms, total, 4)
    mechanism = "discrete gaussian" if "delta" in promise else None
    central: Any = tallies[0].release(**promise, relation=relation, rows=3, mechanism=mechanism)
    assert type(function) is type(central)
    assert function.claim == dataclasses.replace(
        central.claim, trust=terms.trust, assumptions=("no record is at more than one site",)
    )
    assert "against the server and up to 1 of these sites" in function.claim.sentence()
    # Two of four sites must suffice, so twice the noise of a central release is in the sum of all.
    assert function.noise.variance == pytest.approx(2 * central.noise.variance, rel=1e-3)
    assert abs(function.count - 12_000) < 8 * max(function.count_stderr, 1.0)
    assert (function.count_noise.mechanism == "none") is (relation == "replace")


def test_a_server_does_not_start_with_the_state_of_another_run() -> None:
    run = Run(small_terms(3))
    run.step()
    with pytest.raises(PeerRefused, match="another run"):
        ServerState(small_terms(3, run="other"), run.server_store)


def test_the_ring_has_room_for_the_declared_population() -> None:
    tally = hs.grid(hs.GaussianKernel(dim=1, bandwidth=1.0), bounds=(0, 10))
    fingerprints = [identity(i).fingerprint for i in range(3)]
    few = AggregationTerms.of(tally, ReleaseRequest(epsilon=1.0, population=1000), fingerprints)
    many = AggregationTerms.of(tally, ReleaseRequest(epsilon=1.0, population=10**9), fingerprints)
    assert (few.ring_bits, many.ring_bits) == (32, 64)


def test_digests_of_shares_name_owner_and_holder() -> None:
    terms = small_terms(3)
    one, other = terms.sites[:2]
    made = {
        messages.share_digest(kind, terms, *pair, bytes(33))
        for kind in ("self", "pairwise")
        for pair in ((one, other), (other, one))
    }
    assert len(made) == 4
    assert all(len(each) == hashlib.sha256().digest_size for each in made)
