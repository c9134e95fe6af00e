"""The service below a path of a proxy's, whether the proxy removes the path or not."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from hushsum.errors import UsageError
from hushsum.service.http.oidc import ProviderSettings
from hushsum.service.settings import Settings
from tests.in_process_service import Town

ROOT = "/tools/hushsum"


@pytest.mark.parametrize("prefix", [ROOT, ""], ids=["kept", "removed"])
def test_everything_works_below_the_path(found_town: Callable[..., Town], prefix: str) -> None:
    town = found_town(root_path=ROOT)
    page = town.ask(None, "GET", f"{prefix}/")
    assert page.status_code == 200
    # The page is at …/hushsum/, so a browser looks for these below it.
    for path in re.findall(r'(?:src|href)="(assets/[^"]+)"', page.text):
        assert town.ask(None, "GET", f"{prefix}/{path}").status_code == 200, path
    assert town.ok("olga", "GET", f"{prefix}/me")["name"] == "olga"
    function = town.function(town.dataset())
    requested = {"points": [[0.0, 0.0]]}
    assert len(town.ok("olga", "POST", f"{prefix}/functions/{function}/query", json=requested)["value"]) == 1
    town.refused(None, "GET", f"{prefix}/me", 401)
    described = town.ok(None, "GET", f"{prefix}/openapi.json")
    assert described["servers"] == [{"url": ROOT}]
    assert "/functions/{function}/query" in described["paths"]


def test_the_path_without_its_slash_leads_to_the_page(found_town: Callable[..., Town]) -> None:
    town = found_town(root_path=ROOT)
    answer = town.ask(None, "GET", ROOT)
    assert (answer.status_code, answer.headers["location"]) == (308, f"{ROOT}/")
    assert town.ask("olga", "GET", f"{ROOT}s/me").status_code == 404


@pytest.mark.parametrize("wrong", ["hushsum", "/hushsum/", "/", "/a b", "//x", "/x?y"])
def test_what_is_no_path(wrong: str) -> None:
    with pytest.raises(UsageError, match="HUSHSUM_ROOT_PATH"):
        Settings(root_path=wrong)


def test_sign_in_below_the_path() -> None:
    given: dict[str, Any] = {
        "oidc_issuer": "https://id.example",
        "oidc_client_id": "hushsum",
        "oidc_client_secret": "0123456789abcdef",
        "oidc_public_url": f"https://example.org{ROOT}/",
        "root_path": ROOT,
    }
    terms = ProviderSettings.of(Settings(**given))
    assert terms.redirect_uri == f"https://example.org{ROOT}/oidc/callback"
    assert terms.origin == "https://example.org"
    with pytest.raises(UsageError, match="ROOT_PATH"):
        ProviderSettings.of(Settings(**{**given, "root_path": ""}))


def test_every_secret_setting_may_be_in_a_file(tmp_path: Any) -> None:
    values = {"admin_token": "a" * 40, "database": "postgresql://user:word@host/name"}
    environment = {}
    for name, value in values.items():
        (tmp_path / name).write_text(f"{value}\n")
        environment[f"HUSHSUM_{name.upper()}_FILE"] = str(tmp_path / name)
    settings = Settings.from_environment(environment)
    assert {name: getattr(settings, name) for name in values} == values
    assert not any(value in repr(settings) for value in values.values())
    with pytest.raises(UsageError, match="not both"):
        Settings.from_environment({**environment, "HUSHSUM_ADMIN_TOKEN": "b" * 40})
    with pytest.raises(UsageError, match="HUSHSUM_DATABASE_FILE"):
        Settings.from_environment({"HUSHSUM_DATABASE_FILE": str(tmp_path / "none")})
