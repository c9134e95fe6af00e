"""What a plan found: options with their predicted errors, as text, a table and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from hushsum import _html
from hushsum.errors import UsageError
from hushsum.kernels.base import Kernel
from hushsum.kernels.parameters import error_in_words
from hushsum.methods.prediction_request import Option
from hushsum.methods.race import BOUND
from hushsum.planning.sizes_as_text import in_bytes, in_seconds

MOST_SHOWN = 5
"""Options of what was requested that a table shows."""

_HEAD = (
    "method", "mechanism", "promise", "table", "noise", "approx.", "error", "relative", "file", "build",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Plan:
    """Options in the order of their predicted error within each promise. Printing it shows the best five.

    ``basis`` states what the approximation of hash rows is based on: ``"bound"`` or ``"public data"``.
    """

    options: tuple[Option, ...]
    records: int
    density: float
    basis: str
    kernel: Kernel

    @property
    def best(self) -> Option:
        """The option with the smallest predicted error that makes a promise that was requested."""
        return min((option for option in self.options if option.requested), key=lambda option: option.error)

    def option(
        self,
        *,
        method: str | None = None,
        rows: int | None = None,
        epsilon: float | None = None,
        mechanism: str | None = None,
    ) -> Option:
        """The best option with the given properties."""
        properties = {"method": method, "rows": rows, "epsilon": epsilon, "mechanism": mechanism}
        found = [
            option
            for option in self.options
            if all(value is None or getattr(option, name) == value for name, value in properties.items())
        ]
        if not found:
            raise UsageError(
                rule=f"the plan has no option with {properties}", remedy="plan with those values"
            )
        return min(found, key=lambda option: option.error)

    def __iter__(self) -> Iterator[Option]:
        return iter(self.options)

    def __len__(self) -> int:
        return len(self.options)

    def as_dicts(self) -> list[dict[str, Any]]:
        """One dictionary for each option, for machines."""
        return [asdict(option) for option in self.options]

    def shown(self, most: int = MOST_SHOWN) -> tuple[Option, ...]:
        """The best options of what was requested, and the best one of each promise shown for comparison.

        Of several promises each has its part of the ``most``, and one at least.
        """
        groups: dict[tuple[float | None, ...], list[Option]] = {}
        for option in self.options:
            groups.setdefault((option.epsilon, option.delta, option.rho), []).append(option)
        requested = sum(options[0].requested for options in groups.values())
        part = max(1, most // max(1, requested))
        return tuple(
            option
            for options in groups.values()
            for option in sorted(options, key=lambda each: each.error)[: part if options[0].requested else 1]
        )

    def table(self, most: int = MOST_SHOWN) -> tuple[list[str], list[list[str]]]:
        """Head and rows as text, with * before the best."""
        options, best = self.shown(most), self.best
        return ["", *_HEAD], [["*" if each is best else "", *self._cells(each)] for each in options]

    def note(self, most: int = MOST_SHOWN) -> str:
        """What the numbers of the table are, and how many options it leaves out."""
        what = "a bound" if self.basis == BOUND else "an estimate from public data"
        more = len(self.options) - len(self.shown(most))
        rest = f" {more} more options are in plan.options." if more else ""
        return (
            f"{self.in_words()} Errors are mean absolute errors of the share of records near a point, "
            f"f(q)/N, where it is {self.density:.3g}; the error of hash rows is {what}.{rest}"
        )

    def in_words(self) -> str:
        """The error of the best option, in one sentence."""
        error = error_in_words(self.kernel, self.best.error, self.records)
        return f"The best option (*) has an error of {error}, for {self.records:,} records."

    def __str__(self) -> str:
        head, rows = self.table()
        widths = [max(len(line[i]) for line in (head, *rows)) for i in range(len(head))]
        text = [
            " ".join(
                cell.ljust(w) if i < 4 else cell.rjust(w + 1)
                for i, (cell, w) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in (head, *rows)
        ]
        return "\n".join([*text, "", self.note()])

    def __repr__(self) -> str:
        best = self.best
        return (
            f"Plan(best={best.method!r}, mechanism={best.mechanism!r}, table={best.rows}×{best.width}, "
            f"error={best.error:.3g}, options={len(self.options)})"
        )

    def _repr_html_(self) -> str:
        """The best options as a table, for notebooks."""
        return _html.block("Plan", _html.table(*self.table()), _html.paragraph(self.note()))

    def _cells(self, option: Option) -> tuple[str, ...]:
        promise = f"rho={option.rho:g}" if option.rho is not None else f"eps={option.epsilon:g}"
        if option.delta:
            promise += f", delta={option.delta:g}"
        return (
            option.method,
            option.mechanism,
            promise,
            f"{option.rows}×{option.width}" + (", rounded" if option.rounded else ""),
            f"{option.noise:.2e}",
            f"{option.approximation:.2e}",
            f"{option.error:.2e}",
            f"{option.error / self.density:.1%}",
            in_bytes(option.size),
            in_seconds(option.seconds),
        )
