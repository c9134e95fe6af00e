"""A kernel as a person names it: by words and numbers, before the number of columns is known."""

from __future__ import annotations

from dataclasses import dataclass

from hushsum.kernels.base import Kernel, named, parameter_names


@dataclass(frozen=True, slots=True)
class KernelChoice:
    """A kernel's name and the parameters given for it; None leaves a parameter at the kernel's default."""

    name: str = "euclidean"
    bandwidth: float | None = None
    power: int | None = None
    bits: int | None = None
    projection: str | None = None
    smoothness: float | None = None

    @property
    def takes_sets(self) -> bool:
        """Whether its records are sets, and not columns of numbers."""
        return "dim" not in parameter_names(self.name)

    def build(self, dim: int | None) -> Kernel:
        """The kernel for records of ``dim`` columns.

        Raises
        ------
        UsageError
            if a parameter is missing that the kernel needs, or one is given that it does not have.
        """
        return named(
            self.name,
            dim=dim,
            bandwidth=self.bandwidth,
            power=self.power,
            bits=self.bits,
            projection=self.projection,
            smoothness=self.smoothness,
        )
