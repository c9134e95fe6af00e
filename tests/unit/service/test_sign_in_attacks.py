"""What must not let anybody in."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from fastapi.responses import JSONResponse, RedirectResponse, Response
from jwt.algorithms import HMACAlgorithm, RSAAlgorithm

from hushsum.service.app import create_app
from hushsum.service.oidc.provider import Kept
from hushsum.service.problems import Refusal
from tests.oidc_provider import CLIENT, SECRET, SigningKey, TestProvider, running
from tests.service_town import Town
from tests.unit.service.oidc_town import SignInTown, lying, one_town, provider, settings_for, signing

__all__ = ["lying", "one_town", "provider", "signing"]


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


def stale(answer: httpx.Response) -> bool:
    return answer.status_code == 400 and answer.json()["type"].endswith(":sign-in-stale")


class TestTheBrowser:
    def test_login_csrf(self, signing: SignInTown) -> None:
        attacker, victim = signing.browser(), signing.browser()
        url = attacker.begin()
        assert stale(victim.come_back(url))
        victim.begin()
        assert stale(victim.come_back(url))
        assert "token" not in signing.provider.asked

    @pytest.mark.parametrize("state", ["", "&state=", "&state=x", "&state=%ff%00", "&state=" + "A" * 43])
    def test_a_wrong_state(self, signing: SignInTown, state: str) -> None:
        browser = signing.browser()
        browser.begin()
        assert stale(browser.come_back(f"/oidc/callback?code=x{state}"))
        assert "token" not in signing.provider.asked

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


def unsigned(claims: dict[str, Any]) -> str:
    return jwt.encode(claims, "", "none")


def signed_with_the_public_key(provider: TestProvider, form: str) -> Callable[[dict[str, Any]], str]:
    """HS256, with the published key as the shared secret: the oldest trick against a careless check."""
    public = provider.key.private.public_key()
    secret = (
        public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        if form == "pem"
        else json.dumps(provider.key.jwk).encode()
    )

    algorithm = HMACAlgorithm(HMACAlgorithm.SHA256)
    return lambda claims: by_hand({"alg": "HS256", "kid": "first"}, claims, algorithm, secret)


def by_hand(header: dict[str, Any], claims: dict[str, Any], algorithm: Any, key: Any) -> str:
    """A signed token with whatever header; libraries refuse to make some of them."""

    def encoded(data: bytes) -> str:
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

    head = f"{encoded(json.dumps(header).encode())}.{encoded(json.dumps(claims).encode())}"
    return f"{head}.{encoded(algorithm.sign(head.encode(), key))}"


class TestTheIdToken:
    def test_unsigned(self, lying: SignInTown) -> None:
        lying.provider.sign = unsigned
        assert "algorithm" in ends(lying, "sign-in-refused")

    @pytest.mark.parametrize("form", ["pem", "jwk"])
    def test_signed_with_the_public_key(self, lying: SignInTown, form: str) -> None:
        lying.provider.sign = signed_with_the_public_key(lying.provider, form)
        assert "algorithm" in ends(lying, "sign-in-refused")

    def test_signed_with_the_client_secret(self, lying: SignInTown) -> None:
        lying.provider.sign = lambda claims: jwt.encode(claims, SECRET * 2, "HS256", {"kid": "first"})
        assert "algorithm" in ends(lying, "sign-in-refused")

    @pytest.mark.parametrize("algorithm", ["RS512", "ES384", "none ", "nOnE", "", None, 7])
    def test_other_algorithms(self, lying: SignInTown, algorithm: object) -> None:
        def sign(claims: dict[str, Any]) -> str:
            _, payload, mark = lying.provider.key.sign(claims).split(".")
            header = json.dumps({"alg": algorithm, "kid": "first"}).encode()
            return ".".join((base64.urlsafe_b64encode(header).rstrip(b"=").decode(), payload, mark))

        lying.provider.sign = sign
        ends(lying, "sign-in-refused")

    def test_somebody_elses_key_under_the_same_id(self, lying: SignInTown) -> None:
        lying.provider.sign = SigningKey("first").sign
        assert "signature" in ends(lying, "sign-in-refused")

    def test_a_key_sent_along(self, lying: SignInTown) -> None:
        own = SigningKey("own")
        lying.provider.sign = lambda claims: own.sign(claims, jwk=own.jwk, jku=f"{lying.provider.url}/own")
        assert "does not publish" in ends(lying, "sign-in-refused")

    @pytest.mark.parametrize(
        "header",
        [
            {"kid": "first", "crit": ["x"], "x": 1},
            {"kid": "first", "crit": ["b64"], "b64": True},
            {"kid": "first", "b64": True},
            {"kid": 7},
            {},
        ],
        ids=str,
    )
    def test_headers_that_change_the_meaning(self, lying: SignInTown, header: dict[str, Any]) -> None:
        """Without a key id there are two keys that it could be."""
        key, algorithm = lying.provider.key, RSAAlgorithm(RSAAlgorithm.SHA256)
        lying.provider.published = [key.jwk, SigningKey("second").jwk]
        lying.provider.sign = lambda claims: by_hand(
            {"alg": "RS256", **header}, claims, algorithm, key.private
        )
        ends(lying, "sign-in-refused")

    def test_the_same_by_hand_with_a_plain_header(self, lying: SignInTown) -> None:
        key, algorithm = lying.provider.key, RSAAlgorithm(RSAAlgorithm.SHA256)
        lying.provider.sign = lambda claims: by_hand({"alg": "RS256"}, claims, algorithm, key.private)
        lying.browser().sign_in()

    def test_changed_claims(self, lying: SignInTown) -> None:
        def sign(claims: dict[str, Any]) -> str:
            head, _, mark = lying.provider.key.sign({**claims, "email": "otto@example.org"}).split(".")
            payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
            return f"{head}.{payload}.{mark}"

        lying.provider.sign = sign
        assert "signature" in ends(lying, "sign-in-refused")

    @pytest.mark.parametrize(
        "changes",
        [
            {"iss": "https://evil.example"},
            {"iss": None},
            {"iss": ["x"]},
            {"aud": "another"},
            {"aud": None},
            {"aud": [CLIENT, "another"]},
            {"aud": [CLIENT, "another"], "azp": "another"},
            {"azp": "another"},
            {"nonce": "another"},
            {"nonce": None},
            {"nonce": 7},
            {"sub": None},
            {"sub": ""},
            {"sub": 7},
            {"sub": "x" * 256},
            {"email": None},
            {"email": ["olga@example.org"]},
            {"email": "ölga@example.org"},
            {"exp": None},
            {"exp": "9999999999"},
            {"exp": True},
            {"exp": float("nan")},
            {"iat": None},
            {"iat": float("nan")},
        ],
        ids=str,
    )
    def test_wrong_claims(self, lying: SignInTown, changes: dict[str, Any]) -> None:
        lying.provider.changes = changes
        ends(lying, "sign-in-refused")

    @pytest.mark.parametrize(
        ("name", "seconds", "good"),
        [
            ("exp", -120, False),
            ("exp", -30, True),
            ("iat", 120, False),
            ("iat", 30, True),
            ("iat", -120, False),
            ("nbf", 120, False),
            ("nbf", 30, True),
        ],
    )
    def test_times_with_a_minute_of_skew(
        self, lying: SignInTown, name: str, seconds: int, good: bool
    ) -> None:
        lying.provider.changes = {name: int(time.time()) + seconds}
        if good:
            lying.browser().sign_in()
        else:
            ends(lying, "sign-in-refused")

    def test_several_audiences_issued_to_us(self, lying: SignInTown) -> None:
        lying.provider.changes = {"aud": ["another", CLIENT], "azp": CLIENT}
        lying.browser().sign_in()

    @pytest.mark.parametrize(
        "token", ["", "x", "a.b.c", "..", "x" * 40_000, 7, None, "e30.e30.e30", "W10.W10.W10"]
    )
    def test_no_token_at_all(self, lying: SignInTown, token: object) -> None:
        lying.provider.token_answer = JSONResponse({"id_token": token})
        ends(lying, "sign-in-refused")


class TestTheKeys:
    def test_a_new_key_is_found_once(self, lying: SignInTown) -> None:
        lying.browser().sign_in()
        provider = lying.town.app.state.context.sign_in.provider
        provider._keys._tried -= 31.0
        new = SigningKey("second")
        lying.provider.published.append(new.jwk)
        lying.provider.key = new
        lying.browser().sign_in()
        assert lying.provider.asked.count("keys") == 2

    def test_unknown_keys_do_not_make_the_service_ask_again_and_again(self, lying: SignInTown) -> None:
        lying.provider.key = SigningKey("unknown")
        for _ in range(3):
            ends(lying, "sign-in-refused")
        assert lying.provider.asked.count("keys") == 1

    @pytest.mark.parametrize(
        "change",
        [{"use": "enc"}, {"alg": "PS256"}, {"kty": "oct", "k": "AAAA"}, {"n": "!"}, {"crv": "P-256"}],
    )
    def test_keys_for_something_else(self, lying: SignInTown, change: dict[str, Any]) -> None:
        lying.provider.published = [{**lying.provider.key.jwk, **change}]
        assert "does not publish" in ends(lying, "sign-in-refused")

    def test_short_keys(self, lying: SignInTown) -> None:
        short = lying.provider.key = SigningKey("first")
        short.private = rsa.generate_private_key(public_exponent=65537, key_size=1024)
        told = RSAAlgorithm.to_jwk(short.private.public_key(), as_dict=True)
        lying.provider.published = [{**told, "kid": "first"}]
        with pytest.warns(jwt.InsecureKeyLengthWarning):
            assert "does not publish" in ends(lying, "sign-in-refused")

    @pytest.mark.parametrize("told", [{}, {"keys": {}}, {"keys": [7, None, [], {}]}])
    def test_no_keys(self, lying: SignInTown, told: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
        lying.provider.published = told.get("keys", [])
        ends(lying, "sign-in-refused")


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

    def test_a_provider_that_is_away_is_not_asked_for_every_request(self, lying: SignInTown) -> None:
        lying.provider.metadata_answer = JSONResponse({}, 500)
        for _ in range(4):
            self.start(lying)
        assert lying.provider.asked == ["metadata"]

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
        assert "token" not in lying.provider.asked
        assert browser.come_back(str(url.copy_set_param("iss", lying.provider.url))).status_code == 303

    def test_an_issuer_that_promises_its_name_must_give_it(self, lying: SignInTown) -> None:
        lying.provider.metadata = {"authorization_response_iss_parameter_supported": True}
        ends(lying, "sign-in-refused")
        assert "token" not in lying.provider.asked

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

    kept = Kept(read, lambda: now[0])
    assert (kept.get(), kept.again(), kept.get()) == (1, 1, 1)
    now[0] = 30.0
    assert (kept.again(), kept.again()) == (2, 2)
    now[0] = 3629.0
    assert kept.get() == 2
    now[0] = 4000.0
    for _ in range(2):
        with pytest.raises(Refusal):
            kept.get()
    now[0] = 4030.0
    assert kept.get() == 4
    assert reads == [0.0, 30.0, 4000.0, 4030.0]
