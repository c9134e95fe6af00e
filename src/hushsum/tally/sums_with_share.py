"""A tally's sums with a share of noise: what a site adds to a masked sum. Secret until it is masked."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hushsum.privacy.integer_noise import IntegerNoise
from hushsum.privacy.noise import NoiseSource
from hushsum.tally.release import noisy_rows
from hushsum.tally.tally import Tally


def sums_with_share(
    tally: Tally,
    rows: int,
    noise: IntegerNoise,
    count_noise: IntegerNoise,
    *,
    threads: int = 1,
    insecure_noise_seed: int | None = None,
) -> NDArray[np.int64]:
    """The first ``rows`` rows of a tally, cell after cell, and the number of records, each with noise.

    Privacy
    -------
    One share of noise is not enough for a claim: the vector must leave this process masked, as one of a
    sum that is opened only as a whole (`hushsum.federated.secure_aggregation`).
    """
    width = tally.basis.shape[1]
    vector = np.empty(rows * width + 1, np.int64)
    with NoiseSource.for_release(insecure_noise_seed) as source, tally._held():
        state, start = tally._state(), 0
        for part in noisy_rows(state["table"], rows, noise, source, threads):
            vector[start : start + part.size] = part.reshape(-1)
            start += part.size
        vector[-1] = state["count"] + int(count_noise.draw(1, source)[0])
    return vector
