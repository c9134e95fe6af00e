"""How every released function presents itself: its description, its picture, and in a notebook."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hushsum import _html
from hushsum.errors import HushsumError
from hushsum.kernels.base import Kernel
from hushsum.kernels.parameters import counts_records, kernel_in_words, records_in_words
from hushsum.kernels.registry import kernel_as_json
from hushsum.privacy.claim import Claim
from hushsum.records.bounds import Bounds, bounds_in_words, names_in_words
from hushsum.releases.base import ReleasedFunction

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hushsum.releases.plot import Column, Range


class Presented:
    """``describe``, ``plot`` and ``_repr_html_`` from what a released function has; a kind inherits them."""

    def describe(self: ReleasedFunction) -> Description:
        """Its public facts, the same for every kind; print them, or take ``as_json()``."""
        return Description(
            claim=self.claim,
            kernel=self.kernel,
            count=self.count,
            count_stderr=self.count_stderr,
            dim=self.dim,
            columns=self.columns,
            bounds=self.bounds,
            producer=self.producer,
            details=self.details(),
            error=_error_in_the_middle(self),
        )

    def plot(
        self: ReleasedFunction,
        ax: Axes | None = None,
        *,
        axes: Column | tuple[Column, ...] | None = None,
        range: Range | tuple[Range, ...] | None = None,
        at: float | tuple[float, ...] | None = None,
        labels: tuple[str, ...] | None = None,
        of: str = "mean",
        level: float = 0.95,
        simultaneous: bool | None = None,
        log: bool = False,
    ) -> Axes:
        """Draw a curve with its error band, a heat map, or a slice of a function of more columns.

        Spends nothing, like every query.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw. Default: a new pyplot figure, with the claim below it.
        axes : int or str, or two of them, optional
            The columns to draw, by position or name, the first one across. Default: the first two; longitude
            across and latitude up, where columns have these names.
        range : (low, high), or one pair for each axis, optional
            What to draw. Default: the declared bounds.
        at : float or tuple of float, optional
            Values of the columns that are not drawn, or one for all. Default: the middle of the bounds.
        labels : tuple of str, optional
            Names of the axes. Default: the names of the columns.
        of : {"mean", "sum"}
            Mean kernel values f(q)/N or kernel sums f(q).
        level : float, default 0.95
            Of the intervals.
        simultaneous : bool, optional
            Whether the intervals hold at all points together, not at each. Default: for heat maps, whose
            dashed line encloses what stands out of the noise.
        log : bool, default False
            A logarithmic scale of colours, from three standard errors on, for heat maps.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        UsageError
            if the function has no columns of numbers, or neither bounds nor a range says what to draw.
        """
        # Here and not above: drawing is not part of importing Hushsum.
        from hushsum.releases.plot import View, draw

        view = View.of(
            self,
            axes=axes,
            range=range,
            at=at,
            labels=labels,
            of=of,
            level=level,
            simultaneous=simultaneous,
            log=log,
        )
        return draw(self, view, ax)

    def _repr_html_(self: ReleasedFunction) -> str:
        """The claim in words, the facts, and a small picture of one or two columns; for notebooks."""
        about = self.describe()
        return _html.block(
            "Released function",
            _html.paragraph(about.claim.sentence()),
            _html.facts(about.facts()),
            _small(self),
        )


def _error_in_the_middle(function: ReleasedFunction) -> float | None:
    """The standard error of a kernel sum in the middle of the declared bounds; None where there is none."""
    if function.bounds is None or function.dim != function.bounds.dim:
        return None
    error = float(function.query(function.bounds.centre[np.newaxis], of="sum").stderr[0])
    return error if np.isfinite(error) else None


def _small(function: ReleasedFunction) -> str:
    """A small picture, where there is one that shows the whole function."""
    if function.dim not in (1, 2) or function.bounds is None:
        return ""
    try:
        from hushsum.releases.plot import thumbnail

        return _html.picture(thumbnail(function), "The released function within its bounds")
    except (ImportError, HushsumError):
        # Without matplotlib, or with columns that cannot be axes, only the facts are shown.
        return ""


UNKNOWN_ERRORS: Final = "not known: answers have no interval"
"""The description of a function whose method has no error estimate."""

COMMON: Final = (
    "kind", "claim", "kernel", "dim", "columns", "bounds", "estimated_count", "error", "producer",
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

    ``details`` are what its kind has beside the facts that every function has. ``error`` is the standard
    error of a kernel sum in the middle of the bounds, where it is known.
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
    error: float | None = None

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
            "error": self.error,
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
            *([] if self.error is None else [("error", self._error_in_words(self.error))]),
            ("producer", self.producer),
        ]

    def _error_in_words(self, error: float) -> str:
        where = "in the middle of the bounds"
        if not counts_records(self.kernel):
            return f"± {error:.2g} of a sum of similarities {where}"
        share = f", {100 * error / self.count:.2g} % of all" if self.count > 0 else ""
        return f"{records_in_words(error)} near a point {where}{share}"

    def __str__(self) -> str:
        rows = self.facts()
        width = max(len(name) for name, _ in rows)
        return "\n".join([self.claim.sentence(), "", *(f"{name:<{width}}  {value}" for name, value in rows)])
