"""What every released function can do, whatever it is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from hushsum._types import Floats, PathOrFile, RoleType
from hushsum.kernels.base import Kernel
from hushsum.privacy.claim import Claim
from hushsum.records.bounds import Bounds
from hushsum.releases.answers import Answers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hushsum.releases.plot import Column, Range
    from hushsum.releases.presentation import Description, Detail


class Released(Protocol):
    """Whatever leaves: it says what it claims, and writes itself to a file."""

    @property
    def claim(self) -> Claim:
        """What the release promises."""

    def save(self, target: PathOrFile) -> None:
        """Write a ``.hush`` file."""


@runtime_checkable
class ReleasedFunction(Protocol, metaclass=RoleType):
    """A public function of private data: query it as often as you like, publish it, keep it.

    Queries spend nothing: every answer is computed from what was released. This is all that the command line,
    the service, the client and the models know of a released function, so a new kind that has it works in
    each of them; ``describe`` and ``plot`` come from `hushsum.releases.presentation.Presented`.
    """

    @property
    def claim(self) -> Claim:
        """What the release promises."""

    @property
    def kernel(self) -> Kernel:
        """The similarity whose sums it answers."""

    @property
    def count(self) -> float:
        """The estimated number of records."""

    @property
    def count_stderr(self) -> float:
        """The standard error of :attr:`count`; 0 where the number of records is public."""

    @property
    def dim(self) -> int | None:
        """The number of columns of a query; None where records are sets."""

    @property
    def columns(self) -> tuple[str, ...] | None:
        """What the columns are called, in the order in which arrays give them; None if not declared."""

    @property
    def bounds(self) -> Bounds | None:
        """The declared box that holds the records: those outside were clipped to it; None if not declared."""

    @property
    def producer(self) -> str:
        """Which version of Hushsum made it."""

    def __call__(self, Q: object) -> Floats:
        """Mean kernel values f(q)/N, shape (n_queries,)."""

    def sum(self, Q: object) -> Floats:
        """Kernel sums f(q) = Σ k(x, q), shape (n_queries,)."""

    def query(
        self,
        Q: object,
        *,
        of: str = "mean",
        level: float = 0.95,
        simultaneous: bool = False,
        threads: int = 1,
    ) -> Answers:
        """Values with standard errors and intervals; ``of`` is ``"mean"`` or ``"sum"``.

        Each interval holds with probability ``level``, or with ``simultaneous`` all of this call together do.
        ``threads`` is how many threads may be used, where that helps.
        """

    def details(self) -> tuple[Detail, ...]:
        """What is particular to this kind, for :meth:`describe`."""

    def describe(self) -> Description:
        """Its public facts, the same for every kind; print them, or take ``as_json()``."""

    def plot(
        self,
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
        """Draw a curve with its error band, a heat map, or a slice of a function of more columns."""

    def save(self, target: PathOrFile) -> None:
        """Write the function to a ``.hush`` file."""
