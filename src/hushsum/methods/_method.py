"""Methods from records to a released function: their registry, and releases in one call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Final, Required, TypedDict, TypeVar, Unpack

import numpy as np

from hushsum._types import Floats, Rows
from hushsum.errors import ClaimError, UsageError
from hushsum.kernels import ColumnKernel, Kernel, Role, one_of
from hushsum.privacy import (
    COUNT_SHARE,
    EXACT_INTEGERS,
    PURE_NOISE,
    BookingKeywords,
    Claim,
    Mechanism,
    Relation,
    ReleaseNoise,
    ReleaseRequest,
    StatementKeywords,
    exact,
    release_noise,
)
from hushsum.records import (
    Bounds,
    DeclaredBounds,
    ParameterCheck,
    columns_of,
    declared_bounds,
    refuse_copied_rows,
    refuse_private_rows,
)
from hushsum.releases import (
    FeatureErrors,
    PointsFunction,
    Prepared,
    PublicFacts,
    ReleasedFunction,
    check_kernel,
)
from hushsum.tables import Basis, Reading, load_baselines
from hushsum.tally import Tally

from ._prediction import Option, PredictionRequest

__all__ = [
    "DEFAULT_DELTA", "PUBLIC_POINTS", "BoxKeywords", "DeclaredBox", "Method", "OneCallKeywords",
    "OneCallRelease", "all_methods", "boxed_tally", "default_kernel", "default_method", "method_named",
    "method_names", "part_of_budget", "planned_methods", "register", "release_counted", "tally_methods",
]  # fmt: skip

MakeTally = Callable[..., Tally]
"""``make(kernel, *, bounds, columns, max_per_unit, ...)``: an empty tally."""

Predict = Callable[[PredictionRequest], list[Option]]
PredictReading = Callable[[PredictionRequest, Reading], list[Option]]

DEFAULT_DELTA: Final = 1e-6
"""The default δ of a method that cannot promise pure ε."""


class OneCallKeywords(BookingKeywords, StatementKeywords, total=False):
    """The fields of a `ReleaseRequest` that every method can keep, by their names."""

    epsilon: Required[float]
    delta: float | None
    relation: str | Relation
    population: int | None


class BoxKeywords(TypedDict, total=False):
    """What every tally of a declared box is made with: ``bounds``, which are needed, ``columns`` and
    ``max_per_unit``.
    """

    bounds: DeclaredBounds | None
    columns: Sequence[str] | None
    max_per_unit: int | None


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
    one_call : callable, optional
        ``one_call(X, kernel, *, bounds, columns, epsilon, ...)``, which spends what it is given; for methods
        that do not release a tally as it is.
    pure, approximate : bool
        Whether it can promise pure ε, and whether it can promise (ε, δ).
    relations : tuple of Relation
        The neighbours it can protect, the default first.
    mechanism : Mechanism
    arithmetic : str
        The distributions of its noise, of a tally those under pure ε, and in which numbers its proof holds.
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
        Whether the tally takes a declared number of ``records`` to choose its sizes by.
    named_only : bool
        Whether plans and releases consider it only where it is named, because its error depends on how the
        records are distributed.
    shared : bool
        Whether one table answers every kernel that has the role, so that several share one release.
    undeclared_sizes : mapping
        Sizes of the tally where no number of records is declared; empty for those of the best option.
    comparison_settings : tuple of mappings
        What tallies are made with for releases that are to be compared, the number of rows first; empty for
        those of the predicted options.
    """

    name: str
    role: Role
    paper: str
    mechanism: Mechanism = PURE_NOISE
    one_call: Callable[..., ReleasedFunction] | None = None
    pure: bool = True
    approximate: bool = True
    relations: tuple[Relation, ...] = tuple(Relation)
    arithmetic: str = EXACT_INTEGERS
    most_columns: int | None = None
    needs_bounds: bool = True
    tally: MakeTally | None = None
    predict: Predict | None = None
    predict_reading: PredictReading | None = None
    sized: bool = False
    named_only: bool = False
    shared: bool = False
    undeclared_sizes: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    comparison_settings: tuple[Mapping[str, int], ...] = ()

    @property
    def settings(self) -> tuple[str, ...]:
        """What the tally can be made with, beside what every tally has."""
        if self.tally is None:
            return ()
        own = inspect.signature(self.tally).parameters.values()
        return tuple(
            each.name
            for each in own
            if each.name not in _OF_EVERY_TALLY and each.kind is not each.VAR_KEYWORD
        )

    @property
    def takes_seed(self) -> bool:
        """Whether a release in one call is made with public pseudo-random numbers."""
        return self.one_call is not None and "seed" in inspect.signature(self.one_call).parameters

    def suits(self, kernel: Kernel, *, delta: float | None = None) -> bool:
        """Whether it takes this kernel, and can promise ε alone or with this δ."""
        promised = self.approximate if delta else self.pure
        narrow = self.most_columns is None or kernel.dim is None or kernel.dim <= self.most_columns
        return promised and narrow and self.role.test(kernel)

    def request(self, **keywords: Unpack[OneCallKeywords]) -> ReleaseRequest:
        """The release request with these keywords and the method's defaults.

        Raises
        ------
        ClaimError
            if it takes no delta, or needs one, or does not protect such neighbours.
        """
        keywords.setdefault("delta", None if self.pure else DEFAULT_DELTA)
        keywords.setdefault("relation", self.relations[0])
        request = ReleaseRequest.of(**keywords)
        if not (self.pure if request.promise.pure else self.approximate):
            rule, got = ("a delta above 0", "none") if request.promise.pure else ("no delta", "one")
            remedy = "try delta=1e-6" if request.promise.pure else "leave it out"
            raise ClaimError(f"{self.name} takes {rule}", got=got, remedy=remedy)
        request.check_delta()
        neighbours = Relation.of(request.relation)
        if neighbours not in self.relations:
            rule = f"divides by the number of records, which is public under {self.relations[0]} alone"
            raise ClaimError(f"{self.name} {rule}", got=neighbours, remedy="use another method")
        return request

    def release(self, X: object, kernel: Kernel, **given: Any) -> ReleasedFunction:
        """Release one batch of records and spend the requested budget.

        Takes ``bounds``, ``columns``, what is requested of a release in one call (`OneCallKeywords`) and
        the method's own options. A ``sized`` one is given a declared number of ``records``, and ε, to choose
        its sizes by; the others do not use it.
        """
        if self.one_call is not None:
            return self.one_call(X, kernel, **given)
        make = self.tally
        assert make is not None
        requested: Any = {name: given.pop(name) for name in OneCallKeywords.__annotations__ if name in given}
        records = given.pop("records", None)
        if self.sized and records is not None:
            given = {"records": records, "epsilon": requested["epsilon"], **given}
        return release_counted(self, X, lambda: make(kernel, **given), **requested)


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
    load_baselines()
    return sorted(_METHODS)


def planned_methods() -> list[str]:
    """The names of the methods whose error is predicted, which are those that :func:`hushsum.plan` compares.

    >>> planned_methods()
    ['adaptive_grid', 'fourier_features', 'grid', 'landmarks', 'monomials', 'race']
    """
    return sorted(name for name, method in _METHODS.items() if method.predict is not None)


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
    fitting = [method_named(method)] if method in method_names() else _with_sizes(sizes)
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
    >>> methods.method_named("race").pure
    True
    """
    if name not in _METHODS:
        one_of("method", name, method_names())
    return _METHODS[name]


F = TypeVar("F", bound=ReleasedFunction)


@dataclass(frozen=True, slots=True)
class OneCallRelease:
    """The claim of a method's release, known before anything is drawn, and what was requested."""

    method: Method
    request: ReleaseRequest
    claim: Claim

    @classmethod
    def of(cls, method: Method, *assumptions: str, **keywords: Unpack[OneCallKeywords]) -> OneCallRelease:
        """Check that the method can promise this; raises as `Method.request` does."""
        request = method.request(**keywords)
        claim = Claim(
            promise=request.promise,
            unit="record",
            records_per_unit=1,
            relation=Relation.of(request.relation),
            mechanism=method.mechanism,
            arithmetic=method.arithmetic,
            secure=request.insecure_noise_seed is None,
            assumptions=assumptions,
        )
        return cls(method, request, claim)

    @property
    def epsilon(self) -> Fraction:
        """The ε of the whole release."""
        assert self.claim.promise.epsilon is not None
        return self.claim.promise.epsilon

    @property
    def delta(self) -> Fraction:
        """The δ of the whole release."""
        return self.claim.promise.delta

    @property
    def private_count(self) -> bool:
        """Whether the number of records is private, and must be paid for."""
        return self.claim.relation is Relation.ADD_REMOVE

    def count(
        self, noise: ReleaseNoise, records: int, part: Fraction = COUNT_SHARE
    ) -> tuple[float, float, Fraction]:
        """The number of records as the release may know it, its variance, and the ε that is left.

        Under replace it is public. Under add/remove a ``part`` of ε pays for a noisy one.
        """
        if not self.private_count:
            return float(max(records, 1)), 0.0, self.epsilon
        share = self.epsilon * part
        noisy, drawn = noise.laplace(np.array([records], np.int64), 1, share)
        return float(max(int(noisy[0]), 1)), drawn.variance, self.epsilon - share

    def points_function(
        self,
        box: DeclaredBox,
        *,
        points: Floats,
        weights: Floats,
        count: float,
        count_variance: float = 0.0,
        feature_errors: FeatureErrors | None = None,
    ) -> PointsFunction:
        """Weighted points whose noise is not independent, as the function that this release makes public."""
        return PointsFunction(
            points=points,
            weights=weights,
            kernel=box.kernel,
            bounds=box.bounds,
            count=count,
            count_variance=count_variance,
            weight_variance=None,
            feature_errors=feature_errors,
            facts=PublicFacts(self.claim),
            method=self.method.name,
            columns=box.columns,
        )

    def noise(self) -> AbstractContextManager[ReleaseNoise]:
        """What the release may draw."""
        return release_noise(self.request.insecure_noise_seed)

    def released(self, make: Callable[[], F], **subject: object) -> F:
        """Make the function, debited first where there is a budget; a retry returns the staged one."""
        subject = {"method": self.method.name, **subject}
        return Prepared(self.claim, subject, make, self.request).spend()


def part_of_budget(name: str, value: float) -> Fraction:
    """A part of the budget, exactly; refused unless it is above 0 and below 1."""
    part = exact(name, value)
    if not 0 < part < 1:
        raise UsageError(name, "must be above 0 and below 1", got=f"{value:g}", remedy="try 0.3")
    return part


PUBLIC_POINTS: Final = "the points that were given are public"
"""The assumption of a release with given points, if the points are published or decide what is published."""


@dataclass(frozen=True, slots=True)
class DeclaredBox:
    """The box that a one-call method works in, and the names of its columns."""

    kernel: Kernel
    bounds: Bounds
    columns: tuple[str, ...] | None

    @classmethod
    def of(cls, kernel: Kernel, bounds: object, columns: Sequence[str] | None) -> DeclaredBox:
        """The bounds for a kernel of columns; refuses other kernels."""
        check_kernel(kernel, kernel.dim or 1)
        box, names = declared_bounds(bounds, dim=kernel.dim or 1, columns=columns)
        if box is None:
            raise ClaimError(
                "bounds", "must be declared", got="none", remedy="give (low, high) for every column"
            )
        return cls(kernel, box, names)

    def refuse_private(self, public: object, X: object, parameter: str) -> None:
        """Refuse the private records in place of public points, before anything is spent.

        Raises
        ------
        UsageError
            for the records themselves, or copies of them.
        """
        refuse_private_rows(public, X, parameter=parameter)
        refuse_copied_rows(public, X, self.kernel.dim, self.columns, parameter=parameter)

    def records(self, X: object) -> Rows:
        """The records, checked, clipped to the box and centred on it; secret.

        Raises
        ------
        DataRefused
            also where most of them lie outside of the box, unless that is allowed.
        """
        rows: Rows = self.kernel.prepare(X, self.bounds, columns=self.columns).arrays[0]
        bandwidths = [self.kernel.bandwidth] if isinstance(self.kernel, ColumnKernel) else []
        check = ParameterCheck(self.bounds, bandwidths=bandwidths, columns=self.columns)
        check.warn(lambda: columns_of(X, self.bounds.dim, self.columns), rows=rows)
        return rows


def declared_box(kernel: Kernel, declared: BoxKeywords) -> tuple[Bounds | None, tuple[str, ...] | None]:
    """The declared box and the names of the columns."""
    return declared_bounds(declared.get("bounds"), dim=kernel.dim or 1, columns=declared.get("columns"))


def boxed_tally(
    method: str,
    kernel: Kernel,
    make: Callable[[Bounds, tuple[str, ...] | None], Basis],
    **declared: Unpack[BoxKeywords],
) -> Tally:
    """An empty tally of a method that needs bounds: of the basis that ``make`` returns for the box and the
    names of its columns.
    """
    method_named(method).role.check(kernel, method)
    box, names = declared_box(kernel, declared)
    basis = make(Bounds.declared(box, kernel.dim or 1, method), names)
    return Tally(basis, kernel, max_per_unit=declared.get("max_per_unit"))


def release_counted(
    method: Method,
    X: object,
    count: Callable[[], Tally],
    *,
    convert: Callable[[ReleasedFunction], ReleasedFunction] = lambda function: function,
    **keywords: Unpack[OneCallKeywords],
) -> ReleasedFunction:
    """Count records in the tally that ``count`` makes, and release it; the promise is checked first."""
    request, tally = method.request(**keywords), count()
    prepared = tally.prepare(request)
    tally.add(X)
    subject = {"method": method.name, **prepared.subject}
    return replace(prepared, subject=subject, make=lambda: convert(prepared.make())).spend()
