from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

def clone() -> str: ...

NOISE_CHUNK: int

class StreamKey:
    def __init__(self, bytes: bytes = ...) -> None: ...
    def clear(self) -> None: ...
    @property
    def usable(self) -> bool: ...
    def keystream(self, nonce0: int, nonce1: int, nonce2: int, counter: int, blocks: int) -> bytes: ...

def extension_nonce(draw: int, acceptance: bool, index: int) -> tuple[int, int, int]: ...
def fill_laplace(
    key: StreamKey,
    draw: int,
    out: NDArray[np.int64],
    scale: float,
    offset: float,
    widen: float,
    threads: int,
    decide: Callable[[int, int, int], int],
) -> None: ...
def fill_gaussian(
    key: StreamKey,
    draw: int,
    out: NDArray[np.int64],
    scale: float,
    offset: float,
    centre: float,
    rate: float,
    narrow: bool,
    widen: float,
    threads: int,
    decide: Callable[[int, int, int], int | None],
) -> None: ...
