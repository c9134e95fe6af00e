"""The finite feature space of a model: kernel by name, features by seed."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from hushsum._types import Box, Floats
from hushsum.bases.fourier_features import FourierFeatures
from hushsum.errors import UsageError, shown
from hushsum.kernels.base import Kernel
from hushsum.kernels.gaussian import GaussianKernel
from hushsum.kernels.laplacian import LaplacianKernel
from hushsum.kernels.matern import MaternKernel
from hushsum.models.model_state import KeptRecords
from hushsum.models.parameters import NUMBER, TEXT, Parameter
from hushsum.records.bounds import Bounds

KERNELS = ("gaussian", "matern", "laplacian")
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
        if getattr(name, "dim", None) != dim:
            raise UsageError(
                parameter="kernel",
                rule=f"must compare {dim} columns",
                got="another number",
                remedy=f"give it dim={dim}",
            )
        return name
    if name == "gaussian":
        return GaussianKernel(dim=dim, bandwidth=bandwidth)
    if name == "matern":
        return MaternKernel(dim=dim, bandwidth=bandwidth, smoothness=smoothness)
    if name == "laplacian":
        return LaplacianKernel(dim=dim, bandwidth=bandwidth)
    raise UsageError(
        parameter="kernel",
        rule=f"must be one of {', '.join(KERNELS)}, or a kernel of columns",
        got=shown(name),
        remedy="choose one",
    )


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
