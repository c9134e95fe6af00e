"""The description of the service is OpenAPI, and its page explains every setting, route and scope."""

from __future__ import annotations

import json
from dataclasses import fields

from docs.hooks import reference

from hushsum.service.http import SCOPES
from hushsum.service.settings import PREFIX, Settings

from .pages import DOCS

PAGE = (DOCS / "reference" / "service.md").read_text(encoding="utf-8")
DESCRIBED = json.loads(reference.openapi())


def test_it_is_openapi_3_1_and_every_refusal_is_a_problem() -> None:
    assert DESCRIBED["openapi"] == "3.1.0"
    for path, item in DESCRIBED["paths"].items():
        for operation in item.values():
            refusals = [
                answer for status, answer in operation["responses"].items() if status in ("401", "422")
            ]
            assert all("application/problem+json" in answer["content"] for answer in refusals), path


def test_every_setting_has_its_row() -> None:
    for setting in fields(Settings):
        name = f"`{PREFIX}{setting.name.upper()}`"
        rows = [line for line in PAGE.splitlines() if line.startswith(f"| {name} |")]
        assert len(rows) == 1, name
        shown = rows[0].split("|")[2].strip(" `").replace(",", "")
        assert shown == (str(setting.default) if setting.default != "" else "–"), name


def test_every_route_has_its_row() -> None:
    routes = [f"`{method.upper()} {path}`" for path, item in DESCRIBED["paths"].items() for method in item]
    rows = [line.split("|")[1].strip() for line in PAGE.splitlines() if line.startswith("| `")]
    assert [route for route in routes if rows.count(route) != 1] == []


def test_every_scope_is_explained() -> None:
    for scope in {scope for scopes in SCOPES.values() for scope in scopes}:
        assert f"`{scope}`" in PAGE


def test_every_secret_setting_has_its_file_variant() -> None:
    secret = [each.name.upper() for each in fields(Settings) if each.metadata["secret"]]
    assert len(secret) >= 3
    for name in secret:
        assert f"`{PREFIX}{name}_FILE`" in PAGE
