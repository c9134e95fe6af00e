"""The public keys of a provider, and which of them may check which signature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt import PyJWK, PyJWKError
from jwt.exceptions import InvalidKeyError

KIND_OF: Final = {"RS256": "RSA", "PS256": "RSA", "ES256": "EC", "EdDSA": "OKP"}
"""The accepted algorithms. All are asymmetric: a public key never serves as a shared secret."""

_CURVES: Final = {"RSA": None, "EC": "P-256", "OKP": "Ed25519"}
_PUBLIC: Final = ("kty", "n", "e", "crv", "x", "y")
_SHORTEST_RSA: Final = 2048
_MOST_KEYS: Final = 100


@dataclass(frozen=True, slots=True)
class VerifyingKeys:
    """The keys of a JWK set. Keys for other algorithms are ignored (RFC 7517, 5)."""

    keys: tuple[dict[str, Any], ...]

    @classmethod
    def of(cls, document: dict[str, Any]) -> VerifyingKeys:
        """The usable keys of a JWK set."""
        listed = document.get("keys")
        return cls(tuple(filter(_is_usable, listed[:_MOST_KEYS])) if isinstance(listed, list) else ())

    def find(self, kid: str | None, algorithm: str) -> PyJWK | None:
        """The one key that a header points at; None if there is none, or if it might be several."""
        fitting = [
            each
            for each in self.keys
            if each["kty"] == KIND_OF[algorithm]
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


def _is_usable(key: Any) -> bool:
    return (
        isinstance(key, dict)
        and key.get("kty") in _CURVES
        and key.get("crv") == _CURVES[key["kty"]]
        and key.get("use", "sig") == "sig"
    )
