"""A bundle: everything a model released, under one claim."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum._types import PathOrFile
from hushsum.files.container import canonical_json
from hushsum.privacy.claim import Claim
from hushsum.releases.base import Released, ReleasedFunction
from hushsum.releases.load import pickled
from hushsum.version import PRODUCER


@dataclass(frozen=True, eq=False)
class Bundle:
    """Named released functions and small public arrays that were paid for together; public, frozen.

    A model releases one, so that a budget is debited once for all of it. Made by the models of
    ``hushsum.models`` or by ``hushsum.load``; not by hand.

    Attributes
    ----------
    claim : Claim
        What all parts together promise. The claims of the parts are those of their own noise: of parts that
        saw different records each may be the whole claim, otherwise they add up to it.
    about : mapping
        Public facts as JSON values: which model, its parameters, the columns, and under which assumptions
        the claim holds.
    parts : mapping of str to ReleasedFunction
    arrays : mapping of str to array
        Of ``float64`` or ``int64``, read-only.

    Privacy
    -------
    Everything here is public, so using it spends nothing.
    """

    claim: Claim
    about: Mapping[str, Any]
    parts: Mapping[str, ReleasedFunction] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    producer: str = PRODUCER

    def __post_init__(self) -> None:
        canonical_json(dict(self.about))
        arrays = {name: _frozen(values) for name, values in self.arrays.items()}
        for name, value in (("about", dict(self.about)), ("parts", dict(self.parts)), ("arrays", arrays)):
            object.__setattr__(self, name, MappingProxyType(value))

    def __repr__(self) -> str:
        inside = ", ".join([*self.parts, *self.arrays])
        return f"Bundle({self.about.get('model', 'no model')!r}: {inside}; claim={self.claim!r})"

    def save(self, target: PathOrFile) -> None:
        """Write a ``.hush`` file; to a path atomically."""
        from hushsum.releases.bundle_file import save_bundle

        save_bundle(self, target)

    def __reduce__(self) -> tuple[Callable[[bytes], Released], tuple[bytes]]:
        return pickled(self)


def _frozen(values: NDArray[Any]) -> NDArray[Any]:
    """A read-only copy, of whole numbers or of reals."""
    kind = np.asarray(values).dtype.kind
    if kind not in "biuf":
        raise TypeError("a bundle holds arrays of numbers")
    array = np.array(values, dtype=np.float64 if kind == "f" else np.int64)
    array.flags.writeable = False
    return array
