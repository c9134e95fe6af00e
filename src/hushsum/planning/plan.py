"""The result of planning: a table of options, with the best one marked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from hushsum.errors import UsageError
from hushsum.planning.question import Question


@dataclass(frozen=True, slots=True)
class Option:
    """One way to release, and what it is predicted to cost.

    Errors are mean absolute errors of the mean kernel value f(q)/N. ``noise`` is exact for the mechanism;
    ``approximation`` is the error of the method itself: for hash rows a bound at the stated density, or an
    estimate from public data; ``error`` joins both. ``settings`` are the arguments that make the method's
    tally, ``rows`` and ``width`` the shape of its table. ``size`` is the file's bytes, and ``seconds`` a
    rough time to count on one core. ``asked`` is false for options that are shown for comparison only.
    """

    method: str
    mechanism: str
    epsilon: float | None
    delta: float
    rho: float | None
    rows: int
    width: int
    noise: float
    approximation: float
    error: float
    size: int
    seconds: float
    asked: bool
    settings: dict[str, float]

    @classmethod
    def of(
        cls,
        question: Question,
        *,
        method: str,
        settings: dict[str, float],
        mechanism: str,
        shape: tuple[int, int],
        noise: float,
        approximation: float,
        error: float,
        size: int,
        seconds: float,
    ) -> Option:
        """An option that answers a question."""
        promise = question.promise
        return cls(
            method=method,
            mechanism=mechanism,
            epsilon=None if promise.epsilon is None else float(promise.epsilon),
            delta=float(promise.delta),
            rho=None if promise.rho is None else float(promise.rho),
            rows=shape[0],
            width=shape[1],
            noise=noise,
            approximation=approximation,
            error=error,
            size=size,
            seconds=seconds,
            asked=question.asked,
            settings=settings,
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """Options in the order of their predicted error within each promise.

    ``basis`` says what the approximation of hash rows rests on: ``"bound"`` or ``"public data"``.
    """

    options: tuple[Option, ...]
    records: int
    density: float
    basis: str

    @property
    def best(self) -> Option:
        """The option with the smallest predicted error that makes a promise that was asked for."""
        return min((option for option in self.options if option.asked), key=lambda option: option.error)

    def option(
        self,
        *,
        method: str | None = None,
        rows: int | None = None,
        epsilon: float | None = None,
        mechanism: str | None = None,
    ) -> Option:
        """The best option with the given properties."""
        wanted = {"method": method, "rows": rows, "epsilon": epsilon, "mechanism": mechanism}
        found = [
            option
            for option in self.options
            if all(value is None or getattr(option, name) == value for name, value in wanted.items())
        ]
        if not found:
            raise UsageError(f"the plan has no option with {wanted}; plan with those values")
        return min(found, key=lambda option: option.error)

    def __iter__(self) -> Iterator[Option]:
        return iter(self.options)

    def __len__(self) -> int:
        return len(self.options)

    def as_dicts(self) -> list[dict[str, Any]]:
        """One dictionary an option, for machines."""
        return [asdict(option) for option in self.options]

    def __str__(self) -> str:
        head = (
            "method",
            "mechanism",
            "promise",
            "table",
            "noise",
            "own",
            "error",
            "relative",
            "file",
            "build",
        )
        lines = [head, *(self._cells(option) for option in self.options)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
        text = [
            "  ".join(
                cell.ljust(w) if i < 3 else cell.rjust(w)
                for i, (cell, w) in enumerate(zip(line, widths, strict=True))
            )
            for line in lines
        ]
        best = self.options.index(self.best) + 1
        text = [f"{'*' if i == best else ' '} {line}" for i, line in enumerate(text)]
        what = "a bound" if self.basis == "bound" else "an estimate from public data"
        note = (
            f"Mean absolute error of f(q)/N for {self.records:,} records "
            f"at mean kernel value {self.density:.3g}; "
            f"the error of hash rows is {what}. * is best for what was asked."
        )
        return "\n".join([*text, "", note])

    def _cells(self, option: Option) -> tuple[str, ...]:
        promise = f"rho={option.rho:g}" if option.rho is not None else f"eps={option.epsilon:g}"
        if option.delta:
            promise += f", delta={option.delta:g}"
        return (
            option.method,
            option.mechanism,
            promise,
            f"{option.rows}×{option.width}" + (", rounded" if option.settings.get("rounded") else ""),
            f"{option.noise:.2e}",
            f"{option.approximation:.2e}",
            f"{option.error:.2e}",
            f"{option.error / self.density:.1%}",
            _bytes(option.size),
            _seconds(option.seconds),
        )


def _bytes(size: int) -> str:
    number = float(size)
    for unit in ("B", "kB", "MB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} GB"


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.2g} ms" if seconds < 1 else f"{seconds:.3g} s"
