"""Ways from records to a released function, and paid choices of their parameters."""

from hushsum.methods.grid import grid
from hushsum.methods.quantiles import private_bounds, private_quantiles
from hushsum.methods.race import race
from hushsum.methods.select import choose
from hushsum.methods.vote import choose_kernel

__all__ = ["choose", "choose_kernel", "grid", "private_bounds", "private_quantiles", "race"]
