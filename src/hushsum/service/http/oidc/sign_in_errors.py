"""Errors of a sign-in. None repeats what a provider or a browser has sent."""

from __future__ import annotations

from hushsum.service.http.problem_responses import Refusal


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


def not_admitted(kind: str) -> Refusal:
    """The provider has authenticated the person, and that person has no open account."""
    if kind not in _NOT_ADMITTED:
        return stale()
    return Refusal(403, kind, _NOT_ADMITTED[kind])
