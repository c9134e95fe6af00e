"""From the opened sum to a released function, of the same type as a central release."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hushsum.bases.base import Table
from hushsum.federated.secure_aggregation.terms import AggregationTerms
from hushsum.releases.noisy_table import UNSEEN_SHARE, NoisyTable, function_of, largest_step
from hushsum.version import PRODUCER


def released_sum(terms: AggregationTerms, total: NDArray[np.int64], contributions: int) -> NoisyTable:
    """The public function of a sum of so many contributions.

    Privacy
    -------
    Post-processing of the sum. The noise that it states is that of all contributions; the claim rests on that
    of the honest ones among them.
    """
    noise, count_noise = terms.noises(contributions)
    cells: Table = total[:-1].reshape(terms.basis.shape)
    narrow = np.iinfo(np.int32)
    if cells.min() >= narrow.min and cells.max() <= narrow.max:
        cells = cells.astype(np.int32)
    function = function_of(
        reading=terms.reading,
        cells=cells,
        claim=terms.claim,
        noise=noise,
        noisy_count=int(total[-1]),
        count_noise=count_noise,
        producer=PRODUCER,
    )
    if not terms.basis.fractional:
        return function
    return function.rounded_at_release(largest_step(noise.variance, UNSEEN_SHARE))
