"""Kernels: similarities between records and queries, and the roles that methods require of them.

Importing this package registers every kernel.
"""

from hushsum.kernels.angular import AngularKernel
from hushsum.kernels.base import (
    ColumnKernel,
    GaussianProfileKernel,
    HashableKernel,
    Kernel,
    ProfileKernel,
    SpectralKernel,
    kernel_as_json,
    kernel_from_json,
    kernel_names,
    named,
    parameter_names,
    register,
)
from hushsum.kernels.euclidean import EuclideanKernel
from hushsum.kernels.gaussian import GaussianKernel
from hushsum.kernels.hamming import HammingKernel
from hushsum.kernels.jaccard import JaccardKernel
from hushsum.kernels.laplacian import LaplacianKernel
from hushsum.kernels.manhattan import ManhattanKernel
from hushsum.kernels.matern import MaternKernel

__all__ = [
    "AngularKernel",
    "ColumnKernel",
    "EuclideanKernel",
    "GaussianKernel",
    "GaussianProfileKernel",
    "HammingKernel",
    "HashableKernel",
    "JaccardKernel",
    "Kernel",
    "LaplacianKernel",
    "ManhattanKernel",
    "MaternKernel",
    "ProfileKernel",
    "SpectralKernel",
    "kernel_as_json",
    "kernel_from_json",
    "kernel_names",
    "named",
    "parameter_names",
    "register",
]
