"""ID tokens and keys that must not let anybody in."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from fastapi.responses import JSONResponse
from jwt.algorithms import HMACAlgorithm, RSAAlgorithm

from tests.oidc_provider import CLIENT, SECRET, SigningKey, TestProvider
from tests.unit.service.oidc_service import SignInTown, ends, lying, one_town, provider, signing

__all__ = ["lying", "one_town", "provider", "signing"]


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
            {"exp": float("inf")},
            {"exp": 10**400},
            {"iat": None},
            {"iat": float("nan")},
            {"iat": float("-inf")},
            {"nbf": float("-inf")},
            {"nbf": float("nan")},
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
        provider.keys._tried -= 31.0
        new = SigningKey("second")
        lying.provider.published.append(new.jwk)
        lying.provider.key = new
        lying.browser().sign_in()
        assert lying.provider.requested.count("keys") == 2

    def test_unknown_keys_do_not_make_the_service_ask_again_and_again(self, lying: SignInTown) -> None:
        lying.provider.key = SigningKey("unknown")
        for _ in range(3):
            ends(lying, "sign-in-refused")
        assert lying.provider.requested.count("keys") == 1

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
        reported = RSAAlgorithm.to_jwk(short.private.public_key(), as_dict=True)
        lying.provider.published = [{**reported, "kid": "first"}]
        with pytest.warns(jwt.InsecureKeyLengthWarning):
            assert "does not publish" in ends(lying, "sign-in-refused")

    @pytest.mark.parametrize("reported", [{}, {"keys": {}}, {"keys": [7, None, [], {}]}])
    def test_no_keys(
        self, lying: SignInTown, reported: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lying.provider.published = reported.get("keys", [])
        ends(lying, "sign-in-refused")
