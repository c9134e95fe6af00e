"""What every call that releases takes of a ledger, and what the service takes in no body."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Unpack, get_args, get_origin, get_type_hints

import pytest
from pydantic import ValidationError

import hushsum as hs
from hushsum.errors import ClaimError
from hushsum.kernels import GaussianKernel
from hushsum.methods import method_named, method_names
from hushsum.models import PrivateDensity
from hushsum.planning import MethodSpec
from hushsum.privacy import Booking, BookingKeywords, ReleaseKeywords, ReleaseRequest, Statement
from hushsum.secret_functions import FreshAnswers, answer_once, density_function, serve
from hushsum.service.schemas import ReleaseClaimRequest
from tests.contract.fitted_models import MODELS

TALLY = "ta_0123456789abcdef"
BOOKED = ("budget", "idempotency_key")


def parameters(call: Callable[..., Any]) -> dict[str, Any]:
    """Names and defaults; those of a typed dictionary of keywords have None."""
    found: dict[str, Any] = {}
    for each in inspect.signature(call).parameters.values():
        if each.kind is not inspect.Parameter.VAR_KEYWORD:
            found[each.name] = each.default
            continue
        keywords = get_type_hints(call).get(each.name)
        # A registered tally takes the same ones, mixed with its own sizes.
        typed = get_args(keywords)[0] if get_origin(keywords) is Unpack else BookingKeywords
        found.update(dict.fromkeys(typed.__annotations__))
    return found


@pytest.mark.parametrize("name", [*BOOKED, "insecure_noise_seed"])
def test_the_service_takes_no_budget_key_or_seed_in_a_body(name: str) -> None:
    with pytest.raises(ValidationError):
        ReleaseClaimRequest.model_validate({"tally": TALLY, "name": "f", "epsilon": 1.0, name: 1})


def test_calls_take_every_field_of_the_request_by_name() -> None:
    flat = {each.name for each in (*fields(ReleaseRequest), *fields(Statement))} - {"statement"}
    assert set(ReleaseKeywords.__annotations__) == flat


@pytest.mark.parametrize("call", [hs.Tally.release, hs.release, hs.stream], ids=lambda call: call.__name__)
def test_help_shows_the_defaults_of_the_request_and_other_names_are_refused(call: Callable[..., Any]) -> None:
    given, declared = parameters(call), {each.name: each.default for each in fields(ReleaseRequest)}
    assert {name: given.get(name, "missing") for name in ReleaseKeywords.__annotations__} == {
        name: declared.get(name) for name in ReleaseKeywords.__annotations__
    }
    tally = hs.race(hs.EuclideanKernel(dim=1, bandwidth=1.0), rows=10)
    more: Any = {hs.Tally.release: {}, hs.release: {"bandwidth": 1.0}, hs.stream: {"horizon": 2}}
    with pytest.raises(TypeError, match="epsilom"):
        call(tally, epsilom=1.0, **more[call])


def test_the_release_of_records_takes_every_field_of_its_method() -> None:
    given = parameters(hs.release)
    declared = {each.name: each.default for each in fields(MethodSpec)}
    assert {name: given.get(name, "missing") for name in declared} == declared


def releasing_calls() -> dict[str, Callable[..., Any]]:
    methods = {f"method {name}": method_named(name).release for name in method_names()}
    models: dict[str, Callable[..., Any]] = {each.__name__: each for each in MODELS}
    choices: list[Callable[..., Any]] = [
        hs.methods.choose,
        hs.methods.choose_kernel,
        hs.private_bounds,
        hs.private_quantiles,
    ]
    served: list[Callable[..., Any]] = [serve, answer_once, FreshAnswers]
    return {**methods, **models, **{each.__qualname__: each for each in [*choices, *served]}}


@pytest.mark.parametrize("name", releasing_calls())
def test_every_releasing_call_takes_a_budget_and_a_key_and_nothing_else_of_a_ledger(name: str) -> None:
    given = parameters(releasing_calls()[name])
    assert {each: given.get(each, "missing") for each in BOOKED} == dict.fromkeys(BOOKED)
    assert not {"ledger", "dataset", "key"} & set(given)


def test_nothing_is_recorded_without_a_budget() -> None:
    assert Booking.of(None, None) is None
    assert PrivateDensity().budget is None


def test_the_claim_is_that_of_the_call_and_never_a_weaker_default_of_the_method() -> None:
    rows: Any = [[0.1], [0.4], [0.9]] * 100
    given: Any = {"method": "kme", "bandwidth": 0.2, "bounds": (0, 1)}
    with pytest.raises(ClaimError, match="delta"):
        hs.release(rows, epsilon=1.0, **given)
    with pytest.raises(ClaimError, match="replace"):
        hs.release(rows, epsilon=1.0, delta=1e-6, **given)
    claim = hs.release(rows, epsilon=1.0, delta=1e-6, relation="replace", **given).claim
    assert (claim.relation.value, claim.delta) == ("replace", 1e-6)


@pytest.mark.parametrize("name", ["relation", "population", "rows"])
def test_a_served_function_takes_no_other_keywords_of_a_release(name: str) -> None:
    function = density_function([[0.0]], GaussianKernel(dim=1, bandwidth=1.0), bounds=(0, 1))
    other: Any = {name: 1}
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
        serve(function, epsilon=1.0, delta=1e-6, **other)
