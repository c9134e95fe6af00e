"""Methods that turn records into a released function, their registry, and private choice of parameters."""

from hushsum.methods.bernstein import bernstein
from hushsum.methods.fourier_features import fourier_features
from hushsum.methods.fourier_series import fourier_series
from hushsum.methods.grid import grid
from hushsum.methods.hermite import hermite
from hushsum.methods.histogram import histogram, histogram_tally
from hushsum.methods.kernel_mean_embedding import kme
from hushsum.methods.landmarks import landmarks
from hushsum.methods.locality_sensitive_quantization import lsq_fgt, lsq_rff
from hushsum.methods.marginals import marginals
from hushsum.methods.monomials import monomials
from hushsum.methods.mwem import mwem
from hushsum.methods.private_choice_of_kernel import choose_kernel
from hushsum.methods.private_choice_of_release import choose
from hushsum.methods.private_functional_data_analysis import pfda
from hushsum.methods.privbayes import privbayes
from hushsum.methods.quantiles import private_bounds, private_quantiles
from hushsum.methods.race import race
from hushsum.methods.registry import (
    Method,
    all_methods,
    method_named,
    method_names,
    planned_methods,
    register,
    tally_methods,
)
from hushsum.methods.tally_methods import register_tally
from hushsum.methods.trigonometric import trigonometric

__all__ = [
    "Method",
    "all_methods",
    "bernstein",
    "choose",
    "choose_kernel",
    "fourier_features",
    "fourier_series",
    "grid",
    "hermite",
    "histogram",
    "histogram_tally",
    "kme",
    "landmarks",
    "lsq_fgt",
    "lsq_rff",
    "marginals",
    "method_named",
    "method_names",
    "monomials",
    "mwem",
    "pfda",
    "planned_methods",
    "private_bounds",
    "private_quantiles",
    "privbayes",
    "race",
    "register",
    "register_tally",
    "tally_methods",
    "trigonometric",
]
