"""Calculations of requests in processes of their own: few at a time, fair to all accounts, and ended when the
client leaves.

Whatever may take longer than a few milliseconds goes through a `ComputePool`: claims, plans, checks, and
queries that are large or slow. The event loop and the threads of the service only wait.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import logging
import math
import os
import socket
import subprocess
import sys
import threading
import weakref
from collections import OrderedDict, defaultdict
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TypeVar

from starlette.requests import ClientDisconnect, Request

from hushsum.errors import error_from_json
from hushsum.service.compute.fork_server import FORK, FRAME, READY, encoded
from hushsum.service.logs import log_event
from hushsum.service.settings import SOURCE

from .problem_responses import Refusal
from .request_limits import FairQueue

V = TypeVar("V")
_PREFIX: Final = "HUSHSUM_"
_ONE_THREAD: Final = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
# Calculations of one process, after which another takes its place: memory in pieces is given back.
_MOST_USES: Final = 500
_FIRST_GUESS_SECONDS: Final = 1.0
# The time of every query, however small.
_FIXED_SECONDS: Final = 0.0002
_MOST_ESTIMATES: Final = 4096
_RISE: Final = 0.5
_FALL: Final = 0.1
# The estimated processor time that one account may have waiting.
LONGEST_QUEUE_SECONDS: Final = 60.0


class ForkServer:
    """The server process that `hushsum.service.compute.fork_server` describes, started when it is needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self._process: object = None

    def start(self) -> None:
        """Start the server process unless it runs. Importing everything takes two seconds."""
        with self._lock:
            if self._control is None:
                self._control, self._process = start_fork_server()
                atexit.register(self._control.close)

    def fork(self, niceness: int, memory: int) -> socket.socket:
        """A new process's socket; closing it ends the process.

        Raises
        ------
        OSError
            if no process can be started.
        """
        self.start()
        try:
            return self._forked(niceness, memory)
        except OSError:
            # It has died, perhaps for want of memory.
            with self._lock:
                assert self._control is not None
                self._control.close()
                self._control = None
            self.start()
            return self._forked(niceness, memory)

    def _forked(self, niceness: int, memory: int) -> socket.socket:
        ours, theirs = socket.socketpair()
        try:
            with theirs, self._lock:
                assert self._control is not None
                socket.send_fds(self._control, [FORK.pack(niceness, memory)], [theirs.fileno()])
        except BaseException:
            ours.close()
            raise
        ours.setblocking(False)
        return ours


# One fork server for all applications of this process: the modules that it has imported do not depend on
# settings.
FORK_SERVER: Final = ForkServer()


def start_fork_server() -> tuple[socket.socket, object]:
    """Start the server process; it ends when the socket that is returned is closed.

    It gets no setting of the service but the names of extensions, with each request: neither the database nor
    any secret.
    """
    ours, theirs = socket.socketpair()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_PREFIX)}
    path = os.pathsep.join(filter(None, [SOURCE, os.environ.get("PYTHONPATH")]))
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "hushsum.service.compute.fork_server"],
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**environment, **_ONE_THREAD, "PYTHONPATH": path},
            start_new_session=True,
        )
    return ours, process


class CostEstimates:
    """Processor seconds of each kind of calculation, learned from those that were made.

    One that took longer than expected counts for more than one that did not.
    """

    def __init__(self) -> None:
        self._rates: OrderedDict[str, float] = OrderedDict()

    def seconds(self, kind: str, size: float = 1.0) -> float | None:
        """The expected time of a calculation of this kind and size; None if none was made yet."""
        rate = self._rates.get(kind)
        return None if rate is None else _FIXED_SECONDS + rate * size

    def learn(self, kind: str, seconds: float, size: float = 1.0) -> None:
        """Update the estimate with the duration of a finished calculation."""
        rate = max(0.0, seconds - _FIXED_SECONDS) / max(size, 1.0)
        known = self._rates.get(kind, rate)
        self._rates[kind] = known + (_RISE if rate > known else _FALL) * (rate - known)
        self._rates.move_to_end(kind)
        if len(self._rates) > _MOST_ESTIMATES:
            self._rates.popitem(last=False)


class ComputePool:
    """Runs at most ``most`` calculations at once, and at most half as many of one account.

    An account whose waiting calculations are expected to take longer than `LONGEST_QUEUE_SECONDS` is refused.
    A calculation ends with its process when whoever waits for it is cancelled, and after ``seconds``. Its
    process imports the modules of ``extensions``, since it may need kernels, methods and models of theirs.
    """

    def __init__(
        self, *, most: int, niceness: int, memory: int, seconds: float, extensions: Sequence[str] = ()
    ) -> None:
        self._extensions = list(extensions)
        self.costs = CostEstimates()
        self._queue = FairQueue(each=max(1, most // 2), most=most)
        self._niceness, self._memory, self._seconds = niceness, memory, seconds
        self._idle: list[tuple[socket.socket, int]] = []
        self._busy: set[socket.socket] = set()
        self._expected: defaultdict[str, float] = defaultdict(float)
        self.closed = False
        # An application that is dropped without a shutdown leaves no process behind.
        weakref.finalize(self, _close_all, self._idle)

    @property
    def running(self) -> int:
        """How many calculations are being made."""
        return len(self._busy)

    @asynccontextmanager
    async def place(self, name: str, kind: str, size: float = 1.0) -> AsyncIterator[None]:
        """Hold one of the account's places, in which the account may `calculate`.

        Raises
        ------
        Refusal
            429, if the account has too much waiting.
        """
        known = self.costs.seconds(kind, size)
        expected = _FIRST_GUESS_SECONDS if known is None else known
        waiting = self._expected.get(name, 0.0)
        if waiting and waiting + expected > LONGEST_QUEUE_SECONDS:
            detail = (
                f"an account may have {LONGEST_QUEUE_SECONDS:g} seconds of calculations waiting; wait until "
            )
            detail += "some have finished"
            raise Refusal(429, "too-often", detail, {"retry-after": str(math.ceil(waiting))})
        self._expected[name] += expected
        try:
            async with self._queue.place(name):
                yield
        finally:
            self._expected[name] -= expected
            if self._expected[name] < 1e-9:
                del self._expected[name]

    async def calculate(
        self,
        calculation: str,
        about: dict[str, Any],
        body: bytes | bytearray = b"",
        *,
        kind: str,
        size: float = 1.0,
    ) -> tuple[dict[str, Any], bytes]:
        """The result of one of `hushsum.service.compute.calculations`, in a `place`.

        Raises
        ------
        HushsumError
            that the calculation has raised.
        Refusal
            422 if it takes too long; 503 if its process died, or the service stops.
        """
        async with self._queue.turn:
            if self.closed:
                raise _stopping()
            try:
                request = {"calculation": calculation, "about": about, "extensions": self._extensions}
                answer, blob = await self._exchange(encoded(request, body))
            except TimeoutError:
                self.costs.learn(kind, self._seconds, size)
                detail = f"this takes more than {self._seconds:g} seconds; use fewer columns, cells or points"
                raise Refusal(422, "time-limit", detail) from None
            except (OSError, EOFError):
                if self.closed:
                    raise _stopping() from None
                detail = "the calculation's process died, perhaps of its memory limit; request less"
                raise Refusal(503, "out-of-memory", detail) from None
        self.costs.learn(kind, answer["seconds"], size)
        if "refused" in answer:
            raise error_from_json(answer["refused"], answer["error"])
        if "failed" in answer:
            failed = answer["failed"]
            if failed["error"] == "MemoryError":
                raise MemoryError
            log_event("calculation failed", level=logging.ERROR, calculation=calculation, **failed)
            raise Refusal(500, "unexpected", f"an unexpected error occurred ({failed['error']}); report it")
        return answer["result"], blob

    async def run(self, name: str, calculation: str, about: dict[str, Any], *, kind: str) -> dict[str, Any]:
        """The result of a calculation for an account, once it is the account's turn."""
        async with self.place(name, kind):
            return (await self.calculate(calculation, about, kind=kind))[0]

    def close(self) -> None:
        """End all processes; whoever waits is refused."""
        self.closed = True
        _close_all(self._idle)
        for link in self._busy:
            link.shutdown(socket.SHUT_RDWR)

    async def _exchange(self, request: list[bytes | bytearray]) -> tuple[dict[str, Any], bytes]:
        """Send a request to an idle process, or to a new one, and read its answer."""
        link, uses = self._process()
        self._busy.add(link)
        loop = asyncio.get_running_loop()
        try:
            if not uses:
                # Its server may still be importing what it needs, which is not the calculation's time.
                await _received(link, len(READY))
            async with asyncio.timeout(self._seconds):
                for piece in request:
                    await loop.sock_sendall(link, piece)
                length, size = FRAME.unpack(await _received(link, FRAME.size))
                answer: dict[str, Any] = json.loads(await _received(link, length))
                blob = await _received(link, size)
        except BaseException:
            # Also if this task was cancelled: the process is killed in the middle of what it does.
            link.close()
            raise
        finally:
            self._busy.discard(link)
        if uses + 1 < _MOST_USES and not self.closed:
            self._idle.append((link, uses + 1))
        else:
            link.close()
        return answer, bytes(blob)

    def _process(self) -> tuple[socket.socket, int]:
        """An idle process, or a new one."""
        while self._idle:
            link, uses = self._idle.pop()
            try:
                link.recv(1, socket.MSG_PEEK)
            except BlockingIOError:
                return link, uses
            except OSError:
                pass
            # It has died meanwhile.
            link.close()
        return FORK_SERVER.fork(self._niceness, self._memory), 0


def _close_all(idle: list[tuple[socket.socket, int]]) -> None:
    while idle:
        idle.pop()[0].close()


async def _received(link: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    loop = asyncio.get_running_loop()
    view = memoryview(data)
    while view:
        number = await loop.sock_recv_into(link, view)
        if not number:
            raise EOFError
        view = view[number:]
    return data


def _stopping() -> Refusal:
    return Refusal(503, "busy", "the service is stopping; try again in a moment")


async def unless_client_leaves(request: Request, work: Coroutine[Any, Any, V]) -> V:
    """The result of work, which is cancelled when the client of the request leaves; its body was read.

    Raises
    ------
    ClientDisconnect
        if the client has left.
    """
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_client_leaves(request))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        for each in (working, leaving):
            each.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await each


async def _client_leaves(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
