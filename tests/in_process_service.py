"""A service in this process, with its people, for tests; its jobs are done when the test says so."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import shutil
import threading
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import sqlalchemy as sa
import uvicorn
from fastapi import FastAPI
from starlette.routing import Route

from hushsum.models import PrivateModel
from hushsum.operations import describe_file, describe_model
from hushsum.service.http import compute_pool, create_app
from hushsum.service.jobs import JobRunner
from hushsum.service.settings import Settings
from hushsum.service.store import Actor, Functions, Store, StoredFunction, now
from tests.forked import fork_server_of_tests

START_FORK_SERVER = compute_pool.start_fork_server
# One server of forks for all towns of this process, which need not import everything again.
setattr(compute_pool, "start_fork_server", fork_server_of_tests)  # noqa: B010

ADMIN = "administrator-of-the-tests-0123456789"
SECRET = "31415926.5"
"""A value that stands in the records of every town, and must never be seen outside."""

SMALL: dict[str, Any] = {
    "columns": ["a", "b"],
    "bandwidth": 1.0,
    "rows": 60,
    "width": 50,
    "bounds": [[-5, 5]],
}


def records(number: int = 500) -> bytes:
    """A CSV file with one value that is easily recognised."""
    points = np.random.default_rng(0).normal([1.0, -2.0], [1.0, 0.5], (number, 2))
    lines = [f"{a:.3f},{b:.3f}" for a, b in points]
    return "\n".join(["a,b", f"{SECRET},0", *lines, ""]).encode()


class Town:
    """A running application, an administrator, and whoever is let in."""

    def __init__(self, folder: Path, like: Town | None = None, **settings: Any) -> None:
        given: dict[str, Any] = {
            "workers": 0,
            "cache_seconds": 0.001,
            "log_level": "ERROR",
            # A busy machine is not what is tested.
            "ready_seconds": 120.0,
            **settings,
        }
        self.settings = Settings(folder=str(folder / "service"), admin_token=ADMIN, **given)
        if like is not None:
            # Letting people in takes some durable writes, which need not be repeated for every test.
            shutil.copytree(like.settings.folder, self.settings.folder)
        self.app = create_app(self.settings)
        self.tokens: dict[str, str] = {"admin": ADMIN}
        self.ids: dict[str, str] = {}
        if like is not None:
            self.tokens, self.ids = dict(like.tokens), dict(like.ids)
            # Preparing the routers takes longer than most tests. The description of the interface is its own.
            own = [each for each in self.app.router.routes if isinstance(each, Route)]
            shared = [each for each in like.app.router.routes if not isinstance(each, Route)]
            self.app.router.routes[:] = [*own, *shared]
            return
        for name, role in (("olga", "owner"), ("otto", "owner"), ("anna", "analyst"), ("axel", "analyst")):
            self.create_account(name, role)

    def create_account(self, name: str, role: str) -> None:
        made = self.ok("admin", "POST", "/accounts", 201, json={"name": name, "role": role})
        self.ids[name] = made["id"]
        path = f"/accounts/{made['id']}/tokens"
        self.tokens[name] = self.ok("admin", "POST", path, 201, json={})["secret"]

    def ask(self, who: str | None, method: str, path: str, **options: Any) -> Any:
        given = options.pop("headers", {})
        headers = list(given.items()) if isinstance(given, dict) else list(given)
        if who is not None:
            headers.append(("authorization", f"Bearer {self.tokens.get(who, who)}"))
        return asyncio.run(self._send(method, path, headers, options))

    async def _send(
        self, method: str, path: str, headers: list[tuple[str, str]], options: dict[str, Any]
    ) -> httpx.Response:
        content = options.get("content")
        if content is not None and not isinstance(content, bytes):
            options["content"] = _pieces(content)
        # What a client would see is what is tested, so errors of the application are not raised here.
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://town") as client:
            return await client.request(method, path, headers=headers, **options)

    def ok(self, who: str | None, method: str, path: str, status: int = 200, **options: Any) -> Any:
        answer = self.ask(who, method, path, **options)
        assert answer.status_code == status, (method, path, answer.status_code, answer.text)
        return answer.json() if answer.content else None

    def refused(self, who: str | None, method: str, path: str, status: int, **options: Any) -> Any:
        """A problem, as RFC 9457 has it, with nothing in it that it must not tell."""
        answer = self.ask(who, method, path, **options)
        assert answer.status_code == status, (method, path, answer.status_code, answer.text)
        assert answer.headers["content-type"] == "application/problem+json"
        reported = answer.json()
        assert reported["status"] == status
        assert reported["type"].startswith("urn:hushsum:problem:")
        assert reported["title"]
        assert reported["detail"]
        assert reported["request"] == answer.headers["x-request-id"]
        assert SECRET not in answer.text
        assert "Traceback" not in answer.text
        assert str(self.settings.folder) not in answer.text
        return reported

    def publish(self, dataset: str, name: str, function: Any) -> str:
        """Put a function or a model into the service as if it had been released there."""
        id = f"fn_{secrets.token_hex(8)}"
        path = self.settings.path("functions", f"{id}.hush")
        function.save(path)
        if isinstance(function, PrivateModel):
            facts = describe_model(function.released_, target=None, size=path.stat().st_size)
        else:
            facts = describe_file(str(path)).as_json()
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        functions = Functions(Store.open(self.settings.place).database)
        functions.add(StoredFunction(id, dataset, name, digest, facts, now()), Actor("test"))
        return id

    def work(self) -> int:
        """Do all jobs that wait; how many there were."""
        work = JobRunner(self.settings, Store.open(self.settings.place))
        number = 0
        while work.next():
            number += 1
        return number

    def release_lease(self) -> None:
        """Let the next worker take up what one has left."""
        with Store.open(self.settings.place).database.writing() as connection:
            connection.execute(sa.text("UPDATE hushsum_jobs SET lease = 0"))

    def dataset(self, who: str = "olga", name: str = "payroll", **terms: Any) -> str:
        requested = {"name": name, **(terms or {"epsilon": 2.0})}
        return str(self.ok(who, "POST", "/datasets", 201, json=requested)["id"])

    def upload(self, dataset: str, data: bytes | None = None, format: str = "csv", who: str = "olga") -> str:
        path = f"/datasets/{dataset}/uploads?format={format}"
        return str(self.ok(who, "POST", path, 201, content=records() if data is None else data)["id"])

    def job(self, path: str, requested: dict[str, Any], key: str | None = None, who: str = "olga") -> Any:
        headers = {"idempotency-key": key or secrets.token_hex(8)}
        made = self.ok(who, "POST", path, 202, json=requested, headers=headers)
        self.work()
        return self.ok(who, "GET", f"/jobs/{made['id']}")

    def tally(self, dataset: str, who: str = "olga", **requested: Any) -> str:
        upload = self.upload(dataset, who=who)
        job = self.job(f"/datasets/{dataset}/tallies", {"upload": upload, **SMALL, **requested}, who=who)
        assert job["state"] == "done", job
        return str(job["result"]["tally"])

    def confirmed(self, dataset: str, tally: str, who: str = "olga", **terms: Any) -> dict[str, Any]:
        requested = {"tally": tally, "name": "pay", **(terms or {"epsilon": 0.5})}
        claim = self.ok(who, "POST", f"/datasets/{dataset}/claims", json=requested)
        return {**requested, "confirm": claim["confirm"]}

    def function(self, dataset: str, who: str = "olga", **terms: Any) -> str:
        requested = self.confirmed(dataset, self.tally(dataset, who), who, **terms)
        job = self.job(f"/datasets/{dataset}/releases", requested, who=who)
        assert job["state"] == "done", job
        return str(job["result"]["function"])


@contextmanager
def listening(app: FastAPI) -> Iterator[str]:
    """The application on a port of its own, in a thread; its address."""
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


async def _pieces(content: Iterable[bytes]) -> AsyncIterator[bytes]:
    for each in content:
        yield each
