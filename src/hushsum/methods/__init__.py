"""Ways from records to a released function, and paid choices of their parameters."""

from hushsum.methods.bernstein import bernstein
from hushsum.methods.fourier_series import fourier_series
from hushsum.methods.hermite import hermite
from hushsum.methods.lsq import lsq_fgt, lsq_rff
from hushsum.methods.quantiles import private_bounds, private_quantiles
from hushsum.methods.race import race
from hushsum.methods.select import choose
from hushsum.methods.trigonometric import trigonometric
from hushsum.methods.vote import choose_kernel

__all__ = [
    "bernstein",
    "choose",
    "choose_kernel",
    "fourier_series",
    "hermite",
    "lsq_fgt",
    "lsq_rff",
    "private_bounds",
    "private_quantiles",
    "race",
    "trigonometric",
]
