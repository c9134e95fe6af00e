"""Tables that tallies count: what a record adds (a `Basis`), and how a noisy table is queried (a `Reading`).

Importing this package registers every basis of the core.
"""

from ._base import (
    Basis,
    Cells,
    LinearReading,
    Reading,
    RowAverages,
    SampledReading,
    Table,
    all_bases,
    basis_as_json,
    basis_from_json,
    counted_alone,
    load_baselines,
    probed_covariance,
    reading_as_json,
    reading_from_json,
    register,
    slices,
)
from ._declared_box import (
    DEFAULT_SCALE,
    HEAPED_SHARE,
    MAX_FREQUENCY,
    MAX_SCALE,
    RACE,
    Bins,
    BoxBasis,
    BoxReading,
    FourierSeries,
    SeriesReading,
    blocks,
    cell_errors,
    check_columns_of,
    check_power,
    contracted,
    cosine_and_sine,
    exponential_of_minus,
    gaussian_width,
    outer_products,
    queries_of,
)
from ._fourier_features import (
    AMPLITUDE,
    LENGTH,
    Explained,
    FeatureError,
    FeatureReading,
    FourierFeatures,
    chance_error,
    explain,
    pair_variance,
    pairs_for_laplace,
    predicted_error,
)
from ._grid import (
    CORNER_CELLS,
    HIGHEST_DEGREE,
    LOWEST_DEGREE,
    MAX_CELLS,
    MAX_DIM,
    WHOLE,
    WIDEST,
    GridReading,
    GridWeights,
)
from ._hash_rows import (
    LARGE_TABLE,
    AdjacencyRows,
    DividedRows,
    HashRows,
    IncrementRows,
    RowReading,
    groups_for,
    median_of_means_bound,
    rows_for_laplace,
)
from ._marginals import MOST_CELLS, MOST_COLUMNS, Marginals
from ._moments import MOST_SQUARED, PUBLIC_ROWS, SQUARE_WEIGHT, ClassMoments, Moments, Monomials

__all__ = [
    "AMPLITUDE", "CORNER_CELLS", "DEFAULT_SCALE", "HEAPED_SHARE", "HIGHEST_DEGREE", "LARGE_TABLE", "LENGTH",
    "LOWEST_DEGREE", "MAX_CELLS", "MAX_DIM", "MAX_FREQUENCY", "MAX_SCALE", "MOST_CELLS", "MOST_COLUMNS",
    "MOST_SQUARED", "PUBLIC_ROWS", "RACE", "SQUARE_WEIGHT", "WHOLE", "WIDEST", "AdjacencyRows", "Basis",
    "Bins", "BoxBasis", "BoxReading", "Cells", "ClassMoments", "DividedRows", "Explained", "FeatureError",
    "FeatureReading", "FourierFeatures", "FourierSeries", "GridReading", "GridWeights", "HashRows",
    "IncrementRows", "LinearReading", "Marginals", "Moments", "Monomials", "Reading", "RowAverages",
    "RowReading", "SampledReading", "SeriesReading", "Table", "all_bases", "basis_as_json", "basis_from_json",
    "blocks", "cell_errors", "chance_error", "check_columns_of", "check_power", "contracted",
    "cosine_and_sine", "counted_alone", "explain", "exponential_of_minus", "gaussian_width", "groups_for",
    "load_baselines", "median_of_means_bound", "outer_products", "pair_variance", "pairs_for_laplace",
    "predicted_error", "probed_covariance", "queries_of", "reading_as_json", "reading_from_json", "register",
    "rows_for_laplace", "slices",
]  # fmt: skip
