"""Tables that tallies count: what a record adds (a `Basis`), and how a noisy table is queried (a `Reading`).

Importing this package registers every basis of the core.
"""

from hushsum.tables._adjacency_rows import AdjacencyRows
from hushsum.tables._base import (
    Basis,
    Cells,
    LinearReading,
    Reading,
    RowAverages,
    RowReading,
    SampledReading,
    Table,
    counted_alone,
    probed_covariance,
)
from hushsum.tables._bins import Bins, BinsReading, cell_errors
from hushsum.tables._declared_box import (
    DEFAULT_SCALE,
    HEAPED_SHARE,
    MAX_SCALE,
    RACE,
    BoxBasis,
    BoxReading,
    blocks,
    check_columns_of,
    check_power,
    contracted,
    cosine_and_sine,
    exponential_of_minus,
    gaussian_width,
    larger,
    outer_products,
    queries_of,
)
from hushsum.tables._fourier_features import (
    AMPLITUDE,
    LENGTH,
    MAX_NUMBERS,
    MOST_BLOCKS,
    TYPICAL_PAIR_VARIANCE,
    Explained,
    FeatureError,
    FeatureReading,
    FourierFeatures,
    chance_error,
    explain,
    feature_sensitivity,
    least_similarity,
    pair_variance,
    pairs_for_laplace,
    predicted_error,
    squared_diameter,
)
from hushsum.tables._fourier_series import MAX_FREQUENCY, FourierSeries, SeriesReading
from hushsum.tables._grid import (
    CORNER_CELLS,
    HIGHEST_DEGREE,
    LOWEST_DEGREE,
    MAX_CELLS,
    MAX_DIM,
    WHOLE,
    WIDEST,
    GridColumn,
    GridReader,
    GridReading,
    GridWeights,
    column_factors,
    inner_products,
    part_table,
    profiles_of,
    spline_values,
)
from hushsum.tables._hash_rows import (
    LARGE_TABLE,
    DividedReading,
    DividedRows,
    HashReading,
    HashRows,
    IncrementRows,
    groups_for,
    median_of_means_bound,
    rows_for_laplace,
)
from hushsum.tables._marginals import MOST_CELLS, MOST_COLUMNS, Marginals
from hushsum.tables._moments import ClassMoments, Moments
from hushsum.tables._monomials import MOST_SQUARED, PUBLIC_ROWS, SQUARE_WEIGHT, Monomials
from hushsum.tables._registry import (
    all_bases,
    basis_as_json,
    basis_from_json,
    load_baselines,
    reading_as_json,
    reading_from_json,
    register,
)

__all__ = [
    "AMPLITUDE", "CORNER_CELLS", "DEFAULT_SCALE", "HEAPED_SHARE", "HIGHEST_DEGREE", "LARGE_TABLE", "LENGTH",
    "LOWEST_DEGREE", "MAX_CELLS", "MAX_DIM", "MAX_FREQUENCY", "MAX_NUMBERS", "MAX_SCALE", "MOST_BLOCKS",
    "MOST_CELLS", "MOST_COLUMNS", "MOST_SQUARED", "PUBLIC_ROWS", "RACE", "SQUARE_WEIGHT",
    "TYPICAL_PAIR_VARIANCE", "WHOLE", "WIDEST", "AdjacencyRows", "Basis", "Bins", "BinsReading", "BoxBasis",
    "BoxReading", "Cells", "ClassMoments", "DividedReading", "DividedRows", "Explained", "FeatureError",
    "FeatureReading", "FourierFeatures", "FourierSeries", "GridColumn", "GridReader", "GridReading",
    "GridWeights", "HashReading", "HashRows", "IncrementRows", "LinearReading", "Marginals", "Moments",
    "Monomials", "Reading", "RowAverages", "RowReading", "SampledReading", "SeriesReading", "Table",
    "all_bases", "basis_as_json", "basis_from_json", "blocks", "cell_errors", "chance_error",
    "check_columns_of", "check_power", "column_factors", "contracted", "cosine_and_sine", "counted_alone",
    "explain", "exponential_of_minus", "feature_sensitivity", "gaussian_width", "groups_for",
    "inner_products", "larger", "least_similarity", "load_baselines", "median_of_means_bound",
    "outer_products", "pair_variance", "pairs_for_laplace", "part_table", "predicted_error",
    "probed_covariance", "profiles_of", "queries_of", "reading_as_json", "reading_from_json", "register",
    "rows_for_laplace", "spline_values", "squared_diameter",
]  # fmt: skip
