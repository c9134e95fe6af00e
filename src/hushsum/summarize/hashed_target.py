"""The validation set's release as a file, for a curator that must not see the validation set either."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hushsum.errors import FileRefused
from hushsum.summarize.calibration import count_step, target_variance
from hushsum.summarize.features import SummaryFeatures
from hushsum.summarize.target import NoisyTarget
from hushsum.transport.serialization import pack, unpack

PUBLIC_SEED = 0
"""What stands in for the seed wherever the curator can read."""


@dataclass(frozen=True, slots=True, eq=False)
class HashedTarget:
    """A `NoisyTarget` under a secret seed, with what the curator needs to agree on terms.

    ``features`` have `PUBLIC_SEED`; ``columns`` are the names that were hashed, in order; ``check`` is the
    secret's, by which owners see that they hold the same one.
    """

    features: SummaryFeatures
    columns: tuple[str, ...]
    check: str
    target: NoisyTarget

    def to_bytes(self) -> bytes:
        """The one spelling."""
        values = {
            "features": replace(self.features, seed=PUBLIC_SEED).as_json(),
            "columns": list(self.columns),
            "check": self.check,
        }
        return pack("hashed target", values, {"target": np.frombuffer(self.target.to_bytes(), np.int8)})

    @classmethod
    def from_bytes(cls, data: bytes) -> HashedTarget:
        """Read it back.

        Raises
        ------
        FileRefused
            it is none, is damaged, or its noise is not that of its promise.
        """
        _, values, arrays = unpack(data, "hashed target")
        try:
            features = SummaryFeatures.from_json(values["features"])
            columns, check = values["columns"], values["check"]
            if not columns or not all(isinstance(each, str) for each in [*columns, check]):
                raise ValueError("names")
            target = NoisyTarget.from_bytes(arrays["target"].astype(np.int8).tobytes())
        except (KeyError, TypeError, ValueError, ArithmeticError):
            raise FileRefused(rule="this validation release is damaged", remedy="get a fresh copy") from None
        expected = (count_step(features), features.width + 1)
        if (target.step, target.cells.size) != expected or target.rho <= 0:
            raise FileRefused(
                rule="this validation release is of other features than it says", remedy="get a fresh copy"
            )
        if target.variance != target_variance(features, target.rho):
            raise FileRefused(
                rule="this validation release has other noise than its promise needs", remedy="refuse it"
            )
        found = cls(features, tuple(columns), check, target)
        if found.to_bytes() != data:
            raise FileRefused(rule="this validation release is damaged", remedy="get a fresh copy")
        return found
