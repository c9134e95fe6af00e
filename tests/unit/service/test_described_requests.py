"""Requests made from the service's own description, right and wrong, with every check of schemathesis."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import openapi
from schemathesis.config import ProjectsConfig, SchemathesisConfig
from schemathesis.generation import GenerationMode

from hushsum.operations import amount
from hushsum.service import logs
from hushsum.service.http import is_public
from tests.in_process_service import SECRET, Town

PEOPLE = ("olga", "admin", "anna")

# A description in JSON Schema cannot say that epsilon and rho exclude each other, or that an upload must
# exist: a request of the right form may still break a rule. Bodies with too many values are not parsed (413).
REFUSALS = [400, 401, 403, 404, 405, 406, 409, 413, 415, 422, 428, 429]
CONFIGURATION: dict[str, Any] = {
    "checks": {
        "positive_data_acceptance": {"expected-statuses": ["2xx", 401, 403, 404, 409, 413, 415, 422]},
        "negative_data_rejection": {"expected-statuses": REFUSALS},
    },
    # Beyond any pause of a busy machine: no duration is tested here.
    "request-timeout": 600,
}
WRITE_OFF = "/datasets/{dataset}/write-offs"


def operations(town: Town) -> list[Any]:
    configuration = SchemathesisConfig(projects=ProjectsConfig.from_dict(CONFIGURATION))
    schema = openapi.from_dict(town.app.openapi(), config=configuration)
    schema.app = town.app
    found: list[Any] = list(schema.get_all_operations())
    return [each.ok() for each in found]


@pytest.mark.parametrize(
    ("number", "part", "parts"),
    [(3, 0, 1), *(pytest.param(300, part, 8, marks=pytest.mark.slow) for part in range(8))],
)
def test_every_operation_keeps_to_its_description(
    found_town: Callable[..., Town], number: int, part: int, parts: int, caplog: pytest.LogCaptureFixture
) -> None:
    """So many wrong requests to each operation and some right ones, by three people, half to real objects.

    Which ones depends on the modules that were imported before: hypothesis takes constants from their source.
    """
    caplog.set_level(logging.INFO, logs.LOGGER.name)
    town = found_town(requests_per_second=1e6, queries_per_second=1e6, failures_per_minute=1e9)
    dataset = town.dataset()
    known = {"dataset": dataset, "function": town.function(dataset), "account": "anna"}
    seen: Counter[GenerationMode] = Counter()
    written_off: list[Fraction] = []

    def ask(case: Any, real: bool, who: str) -> None:
        # The dataset is needed until the end: its owner must not delete it.
        if real and (case.method, case.path) != ("DELETE", "/datasets/{dataset}"):
            case.path_parameters |= {name: known[name] for name in case.path_parameters if name in known}
        headers = {"authorization": f"Bearer {town.tokens[who]}"}
        answer = case.call(headers=headers)
        seen[mode] += 1
        case.validate_response(answer, headers=headers)
        if case.path == WRITE_OFF and answer.status_code == 201:
            charge = {name: case.body.get(name) for name in ("epsilon", "delta", "rho")}
            written_off.append(amount(**charge).epsilon)
        assert SECRET.encode() not in answer.content
        assert town.settings.folder.encode() not in answer.content

    for operation in operations(town)[part::parts]:
        for mode in GenerationMode:
            once = given(
                case=operation.as_strategy(generation_mode=mode),
                real=st.booleans(),
                who=st.sampled_from(PEOPLE),
            )
            often = settings(
                max_examples=number if mode is GenerationMode.NEGATIVE else max(3, number // 10),
                database=None,
                derandomize=True,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            try:
                often(once(ask))()
            except Unsatisfiable:
                # Nothing about it can be wrong: it takes no parameters.
                assert is_public(operation.path), operation.label
    assert seen[GenerationMode.NEGATIVE] >= 3 * number
    spent = town.ok("olga", "GET", f"/datasets/{dataset}")["budget"]["spent"]["epsilon"]
    # Its owner may charge the dataset for what was spent elsewhere.
    assert Fraction(spent) - sum(written_off) == Fraction(1, 2), "only the release before was paid for"
    assert len(town.ok("olga", "GET", f"/datasets/{dataset}/ledger")["history"]) == 1
    lines = [logs.JsonLines().format(record) for record in caplog.records]
    assert all(json.loads(line)["event"] in ("answered", "job started", "job done") for line in lines)
    assert SECRET not in "".join(lines)
