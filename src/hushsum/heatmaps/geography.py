"""Longitude and latitude in metres: an equidistant projection about the middle of declared bounds."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Final

from hushsum.errors import SuspiciousParameter, UsageError
from hushsum.kernels.base import Kernel
from hushsum.kernels.composition import on_columns, product
from hushsum.kernels.gaussian import GaussianKernel
from hushsum.records.bounds import Bounds

# The ellipsoid of WGS 84.
_EQUATOR: Final = 6_378_137.0
_SQUARED_ECCENTRICITY: Final = 0.00669437999014
_STRETCHED: Final = 0.05
"""From here on a warning says how far distances along parallels are off at the edge of the box."""

_MOST_STRETCHED: Final = 0.5


@dataclass(frozen=True, slots=True)
class LocalScale:
    """Metres per degree of longitude and of latitude, taken as constant in a declared box.

    This is the equidistant cylindrical projection whose standard parallel is the middle of the box: distances
    along meridians, and along the middle parallel, are right to a thousandth; along other parallels they are
    off by ``stretch`` at most. It is linear in each column, so it is applied to the bandwidths of the kernel
    and not to the records: what is released, and queried, is in degrees.

    Parameters
    ----------
    longitude, latitude : float
        Metres per degree.
    stretch : float
        The largest relative error of a distance along a parallel in the box.

    Privacy
    -------
    It is computed from declared bounds alone. A record's place depends on that record alone.

    Examples
    --------
    >>> scale = LocalScale.of([(2.0, 2.7), (48.6, 49.1)])
    >>> round(scale.longitude), round(scale.latitude), round(scale.stretch, 4)
    (73391, 111207, 0.005)
    """

    longitude: float
    latitude: float
    stretch: float

    @classmethod
    def of(cls, bounds: object) -> LocalScale:
        """The scale of a box of longitudes and latitudes in degrees.

        Raises
        ------
        UsageError
            if the box is not on the globe, or so tall that a degree of longitude varies by half.
        """
        box = Bounds.declared(bounds, 2, "a heat map")
        (west, south), (east, north) = box.low, box.high
        if not (west >= -360.0 and east <= 360.0 and east - west <= 360.0 and south > -90.0 and north < 90.0):
            raise UsageError(
                parameter="bounds",
                rule="must be longitudes from -180 to 180 and latitudes between -90 and 90, in that order",
                got=f"{west:g}:{east:g},{south:g}:{north:g}",
                remedy="swap the columns, or say that the columns lie in a plane",
            )
        middle = math.radians((south + north) / 2.0)
        along = _parallel(middle)
        edges = (south, north, _nearest(south, north))
        stretch = max(abs(_parallel(math.radians(edge)) / along - 1.0) for edge in edges)
        if stretch > _MOST_STRETCHED:
            raise UsageError(
                parameter="bounds",
                rule="must be a box in which a degree of longitude is about equally long",
                got=f"one in which it differs by {stretch:.0%}",
                remedy="make maps of parts of it",
            )
        return cls(along, _meridian(middle), stretch)

    def warn(self) -> None:
        """Say how far distances are off in a tall box, before anything is spent."""
        if self.stretch > _STRETCHED:
            warnings.warn(
                f"distances from east to west are off by up to {self.stretch:.0%} at the edge of this box, "
                "because meridians meet; maps of parts of it are more faithful",
                SuspiciousParameter,
                stacklevel=4,
            )

    def kernel(self, bandwidth: float) -> Kernel:
        """A Gaussian whose standard deviation is so many metres, for columns in degrees."""
        return product(
            on_columns(GaussianKernel(1, bandwidth / self.longitude), 0, of=2),
            on_columns(GaussianKernel(1, bandwidth / self.latitude), 1, of=2),
        )

    def expression(self, bandwidth: float) -> str:
        """The same kernel as text."""
        east, north = bandwidth / self.longitude, bandwidth / self.latitude
        return f"gaussian(0, bandwidth={east!r}) * gaussian(1, bandwidth={north!r})"


def _nearest(south: float, north: float) -> float:
    """The latitude of the box that is nearest to the equator."""
    return 0.0 if south <= 0.0 <= north else min(abs(south), abs(north))


def _parallel(latitude: float) -> float:
    """Metres per degree along the parallel at a latitude in radians."""
    radius = _EQUATOR / math.sqrt(1.0 - _SQUARED_ECCENTRICITY * math.sin(latitude) ** 2)
    return math.radians(1.0) * radius * math.cos(latitude)


def _meridian(latitude: float) -> float:
    """Metres per degree along a meridian."""
    shape = 1.0 - _SQUARED_ECCENTRICITY * math.sin(latitude) ** 2
    return math.radians(1.0) * _EQUATOR * (1.0 - _SQUARED_ECCENTRICITY) / math.pow(shape, 1.5)
