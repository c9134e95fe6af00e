"""The finite feature space of a model: kernel by name, features by seed."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from hushsum._types import Box, Floats
from hushsum.bases.fourier_features import FourierFeatures
from hushsum.errors import UsageError, shown
from hushsum.kernels.base import Kernel
from hushsum.kernels.registry import SPECTRAL, named, parameter_names
from hushsum.models.model_state import KeptRecords
from hushsum.models.parameters import NUMBER, TEXT, Parameter
from hushsum.records.bounds import Bounds

KERNELS = tuple(SPECTRAL.kernels())
KERNEL_PARAMETERS = (
    Parameter("kernel", TEXT, "Of the feature space.", choices=KERNELS, kernel=True),
    Parameter(
        "bandwidth",
        NUMBER,
        "Of the kernel. Public: chosen by the subject or on public data, never fitted to y.",
        above=0,
    ),
    Parameter("smoothness", NUMBER, "Of the Matérn kernel alone.", above=0),
)


def feature_kernel(name: Any, *, dim: int, bandwidth: float, smoothness: float) -> Kernel:
    """A kernel of columns with a spectral measure, by its name or as it was given.

    >>> feature_kernel("gaussian", dim=2, bandwidth=0.5, smoothness=1.5)
    GaussianKernel(dim=2, bandwidth=0.5, power=1)
    """
    if isinstance(name, Kernel):
        if name.dim != dim:
            raise UsageError(
                parameter="kernel",
                rule=f"must compare {dim} columns",
                got="another number",
                remedy=f"give it dim={dim}",
            )
        return name
    if name not in KERNELS:
        raise UsageError(
            parameter="kernel",
            rule=f"must be one of {', '.join(KERNELS)}, or a kernel of columns",
            got=shown(name),
            remedy="choose one",
        )
    taken: dict[str, Any] = {"smoothness": smoothness} if "smoothness" in parameter_names(name) else {}
    return named(name, dim=dim, bandwidth=bandwidth, **taken)


def feature_space(kernel: Kernel, *, features: int, seed: int, box: Box) -> FourierFeatures:
    """Features for a kernel; refuses one without a spectral measure."""
    return FourierFeatures(kernel, features, seed, True, Bounds.of(box, len(box)))


def vectors_within(space: FourierFeatures, points: Floats) -> Floats:
    """φ of points moved to the nearest one of the box, shape (n, 2·features)."""
    return space.vectors(space.prepare(points))


class KeptPairs(KeptRecords):
    """Feature vectors of points with a whole number each; secret."""

    __slots__ = ("space",)

    def __init__(self, space: FourierFeatures) -> None:
        super().__init__()
        self.space = space

    def add(self, points: Floats, numbers: NDArray[Any]) -> None:
        """Keep a batch."""
        super().add(vectors_within(self.space, points), numbers)
