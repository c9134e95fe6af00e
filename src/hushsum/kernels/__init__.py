"""Similarities. Importing this package registers every kernel."""

from hushsum.kernels.angular import AngularKernel
from hushsum.kernels.base import Kernel, kernel_as_json, kernel_class, kernel_from_json, kernel_names
from hushsum.kernels.euclidean import EuclideanKernel
from hushsum.kernels.gaussian import GaussianKernel
from hushsum.kernels.hamming import HammingKernel
from hushsum.kernels.jaccard import JaccardKernel
from hushsum.kernels.laplacian import LaplacianKernel
from hushsum.kernels.manhattan import ManhattanKernel
from hushsum.kernels.matern import MaternKernel

__all__ = [
    "AngularKernel",
    "EuclideanKernel",
    "GaussianKernel",
    "HammingKernel",
    "JaccardKernel",
    "Kernel",
    "LaplacianKernel",
    "ManhattanKernel",
    "MaternKernel",
    "kernel_as_json",
    "kernel_class",
    "kernel_from_json",
    "kernel_names",
]
