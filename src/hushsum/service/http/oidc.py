"""Sign-in with an identity provider: OpenID Connect, the authorization code flow with PKCE.

The provider authenticates a person; the account that an administrator has linked decides what that person may
do. From below: the settings and the cookie of a sign-in, its refusals, the provider's keys and tokens, and
the redirect with what the browser brings back.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields
from typing import Any, Final, Generic, NamedTuple, TypeVar
from urllib.parse import quote_plus, urlencode, urlsplit

import httpx
import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt import PyJWK, PyJWKError
from jwt.exceptions import InvalidKeyError

from hushsum.errors import UsageError
from hushsum.service.settings import PREFIX, Settings
from hushsum.service.store import Identities

from .problem_responses import Refusal
from .request_limits import RateLimit, address_group, too_often

LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_LONGEST_URL: Final = 500
_SHORTEST_SECRET: Final = 16
_CLAIM: Final = re.compile(r"[A-Za-z][A-Za-z0-9_:./-]{0,79}")


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """The trusted provider, and the service's client registration there."""

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    name: str
    account_claim: str
    public_url: str

    @classmethod
    def of(cls, settings: Settings) -> ProviderSettings:
        """The provider of these settings.

        Raises
        ------
        UsageError
            if a setting is missing, or an address is neither HTTPS nor on this machine.
        """
        for name in ("client_id", "public_url", "name", "account_claim"):
            if not getattr(settings, f"oidc_{name}"):
                rule = f"{PREFIX}OIDC_{name.upper()} must be set with {PREFIX}OIDC_ISSUER"
                raise UsageError(rule, remedy="set it")
        if not is_safe(settings.oidc_issuer, local=True) or urlsplit(settings.oidc_issuer).query:
            rule = f"{PREFIX}OIDC_ISSUER must be an https address (http on this machine only) without a query"
            raise UsageError(rule, remedy="copy it from the provider's /.well-known/openid-configuration")
        public = settings.oidc_public_url.removesuffix("/")
        parts = urlsplit(public)
        if not is_safe(public, local=True) or parts.path != settings.root_path or parts.query:
            raise UsageError(
                f"{PREFIX}OIDC_PUBLIC_URL must be the service's own https address (http on this "
                f"machine only), with the path of {PREFIX}ROOT_PATH and no other",
                remedy="give what people type into their browsers",
            )
        if not _CLAIM.fullmatch(settings.oidc_account_claim):
            rule = f"{PREFIX}OIDC_ACCOUNT_CLAIM must be the name of a claim"
            raise UsageError(rule, remedy="try email or sub")
        if len(settings.oidc_client_secret) < _SHORTEST_SECRET:
            raise UsageError(
                f"{PREFIX}OIDC_CLIENT_SECRET must have at least {_SHORTEST_SECRET} characters",
                remedy="let the provider make one, and give it there "
                f"or in the file of {PREFIX}OIDC_CLIENT_SECRET_FILE",
            )
        given = {each.name: getattr(settings, f"oidc_{each.name}") for each in fields(cls)}
        return cls(**given | {"public_url": public})

    @property
    def redirect_uri(self) -> str:
        """Where the provider sends browsers back to: configured, and never read from a request."""
        return f"{self.public_url}/oidc/callback"

    @property
    def origin(self) -> str:
        """The public address without its path, as browsers name it."""
        return "{0.scheme}://{0.netloc}".format(urlsplit(self.public_url))

    @property
    def secure(self) -> bool:
        """Whether browsers reach the service by HTTPS."""
        return self.public_url.startswith("https://")

    @property
    def local(self) -> bool:
        """Whether the provider is on this machine and uses plain HTTP, as in tests."""
        return self.issuer.startswith("http://")


def is_safe(url: object, *, local: bool) -> bool:
    """Whether a URL is HTTPS; with ``local``, plain HTTP to this machine is accepted."""
    if not isinstance(url, str) or len(url) > _LONGEST_URL or not url.isascii() or not url.isprintable():
        return False
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    if not host or parts.fragment or "@" in parts.netloc or " " in url or "\\" in url:
        return False
    return parts.scheme == "https" or (local and parts.scheme == "http" and host in LOOPBACK)


def comparable(claim: str, subject: str) -> str:
    """How a subject is compared: addresses without regard to capitals, everything else as it is."""
    return subject.lower() if claim == "email" else subject


def stale() -> Refusal:
    """The callback does not belong to a sign-in that this browser has begun lately."""
    return Refusal(
        400,
        "sign-in-stale",
        "this sign-in was not begun in this browser, is already finished, or took too long; begin again",
    )


def not_proven(reason: str) -> Refusal:
    """The provider did not prove who somebody is; ``reason`` names the rule, never a value."""
    return Refusal(
        403,
        "sign-in-refused",
        f"the sign-in provider did not prove who you are: {reason}; try again or contact the administrator",
    )


def unavailable(reason: str) -> Refusal:
    """The provider cannot be reached, or its response is invalid."""
    return Refusal(503, "provider-unavailable", f"the sign-in provider {reason}; try again later")


_NOT_ADMITTED = {
    "unknown-identity": "no account is linked to your identity; ask an administrator to link your account",
    "identity-changed": "your account is linked to another person of that name at the provider; "
    "ask an administrator to link it again",
    "account-closed": "your account is closed; ask an administrator for another one",
}


_COOKIE: Final = re.compile(r"([0-9]{10})\.([A-Za-z0-9_-]{43})")


@dataclass(frozen=True, slots=True)
class Flow:
    """The values that a sign-in sends, and the values that it expects in return."""

    started: int
    id: str
    state: str
    nonce: str
    verifier: str

    @property
    def challenge(self) -> str:
        """The code challenge that is sent first (RFC 7636, S256)."""
        return _unpadded(hashlib.sha256(self.verifier.encode()).digest())


def new_cookie(now: float) -> str:
    """The secret of a new sign-in, with the time."""
    return f"{int(now):010d}.{secrets.token_urlsafe(32)}"


def flow_of(cookie: str, terms: ProviderSettings, now: float) -> Flow | None:
    """The sign-in that a cookie belongs to; None if it is invalid or too old."""
    found = _COOKIE.fullmatch(cookie)
    if found is None or not 0 <= now - int(found[1]) <= SignIn.flow_seconds:
        return None

    def derived(purpose: str) -> str:
        derived_from = "\0".join((purpose, found[1], terms.issuer, terms.client_id, terms.public_url))
        return _unpadded(hmac.digest(found[2].encode(), derived_from.encode(), "sha256"))

    return Flow(int(found[1]), derived("id"), derived("state"), derived("nonce"), derived("verifier"))


def same(received: str, expected: str) -> bool:
    """Whether two texts are equal, in constant time."""
    return hmac.compare_digest(received.encode("utf-8", "surrogatepass"), expected.encode())


def _unpadded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


# The accepted algorithms. All are asymmetric: a public key never serves as a shared secret.
KIND_OF: Final = {"RS256": "RSA", "PS256": "RSA", "ES256": "EC", "EdDSA": "OKP"}

_CURVES: Final = {"RSA": None, "EC": "P-256", "OKP": "Ed25519"}
_PUBLIC: Final = ("kty", "n", "e", "crv", "x", "y")
_SHORTEST_RSA: Final = 2048
_MOST_KEYS: Final = 100


def verifying_key(keys: list[Any], kid: str | None, algorithm: str) -> PyJWK | None:
    """The key of a JWK set to which a header points; None if no key or more than one key fits. Keys for other
    algorithms are ignored (RFC 7517, 5).
    """
    kind = KIND_OF[algorithm]
    fitting = [
        each
        for each in keys
        if isinstance(each, dict)
        and (each.get("kty"), each.get("crv"), each.get("use", "sig")) == (kind, _CURVES[kind], "sig")
        and each.get("alg") in (None, algorithm)
        and (kid is None or each.get("kid") == kid)
    ]
    if len(fitting) != 1:
        return None
    public: dict[str, Any] = {name: fitting[0][name] for name in _PUBLIC if name in fitting[0]}
    try:
        key = PyJWK(public, algorithm)
    except (PyJWKError, InvalidKeyError):
        return None
    short = isinstance(key.key, RSAPublicKey) and key.key.key_size < _SHORTEST_RSA
    return None if short else key


_SILENCE_SECONDS: Final = 5.0
_DEADLINE_SECONDS: Final = 10.0
_MOST_BYTES: Final = 256 * 1024


def fetch(
    method: str, url: str, *, form: dict[str, str] | None = None, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, Any]]:
    """The status and the JSON object of a provider's response.

    Redirects are not followed: the addresses are those that the issuer publishes, and another host would
    receive the client's secret. Compressed responses are refused, since a small one may expand without limit.

    Raises
    ------
    Refusal
        503 if there is no response in time, or it is too long, redirected, or not a JSON object.
    """
    sent_headers = {"accept": "application/json", "accept-encoding": "identity", **(headers or {})}
    deadline = time.monotonic() + _DEADLINE_SECONDS
    body = bytearray()
    try:
        with (
            httpx.Client(timeout=_SILENCE_SECONDS, follow_redirects=False) as client,
            client.stream(method, url, data=form, headers=sent_headers) as answer,
        ):
            if answer.is_redirect:
                raise unavailable("answered with a redirect")
            if answer.headers.get("content-encoding", "identity") != "identity":
                raise unavailable("answered compressed")
            for piece in answer.iter_raw():
                body += piece
                if len(body) > _MOST_BYTES:
                    raise unavailable("answered with too much")
                if time.monotonic() > deadline:
                    raise unavailable("answered too slowly")
    except (httpx.HTTPError, httpx.InvalidURL, OSError):
        raise unavailable("cannot be reached") from None
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise unavailable("answered with something that is not JSON") from None
    if not isinstance(found, dict):
        raise unavailable("answered with something that is not an object")
    return answer.status_code, found


SKEW_SECONDS: Final = 60.0
_SIGNED: Final = jwt.PyJWS(algorithms=list(KIND_OF))
_LAST_TIME: Final = 253_402_300_800
_LONGEST_SUBJECT: Final = 255


class Person(NamedTuple):
    """A person at the provider: the value of the claim that accounts are linked by, and the provider's own
    id.
    """

    subject: str
    sub: str


def identify(token: str, provider: Provider, terms: ProviderSettings, flow: Flow, now: float) -> Person:
    """The person whom an ID token is about, as the provider's token endpoint sent it for this sign-in.

    Raises
    ------
    Refusal
        403 for any rule that the token breaks.
    """
    claims = _signed(token, provider)
    _check_parties(claims, terms)
    _check_times(claims, flow.started, now)
    if not hmac.compare_digest(_text(claims, "nonce").encode(), flow.nonce.encode()):
        raise not_proven("the nonce is another sign-in's")
    return Person(_subject(claims, terms.account_claim), _text(claims, "sub"))


def _signed(token: str, provider: Provider) -> dict[str, Any]:
    """The claims, once the signature is right."""
    try:
        header = _SIGNED.get_unverified_header(token)
    except jwt.PyJWTError:
        raise not_proven("its token cannot be read") from None
    algorithm, kid = header.get("alg"), header.get("kid")
    if algorithm not in KIND_OF:
        raise not_proven("its token is signed with an algorithm that is not accepted")
    if "crit" in header or "b64" in header:
        raise not_proven("its token has a header that is not understood")
    key = verifying_key(provider.keys.get(), kid, algorithm)
    # The provider may have made a new one.
    key = key or verifying_key(provider.keys.get(newer=True), kid, algorithm)
    if key is None:
        raise not_proven("its token is signed with a key that it does not publish")
    try:
        claims = json.loads(_SIGNED.decode(token, key, algorithms=[algorithm]))
    except (jwt.PyJWTError, ValueError, RecursionError):
        raise not_proven("the signature of its token is wrong") from None
    if not isinstance(claims, dict):
        raise not_proven("its token holds no claims")
    return claims


def _check_parties(claims: dict[str, Any], terms: ProviderSettings) -> None:
    if claims.get("iss") != terms.issuer:
        raise not_proven("its token was issued by somebody else")
    audience = claims.get("aud")
    listed = audience if isinstance(audience, list) else [audience]
    if terms.client_id not in listed:
        raise not_proven("its token is for another service")
    # A token for several services is ours only if it was issued to us.
    if (len(listed) > 1 or "azp" in claims) and claims.get("azp") != terms.client_id:
        raise not_proven("its token was issued to another service")


def _check_times(claims: dict[str, Any], started: float, now: float) -> None:
    if not _time(claims, "exp") > now - SKEW_SECONDS:
        raise not_proven("its token has expired")
    if not started - SKEW_SECONDS <= _time(claims, "iat") <= now + SKEW_SECONDS:
        raise not_proven("its token was not issued for this sign-in")
    if "nbf" in claims and not _time(claims, "nbf") <= now + SKEW_SECONDS:
        raise not_proven("its token is not valid yet")


def _time(claims: dict[str, Any], name: str) -> float:
    found = claims.get(name)
    # Seconds up to the year 9999: JSON also allows Infinity, NaN and integers of any length.
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found < _LAST_TIME:
        raise not_proven(f"its token has no usable {name}")
    return found


def _text(claims: dict[str, Any], name: str) -> str:
    found = claims.get(name)
    if not isinstance(found, str) or not 0 < len(found) <= _LONGEST_SUBJECT or not found.isprintable():
        raise not_proven(f"its token has no usable {name}")
    return found


def _subject(claims: dict[str, Any], claim: str) -> str:
    found = _text(claims, claim)
    if claim == "email":
        # Whoever may type an address into a profile is not yet its owner.
        if claims.get("email_verified") is not True:
            raise not_proven("it has not verified the email address")
        if not found.isascii():
            raise not_proven("the email address must be ASCII")
    return comparable(claim, found)


_CACHE_SECONDS: Final = 3600.0
_PAUSE_SECONDS: Final = 30.0
_LONGEST_ID_TOKEN: Final = 32 * 1024

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Metadata:
    """The part of a discovery document that is used."""

    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    basic: bool
    names_issuer: bool


class CachedDocument(Generic[T]):
    """A document that is fetched when it is needed and cached for an hour.

    Unauthenticated requests can cause a fetch, so after a failure the next one waits for some time.
    """

    def __init__(self, read: Callable[[], T], clock: Callable[[], float]) -> None:
        self._read = read
        self._clock = clock
        self._lock = threading.Lock()
        self._value: T | None = None
        self._tried = float("-inf")
        self._until = float("-inf")

    def get(self, *, newer: bool = False) -> T:
        """The document; with ``newer`` one that was fetched again, or at most a moment ago.

        Raises
        ------
        Refusal
            503 if it must be fetched and cannot.
        """
        with self._lock:
            until = self._tried + _PAUSE_SECONDS if newer else self._until
            if self._value is None or self._clock() >= until:
                if self._clock() < self._tried + _PAUSE_SECONDS:
                    raise unavailable("did not respond a moment ago")
                self._tried = self._clock()
                self._value = self._read()
                self._until = self._tried + _CACHE_SECONDS
            return self._value


class Provider:
    """The configured issuer, as it describes itself."""

    def __init__(self, terms: ProviderSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._terms = terms
        # Its addresses.
        self.metadata = CachedDocument(self._read_metadata, clock)
        # The keys that it signs with.
        self.keys = CachedDocument(self._read_keys, clock)

    def exchange(self, code: str, verifier: str) -> str:
        """The ID token for a code, as it was sent; the access token is not kept.

        Raises
        ------
        Refusal
            403 if the provider does not accept the code, 503 if it cannot be reached.
        """
        known = self.metadata.get()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._terms.redirect_uri,
            "code_verifier": verifier,
        }
        headers: dict[str, str] = {}
        if known.basic:
            # RFC 6749, 2.3.1: both parts are form-encoded before they are joined.
            pair = f"{quote_plus(self._terms.client_id)}:{quote_plus(self._terms.client_secret)}"
            headers["authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        else:
            form |= {"client_id": self._terms.client_id, "client_secret": self._terms.client_secret}
        status, response = fetch("POST", known.token_endpoint, form=form, headers=headers)
        if status >= 500:
            raise unavailable("failed")
        token = response.get("id_token")
        if status != 200 or not isinstance(token, str) or len(token) > _LONGEST_ID_TOKEN:
            raise not_proven("it gave no ID token for the code")
        return token

    def _read_metadata(self) -> Metadata:
        status, response = fetch("GET", f"{self._terms.issuer.rstrip('/')}/.well-known/openid-configuration")
        # The issuer in the document must be the configured one, or its tokens are another issuer's.
        if status != 200 or response.get("issuer") != self._terms.issuer:
            raise unavailable("does not describe itself as the configured issuer")
        names = ("authorization_endpoint", "token_endpoint", "jwks_uri")
        addresses: dict[str, Any] = {name: response.get(name) for name in names}
        if not all(is_safe(each, local=self._terms.local) for each in addresses.values()):
            raise unavailable("publishes an address that is not https")
        if "S256" not in _listed(response.get("code_challenge_methods_supported"), "S256"):
            raise unavailable("does not offer PKCE with S256")
        ways = _listed(response.get("token_endpoint_auth_methods_supported"), "client_secret_basic")
        named = response.get("authorization_response_iss_parameter_supported") is True
        return Metadata(**addresses, basic="client_secret_basic" in ways, names_issuer=named)

    def _read_keys(self) -> list[Any]:
        status, response = fetch("GET", self.metadata.get().jwks_uri)
        if status != 200:
            raise unavailable("does not publish its keys")
        return _listed(response.get("keys"))[:_MOST_KEYS]


def _listed(found: Any, *default: str) -> list[Any]:
    return found if isinstance(found, list) else [*default]


_AT_ONCE: Final = 8
_STRAINED: Final = 2
_LONGEST_CODE: Final = 2048
# The OAuth scopes that put a claim into the ID token, and no more.
_SCOPES: Final = {"sub": "openid", "email": "openid email"}


class SignIn:
    """Sends browsers to the provider, and identifies the person who returns."""

    # How long a sign-in may take.
    flow_seconds: Final = 600

    def __init__(
        self, terms: ProviderSettings, failures_per_minute: float, clock: Callable[[], float] = time.time
    ) -> None:
        self.terms = terms
        self.provider = Provider(terms)
        self._clock = clock
        self._failures = RateLimit(failures_per_minute / 60.0, failures_per_minute)
        # A slow provider occupies a thread per request, and the other routes need threads too.
        self._places = threading.BoundedSemaphore(_AT_ONCE)
        self._strained = threading.BoundedSemaphore(_STRAINED)

    def begin(self) -> tuple[str, str]:
        """The provider's address for a new sign-in, and the cookie that this browser must bring back."""
        with self._place():
            endpoint = self.provider.metadata.get().authorization_endpoint
        now = self._clock()
        cookie = new_cookie(now)
        flow = flow_of(cookie, self.terms, now)
        assert flow is not None
        parameters = {
            "response_type": "code",
            "client_id": self.terms.client_id,
            "redirect_uri": self.terms.redirect_uri,
            "scope": _SCOPES.get(self.terms.account_claim, "openid profile email"),
            "state": flow.state,
            "nonce": flow.nonce,
            "code_challenge": flow.challenge,
            "code_challenge_method": "S256",
        }
        joint = "&" if urlsplit(endpoint).query else "?"
        return f"{endpoint}{joint}{urlencode(parameters)}", cookie

    def subject(self, text: str) -> str:
        """How the value of a person's claim is compared, given by an administrator."""
        return comparable(self.terms.account_claim, text)

    def admit(
        self, identities: Identities, cookie: str, response: Mapping[str, str], address: str, request: str
    ) -> str:
        """A ticket for the person who came back from the provider, if an account is linked to that person.

        Raises
        ------
        Refusal
            if anything is not as it must be.
        """
        flow, person = self.resume(cookie, response, address)
        issuer, claim, sub = self.terms.issuer, self.terms.account_claim, person.sub
        ticket, reason = identities.admit(
            issuer, claim, person.subject, sub=sub, flow=flow.id, request=request
        )
        if ticket is None:
            raise Refusal(403, reason, _NOT_ADMITTED[reason]) if reason in _NOT_ADMITTED else stale()
        return ticket

    def resume(self, cookie: str, response: Mapping[str, str], address: str) -> tuple[Flow, Person]:
        """The sign-in that a browser came back with from the provider, and the person.

        Parameters
        ----------
        cookie
            of the browser that began the sign-in.
        response
            the query parameters that the provider has sent the browser back with.
        address
            of the caller, whose failures are counted.

        Raises
        ------
        Refusal
            if anything is not as it must be.
        """
        now = self._clock()
        flow = flow_of(cookie, self.terms, now)
        with self.watching(address):
            if flow is None or not same(response.get("state", ""), flow.state):
                raise stale()
            with self._place(strained=self._failures.left(address_group(address)) < 1.0):
                names_issuer = self.provider.metadata.get().names_issuer
                # RFC 9207: a response of another provider must not be accepted.
                if response.get("iss", "" if names_issuer else self.terms.issuer) != self.terms.issuer:
                    raise not_proven("the response is another provider's")
                if "error" in response:
                    raise not_proven("the sign-in was cancelled there")
                code = response.get("code", "")
                if not 0 < len(code) <= _LONGEST_CODE:
                    raise not_proven("it gave no code")
                token = self.provider.exchange(code, flow.verifier)
                return flow, identify(token, self.provider, self.terms, flow, now)

    @contextmanager
    def watching(self, address: str) -> Iterator[None]:
        """Count the refusals in the block; an address with too many gets 429 instead.

        The block always runs: what is valid is not refused for the failures of others at the same address.
        """
        try:
            yield
        except Refusal as refusal:
            if refusal.status_code < 500 and not self._failures.take(address_group(address)):
                raise too_often() from None
            raise

    @contextmanager
    def _place(self, *, strained: bool = False) -> Iterator[None]:
        """One of a few places; without a free one the request is refused instead of waiting.

        Addresses with many failures share two of them, and leave the others to everybody else.
        """
        with ExitStack() as held:
            for places in (self._strained, self._places) if strained else (self._places,):
                if not places.acquire(blocking=False):
                    raise too_often()
                held.callback(places.release)
            yield
