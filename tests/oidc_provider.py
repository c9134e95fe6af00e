"""A sign-in provider that signs for real, and lies when a test tells it to."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, parse_qsl, unquote_plus, urlencode, urlsplit

import httpx
import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from tests.in_process_service import listening

CLIENT = "hushsum-of-the-tests"
SECRET = "a secret: of the/client"


class SigningKey:
    """A private key with an id and an algorithm."""

    def __init__(self, kid: str, algorithm: str = "RS256") -> None:
        self.kid = kid
        self.algorithm = algorithm
        self.private: Any
        if algorithm == "ES256":
            self.private = ec.generate_private_key(ec.SECP256R1())
            reported = ECAlgorithm.to_jwk(self.private.public_key(), as_dict=True)
        elif algorithm == "EdDSA":
            self.private = ed25519.Ed25519PrivateKey.generate()
            reported = OKPAlgorithm.to_jwk(self.private.public_key(), as_dict=True)
        else:
            self.private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
            reported = RSAAlgorithm.to_jwk(self.private.public_key(), as_dict=True)
        reported.pop("key_ops", None)
        self.jwk: dict[str, Any] = {**reported, "kid": kid, "alg": algorithm, "use": "sig"}

    def sign(self, claims: dict[str, Any], **headers: Any) -> str:
        # Not jwt.encode, which refuses to sign some of the lies.
        payload = json.dumps(claims).encode()
        return jwt.PyJWS().encode(payload, self.private, self.algorithm, {"kid": self.kid, **headers})


@dataclass
class Person:
    """Who sits at the browser, as the provider sees it."""

    sub: str = "248289761001"
    claims: dict[str, Any] = field(
        default_factory=lambda: {"email": "Olga@Example.org", "email_verified": True}
    )


class TestProvider:
    """Discovery, keys, authorization and tokens; every answer can be bent."""

    __test__ = False

    def __init__(self) -> None:
        self.url = ""
        self._first = SigningKey("first")
        self.be_honest()
        self.app = FastAPI()
        self.app.get("/.well-known/openid-configuration")(self.describe)
        self.app.get("/keys")(self.keys)
        self.app.get("/authorize")(self.authorize)
        self.app.post("/token")(self.token)

    def be_honest(self) -> None:
        """Forget everything but the address and the first key."""
        self.key = self._first
        self.published: Any = [self.key.jwk]
        self.person = Person()
        self.codes: dict[str, dict[str, str]] = {}
        self.requested: list[str] = []
        self.metadata: dict[str, Any] = {}
        self.changes: dict[str, Any] = {}
        self.sign: Any = None
        self.token_answer: Response | None = None
        self.metadata_answer: Response | None = None

    def describe(self) -> Response:
        self.requested.append("metadata")
        reported = {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            "code_challenge_methods_supported": ["plain", "S256"],
            **self.metadata,
        }
        return self.metadata_answer or JSONResponse(reported)

    def keys(self) -> Response:
        self.requested.append("keys")
        return JSONResponse({"keys": self.published})

    def authorize(self, request: Request) -> Response:
        requested = dict(parse_qsl(request.url.query))
        assert requested["response_type"] == "code"
        assert requested["client_id"] == CLIENT
        assert requested["code_challenge_method"] == "S256"
        assert "openid" in requested["scope"].split()
        code = secrets.token_urlsafe(16)
        self.codes[code] = requested
        return RedirectResponse(
            f"{requested['redirect_uri']}?{urlencode({'code': code, 'state': requested['state']})}"
        )

    async def token(self, request: Request) -> Response:
        self.requested.append("token")
        if self.token_answer is not None:
            return self.token_answer
        form = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        if not self._is_client(request, form):
            return JSONResponse({"error": "invalid_client"}, 401)
        requested = self.codes.pop(form.get("code", ""), None)
        if requested is None or form.get("redirect_uri") != requested["redirect_uri"]:
            return JSONResponse({"error": "invalid_grant"}, 400)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != requested["code_challenge"]:
            return JSONResponse({"error": "invalid_grant"}, 400)
        claims = {
            "iss": self.url,
            "aud": CLIENT,
            "sub": self.person.sub,
            "iat": int(time.time()),
            "exp": int(time.time()) + 300,
            "nonce": requested["nonce"],
            **self.person.claims,
            **self.changes,
        }
        claims = {name: value for name, value in claims.items() if value is not None}
        token = (self.sign or self.key.sign)(claims)
        return JSONResponse({"access_token": "unused", "token_type": "Bearer", "id_token": token})

    def _is_client(self, request: Request, form: dict[str, str]) -> bool:
        given = request.headers.get("authorization", "")
        if not given:
            return form.get("client_id") == CLIENT and form.get("client_secret") == SECRET
        name, _, secret = base64.b64decode(given.removeprefix("Basic ")).decode().partition(":")
        return unquote_plus(name) == CLIENT and unquote_plus(secret) == SECRET


@contextmanager
def running(provider: TestProvider) -> Iterator[TestProvider]:
    """The provider on a port of its own."""
    with listening(provider.app) as url:
        provider.url = url
        yield provider


def query_of(url: str) -> dict[str, str]:
    """The query of an address."""
    return dict(parse_qsl(urlsplit(url).query))


class Browser:
    """Goes where it is sent, with cookies of its own; the service in it is an application of this process."""

    def __init__(self, app: FastAPI, address: str = "https://hush.example") -> None:
        self._app = app
        self.address = address
        self.cookies = httpx.Cookies()

    def ask(self, method: str, url: str, **options: Any) -> httpx.Response:
        return asyncio.run(self._ask(method, url, options))

    async def _ask(self, method: str, url: str, options: dict[str, Any]) -> httpx.Response:
        transport = httpx.ASGITransport(self._app, raise_app_exceptions=False)
        async with httpx.AsyncClient(
            transport=transport, base_url=self.address, cookies=self.cookies
        ) as client:
            answer = await client.request(method, url, **options)
            self.cookies = client.cookies
            return answer

    def begin(self) -> str:
        """Begin to sign in; the address that the provider sends the browser back to."""
        started = self.ask("GET", "/oidc/start")
        assert started.status_code == 303, started.text
        return str(httpx.get(started.headers["location"]).headers["location"])

    def come_back(self, url: str, **headers: str) -> httpx.Response:
        return self.ask("GET", url, headers=headers)

    def finish(self, **headers: str) -> httpx.Response:
        return self.ask("POST", "/oidc/finish", headers={"x-requested-with": "hushsum", **headers})

    def sign_in(self) -> str:
        """All of it; the token."""
        answer = self.come_back(self.begin())
        assert (answer.status_code, answer.headers.get("location")) == (303, "/#signed-in"), answer.text
        finished = self.finish()
        assert finished.status_code == 201, finished.text
        return str(finished.json()["secret"])
