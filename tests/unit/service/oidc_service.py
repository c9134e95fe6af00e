"""A town whose people may sign in with a provider."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hushsum.service.http.oidc import SignIn
from tests.in_process_service import Town
from tests.oidc_provider import CLIENT, SECRET, Browser, TestProvider, running

ADDRESS = "https://hush.example"


class SignInTown:
    """The town, the provider, and an account that is linked to the provider's person."""

    def __init__(self, town: Town, provider: TestProvider) -> None:
        self.town = town
        self.provider = provider

    def browser(self) -> Browser:
        return Browser(self.town.app, ADDRESS)

    def link(self, who: str, subject: str) -> Any:
        path = f"/accounts/{self.town.ids[who]}/identity"
        return self.town.ok("admin", "POST", path, 201, json={"subject": subject})

    def actions(self) -> list[str]:
        return [line["action"] for line in self.town.ok("admin", "GET", "/log?limit=1000")]


def settings_for(provider: TestProvider, **others: Any) -> dict[str, Any]:
    return {
        "oidc_issuer": provider.url,
        "oidc_client_id": CLIENT,
        "oidc_client_secret": SECRET,
        "oidc_public_url": ADDRESS,
        "oidc_name": "Example",
        "failures_per_minute": 1000.0,
        **others,
    }


@pytest.fixture
def provider() -> Iterator[TestProvider]:
    with running(TestProvider()) as made:
        yield made


@pytest.fixture(scope="module")
def one_town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SignInTown]:
    """For all tests of a module that let nobody in."""
    folder = tmp_path_factory.mktemp("signing")
    with pytest.MonkeyPatch.context() as patch, running(TestProvider()) as provider:
        patch.setenv("HUSHSUM_STATE", str(folder / "state"))
        made = SignInTown(Town(folder, **settings_for(provider)), provider)
        made.link("olga", "olga@example.org")
        yield made


@pytest.fixture
def lying(one_town: SignInTown) -> SignInTown:
    """The same town with an honest provider, not contacted yet; the test makes it lie."""
    one_town.provider.be_honest()
    context = one_town.town.app.state.context
    context.sign_in = SignIn(context.sign_in.terms, 1000.0)
    return one_town


@pytest.fixture
def signing(found_town: Callable[..., Town], provider: TestProvider) -> SignInTown:
    made = SignInTown(found_town(**settings_for(provider)), provider)
    made.link("olga", "olga@example.org")
    return made


def ends(signing: SignInTown, kind: str, status: int = 403) -> str:
    """Sign in as far as it goes; it must end at the callback, with nothing to finish."""
    before = signing.actions().count("signed in")
    browser = signing.browser()
    answer = browser.come_back(browser.begin())
    assert (answer.status_code, answer.json()["type"].rsplit(":")[-1]) == (status, kind), answer.text
    assert "set-cookie" not in answer.headers
    assert browser.finish().status_code == 401
    assert signing.actions().count("signed in") == before
    return str(answer.json()["detail"])
