"""What every rule of summarization keeps, whatever it asks for."""

from __future__ import annotations

import numpy as np
import pytest

from hushsum.parties.summarization import (
    BID,
    RULES,
    CuratorState,
    answers_rho,
    claims_of,
    sum_squared,
    sum_variance,
)
from tests.unit.parties.summarization.neighbouring_runs import parties, terms_of


@pytest.mark.parametrize("rule", RULES)
class TestRule:
    def test_broadcasts_are_a_function_of_the_noisy_outputs_alone(self, rule: str) -> None:
        """A curator that was sent nothing, but knows the outputs, says the same."""
        curator, owners = parties(terms_of(rule))
        while not curator.done:
            curator.advance()
            said = curator.outgoing()
            first = next(iter(said.values()))
            if len({each.to_bytes() for each in said.values()}) == 1 and first.phase != "deliver":
                blind = CuratorState(curator.terms, curator.target, insecure_noise_seed=99)
                blind._outputs, blind._step = curator._outputs.copy(), curator._step - 1
                assert blind._public_broadcast().to_bytes() == first.to_bytes()
            for name, each in said.items():
                curator.take(owners[name].answer(each))

    def test_all_owners_are_sent_the_same_except_whom_an_auction_asks(self, rule: str) -> None:
        curator, owners = parties(terms_of(rule))
        while not curator.done:
            curator.advance()
            said = curator.outgoing()
            assert len({each.direction.tobytes() for each in said.values()}) == 1
            if next(iter(said.values())).phase in ("send", BID):
                assert len({each.to_bytes() for each in said.values()}) == 1
            for name, each in said.items():
                curator.take(owners[name].answer(each))

    def test_noise_and_answers_spend_exactly_what_is_claimed(self, rule: str) -> None:
        curator, _ = parties(terms_of(rule))
        terms = curator.terms
        spent = sum_squared(terms) / (2 * sum_variance(terms)) + answers_rho(terms)
        assert spent == terms.rho == claims_of(curator).owners.promise.rho

    def test_the_noise_of_a_round_is_drawn_anew_in_another_run(self, rule: str) -> None:
        """False alarms: two draws of 41 cells with σ > 1000 agree with probability below 1e-100."""
        shown = []
        for _ in range(2):
            curator, owners = parties(terms_of(rule))
            curator._seed = None
            while len(curator._outputs) < 2:
                curator.advance()
                for name, each in curator.outgoing().items():
                    curator.take(owners[name].answer(each))
            shown.append(curator._outputs)
        assert not np.array_equal(shown[0], shown[1])
