"""Kernels: similarities between records and queries, and the roles that methods require of them.

Importing this package registers every kernel.
"""

from hushsum.kernels.angular import AngularKernel
from hushsum.kernels.base import (
    ColumnKernel,
    GaussianProfileKernel,
    HashableKernel,
    InnerProductKernel,
    Kernel,
    ProfileKernel,
    SpectralKernel,
)
from hushsum.kernels.euclidean import EuclideanKernel
from hushsum.kernels.gaussian import GaussianKernel
from hushsum.kernels.hamming import HammingKernel
from hushsum.kernels.inner_product import DotProductKernel, PolynomialKernel
from hushsum.kernels.jaccard import JaccardKernel
from hushsum.kernels.laplacian import LaplacianKernel
from hushsum.kernels.manhattan import ManhattanKernel
from hushsum.kernels.matern import MaternKernel
from hushsum.kernels.registry import (
    kernel_as_json,
    kernel_from_json,
    kernel_names,
    named,
    parameter_names,
    register,
)

__all__ = [
    "AngularKernel",
    "ColumnKernel",
    "DotProductKernel",
    "EuclideanKernel",
    "GaussianKernel",
    "GaussianProfileKernel",
    "HammingKernel",
    "HashableKernel",
    "InnerProductKernel",
    "JaccardKernel",
    "Kernel",
    "LaplacianKernel",
    "ManhattanKernel",
    "MaternKernel",
    "PolynomialKernel",
    "ProfileKernel",
    "SpectralKernel",
    "kernel_as_json",
    "kernel_from_json",
    "kernel_names",
    "named",
    "parameter_names",
    "register",
]
