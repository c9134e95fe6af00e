"""What must not let anybody in: browsers that did not begin, and providers that misbehave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest
from fastapi.responses import JSONResponse, RedirectResponse, Response

from hushsum.service.http import Refusal, create_app
from hushsum.service.http.oidc import CachedDocument
from tests.in_process_service import Town
from tests.oidc_provider import TestProvider, running
from tests.unit.service.oidc_service import SignInTown, ends, lying, one_town, provider, settings_for, signing

__all__ = ["lying", "one_town", "provider", "signing"]


def stale(answer: httpx.Response) -> bool:
    return answer.status_code == 400 and answer.json()["type"].endswith(":sign-in-stale")


class TestTheBrowser:
    def test_login_csrf(self, signing: SignInTown) -> None:
        attacker, victim = signing.browser(), signing.browser()
        url = attacker.begin()
        assert stale(victim.come_back(url))
        victim.begin()
        assert stale(victim.come_back(url))
        assert "token" not in signing.provider.requested

    @pytest.mark.parametrize("state", ["", "&state=", "&state=x", "&state=%ff%00", "&state=" + "A" * 43])
    def test_a_wrong_state(self, signing: SignInTown, state: str) -> None:
        browser = signing.browser()
        browser.begin()
        assert stale(browser.come_back(f"/oidc/callback?code=x{state}"))
        assert "token" not in signing.provider.requested

    def test_a_state_of_another_time(self, signing: SignInTown) -> None:
        browser = signing.browser()
        url = browser.begin()
        name = "__Host-hushsum-sign-in"
        at, _, secret = browser.cookies[name].partition(".")
        for wrong in (
            f"{int(at) - 601}.{secret}",
            f"{int(at) + 3600}.{secret}",
            f"{int(at) - 1}.{secret}",
            "",
        ):
            browser.cookies.delete(name)
            browser.cookies.set(name, wrong, domain="hush.example", path="/")
            assert stale(browser.come_back(url))

    def test_the_same_callback_twice(self, signing: SignInTown) -> None:
        browser = signing.browser()
        url = browser.begin()
        kept = dict(browser.cookies)
        assert browser.come_back(url).status_code == 303
        assert stale(browser.come_back(url))
        thief = signing.browser()
        for name, value in kept.items():
            thief.cookies.set(name, value, domain="hush.example", path="/")
        assert thief.come_back(url).status_code == 403

    def test_the_same_callback_twice_at_a_provider_that_takes_codes_twice(self, signing: SignInTown) -> None:
        class Forgetful(dict[str, dict[str, str]]):
            def pop(self, key: str, *_: Any) -> Any:
                return self.get(key)

        signing.provider.codes = Forgetful()
        browser, thief = signing.browser(), signing.browser()
        url = browser.begin()
        for name, value in dict(browser.cookies).items():
            thief.cookies.set(name, value, domain="hush.example", path="/")
        assert browser.come_back(url).status_code == 303
        assert stale(thief.come_back(url))
        assert thief.finish().status_code == 401
        assert browser.finish().status_code == 201

    def test_a_stolen_code_in_another_sign_in(self, signing: SignInTown) -> None:
        victim, thief = signing.browser(), signing.browser()
        code = httpx.URL(victim.begin()).params["code"]
        own = httpx.URL(thief.begin())
        answer = thief.come_back(str(own.copy_set_param("code", code)))
        assert answer.status_code == 403

    def test_finishing_twice(self, signing: SignInTown) -> None:
        browser = signing.browser()
        browser.come_back(browser.begin())
        kept = dict(browser.cookies)
        assert browser.finish().status_code == 201
        for name, value in kept.items():
            browser.cookies.set(name, value, domain="hush.example", path="/")
        assert browser.finish().status_code == 401

    @pytest.mark.parametrize(
        "headers",
        [
            {"x-requested-with": "XMLHttpRequest"},
            {"x-requested-with": ""},
            {"sec-fetch-site": "cross-site"},
            {"sec-fetch-site": "same-site"},
            {"origin": "https://evil.example"},
            {"origin": "null"},
        ],
    )
    def test_finishing_from_another_site(self, signing: SignInTown, headers: dict[str, str]) -> None:
        browser = signing.browser()
        browser.come_back(browser.begin())
        assert browser.finish(**headers).status_code == 403
        assert browser.ask("POST", "/oidc/finish").status_code == 403
        assert browser.ask("GET", "/oidc/finish").status_code == 405
        assert browser.finish(origin="https://hush.example").status_code == 201

    @pytest.mark.parametrize("name", ["next", "redirect_uri", "return_to", "url"])
    def test_open_redirects(self, signing: SignInTown, name: str) -> None:
        browser = signing.browser()
        started = browser.ask("GET", f"/oidc/start?{name}=https://evil.example/")
        assert "evil.example" not in started.headers["location"]
        url = str(httpx.get(started.headers["location"]).headers["location"])
        answer = browser.ask(
            "GET",
            f"{url}&{name}=https://evil.example/",
            headers={"host": "evil.example", "x-forwarded-host": "e"},
        )
        assert answer.headers["location"] == "/#signed-in"

    def test_whoever_fails_too_often_must_wait(
        self, found_town: Callable[..., Town], provider: TestProvider
    ) -> None:
        town = found_town(**settings_for(provider, failures_per_minute=3.0))
        browser = SignInTown(town, provider).browser()
        statuses = [browser.come_back("/oidc/callback?state=x").status_code for _ in range(5)]
        assert statuses == [400, 400, 400, 429, 429]
        assert browser.finish().status_code == 429
        # Whoever does prove it is let in, whoever else has failed from the same address.
        honest = SignInTown(town, provider).browser()
        assert honest.come_back(honest.begin()).status_code != 429


class TestTheProvider:
    def start(self, lying: SignInTown) -> str:
        answer = lying.browser().ask("GET", "/oidc/start")
        assert answer.status_code == 503
        assert answer.headers["retry-after"]
        assert "set-cookie" not in answer.headers
        return str(answer.json()["detail"])

    @pytest.mark.parametrize(
        "changes",
        [
            {"issuer": "https://evil.example"},
            {"issuer": None},
            {"authorization_endpoint": "http://evil.example/authorize"},
            {"authorization_endpoint": "javascript:alert(1)"},
            {"token_endpoint": "http://evil.example/token"},
            {"token_endpoint": None},
            {"jwks_uri": "file:///etc/passwd"},
            {"code_challenge_methods_supported": ["plain"]},
        ],
        ids=str,
    )
    def test_descriptions_that_are_not_believed(self, lying: SignInTown, changes: dict[str, Any]) -> None:
        lying.provider.metadata = changes
        self.start(lying)

    @pytest.mark.parametrize(
        ("answer", "word"),
        [
            (Response("not json"), "JSON"),
            (Response("[]"), "object"),
            (Response("[" * 100_000), "JSON"),
            (Response("x" * 300_000), "too much"),
            (Response("{}", headers={"content-encoding": "gzip"}), "compressed"),
            (RedirectResponse("http://localhost:1/"), "redirect"),
            (JSONResponse({}, 500), "configured issuer"),
        ],
    )
    def test_answers_that_are_not_read(self, lying: SignInTown, answer: Response, word: str) -> None:
        lying.provider.metadata_answer = answer
        assert word in self.start(lying)

    def test_a_provider_that_is_away_is_not_contacted_for_every_request(self, lying: SignInTown) -> None:
        lying.provider.metadata_answer = JSONResponse({}, 500)
        for _ in range(4):
            self.start(lying)
        assert lying.provider.requested == ["metadata"]

    def test_nobody_there(self, found_town: Callable[..., Town], provider: TestProvider) -> None:
        town = found_town(**settings_for(provider, oidc_issuer="http://127.0.0.1:1"))
        assert "cannot be reached" in self.start(SignInTown(town, provider))
        assert town.ok(None, "GET", "/sign-in")["oidc"]

    def test_a_failing_token_endpoint(self, lying: SignInTown) -> None:
        lying.provider.token_answer = JSONResponse({}, 500)
        ends(lying, "provider-unavailable", 503)

    def test_an_error_of_the_provider_is_not_repeated(self, lying: SignInTown) -> None:
        browser = lying.browser()
        url = httpx.URL(browser.begin()).copy_remove_param("code")
        answer = browser.come_back(str(url.copy_set_param("error", "access_denied<script>")))
        assert answer.status_code == 403
        assert "script" not in answer.text

    def test_mix_up(self, lying: SignInTown) -> None:
        """RFC 9207: an answer that names another issuer, or none where one was promised, is not ours."""
        browser = lying.browser()
        url = httpx.URL(browser.begin())
        assert browser.come_back(str(url.copy_set_param("iss", "https://evil.example"))).status_code == 403
        assert "token" not in lying.provider.requested
        assert browser.come_back(str(url.copy_set_param("iss", lying.provider.url))).status_code == 303

    def test_an_issuer_that_promises_its_name_must_give_it(self, lying: SignInTown) -> None:
        lying.provider.metadata = {"authorization_response_iss_parameter_supported": True}
        ends(lying, "sign-in-refused")
        assert "token" not in lying.provider.requested

    def test_a_sign_in_begun_with_another_provider(self, signing: SignInTown) -> None:
        with running(TestProvider()) as other:
            browser = signing.browser()
            url = browser.begin()
            settings = settings_for(other, folder=str(signing.town.settings.folder))
            browser._app = create_app(replace(signing.town.settings, **settings))
            assert stale(browser.come_back(url))
            # And whoever has the same address at another provider is somebody else.
            answer = browser.come_back(browser.begin())
            assert answer.json()["type"].endswith(":unknown-identity")


def test_a_kept_document_is_fetched_again_when_it_is_old() -> None:
    now, reads = [0.0], []

    def read() -> int:
        reads.append(now[0])
        if now[0] == 4000.0:
            raise Refusal(503, "x", "y")
        return len(reads)

    kept = CachedDocument(read, lambda: now[0])
    assert (kept.get(), kept.get(newer=True), kept.get()) == (1, 1, 1)
    now[0] = 30.0
    assert (kept.get(newer=True), kept.get(newer=True)) == (2, 2)
    now[0] = 3629.0
    assert kept.get() == 2
    now[0] = 4000.0
    for _ in range(2):
        with pytest.raises(Refusal):
            kept.get()
    now[0] = 4030.0
    assert kept.get() == 4
    assert reads == [0.0, 30.0, 4000.0, 4030.0]
