"""The methods from records to a released function, by name, and what each of them needs and promises."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from hushsum.bases.base import Reading
from hushsum.kernels.base import Kernel
from hushsum.kernels.parameters import one_of
from hushsum.kernels.registry import Role
from hushsum.methods.prediction_request import Option, PredictionRequest
from hushsum.privacy.claim import Relation
from hushsum.privacy.mechanism import Mechanism
from hushsum.releases.base import ReleasedFunction
from hushsum.tally.tally import Tally

Release = Callable[..., ReleasedFunction]
"""``release(X, kernel, *, bounds, columns, epsilon, delta=None, ...)``."""

MakeTally = Callable[..., Tally]
"""``make(kernel, *, bounds, columns, max_per_unit, ...)``: an empty tally."""

Predict = Callable[[PredictionRequest], list[Option]]
PredictReading = Callable[[PredictionRequest, Reading], list[Option]]

_OF_EVERY_TALLY = ("kernel", "bounds", "columns", "max_per_unit", "records", "epsilon")


@dataclass(frozen=True, slots=True)
class Method:
    """What a method can promise and what it works on; all public.

    Parameters
    ----------
    name : str
        As in ``release(..., method=name)``.
    role : Role
        What it needs of a kernel. It takes every kernel that has the role.
    release : callable
        ``release(X, kernel, *, bounds, columns, epsilon, delta=None, ...)``, which spends what it is given.
    pure, approximate : bool
        Whether it can promise pure ε, and whether it can promise (ε, δ).
    relations : tuple of Relation
        The neighbours it can protect, the default first.
    mechanism : Mechanism
    arithmetic : str
        The laws of its noise, of a tally those under pure ε, and in which numbers its proof holds.
    paper : str
        Where it was published.
    most_columns : int, optional
        The most columns it is useful for.
    needs_bounds : bool
        Whether the box must be declared.
    tally : callable, optional
        ``tally(kernel, *, bounds, ...)`` makes an empty tally, for methods that count in one.
    predict : callable, optional
        The options for a request, which :func:`hushsum.plan` compares; none where the method cannot do it.
    predict_reading : callable, optional
        The options for a tally that exists; none where it is of another method.
    sized : bool
        Whether ``release`` takes a declared number of ``records`` to choose its sizes by.
    shared : bool
        Whether one table answers every kernel that has the role, so that several share one release.
    undeclared_sizes : mapping
        Sizes of the tally where no number of records is declared; empty for those of the best option.
    """

    name: str
    role: Role
    release: Release
    pure: bool
    approximate: bool
    relations: tuple[Relation, ...]
    mechanism: Mechanism
    arithmetic: str
    paper: str
    most_columns: int | None = None
    needs_bounds: bool = True
    tally: MakeTally | None = None
    predict: Predict | None = None
    predict_reading: PredictReading | None = None
    sized: bool = False
    shared: bool = False
    undeclared_sizes: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def settings(self) -> tuple[str, ...]:
        """What the tally can be made with, beside what every tally has."""
        if self.tally is None:
            return ()
        return tuple(each for each in inspect.signature(self.tally).parameters if each not in _OF_EVERY_TALLY)

    def suits(self, kernel: Kernel, *, delta: float | None = None) -> bool:
        """Whether it takes this kernel, and can promise ε alone or with this δ."""
        promised = self.approximate if delta else self.pure
        narrow = self.most_columns is None or kernel.dim is None or kernel.dim <= self.most_columns
        return promised and narrow and self.role.test(kernel)


_METHODS: dict[str, Method] = {}


def register(method: Method) -> Method:
    """Make a method known by its name."""
    _METHODS[method.name] = method
    return method


def all_methods() -> list[Method]:
    """The registered methods, in the order of their names."""
    return [_METHODS[name] for name in method_names()]


def method_names() -> list[str]:
    """The registered names, sorted.

    >>> "race" in method_names()
    True
    """
    return sorted(_METHODS)


def planned_methods() -> list[str]:
    """The names of the methods whose error is predicted, which are those that :func:`hushsum.plan` compares.

    >>> planned_methods()
    ['fourier_features', 'grid', 'landmarks', 'monomials', 'race']
    """
    return [method.name for method in all_methods() if method.predict is not None]


def tally_methods() -> list[str]:
    """The names of the methods that count in a tally, which can be merged and streamed."""
    return [method.name for method in all_methods() if method.tally is not None]


def default_kernel(method: str | None = None, *, sets: bool = False, **sizes: object) -> str:
    """The name of the kernel where none is given: Gaussian for columns of numbers.

    A kernel that hashes stands in where the method, or a method that has the given ``sizes``, needs one, and
    for records that are sets. ``"auto"`` and None leave the method open; sizes of None are not given.

    >>> default_kernel(), default_kernel("race"), default_kernel(rows=100), default_kernel(sets=True)
    ('gaussian', 'euclidean', 'euclidean', 'jaccard')
    """
    if sets:
        return "jaccard"
    fitting = [method_named(method)] if method in _METHODS else _with_sizes(sizes)
    kernels = {name for each in fitting for name in each.role.kernels()}
    return next((name for name in ("gaussian", "euclidean") if name in kernels), "gaussian")


def default_method(kernel: Kernel, *, bounded: bool, **sizes: object) -> str:
    """The method that counts a kernel in a tally where none is given: hash rows for a kernel that hashes;
    otherwise a grid in few columns with bounds, and Fourier features or monomials without.

    >>> from hushsum.kernels import GaussianKernel
    >>> default_method(GaussianKernel(dim=2, bandwidth=1.0), bounded=True)
    'grid'
    """
    counting = [_METHODS[name] for name in ("race", "grid", "fourier_features", "monomials")]
    suitable = [each for each in counting if each.suits(kernel)] or counting
    possible = [each for each in suitable if bounded or not each.needs_bounds] or suitable
    sized = _with_sizes(sizes)
    return next((each for each in possible if each in sized), possible[0]).name


def _with_sizes(sizes: Mapping[str, object]) -> list[Method]:
    """The methods whose tallies have all sizes that are given."""
    given = {name for name, value in sizes.items() if value is not None}
    return [each for each in all_methods() if given <= set(each.settings)]


def method_named(name: str) -> Method:
    """The method of that name.

    >>> from hushsum import methods
    >>> methods.method_named("mwem").pure
    True
    """
    one_of("method", name, method_names())
    return _METHODS[name]
