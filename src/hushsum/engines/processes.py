"""Count files with several processes of one machine."""

from __future__ import annotations

import json
import os
import pickle
import queue
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Unpack

from hushsum.errors import UsageError
from hushsum.files import Buffer
from hushsum.kernels import positive_integer, thread_count
from hushsum.records import receive_exactly
from hushsum.tally import Tally

from ._counting import (
    MOST_ATTEMPTS,
    CountingTask,
    CountKeywords,
    CountOptions,
    Driver,
    Part,
    count_files,
    lost,
)

_MOST_WORKERS: Final = 1024
_SECONDS_BETWEEN_REPORTS: Final = 0.2
_LENGTH: Final = struct.Struct("<Q")
_PROGRAM: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from hushsum.engines.processes import process_worker; process_worker()"
)


def tally(
    files: Sequence[str | os.PathLike[str]],
    tally: Tally,
    *,
    workers: int | None = None,
    **keywords: Unpack[CountKeywords],
) -> Tally:
    """Count files with several processes; the result is that of one process, bit for bit.

    Worth it for Parquet files, which are cut between their row groups, and for many files: another file is
    read by one process. Under a cap on a person's records every process reads all files and counts a share of
    the persons. A process that dies is replaced, and its part is counted again from the beginning.

    Parameters
    ----------
    files : sequence of path-like
        CSV, Parquet or Arrow.
    tally : Tally
        Empty; it says what is counted, and stays empty.
    workers : int, optional
        The number of processes; by default the cores that this process may use.
    columns, unit_column, set_column
        As in `hushsum.records.open_batches`; the columns default to those of the tally.
    cells : CellFormat
        The decimal sign of CSV files, and whether records with missing values are left out.
    threads : int, optional
        Of each process; by default the cores are shared out.
    checkpoint : path-like, optional
        A confidential file with the parts that are counted, from which the same call continues. It is deleted
        when the count is complete.
    checkpoint_every : float
        Seconds between two checkpoints.
    encryption_key : bytes, optional
        32 bytes that encrypt the checkpoint.
    progress : callable, optional
        Called with the fraction that is done; what it raises cancels the count, after a last checkpoint.

    Returns
    -------
    Tally
        A new one with all records.

    Raises
    ------
    UsageError, DataRefused
        a wrong parameter, or a file that cannot be counted, by name; there is no tally of the others.
    """
    cores = thread_count(None)
    many = cores if workers is None else positive_integer("workers", workers, at_most=_MOST_WORKERS)
    options = CountOptions(**keywords)
    if options.threads is None:
        options = replace(options, threads=max(1, cores // many))
    return count_files(files, tally, many, lambda driver, _: _run(driver, many), options)


def _run(driver: Driver, workers: int) -> Tally:
    waiting = deque(driver.waiting)
    pool = [_Worker(driver.task) for _ in range(min(workers, len(waiting)))]
    results: queue.Queue[tuple[_Worker, Part, Buffer | None]] = queue.Queue()
    attempts: Counter[str] = Counter()
    running = 0
    try:
        for worker in pool:
            worker.start(waiting.popleft(), results)
            running += 1
        while running:
            driver.report()
            try:
                worker, part, sealed = results.get(timeout=_SECONDS_BETWEEN_REPORTS)
            except queue.Empty:
                continue
            running -= 1
            if sealed is None:
                attempts[part.id] += 1
                if attempts[part.id] == MOST_ATTEMPTS:
                    raise lost(part.name)
                waiting.append(part)
                worker.end()
                pool[pool.index(worker)] = worker = _Worker(driver.task)
            if waiting:
                worker.start(waiting.popleft(), results)
                running += 1
            if sealed is not None:
                driver.receive(part.id, sealed)
        driver.report()
    finally:
        for worker in pool:
            worker.end()
    return driver.finish()


class _Worker:
    """A process and the socket to it."""

    def __init__(self, task: CountingTask) -> None:
        if not sys.executable:
            raise UsageError("processes need a Python program to run", remedy="use another engine")
        self._task = task
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, json.dumps(sys.path)],
                stdin=theirs.fileno(),
                # A traceback could quote records; what goes wrong is returned, sealed.
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        self.id = self._process.pid

    def start(self, part: Part, results: queue.Queue[tuple[_Worker, Part, Buffer | None]]) -> None:
        """Count a part; the result, or None if the process dies, arrives in a queue."""
        message = pickle.dumps((self._task, part))

        def exchange() -> None:
            try:
                _send(self._socket, message)
            except OSError:
                results.put((self, part, None))
                return
            results.put((self, part, _receive(self._socket)))

        threading.Thread(target=exchange, daemon=True).start()

    def end(self) -> None:
        """End the process, whatever it does."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._socket.close()


def process_worker() -> None:
    """Count what arrives on standard input, a socket, until its other end is closed.

    A message is a length of eight bytes and a pickle, exchanged with the process that started this one alone.
    """
    peer = socket.socket(fileno=os.dup(0))
    tasks: queue.Queue[Buffer] = queue.Queue()

    def take() -> None:
        # In a thread of its own, so that the end of the driver ends this process in the middle of a part.
        while (message := _receive(peer)) is not None:
            tasks.put(message)
        os._exit(0)

    threading.Thread(target=take, daemon=True).start()
    while True:
        task, part = pickle.loads(tasks.get())
        _send(peer, task.count(part))


def _send(peer: socket.socket, content: bytes) -> None:
    """Send one message; raises OSError if the other side is gone."""
    peer.sendall(_LENGTH.pack(len(content)))
    peer.sendall(content)


def _receive(peer: socket.socket) -> bytearray | None:
    """The next message; None if the other side is gone."""
    head = receive_exactly(peer, _LENGTH.size)
    return None if head is None else receive_exactly(peer, _LENGTH.unpack(head)[0])
