"""Models on released functions, as scikit-learn estimators.

They count in secret, release once under one claim, and answer from what they released.
"""

from hushsum.models.base import PrivateModel
from hushsum.models.classification import PrivateClassifier
from hushsum.models.density import PrivateDensity
from hushsum.models.load import load_model

__all__ = ["PrivateClassifier", "PrivateDensity", "PrivateModel", "load_model"]
