"""One release request: the same names and defaults in Python, command line, service and client."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any, Unpack, get_args, get_origin, get_type_hints

import pytest
from pydantic import ValidationError

import hushsum as hs
from hushsum.cli.release import release as release_command
from hushsum.client.dataset import RemoteDataset
from hushsum.methods import method_named, method_names
from hushsum.methods.one_call_methods import ReleaseKeywords
from hushsum.models import PrivateDensity
from hushsum.privacy.release_request import LOCAL, ReleaseRequest
from hushsum.privacy.spending import Booking
from hushsum.served import FreshAnswers, answer_once, serve
from hushsum.service.schemas import ConfirmedReleaseRequest, FileRequest, ReleaseClaimRequest
from hushsum.service.work.release_requests import release_request
from tests.contract.fitted_models import MODELS

REQUEST = {field.name: field.default for field in fields(ReleaseRequest)}
REMOTE = {name: default for name, default in REQUEST.items() if name not in LOCAL}
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
        typed = get_args(keywords)[0] if get_origin(keywords) is Unpack else ReleaseKeywords
        found.update(dict.fromkeys(typed.__annotations__))
    return found


def of_request(given: dict[str, Any]) -> dict[str, Any]:
    return {name: given.get(name, "missing") for name in REQUEST}


def test_python_has_them_all() -> None:
    assert of_request(parameters(hs.Tally.release)) == REQUEST
    # The one call plans the share of the count; a tally has a fixed one.
    assert of_request(parameters(hs.release)) == {**REQUEST, "count_share": None}


def test_the_client_has_what_may_be_sent() -> None:
    given = parameters(RemoteDataset.release)
    assert {name: given[name] for name in REMOTE} == REMOTE
    of_file = {"public", "decimal", "encoding"}
    assert set(given) - set(REMOTE) == {"self", "tally", "name", "idempotency_key", *of_file}


@pytest.mark.parametrize("body", [ReleaseClaimRequest, ConfirmedReleaseRequest])
def test_the_service_takes_what_may_be_sent(body: type[ReleaseClaimRequest]) -> None:
    known = {name: field.default for name, field in body.model_fields.items()}
    assert {name: known[name] for name in REMOTE} == REMOTE
    assert set(known) - set(REMOTE) <= {"tally", "name", "public", "confirm", *FileRequest.model_fields}


def test_the_service_passes_on_what_it_takes() -> None:
    given: dict[str, Any] = {
        "epsilon": 0.5,
        "delta": 1e-7,
        "rho": 0.25,
        "relation": "replace",
        "unit": "edge",
        "mechanism": "gamma radius",
        "rows": 7,
        "count_share": 0.1,
        "rounded": True,
        "population": 1000,
        "allow_large_delta": True,
    }
    assert set(given) == set(REMOTE), "a new parameter needs a value here that is not its default"
    body = ReleaseClaimRequest(tally=TALLY, name="f", **given)
    assert release_request(body) == ReleaseRequest(**given)
    assert ReleaseRequest(**given).as_json() == given


@pytest.mark.parametrize("name", sorted(LOCAL))
def test_the_service_takes_no_budget_key_or_seed_in_a_body(name: str) -> None:
    with pytest.raises(ValidationError):
        ReleaseClaimRequest.model_validate({"tally": TALLY, "name": "f", "epsilon": 1.0, name: 1})


def test_the_command_line_has_them_all() -> None:
    given = parameters(release_command)
    assert {"ledger", "dataset", "part", "to"} <= set(given), "what the command line has for budget="
    # Of files of records the share of the count is planned, as in Python.
    assert of_request({**given, "budget": None}) == {**REQUEST, "count_share": None}
    options = get_type_hints(release_command, include_extras=True)
    for name in set(REQUEST) - {"budget"}:
        # Typer reads the first argument of an annotated option as a name, though it is called default.
        declared = options[name].__metadata__[0].default
        assert declared.split("/")[0] == f"--{name.replace('_', '-')}"


def releasing_calls() -> dict[str, Callable[..., Any]]:
    methods = {f"method {name}": method_named(name).release for name in method_names()}
    models: dict[str, Callable[..., Any]] = {each.__name__: each for each in MODELS}
    choices: list[Callable[..., Any]] = [hs.choose, hs.choose_kernel, hs.private_bounds, hs.private_quantiles]
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
