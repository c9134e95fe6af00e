"""How every released function presents itself: described, drawn, and in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hushsum import _html
from hushsum.errors import HushsumError
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.description import Description

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hushsum.releases.picture import Column, Range


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
    ) -> Axes:
        """Draw a curve with its error band, a heat map, or a slice of a function of more columns.

        Spends nothing, like every query.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw. Default: a new pyplot figure, with the claim below it.
        axes : int or str, or two of them, optional
            The columns to draw, by position or name. Default: the first two.
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

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        UsageError
            if the function has no columns of numbers, or neither bounds nor a range says what to draw.
        """
        # Here and not above: drawing is not part of importing Hushsum.
        from hushsum.releases.picture import View, draw

        view = View.of(self, axes=axes, range=range, at=at, labels=labels, of=of, level=level)
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


def _small(function: ReleasedFunction) -> str:
    """A small picture, where there is one that shows the whole function."""
    if function.dim not in (1, 2) or function.bounds is None:
        return ""
    try:
        from hushsum.releases.picture import thumbnail

        return _html.picture(thumbnail(function), "The released function within its bounds")
    except (ImportError, HushsumError):
        # Without matplotlib, or with columns that are no scales, the facts are what there is to see.
        return ""
