"""Models on released functions, as scikit-learn estimators.

``fit`` counts and releases under one claim; ``predict`` reads what was released, and never spends.
"""

from hushsum.records import CategoryColumn, DateColumn, FlagColumn, NumberColumn

from ._accuracy import MODEL_COUNT_SHARE, NOISE, PredictedError, enough_records, part_of, shares_within_noise
from ._base import (
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
from ._classifier import PrivateClassifier
from ._clusters import ClusterModel, PrivateKMeans, PrivateMixture
from ._density import PrivateDensity, PrivateHistogram, normalising_constant
from ._encoder import PublicEncoder
from ._functional import PrivateGaussianProcessRegressor, PrivateKernelSVC, feature_space, vectors_within
from ._linear import REGRESSION_METHODS, PrivateLinearSVC, PrivateRegressor
from ._modes import PrivateModes
from ._neighbors import PrivateNeighbors
from ._outliers import PrivateOutlierDetector
from ._public_rows import PUBLIC_PARAMETERS, median_distance, visible_bandwidth
from ._sampler import PrivateSampler, by_chain, by_rejection, diverse_choice, from_grid, from_list
from ._synthesizer import PrivateSynthesizer, ProductMixture, fit_mixture
from ._table_model import TableModel, spread_points

__all__ = [
    "MODELS", "MODEL_COUNT_SHARE", "NOISE", "PUBLIC_PARAMETERS", "REGRESSION_METHODS", "SCALE",
    "CategoryColumn", "ClassificationModel", "ClusterModel", "DateColumn", "FlagColumn", "KeptRecords",
    "NumberColumn",
    "PredictedError", "PrivateClassifier", "PrivateDensity", "PrivateGaussianProcessRegressor",
    "PrivateHistogram", "PrivateKMeans", "PrivateKernelSVC", "PrivateLinearSVC", "PrivateMixture",
    "PrivateModel", "PrivateModes", "PrivateNeighbors", "PrivateOutlierDetector", "PrivateRegressor",
    "PrivateSampler", "PrivateSynthesizer", "ProductMixture", "PublicEncoder", "RegressionModel",
    "TableModel", "by_chain", "by_rejection", "declared", "diverse_choice", "enough_records", "feature_space",
    "fit_mixture", "from_grid", "from_list", "labels_from_json", "labels_to_json", "load_model",
    "median_distance", "model_of", "normalising_constant", "part_of", "shares_within_noise", "spread_points",
    "to_json", "vectors_within", "visible_bandwidth",
]  # fmt: skip
