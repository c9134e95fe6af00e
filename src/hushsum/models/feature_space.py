"""The finite feature space of a model: kernel by name, features by seed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Box, Floats
from hushsum.bases.fourier_features import FourierFeatures
from hushsum.errors import UsageError, shown
from hushsum.kernels.bandwidth_scale import in_scale
from hushsum.kernels.base import ColumnKernel, Kernel
from hushsum.kernels.registry import SPECTRAL, named, parameter_names
from hushsum.models.model_state import KeptRecords
from hushsum.models.parameters import FROM_PUBLIC, NUMBER, SCALE, TEXT, Parameter
from hushsum.models.public_rows import median_distance
from hushsum.records.bounds import Bounds

KERNELS = tuple(SPECTRAL.kernels())
KERNEL_PARAMETERS = (
    Parameter("kernel", TEXT, "Of the feature space.", choices=KERNELS, kernel=True),
    Parameter(
        "bandwidth",
        NUMBER,
        "How near inputs must be to have similar targets. Public: chosen by the subject or on public data, "
        "never fitted to y. See scale. 'public': the median distance between the public rows.",
        above=0,
        choices=(FROM_PUBLIC,),
    ),
    SCALE,
    Parameter("smoothness", NUMBER, "Of the Matérn kernel alone.", above=0),
)


def feature_kernel(
    name: Any,
    *,
    dim: int,
    bandwidth: float,
    smoothness: float,
    scale: str | None = None,
    box: Box | None = None,
) -> Kernel:
    """A kernel of columns with a spectral measure, by its name or as it was given, in the units of the data.

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
        return in_scale(name, scale, box, default=False)
    if name not in KERNELS:
        raise UsageError(
            parameter="kernel",
            rule=f"must be one of {', '.join(KERNELS)}, or a kernel of columns",
            got=shown(name),
            remedy="choose one",
        )
    taken: dict[str, Any] = {"smoothness": smoothness} if "smoothness" in parameter_names(name) else {}
    return in_scale(named(name, dim=dim, bandwidth=bandwidth, **taken), scale, box)


def declared_kernel(model: Any, n_features: int) -> Kernel:
    """The kernel of a model with these parameters, before any record is seen."""
    return feature_kernel(
        model.kernel,
        dim=n_features,
        bandwidth=model.effective("bandwidth", n_features),
        smoothness=model.smoothness,
        scale=model.effective("scale", n_features),
        box=model.column_bounds(n_features),
    )


def public_median_bandwidth(
    kernel: Any, rows: Floats, *, smoothness: float, scale: str | None, box: Box
) -> float:
    """The median distance between public rows, in what the bandwidth is measured in."""
    dim = rows.shape[1]
    one = feature_kernel(kernel, dim=dim, bandwidth=1.0, smoothness=smoothness, scale=scale, box=box)
    units = np.array(one.column_bandwidths()) if isinstance(one, ColumnKernel) else np.ones(1)
    return median_distance(rows / units)


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
