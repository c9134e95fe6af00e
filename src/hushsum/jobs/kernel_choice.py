"""A kernel as a person names it: by words and numbers, before the number of columns is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hushsum.errors import UsageError
from hushsum.kernels.base import Kernel, kernel_class


@dataclass(frozen=True, slots=True)
class KernelChoice:
    """A kernel's name and the parameters given for it; None leaves a parameter at the kernel's default."""

    name: str = "euclidean"
    bandwidth: float | None = None
    power: int | None = None
    bits: int | None = None
    projection: str | None = None

    @property
    def takes_sets(self) -> bool:
        """Whether its records are sets, and not columns of numbers."""
        return "dim" not in self._fields

    @property
    def _fields(self) -> dict[str, Any]:
        return getattr(self._class, "__dataclass_fields__", {})

    @property
    def _class(self) -> type[Kernel]:
        return kernel_class(self.name)

    def build(self, dim: int | None) -> Kernel:
        """The kernel for records of ``dim`` columns.

        Raises
        ------
        UsageError
            if a parameter is missing that the kernel needs, or one is given that it does not have.
        """
        given = {
            "bandwidth": self.bandwidth,
            "power": self.power,
            "bits": self.bits,
            "projection": self.projection,
        }
        arguments: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        for name in arguments:
            if name not in self._fields:
                raise UsageError(f"the {self.name} kernel has no {name}; leave it out")
        if "bandwidth" in self._fields and self.bandwidth is None:
            raise UsageError(
                f"bandwidth must be given for the {self.name} kernel; choose it without looking at the data"
            )
        if not self.takes_sets:
            if dim is None:
                raise UsageError(
                    f"the number of columns must be given for the {self.name} kernel; give the dimension"
                )
            arguments["dim"] = dim
        return self._class(**arguments)


def kernel_in_words(kernel: Kernel) -> str:
    """A kernel and its parameters on one line.

    >>> from hushsum.kernels import HammingKernel
    >>> kernel_in_words(HammingKernel(dim=4))
    'hamming (dim 4, power 1)'
    """
    shown = ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in kernel.parameters().items()
    )
    return f"{kernel.name} ({shown})"
