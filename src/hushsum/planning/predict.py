"""Predict the error of a release from declared quantities; private data never comes near this module."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache

from hushsum.bases.base import Basis
from hushsum.bases.hash_rows import HashRows
from hushsum.errors import UsageError, shown
from hushsum.kernels.base import Kernel, kernel_class
from hushsum.kernels.parameters import positive_integer, positive_number
from hushsum.methods.race import DEFAULT_WIDTH
from hushsum.planning.plan import Option, Plan
from hushsum.planning.predict_basis import basis_options
from hushsum.planning.predict_features import features_options
from hushsum.planning.predict_grid import grid_options
from hushsum.planning.predict_race import race_options
from hushsum.planning.question import Question
from hushsum.planning.spread import Spread, bounded_spread, estimated_spread
from hushsum.planning.typical import typical_density
from hushsum.privacy.calibration import COUNT_SHARE
from hushsum.privacy.claim import Promise, exact
from hushsum.privacy.relation import Relation
from hushsum.records.bounds import Bounds

COMPARISON_DELTA = 1e-6
MAX_BYTES = 64_000_000
MAX_SECONDS = 60.0
METHODS = ("race", "grid", "fourier_features")


def plan(
    *,
    records: int,
    dim: int | None = None,
    epsilon: float | Sequence[float] | None = None,
    delta: float | None = None,
    rho: float | None = None,
    bandwidth: float | None = None,
    kernel: str | Kernel = "euclidean",
    bounds: Sequence[tuple[float, float]] | tuple[float, float] | None = None,
    method: str = "auto",
    rows: int | Sequence[int] | None = None,
    width: int | None = None,
    seed: int = 0,
    density: float | None = None,
    public: object = None,
    queries: object = None,
    relation: str | Relation = Relation.ADD_REMOVE,
    count_share: float | Fraction = COUNT_SHARE,
    max_per_unit: int | None = None,
    max_bytes: int = MAX_BYTES,
    max_seconds: float = MAX_SECONDS,
    allow_real: bool = False,
    basis: Basis | None = None,
) -> Plan:
    """The predicted error of each way to release, before any budget is spent.

    Parameters
    ----------
    records : int
        The number of records, declared or guessed; under add/remove the true number is private, so do not
        pass ``len(X)``.
    dim, bandwidth, kernel
        As for the kernel; a kernel object replaces all three.
    epsilon : float or list of float
        Pure ε unless ``delta`` is given. Without ``delta``, options with δ = 1e-6 are shown for comparison
        and are not chosen as the best.
    delta, rho : float
        As for a release.
    bounds : list of (low, high), or one (low, high) for all columns, optional
        Declared; grids need them.
    method : {"auto", "race", "grid", "fourier_features"}
        ``"auto"`` compares all that can release the kernel.
    rows, width : int or list of int
        Table sizes of hash rows to compare.
    density : float, optional
        The mean kernel value f(q)/N of the queries that matter; the error of hash rows is then a bound.
        Default: 0.01 for kernels that hash; else a typical one for the box and the number of columns.
    public : records, optional
        Public data that resemble the private ones. The error of hash rows is then an estimate.
    queries : records, optional
        Public queries to estimate it at; default: the public records themselves.
    max_per_unit : int, optional
        As for the tally: plan for persons with up to this many records.
    max_bytes : int
        The largest file to consider.
    max_seconds : float
        The longest time to count, roughly and on one core.
    allow_real : bool
        Also consider noise whose proof is about real arithmetic: the Gamma-radius law for features under
        pure ε.
    basis : Basis, optional
        That of a tally that exists. The plan is for releasing it as it is: its kernel, bounds and shape stand
        for those above.

    Examples
    --------
    >>> import hushsum as hs
    >>> p = hs.plan(records=241_000, dim=3, epsilon=1.0, bandwidth=5.0)
    >>> p.best.mechanism, p.best.rows
    ('discrete laplace', 5000)
    >>> p = hs.plan(records=241_000, dim=3, epsilon=1.0, bandwidth=3.5, kernel="gaussian", bounds=(0, 255))
    >>> p.best.method
    'grid'
    """
    if method != "auto" and method not in METHODS:
        raise UsageError(
            f"method must be 'auto' or one of {', '.join(METHODS)}, got {shown(method)}; choose one"
        )
    number = positive_integer("records", records, at_most=1 << 50)
    if basis is not None:
        kernel, bounds, width = basis.kernel, getattr(basis, "bounds", None), getattr(basis, "width", None)
    chosen = kernel if isinstance(kernel, Kernel) else _kernel(kernel, dim, bandwidth)
    columns = getattr(chosen, "dim", None)
    box = None if bounds is None or columns is None else Bounds.of(bounds, columns)
    typical = typical_density(chosen, box) if density is None else _density(density)
    spread_of = _spread_of(chosen, number, seed, typical, public, queries)
    own = spread_of(width or DEFAULT_WIDTH) if chosen.hashable else None
    place = float(own.density.mean()) if own is not None else typical
    asked = [Promise.of(epsilon=e, delta=delta, rho=rho) for e in _each(epsilon)]
    promises = list(asked)
    if delta is None and rho is None:
        promises += [Promise.of(epsilon=promise.epsilon, delta=COMPARISON_DELTA) for promise in asked]
    options: list[Option] = []
    for promise in promises:
        question = Question(
            records=number,
            kernel=chosen,
            bounds=box,
            promise=promise,
            relation=Relation.of(relation),
            count_share=exact("count_share", count_share),
            per_unit=None
            if max_per_unit is None
            else positive_integer("max_per_unit", max_per_unit, at_most=1 << 20),
            density=place,
            max_bytes=positive_integer("max_bytes", max_bytes, at_most=1 << 50),
            asked=promise in asked,
            allow_real=allow_real,
        )
        group = [] if basis is None else basis_options(question, basis, spread_of)
        among = () if basis is not None else METHODS if method == "auto" else (method,)
        if "race" in among:
            group += race_options(question, spread_of, rows=rows, width=width)
        if "grid" in among:
            group += grid_options(question)
            if promise.delta and question.asked:
                # What is private without δ is private with it, and few cells take less noise so.
                stronger = Promise.of(epsilon=promise.epsilon)
                group += grid_options(replace(question, promise=stronger))
        if "fourier_features" in among:
            group += features_options(question)
        quick = [option for option in group if option.seconds <= max_seconds or rows is not None]
        quick = quick or sorted(group, key=lambda option: option.seconds)[:1]
        options += sorted(quick, key=lambda option: option.error)
    if not options and basis is not None:
        raise UsageError(f"the error of {basis.name} is not predicted; plan without basis=")
    if not options:
        raise UsageError(_nothing(chosen, method, bounds is not None))
    return Plan(tuple(options), number, place, "bound" if own is None else own.source)


def _spread_of(
    kernel: Kernel, records: int, seed: int, density: float, public: object, queries: object
) -> Callable[[int], Spread]:
    @cache
    def spread(width: int) -> Spread:
        if public is None:
            return bounded_spread(density, HashRows(kernel, 1, width, seed).fold_rate)
        return estimated_spread(
            kernel, width=width, seed=seed, records=records, public=public, queries=queries
        )

    return spread


def _density(density: float) -> float:
    positive_number("density", density)
    if density > 1:
        raise UsageError(f"density must be at most 1, got {density}; it is a mean kernel value")
    return density


def _nothing(kernel: Kernel, method: str, bounded: bool) -> str:
    if method == "race":
        return f"the {kernel.name} kernel is not a collision probability, so hash rows cannot release it"
    hint = "use fewer columns or a larger file" if bounded else "declare bounds"
    return f"no method can release the {kernel.name} kernel like this; {hint}, or use the euclidean kernel"


def _each(epsilon: float | Sequence[float] | None) -> Iterable[float | None]:
    if isinstance(epsilon, Sequence):
        if not epsilon:
            raise UsageError("epsilon must hold at least one value, got an empty list; try [0.5, 1.0]")
        return epsilon
    return [epsilon]


def _kernel(name: str, dim: int | None, bandwidth: float | None) -> Kernel:
    needed = {"dim": dim, "bandwidth": bandwidth}
    taken = getattr(kernel_class(name), "__dataclass_fields__", {})
    for field in ("dim", "bandwidth"):
        if field in taken and needed[field] is None:
            raise UsageError(f"{field} must be given to plan for the {name} kernel; pass {field}=...")
    return kernel_class(name)(**{field: value for field, value in needed.items() if field in taken})
