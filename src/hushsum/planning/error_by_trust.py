"""What trust is worth: the predicted error under each model of who may see the records.

| trust | who sees records or exact counts | noise |
|---|---|---|
| central | one curator | drawn once |
| federated | each site its own; the server learns the noisy sum | of n sites, n − d − t suffice |
| sites | each site its own | n times the variance |
| shuffled | nobody; a shuffler separates reports from senders | one randomised report per person |
| local | nobody | one randomised report per person |
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from hushsum.bases.hash_rows import HashRows
from hushsum.errors import UsageError
from hushsum.kernels.base import HashableKernel
from hushsum.kernels.parameters import one_of, positive_integer
from hushsum.methods.prediction_request import HEADER_BYTES, NORMAL_MEAN_ABSOLUTE, Option, PredictionRequest
from hushsum.privacy.accounting.shuffling import local_epsilon_for
from hushsum.privacy.claim import Promise, exact
from hushsum.privacy.hadamard_response import MECHANISM, SHUFFLED_MECHANISM, sign_gain
from hushsum.privacy.integer_noise import LAPLACE

CENTRAL: Final = "central"
FEDERATED: Final = "federated"
SITES: Final = "sites"
SHUFFLED: Final = "shuffled"
LOCAL: Final = "local"
TRUST_MODELS: Final = (CENTRAL, FEDERATED, SITES, SHUFFLED, LOCAL)
_REPORTS: Final = "reports"
_ROWS: Final = (100, 200, 500, 1000, 2000, 5000)
_WIDTH: Final = 1000
_NANOSECONDS_REPORT: Final = 400.0


@dataclass(frozen=True, slots=True)
class TrustModel:
    """Who is trusted: a name of ``TRUST_MODELS``, the number of sites, and how many of them may drop out and
    may use what they know, alone or together with the server.
    """

    name: str = CENTRAL
    sites: int = 1
    dropouts: int = 0
    colluding: int = 0

    @classmethod
    def of(cls, trust: str, sites: int | None, dropouts: int, colluding: int | None) -> TrustModel:
        """Check the combination; a site knows its own noise, so 1 colludes unless another number is given."""
        one_of("trust", trust, TRUST_MODELS)
        several = trust in (FEDERATED, SITES)
        if several != (sites is not None):
            raise UsageError(
                parameter="sites",
                rule=f"must be given where trust is {FEDERATED!r} or {SITES!r}, and only there",
                got="none" if sites is None else f"{sites}",
                remedy="give the number of sites" if several else "leave it out",
            )
        number = 1 if sites is None else positive_integer("sites", sites, at_most=1 << 20)
        if colluding is None:
            colluding = int(trust == FEDERATED and number >= 2)
        for name, value in (("dropouts", dropouts), ("colluding", colluding)):
            if value < 0 or (value and trust != FEDERATED):
                raise UsageError(
                    parameter=name,
                    rule=f"must be at least 0, and 0 unless trust is {FEDERATED!r}",
                    got=f"{value}",
                    remedy="leave it out",
                )
        if colluding + 2 * dropouts >= number and trust == FEDERATED:
            raise UsageError(
                parameter="colluding",
                rule="and twice the dropouts must be below the number of sites together",
                got=f"{colluding} and {dropouts} of {number}",
                remedy="allow fewer",
            )
        return cls(trust, number, dropouts, colluding)

    @property
    def reported(self) -> bool:
        """Whether every person sends a report, and nobody counts records."""
        return self.name in (SHUFFLED, LOCAL)

    @property
    def noise_variance(self) -> float:
        """In multiples of that of a trusted curator."""
        if self.name == FEDERATED:
            return self.sites / (self.sites - self.dropouts - self.colluding)
        return float(self.sites)

    def mechanism(self, promise: Promise) -> str | None:
        """The law that noise under pure ε must have; None for the better one. Shares of noise are of laws
        that add up, which the Gamma-radius law does not.
        """
        return LAPLACE if self.name == FEDERATED and promise.pure else None

    def applied(self, option: Option) -> Option:
        """An option of a curator's, with the noise of this model."""
        more = (self.noise_variance - 1.0) * option.noise**2
        noise = option.noise * math.sqrt(self.noise_variance)
        return replace(option, noise=noise, error=math.hypot(option.error, math.sqrt(more)))

    def report_options(self, request: PredictionRequest) -> list[Option]:
        """The predicted errors of reports, for some numbers of rows; none for kernels that do not hash.

        Every person's sign has the variance 1/tanh²(ε/2), so that of f(q)/N is 1/(N·tanh²(ε/2)), whatever the
        number of rows; the approximation is that of hash rows of N records.
        """
        kernel, promise = request.kernel, request.promise
        if not isinstance(kernel, HashableKernel) or promise.epsilon is None:
            return []
        if (self.name == SHUFFLED) == promise.pure:
            return []
        epsilon = float(promise.epsilon)
        if self.name == SHUFFLED:
            epsilon = local_epsilon_for(epsilon, request.records, float(promise.delta))
        made = []
        sizes = _ROWS if request.rows is None else request.rows
        for rows in [sizes] if isinstance(sizes, int) else sizes:
            basis = HashRows(kernel, rows, request.width or _WIDTH, 0)
            variance = request.row_variance(basis.width)
            keep = 1.0 / (1.0 - basis.fold_rate)
            noise = keep / (sign_gain(exact("epsilon", epsilon)) * math.sqrt(request.records))
            hashing = float(np.sqrt(keep**2 * variance.row_variance / rows).mean())
            made.append(
                replace(
                    Option.of(
                        request,
                        method=_REPORTS,
                        settings={"rows": rows, "width": basis.width, "local_epsilon": epsilon},
                        mechanism=str(MECHANISM if self.name == LOCAL else SHUFFLED_MECHANISM),
                        shape=basis.shape,
                        noise=NORMAL_MEAN_ABSOLUTE * noise,
                        approximation=NORMAL_MEAN_ABSOLUTE * hashing,
                        error=NORMAL_MEAN_ABSOLUTE * math.hypot(noise, hashing),
                        number_variance=0.0,
                        size=rows * basis.width * (2 if request.records < 2**15 else 4) + HEADER_BYTES,
                        seconds=request.records * _NANOSECONDS_REPORT * 1e-9,
                    ),
                    count_share=0.0,
                )
            )
        return made
