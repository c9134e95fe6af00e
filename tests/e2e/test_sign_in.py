"""Signing in with a provider that others have written, through HTTP all the way."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest
from tests.free_ports import free_port
from tests.in_process_service import Town, listening

PERSON = {"sub": "u-1", "email": "anna@example.org", "email_verified": True}


@contextmanager
def mock_provider() -> Iterator[str]:
    """In a process of its own, where its warnings are its own too."""
    port = free_port()
    command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(port), "--require-nonce", "true"]
    process = subprocess.Popen(
        [*command, "--user-claims", json.dumps(PERSON)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}"
    try:
        while True:
            assert process.poll() is None
            with suppress(httpx.HTTPError):
                httpx.get(f"{url}/jwks", timeout=60)
                break
            time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait()


@pytest.mark.skipif(find_spec("oidc_provider_mock") is None, reason="needs oidc-provider-mock")
def test_signing_in_with_an_independent_provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUSHSUM_STATE", str(tmp_path / "state"))
    with mock_provider() as issuer:
        town = Town(
            tmp_path,
            oidc_issuer=issuer,
            oidc_client_id="hushsum",
            oidc_client_secret="0123456789abcdef",
            oidc_public_url="http://localhost:8000",
        )
        path = f"/accounts/{town.ids['anna']}/identity"
        town.ok("admin", "POST", path, 201, json={"subject": "anna@example.org"})
        with listening(town.app) as url, httpx.Client(base_url=url) as browser:
            location = browser.get("/oidc/start").headers["location"]
            came = httpx.post(location, data={"sub": "u-1"}, timeout=60).headers["location"]
            assert came.startswith("http://localhost:8000/oidc/callback?")
            answer = browser.get(came.removeprefix("http://localhost:8000"))
            assert (answer.status_code, answer.headers.get("location")) == (303, "/#signed-in"), answer.text
            secret = browser.post("/oidc/finish", headers={"x-requested-with": "hushsum"}).json()["secret"]
            assert browser.get("/me", headers={"authorization": f"Bearer {secret}"}).json()["name"] == "anna"
            denied = httpx.post(
                browser.get("/oidc/start").headers["location"], data={"action": "deny"}, timeout=60
            )
            back = denied.headers["location"].removeprefix("http://localhost:8000")
            assert browser.get(back).json()["type"].endswith(("sign-in-refused", "sign-in-stale"))
        assert town.ok("admin", "GET", path)["sub"] == "u-1"
