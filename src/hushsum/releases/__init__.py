"""Released functions: public and immutable, the only objects that are published, queried and downloaded.

Importing this package registers every kind.
"""

from . import _table_file as _table_file  # registers the kind
from ._base import (
    COMMON_FACTS,
    UNKNOWN_ERRORS,
    Answers,
    Column,
    Description,
    Detail,
    Payload,
    PlotKeywords,
    PlottedColumns,
    Points,
    Presented,
    PublicFacts,
    QueryOptions,
    Quotient,
    Range,
    Released,
    ReleasedFunction,
    check_level,
    check_question,
    file_bytes,
    function_in,
    load_function,
    load_released,
    normal_answers,
    normal_quantile,
    query_points,
    register,
    stored_integer,
)
from ._boxes import ONE_PROFILE, BoxesFunction
from ._bundle import Bundle
from ._noisy_table import (
    ROUNDING_SHARE,
    UNSEEN_SHARE,
    NoisyTable,
    StepCovariance,
    StreamStep,
    largest_step,
    round_cells,
    step_covariance,
    stream_unit,
)
from ._nonnegative import NonnegativeFunction, nearest_probabilities
from ._points import (
    MOST_NUMBERS,
    FeatureErrors,
    PointsFunction,
    RealFunction,
    all_measured,
    check_kernel,
    common_fields,
    encode_reals,
    register_reals,
)
from ._prepared import Prepared
from ._public_points import (
    FEWEST_POINTS,
    MOST_POINTS,
    PUBLIC_SAMPLE,
    CombinedFunction,
    ForwardedFacts,
    SharpenedFunction,
    combine,
    released_table,
    sample_points,
    sharpened,
)
from ._reported_function import ReportedFunction
from ._table_answers import (
    ESTIMATORS,
    CoefficientFunction,
    NeighbourDensity,
    TableFunction,
    function_type,
    neighbour_density,
    noise_table,
    simultaneous_reach,
)

__all__ = [
    "COMMON_FACTS", "ESTIMATORS", "FEWEST_POINTS", "MOST_NUMBERS", "MOST_POINTS", "ONE_PROFILE",
    "PUBLIC_SAMPLE", "ROUNDING_SHARE", "UNKNOWN_ERRORS", "UNSEEN_SHARE", "Answers", "BoxesFunction",
    "Bundle", "CoefficientFunction", "Column", "CombinedFunction", "Description", "Detail", "FeatureErrors",
    "ForwardedFacts", "NeighbourDensity", "NoisyTable", "NonnegativeFunction", "Payload", "PlotKeywords",
    "PlottedColumns", "Points", "PointsFunction", "Prepared", "Presented", "PublicFacts", "QueryOptions",
    "Quotient", "Range", "RealFunction", "Released", "ReleasedFunction", "ReportedFunction",
    "SharpenedFunction", "StepCovariance", "StreamStep", "TableFunction", "all_measured", "check_kernel",
    "check_level", "check_question", "combine", "common_fields", "encode_reals", "file_bytes",
    "function_in", "function_type", "largest_step", "load_function", "load_released",
    "nearest_probabilities", "neighbour_density", "noise_table", "normal_answers", "normal_quantile",
    "query_points", "register", "register_reals", "released_table", "round_cells", "sample_points",
    "sharpened", "simultaneous_reach", "step_covariance", "stored_integer", "stream_unit",
]  # fmt: skip
