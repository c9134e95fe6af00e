"""Bases (the vector that one record adds to a tally) and their readings (how a noisy table is queried).

Importing this package registers every basis.
"""

from hushsum.bases.adjacency_rows import AdjacencyRows
from hushsum.bases.base import Basis, LinearReading, Reading, RowAverages, RowReading, SampledReading
from hushsum.bases.bernstein import BernsteinLattice
from hushsum.bases.bins import Bins
from hushsum.bases.box_polynomials import BoxPolynomials
from hushsum.bases.class_moments import ClassMoments
from hushsum.bases.cosine_features import CosineFeatures
from hushsum.bases.fourier_features import FourierFeatures
from hushsum.bases.fourier_series import FourierSeries
from hushsum.bases.grid_weights import GridWeights
from hushsum.bases.hash_rows import HashRows
from hushsum.bases.hash_rows_of_combination import DividedRows
from hushsum.bases.marginals import Marginals
from hushsum.bases.moments import Moments
from hushsum.bases.monomials import Monomials
from hushsum.bases.registry import basis_as_json, basis_from_json, register
from hushsum.bases.trigonometric import TrigonometricPolynomials
from hushsum.bases.weighted_increments import IncrementRows

__all__ = [
    "AdjacencyRows",
    "Basis",
    "BernsteinLattice",
    "Bins",
    "BoxPolynomials",
    "ClassMoments",
    "CosineFeatures",
    "DividedRows",
    "FourierFeatures",
    "FourierSeries",
    "GridWeights",
    "HashRows",
    "IncrementRows",
    "LinearReading",
    "Marginals",
    "Moments",
    "Monomials",
    "Reading",
    "RowAverages",
    "RowReading",
    "SampledReading",
    "TrigonometricPolynomials",
    "basis_as_json",
    "basis_from_json",
    "register",
]
