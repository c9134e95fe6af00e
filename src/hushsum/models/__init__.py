"""Models on released functions, as scikit-learn estimators.

``fit`` counts and releases under one claim; ``predict`` reads what was released, and never spends.
"""

from hushsum.models._accuracy import (
    MODEL_COUNT_SHARE,
    NOISE,
    PredictedError,
    enough_records,
    part_of,
    shares_within_noise,
)
from hushsum.models._base import (
    MODELS,
    SCALE,
    ClassificationModel,
    KeptRecords,
    PrivateModel,
    RegressionModel,
    declared,
    labels_from_json,
    labels_to_json,
    load_model,
    model_of,
    to_json,
)
from hushsum.models._classifier import (
    SHARE,
    ColumnScaling,
    PrivateClassifier,
    SketchReading,
    columns_quantiles,
    quantiles_are_useful,
    split_promise,
)
from hushsum.models._clusters import (
    FIRST,
    MEANS,
    MOMENTS,
    REFINING_STEPS,
    SPLITTING,
    SQUARES,
    ClusterModel,
    Frame,
    Partition,
    PrivateKMeans,
    PrivateMixture,
    PromiseParts,
    basis_of,
    refined_centers,
    split_cells,
    vectors_by_cell,
)
from hushsum.models._density import (
    FunctionalSums,
    PrivateDensity,
    PrivateHistogram,
    functional_basis,
    normalising_constant,
    planned,
)
from hushsum.models._encoder import PublicEncoder
from hushsum.models._functional import (
    PrivateGaussianProcessRegressor,
    PrivateKernelSVC,
    feature_space,
    vectors_within,
)
from hushsum.models._linear import REGRESSION_METHODS, PrivateLinearSVC, PrivateRegressor, choose_method
from hushsum.models._modes import (
    HeldOut,
    Partitions,
    PrivateModes,
    climb,
    distinct_modes,
    intersect,
    separated,
    solve,
)
from hushsum.models._neighbors import QUANTILE_SHARE, PrivateNeighbors, PrivateOutlierDetector
from hushsum.models._public_rows import PUBLIC_PARAMETERS, median_distance, visible_bandwidth
from hushsum.models._sampler import (
    PrivateSampler,
    by_chain,
    by_rejection,
    diverse_choice,
    from_grid,
    from_list,
)
from hushsum.models._synthesizer import PrivateSynthesizer, ProductMixture, fit_mixture
from hushsum.models._table_model import TableModel, spread_points
from hushsum.records import CategoryColumn, FlagColumn, NumberColumn

__all__ = [
    "FIRST", "MEANS", "MODELS", "MODEL_COUNT_SHARE", "MOMENTS", "NOISE", "PUBLIC_PARAMETERS",
    "QUANTILE_SHARE", "REFINING_STEPS", "REGRESSION_METHODS", "SCALE", "SHARE", "SPLITTING", "SQUARES",
    "CategoryColumn", "ClassificationModel", "ClusterModel", "ColumnScaling",
    "FlagColumn", "Frame", "FunctionalSums", "HeldOut", "KeptRecords", "NumberColumn", "Partition",
    "Partitions", "PredictedError", "PrivateClassifier", "PrivateDensity",
    "PrivateGaussianProcessRegressor", "PrivateHistogram", "PrivateKMeans", "PrivateKernelSVC",
    "PrivateLinearSVC", "PrivateMixture", "PrivateModel", "PrivateModes", "PrivateNeighbors",
    "PrivateOutlierDetector", "PrivateRegressor", "PrivateSampler", "PrivateSynthesizer",
    "ProductMixture", "PromiseParts", "PublicEncoder", "RegressionModel", "SketchReading", "TableModel",
    "basis_of", "by_chain", "by_rejection", "choose_method", "climb", "columns_quantiles", "declared",
    "distinct_modes", "diverse_choice", "enough_records", "feature_space",
    "fit_mixture", "from_grid", "from_list", "functional_basis", "intersect", "labels_from_json",
    "labels_to_json", "load_model", "median_distance", "model_of", "normalising_constant", "part_of",
    "planned", "quantiles_are_useful", "refined_centers", "separated", "shares_within_noise", "solve",
    "split_cells", "split_promise", "spread_points", "to_json", "vectors_by_cell", "vectors_within",
    "visible_bandwidth",
]  # fmt: skip
