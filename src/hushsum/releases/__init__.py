"""Released functions: public and immutable, the only objects that are published, queried and downloaded.

Importing this package registers every kind.
"""

from hushsum.releases.answers import Answers
from hushsum.releases.base import Released, ReleasedFunction
from hushsum.releases.bundle import Bundle, save_bundle
from hushsum.releases.coefficients import CoefficientFunction
from hushsum.releases.curve import CurveFunction
from hushsum.releases.features_with_public_points import SharpenedFunction
from hushsum.releases.load import load_function, load_released
from hushsum.releases.neighbour_density import NeighbourDensity, neighbour_density
from hushsum.releases.noisy_table import NoisyTable
from hushsum.releases.presentation import Description
from hushsum.releases.public_combination import CombinedFunction, combine
from hushsum.releases.real_function_file import save_curve, save_points
from hushsum.releases.reported_function import ReportedFunction
from hushsum.releases.sketch import TableFunction
from hushsum.releases.table_file import save_table
from hushsum.releases.weighted_points import PointsFunction

__all__ = [
    "Answers",
    "Bundle",
    "CoefficientFunction",
    "CombinedFunction",
    "CurveFunction",
    "Description",
    "NeighbourDensity",
    "NoisyTable",
    "PointsFunction",
    "Released",
    "ReleasedFunction",
    "ReportedFunction",
    "SharpenedFunction",
    "TableFunction",
    "combine",
    "load_function",
    "load_released",
    "neighbour_density",
    "save_bundle",
    "save_curve",
    "save_points",
    "save_table",
]
