"""Analysis of released functions, which spends nothing: comparisons, drift over steps, and clusters."""

from ._cells import (
    COVARIANCE_TYPES,
    FULL,
    SPHERICAL,
    Cells,
    Mixture,
    Sketch,
    check_function,
    cluster_cells,
    enough_cells,
    fit_mixture,
    nearest_centers,
    number_of_clusters,
    number_of_components,
    released_cells,
    restricted,
    sizes_and_spread,
)
from ._compare import Comparison, Region, compare
from ._difference import fit_records
from ._drift import Drift, DriftCheck, drift
from ._two_sample_test import (
    Coordinates,
    SquaredDistance,
    TwoSampleTest,
    filtered_test,
    separate_test,
    squared_distance,
    weighted_square_tail,
)

__all__ = [
    "COVARIANCE_TYPES", "FULL", "SPHERICAL", "Cells", "Comparison", "Coordinates", "Drift", "DriftCheck",
    "Mixture", "Region", "Sketch", "SquaredDistance", "TwoSampleTest", "check_function", "cluster_cells",
    "compare", "drift", "enough_cells", "filtered_test", "fit_mixture", "fit_records", "nearest_centers",
    "number_of_clusters", "number_of_components", "released_cells", "restricted",
    "separate_test", "sizes_and_spread", "squared_distance", "weighted_square_tail",
]  # fmt: skip
