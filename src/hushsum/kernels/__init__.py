"""Kernels: similarities between records and queries, and the roles that methods require of them.

Importing this package registers every kernel.
"""

from hushsum.kernels.angular import AngularKernel
from hushsum.kernels.asymmetric import AsymmetricAngularKernel
from hushsum.kernels.base import (
    CategoricalKernel,
    ColumnKernel,
    GaussianProfileKernel,
    HashableCombination,
    HashableKernel,
    InnerProductKernel,
    Kernel,
    ProfileKernel,
    SpectralKernel,
)
from hushsum.kernels.combination import CombinationKernel
from hushsum.kernels.composition import on_columns
from hushsum.kernels.euclidean import EuclideanKernel
from hushsum.kernels.fit_combination import FittedKernel, fit_kernel
from hushsum.kernels.gaussian import GaussianKernel
from hushsum.kernels.hamming import HammingKernel
from hushsum.kernels.inner_product import DotProductKernel, PolynomialKernel
from hushsum.kernels.jaccard import JaccardKernel
from hushsum.kernels.laplacian import LaplacianKernel
from hushsum.kernels.manhattan import ManhattanKernel
from hushsum.kernels.matern import MaternKernel
from hushsum.kernels.product import ProductKernel
from hushsum.kernels.registry import (
    kernel_as_json,
    kernel_from_json,
    kernel_names,
    named,
    parameter_names,
    register,
)
from hushsum.kernels.scaled import ScaledKernel, scaled

__all__ = [
    "AngularKernel",
    "AsymmetricAngularKernel",
    "CategoricalKernel",
    "ColumnKernel",
    "CombinationKernel",
    "DotProductKernel",
    "EuclideanKernel",
    "FittedKernel",
    "GaussianKernel",
    "GaussianProfileKernel",
    "HammingKernel",
    "HashableCombination",
    "HashableKernel",
    "InnerProductKernel",
    "JaccardKernel",
    "Kernel",
    "LaplacianKernel",
    "ManhattanKernel",
    "MaternKernel",
    "PolynomialKernel",
    "ProductKernel",
    "ProfileKernel",
    "ScaledKernel",
    "SpectralKernel",
    "fit_kernel",
    "kernel_as_json",
    "kernel_from_json",
    "kernel_names",
    "named",
    "on_columns",
    "parameter_names",
    "register",
    "scaled",
]
