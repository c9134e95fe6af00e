"""The ways from records to a released function, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hushsum.errors import UsageError, shown
from hushsum.kernels.base import Kernel
from hushsum.privacy.relation import Relation
from hushsum.releases.base import ReleasedFunction

Release = Callable[..., ReleasedFunction]
"""``release(X, kernel, *, bounds, epsilon, delta=None, ...)``."""


@dataclass(frozen=True, slots=True)
class Method:
    """What a method can promise and what it works on; all public.

    Parameters
    ----------
    name : str
        As in ``release(..., method=name)``.
    release : callable
        ``release(X, kernel, *, bounds, epsilon, delta=None, ...)``, which spends what it is given.
    pure, approximate : bool
        Whether it can promise pure ε, and whether it can promise (ε, δ).
    relations : tuple of Relation
        The neighbours it can protect, the default first.
    arithmetic : str
        In which numbers its proof holds.
    kernels : tuple of str, optional
        The kernels it takes; None for all that compare columns of numbers.
    most_columns : int, optional
        The most columns it is useful for.
    paper : str
        Where it was published.
    sized : bool
        Whether ``release`` takes a declared number of ``records`` to choose its sizes by.
    """

    name: str
    release: Release
    pure: bool
    approximate: bool
    relations: tuple[Relation, ...]
    arithmetic: str
    paper: str
    kernels: tuple[str, ...] | None = None
    most_columns: int | None = None
    sized: bool = False

    def suits(self, kernel: Kernel, *, delta: float | None = None) -> bool:
        """Whether it takes this kernel, and can promise ε alone or with this δ."""
        promised = self.approximate if delta else self.pure
        known = kernel.bounded_columns if self.kernels is None else kernel.name in self.kernels
        narrow = self.most_columns is None or getattr(kernel, "dim", 1) <= self.most_columns
        return promised and known and narrow


_METHODS: dict[str, Method] = {}


def register(method: Method) -> None:
    """Make a method known by its name."""
    _METHODS[method.name] = method


def method_names() -> list[str]:
    """The registered names, sorted.

    >>> "race" in method_names()
    True
    """
    return sorted(_METHODS)


def method_named(name: str) -> Method:
    """The method of that name.

    >>> from hushsum import methods
    >>> methods.method_named("mwem").pure
    True
    """
    if name not in _METHODS:
        raise UsageError(f"method must be one of {', '.join(method_names())}, got {shown(name)}; choose one")
    return _METHODS[name]
