"""Ways from records to a released function."""

from hushsum.methods.race import race

__all__ = ["race"]
