"""The public facts of a released function, the same for every kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from hushsum.kernels.base import Kernel, kernel_as_json
from hushsum.kernels.parameters import kernel_in_words
from hushsum.privacy.claim import Claim
from hushsum.records.bounds import Bounds, bounds_in_words, names_in_words

COMMON: Final = (
    "kind", "claim", "kernel", "dim", "columns", "bounds", "estimated_count", "producer",
)  # fmt: skip
"""The names in JSON of the facts that every function has."""


@dataclass(frozen=True, slots=True)
class Detail:
    """One fact about a kind of function: its ``name`` and ``value`` in JSON, and for people in words.

    Without ``words`` people are not shown it, since another detail says it.
    """

    name: str
    value: object
    words: str | None = None
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Description:
    """What may be said about a released function: everything here is public. Print it for a table.

    ``details`` are what its kind has beside the facts that every function has.
    """

    claim: Claim
    kernel: Kernel
    count: float
    count_stderr: float
    dim: int | None
    columns: tuple[str, ...] | None
    bounds: Bounds | None
    producer: str
    details: tuple[Detail, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The facts as JSON values."""
        return {
            "kind": "released function",
            "claim": self.claim.in_numbers(),
            "kernel": kernel_as_json(self.kernel),
            "dim": self.dim,
            "columns": None if self.columns is None else list(self.columns),
            "bounds": None if self.bounds is None else self.bounds.as_json(),
            "estimated_count": {"value": self.count, "stderr": self.count_stderr},
            **{detail.name: detail.value for detail in self.details},
            "producer": self.producer,
        }

    def facts(self) -> list[tuple[str, str]]:
        """Names and values for people, in the order in which they are shown."""
        error = self.count_stderr
        count = f"{self.count:.0f} ± {error:.5g} (estimated)" if error else f"{self.count:.0f} (public)"
        return [
            ("claim", repr(self.claim)),
            ("kernel", kernel_in_words(self.kernel)),
            ("columns", "not named" if self.columns is None else names_in_words(self.columns)),
            ("bounds", bounds_in_words(self.bounds)),
            *((each.label or each.name, each.words) for each in self.details if each.words is not None),
            ("records", count),
            ("producer", self.producer),
        ]

    def __str__(self) -> str:
        rows = self.facts()
        width = max(len(name) for name, _ in rows)
        return "\n".join([self.claim.sentence(), "", *(f"{name:<{width}}  {value}" for name, value in rows)])
