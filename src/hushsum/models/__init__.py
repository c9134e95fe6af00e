"""Models on released functions, as scikit-learn estimators.

``fit`` counts and releases under one claim; ``predict`` reads what was released, and never spends.
"""

from hushsum.models._accuracy import NOISE, PredictedError
from hushsum.models._base import (
    MODELS,
    SCALE,
    ClassificationModel,
    PrivateModel,
    RegressionModel,
    declared,
    labels_from_json,
    labels_to_json,
    load_model,
    model_of,
    to_json,
)
from hushsum.models._classifier import PrivateClassifier
from hushsum.models._clusters import ClusterModel, PrivateKMeans, PrivateMixture
from hushsum.models._density import PrivateDensity, PrivateHistogram, normalising_constant
from hushsum.models._encoder import PublicEncoder
from hushsum.models._functional import (
    PrivateGaussianProcessRegressor,
    PrivateKernelSVC,
    feature_space,
    vectors_within,
)
from hushsum.models._linear import PrivateLinearSVC, PrivateRegressor
from hushsum.models._modes import PrivateModes
from hushsum.models._neighbors import PrivateNeighbors, PrivateOutlierDetector
from hushsum.models._sampler import PrivateSampler, by_chain, from_grid
from hushsum.models._synthesizer import PrivateSynthesizer
from hushsum.models._table_model import TableModel
from hushsum.records import CategoryColumn, FlagColumn, NumberColumn

__all__ = [
    "MODELS", "NOISE", "SCALE", "CategoryColumn", "ClassificationModel", "ClusterModel", "FlagColumn",
    "NumberColumn", "PredictedError", "PrivateClassifier", "PrivateDensity",
    "PrivateGaussianProcessRegressor", "PrivateHistogram", "PrivateKMeans", "PrivateKernelSVC",
    "PrivateLinearSVC", "PrivateMixture", "PrivateModel", "PrivateModes", "PrivateNeighbors",
    "PrivateOutlierDetector", "PrivateRegressor", "PrivateSampler", "PrivateSynthesizer", "PublicEncoder",
    "RegressionModel", "TableModel", "by_chain", "declared", "feature_space", "from_grid",
    "labels_from_json", "labels_to_json", "load_model", "model_of", "normalising_constant", "to_json",
    "vectors_within",
]  # fmt: skip
