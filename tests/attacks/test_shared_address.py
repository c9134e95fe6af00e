"""Everybody behind one address, and somebody there who guesses tokens or invents addresses."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable

import pytest

from hushsum.errors import UsageError
from hushsum.service import logs
from hushsum.service.http import address_group
from hushsum.service.settings import Settings
from hushsum.service.trusted_proxies import TrustedProxies
from tests.in_process_service import Town

FoundTown = Callable[..., Town]


def test_a_valid_token_is_never_refused_for_the_failures_of_others(found_town: FoundTown) -> None:
    town = found_town(failures_per_minute=5)
    statuses = [town.ask(f"wrong-{i}", "GET", "/me").status_code for i in range(60)]
    assert statuses == [401] * 5 + [429] * 55
    for who in ("olga", "otto", "anna", "admin"):
        town.ok(who, "GET", "/me")


def test_behind_a_proxy_every_caller_has_an_address(found_town: FoundTown) -> None:
    town = found_town(failures_per_minute=3, trusted_proxies="127.0.0.1")

    def guess(address: str) -> int:
        status: int = town.ask("wrong", "GET", "/me", headers={"x-forwarded-for": address}).status_code
        return status

    assert [guess("203.0.113.66") for _ in range(6)] == [401] * 3 + [429] * 3
    # What the caller puts in front of the proxy's own entry makes no new address.
    assert [guess(f"198.51.100.{i}, 203.0.113.66") for i in range(3)] == [429] * 3
    assert guess("203.0.113.7") == 401
    # One network of IPv6 is one caller: whoever has an address there has all of them.
    assert [guess(f"2001:db8::{i}") for i in range(6)] == [401] * 3 + [429] * 3
    assert guess("2001:db8:0:1::1") == 401


def test_whoever_is_no_proxy_invents_no_address(found_town: FoundTown) -> None:
    town = found_town(failures_per_minute=3, trusted_proxies="10.0.0.0/8")
    requested = [
        town.ask(
            "wrong", "GET", "/me", headers={"x-forwarded-for": f"10.0.0.{i}", "forwarded": "for=1.1.1.1"}
        )
        for i in range(5)
    ]
    assert [each.status_code for each in requested] == [401] * 3 + [429] * 2


def test_the_caller_is_in_the_log(found_town: FoundTown, caplog: pytest.LogCaptureFixture) -> None:
    town = found_town(trusted_proxies="127.0.0.0/8")
    caplog.set_level(logging.INFO, logs.LOGGER.name)
    logs.LOGGER.setLevel(logging.INFO)
    town.ok("olga", "GET", "/me", headers={"x-forwarded-for": "6.6.6.6, 203.0.113.9, 127.0.0.5"})
    town.ask(None, "GET", "/me", headers={"x-forwarded-for": "203.0.113.9, <script>"})
    lines = [json.loads(logs.JsonLines().format(record)) for record in caplog.records]
    assert [line["client"] for line in lines if line["event"] == "answered"] == ["203.0.113.9", "127.0.0.1"]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (b"203.0.113.9", "203.0.113.9"),
        (b"203.0.113.9:4711", "203.0.113.9"),
        (b" 203.0.113.9 , 10.1.2.3 ", "203.0.113.9"),
        (b"6.6.6.6, 203.0.113.9", "203.0.113.9"),
        (b"[2001:db8::1]:4711", "2001:db8::1"),
        (b"::ffff:203.0.113.9", "203.0.113.9"),
        (b"10.1.2.3", "10.1.2.3"),
        (b"203.0.113.9, unknown", "10.0.0.1"),
        (b"203.0.113.9, 10.0.0.9, 999.1.1.1", "10.0.0.1"),
        (b"203.0.113.9,", "10.0.0.1"),
        (b"fe80::1%eth0", "10.0.0.1"),
        (b"\xff\xfe", "10.0.0.1"),
        (b"", "10.0.0.1"),
        (b", ".join([b"10.0.0.2"] * 50), "10.0.0.2"),
    ],
)
def test_x_forwarded_for(value: bytes, found: str) -> None:
    proxies = TrustedProxies.of("10.0.0.0/8")
    assert proxies.client("10.0.0.1", [(b"x-forwarded-for", value)]) == found
    assert proxies.client("203.0.113.1", [(b"x-forwarded-for", value)]) == "203.0.113.1"
    assert proxies.client("10.0.0.1", [(b"forwarded", value)]) == "10.0.0.1", "one header is believed"


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (b"for=203.0.113.9", "203.0.113.9"),
        (b'for=6.6.6.6, for="[2001:db8::1]:80";proto=https;by=10.0.0.1', "2001:db8::1"),
        (b'For="203.0.113.9:1"; proto=http, for=10.5.5.5', "203.0.113.9"),
        (b"for=unknown", "10.0.0.1"),
        (b"for=203.0.113.9, for=_hidden", "10.0.0.1"),
        (b'for="203.0.113.9, for=6.6.6.6"', "10.0.0.1"),
        (b"proto=https", "10.0.0.1"),
    ],
)
def test_forwarded(value: bytes, found: str) -> None:
    proxies = TrustedProxies.of("10.0.0.0/8", "forwarded")
    assert proxies.client("10.0.0.1", [(b"forwarded", value)]) == found
    assert proxies.client("10.0.0.1", [(b"x-forwarded-for", b"6.6.6.6")]) == "10.0.0.1"


def test_several_lines_are_one_list() -> None:
    proxies = TrustedProxies.of("10.0.0.0/8")
    lines = [(b"x-forwarded-for", b"6.6.6.6"), (b"x-forwarded-for", b"203.0.113.9"), (b"host", b"x")]
    assert proxies.client("10.0.0.1", lines) == "203.0.113.9"


def test_https_is_what_the_proxy_says(found_town: FoundTown) -> None:
    said = {"x-forwarded-proto": "https"}
    town = found_town(trusted_proxies="127.0.0.1")
    assert "strict-transport-security" in town.ask(None, "GET", "/healthz", headers=said).headers
    assert "strict-transport-security" not in town.ask(None, "GET", "/healthz").headers


@pytest.mark.parametrize(
    "wrong", [{"trusted_proxies": "10.0.0.0/33"}, {"trusted_proxies": "proxy"}, {"forwarded_header": "via"}]
)
def test_wrong_settings(wrong: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong)).upper()):
        Settings(**wrong)  # type: ignore[arg-type]


def test_groups_of_addresses() -> None:
    assert address_group("::1") == address_group("::2")
    assert address_group("") == address_group("testclient") == ""
