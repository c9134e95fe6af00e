"""Ways from records to a released function, and paid choices of their parameters."""

from hushsum.methods.bernstein import bernstein
from hushsum.methods.fourier_features import fourier_features
from hushsum.methods.fourier_series import fourier_series
from hushsum.methods.grid import grid
from hushsum.methods.hermite import hermite
from hushsum.methods.histogram import histogram, histogram_tally
from hushsum.methods.kme import kme
from hushsum.methods.lsq import lsq_fgt, lsq_rff
from hushsum.methods.mwem import mwem
from hushsum.methods.pfda import pfda
from hushsum.methods.privbayes import privbayes
from hushsum.methods.quantiles import private_bounds, private_quantiles
from hushsum.methods.race import race
from hushsum.methods.registry import Method, method_named, method_names
from hushsum.methods.select import choose
from hushsum.methods.trigonometric import trigonometric
from hushsum.methods.vote import choose_kernel

__all__ = [
    "Method",
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
    "lsq_fgt",
    "lsq_rff",
    "method_named",
    "method_names",
    "mwem",
    "pfda",
    "private_bounds",
    "private_quantiles",
    "privbayes",
    "race",
    "trigonometric",
]
