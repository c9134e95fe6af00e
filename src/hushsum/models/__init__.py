"""Models on released functions, as scikit-learn estimators.

``fit`` counts and releases under one claim; ``predict`` reads what was released, and never spends.
"""

from hushsum.models.classifier import PrivateClassifier
from hushsum.models.density import PrivateDensity
from hushsum.models.encoder import PublicEncoder
from hushsum.models.gaussian_process import PrivateGaussianProcessRegressor
from hushsum.models.histogram import PrivateHistogram
from hushsum.models.kernel_svc import PrivateKernelSVC
from hushsum.models.kmeans import PrivateKMeans
from hushsum.models.linear_svc import PrivateLinearSVC
from hushsum.models.load import load_model
from hushsum.models.mixture import PrivateMixture
from hushsum.models.modes import PrivateModes
from hushsum.models.neighbors import PrivateNeighbors
from hushsum.models.outlier_detector import PrivateOutlierDetector
from hushsum.models.regressor import PrivateRegressor
from hushsum.models.sampler import PrivateSampler
from hushsum.models.synthesizer import PrivateSynthesizer
from hushsum.records.declared_columns import CategoryColumn, FlagColumn
from hushsum.records.number_column import NumberColumn

__all__ = [
    "CategoryColumn",
    "FlagColumn",
    "NumberColumn",
    "PrivateClassifier",
    "PrivateDensity",
    "PrivateGaussianProcessRegressor",
    "PrivateHistogram",
    "PrivateKMeans",
    "PrivateKernelSVC",
    "PrivateLinearSVC",
    "PrivateMixture",
    "PrivateModes",
    "PrivateNeighbors",
    "PrivateOutlierDetector",
    "PrivateRegressor",
    "PrivateSampler",
    "PrivateSynthesizer",
    "PublicEncoder",
    "load_model",
]
