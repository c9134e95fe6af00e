"""Kernels: similarities between records and queries, and the roles that methods require of them.

Importing this package registers every kernel.
"""

from hushsum.kernels._bandwidth_scale import (
    OF_BOUNDS,
    SCALES,
    bandwidth_warnings,
    default_bandwidth,
    different_units,
    in_scale,
    in_units,
    warn_of_bandwidth,
)
from hushsum.kernels._base import (
    BallSignsKernel,
    Batch,
    CategoricalKernel,
    ColumnKernel,
    ColumnProfile,
    GaussianProfileKernel,
    HashableCombination,
    HashableKernel,
    Hasher,
    InnerProductKernel,
    Kernel,
    Profile,
    ProfileKernel,
    ProjectionKernel,
    SpectralKernel,
    dense_batch,
)
from hushsum.kernels._expressions import (
    LONGEST,
    CombinationKernel,
    ProductKernel,
    ScaledKernel,
    on_columns,
    scaled,
    scaled_by,
)
from hushsum.kernels._fit_combination import FittedKernel, fit_kernel
from hushsum.kernels._hashers import derived_seed
from hushsum.kernels._named_kernels import (
    AngularKernel,
    AsymmetricAngularKernel,
    DotProductKernel,
    EuclideanKernel,
    GaussianKernel,
    HammingKernel,
    HashPartitions,
    JaccardKernel,
    LaplacianKernel,
    ManhattanKernel,
    MaternKernel,
    PolynomialKernel,
)
from hushsum.kernels._parameter_checks import (
    answer_in_words,
    check_cap,
    check_columns,
    check_parameters,
    counts_records,
    error_in_words,
    integer_seed,
    kernel_in_words,
    one_of,
    positive_integer,
    positive_number,
    records_in_words,
    thread_count,
)
from hushsum.kernels._public_randomness import (
    hadamard,
    multiply_shift,
    normals,
    row_words,
    structured_signs,
    uniforms,
)
from hushsum.kernels._registry import (
    COLUMNS,
    GAUSSIAN,
    HASH_ROWS,
    HASHABLE,
    INNER_PRODUCT,
    POSITIVE_DEFINITE,
    PRODUCT,
    PROFILES,
    SMOOTH_PROFILES,
    SPECTRAL,
    Role,
    example_columns,
    is_expression,
    is_signed,
    kernel_as_json,
    kernel_from_json,
    kernel_names,
    named,
    parameter_names,
    register,
)

__all__ = [
    "COLUMNS", "GAUSSIAN", "HASHABLE", "HASH_ROWS", "INNER_PRODUCT", "LONGEST", "OF_BOUNDS",
    "POSITIVE_DEFINITE", "PRODUCT", "PROFILES", "SCALES", "SMOOTH_PROFILES", "SPECTRAL", "AngularKernel",
    "AsymmetricAngularKernel", "BallSignsKernel", "Batch", "CategoricalKernel", "ColumnKernel",
    "ColumnProfile", "CombinationKernel", "DotProductKernel", "EuclideanKernel", "FittedKernel",
    "GaussianKernel", "GaussianProfileKernel", "HammingKernel", "HashPartitions", "HashableCombination",
    "HashableKernel", "Hasher", "InnerProductKernel", "JaccardKernel", "Kernel", "LaplacianKernel",
    "ManhattanKernel", "MaternKernel", "PolynomialKernel", "ProductKernel", "Profile", "ProfileKernel",
    "ProjectionKernel", "Role", "ScaledKernel", "SpectralKernel", "answer_in_words", "bandwidth_warnings",
    "check_cap", "check_columns", "check_parameters", "counts_records", "default_bandwidth", "dense_batch",
    "derived_seed", "different_units", "error_in_words", "example_columns", "fit_kernel", "hadamard",
    "in_scale", "in_units", "integer_seed", "is_expression", "is_signed", "kernel_as_json",
    "kernel_from_json", "kernel_in_words", "kernel_names", "multiply_shift", "named", "normals",
    "on_columns", "one_of", "parameter_names", "positive_integer", "positive_number", "records_in_words",
    "register", "row_words", "scaled", "scaled_by", "structured_signs", "thread_count", "uniforms",
    "warn_of_bandwidth",
]  # fmt: skip
