"""Processor time of this process and all that it starts, by sampling: other work does not count."""

from __future__ import annotations

import threading
import time
from types import TracebackType

import psutil

_SECONDS = 0.05


class TreeTime:
    """The wall and processor seconds of a ``with`` block, in this process and all below it.

    A process that lives for less than a twentieth of a second may be missed, and of one that ends the time
    since the last sample.
    """

    def __enter__(self) -> TreeTime:
        self._root = psutil.Process()
        self._latest: dict[tuple[int, float], float] = {}
        self._sample()
        self._before = dict(self._latest)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        self._start = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.wall = time.perf_counter() - self._start
        self._done.set()
        self._thread.join()
        self._sample()
        spent = sum(spent - self._before.get(key, 0.0) for key, spent in self._latest.items())
        # Looking through all processes of a busy machine takes time itself.
        self.processor = spent - self._sampling

    def _watch(self) -> None:
        while not self._done.wait(_SECONDS):
            self._sample()
        self._sampling = time.thread_time()

    def _sample(self) -> None:
        for process in [self._root, *self._root.children(recursive=True)]:
            try:
                times, key = process.cpu_times(), (process.pid, process.create_time())
            except psutil.Error:
                continue
            self._latest[key] = times.user + times.system
