"""The predicted error of each method of release, from declared quantities; no private data comes near it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from hushsum.bases.base import Reading
from hushsum.errors import Parameter, Part, UsageError
from hushsum.kernels.bandwidth_scale import in_scale
from hushsum.kernels.base import HashableKernel, Kernel
from hushsum.kernels.parameters import positive_integer, positive_number
from hushsum.kernels.registry import HASH_ROWS, is_expression, named_for_plan
from hushsum.methods.prediction_request import DENSITY_SPREAD, Option, PredictionRequest, typical_density
from hushsum.methods.race import BOUND, row_variances, row_width
from hushsum.methods.registry import Method, default_kernel, method_named, planned_methods
from hushsum.planning.error_by_trust import CENTRAL, SHUFFLED, TrustModel
from hushsum.planning.error_target import promise_for_error
from hushsum.planning.plan_result import Plan
from hushsum.planning.public_sample import bounds_of_sample, density_of_sample, kernel_of_sample
from hushsum.privacy.claim import Promise, Relation, exact
from hushsum.records.bounds import DeclaredBounds, declared_bounds
from hushsum.records.declared_steps import DeclaredSteps, declared_steps

AUTO = "auto"
COMPARISON_DELTA = 1e-6
FEW_COLUMNS = 2
"""Of which nobody leaves one out to make a table smaller."""
MAX_BYTES = 64_000_000
MAX_SECONDS = 60.0


def plan(
    *,
    records: int,
    dim: int | None = None,
    epsilon: float | Sequence[float] | None = None,
    delta: float | None = None,
    rho: float | None = None,
    bandwidth: float | None = None,
    kernel: str | Kernel | None = None,
    bounds: DeclaredBounds | None = None,
    method: str = "auto",
    rows: int | Sequence[int] | None = None,
    width: int | None = None,
    seed: int = 0,
    density: float | None = None,
    public: object = None,
    queries: object = None,
    relation: str | Relation = Relation.ADD_REMOVE,
    mechanism: str | None = None,
    count_share: float | Fraction | None = None,
    max_per_unit: int | None = None,
    max_bytes: int = MAX_BYTES,
    max_seconds: float = MAX_SECONDS,
    steps: DeclaredSteps | None = None,
    reading: Reading | None = None,
    error: float | None = None,
    comparison: bool = True,
    tallies_only: bool = False,
    trust: str = CENTRAL,
    sites: int | None = None,
    dropouts: int = 0,
    colluding: int | None = None,
    scale: str | None = None,
) -> Plan:
    """The predicted error of each method of release, before any budget is spent.

    Parameters
    ----------
    records : int
        The number of records, declared or guessed; under add/remove the true number is private, so do not
        pass ``len(X)``.
    dim, bandwidth, kernel
        As for the kernel; a kernel object replaces all three. The default kernel is that of
        :func:`hushsum.release`, and Euclidean for reports, which need one that hashes.
    epsilon : float or list of float
        Pure ε unless ``delta`` is given.
    delta, rho : float
        As for a release.
    bounds : (low, high) for all columns, a list of them, or a dictionary by column name, optional
        Declared; grids need them.
    method : str
        ``"auto"`` compares all of ``hushsum.methods.planned_methods()`` that can release the kernel.
    rows, width : int or list of int
        Table sizes of hash rows to compare.
    density : float, optional
        The mean kernel value f(q)/N of the queries that matter; the error of hash rows is then a bound.
        Default: that of the public data; else 0.01 for kernels that hash, and a typical one for the box and
        the number of columns for others.
    public : records, optional
        Public data that resemble the private ones. The error of hash rows is then an estimate. They decide
        the density, the number of columns, the bandwidth (Silverman's rule for the declared number of
        records) and the bounds (their range and a tenth of it beyond) where these are not given; the bounds
        not where sizes of hash rows are.
    queries : records, optional
        Public queries to estimate it at; default: the public records themselves.
    mechanism : {"discrete laplace", "gamma radius"}, optional
        The law of the noise of tables under pure ε. Default: that of less variance.
    count_share : float, optional
        The part of the budget for the noisy number of records. Default: the one of least error, for each
        option.
    max_per_unit : int, optional
        As for the tally: plan for persons with up to this many records.
    max_bytes : int
        The largest file to consider.
    max_seconds : float
        The longest time to count, roughly and on one core.
    steps : float, list of float or None, or a dictionary by column name, optional
        Of columns whose values are multiples of a step, as for :func:`hushsum.grid`. Grids with nodes on the
        steps are then compared too.
    reading : Reading, optional
        ``tally.reading`` of a tally that exists. The plan is for releasing it as it is: its kernel, bounds
        and shape replace those above.
    error : float, optional
        In place of ``epsilon``: plan for the smallest ε, to two digits, at which the best option has this
        predicted mean absolute error. Where no pure ε up to 10 reaches it, and δ is not given, δ is 1e-6.
        An error that no ε up to 10 reaches is refused: above it hardly anything is hidden.
    comparison : bool
        Where neither ``delta`` nor ``rho`` is given, also show options with δ = 1e-6. They are never chosen
        as the best, so the best option is found sooner without them.
    tallies_only : bool
        Compare only methods that count in a tally, which can be merged, streamed and released later.
    trust : {"central", "federated", "sites", "shuffled", "local"}
        Who may see the records: one curator; sites that add their noisy tables by secure aggregation; sites
        that each release with noise of their own; or nobody, when every person sends one report, which a
        shuffler separates from its sender or not. Shuffled reports need ``delta``, local ones have none.
    sites, dropouts, colluding : int
        How many sites there are; of federated ones, how many may fail during the run, and how many may use
        what they know, alone or together with the server: the noise of the others suffices. A site knows its
        own noise, so ``colluding`` is 1 by default where there are two sites or more.
    scale : {"units", "bounds"}, optional
        What the bandwidth is measured in, as for :func:`hushsum.release`.

    Notes
    -----
    Where neither ``density`` nor public data are given, errors are expected ones over the densities that the
    typical one may stand for: ``typical**r``, where log r has the standard deviation 0.65. Features are as
    many as have the least expected squared error over these. Measured errors of grids and features were 0.73
    to 1.75 times the planned ones, within 1.5 times in 148 of 156 cases, each data set left out of the fit of
    its own density; on the half that no constant was fitted to, in 64 of 68. Those of landmarks were 0.1 to
    3.6 times the planned ones, within 1.5 times in 23 cases of 32.
    The largest are where records are much denser than is typical: declare a ``density`` if it is known. See
    ``benchmarks/results/plan_validation.md`` and ``accuracy.md``.

    Examples
    --------
    >>> import hushsum as hs
    >>> hs.plan(records=241_000, dim=3, epsilon=1.0, bandwidth=3.5, bounds=(0, 255)).best.method
    'grid'
    >>> p = hs.plan(records=241_000, dim=3, epsilon=1.0, bandwidth=5.0, kernel="euclidean")
    >>> p.best.mechanism, p.best.rows
    ('discrete laplace', 5000)
    >>> hs.plan(records=241_000, dim=3, epsilon=1.0, bandwidth=5.0, trust="local").best.method
    'reports'
    >>> hs.plan(records=241_000, dim=3, error=0.003, bandwidth=5.0).best.epsilon
    0.15
    """
    number = positive_integer("records", records, at_most=1 << 50)
    model = TrustModel.of(trust, sites, dropouts, colluding)
    tallies_only = tallies_only or model.name != CENTRAL
    if kernel is None:
        kernel = default_kernel("race" if model.reported else method, rows=rows, width=width)
    if reading is not None:
        chosen, box, on_steps = reading.kernel, reading.basis.bounds, None
    else:
        if public is not None:
            kernel = kernel_of_sample(
                kernel,
                dim=dim,
                bandwidth=bandwidth,
                public=public,
                records=number,
                bounds=bounds,
                scale=scale,
            )
            if rows is None and width is None:
                bounds = bounds_of_sample(kernel, bounds, public)
        known = list(bounds) if isinstance(bounds, dict) else None
        if isinstance(kernel, str):
            by_name = not is_expression(kernel)
            chosen = named_for_plan(kernel, dim=dim, bandwidth=bandwidth, columns=known)
            chosen = in_scale(chosen, scale, bounds, known, default=by_name)
        else:
            chosen = kernel if public is not None else in_scale(kernel, scale, bounds, known, default=False)
        box, names = (None, None) if chosen.dim is None else declared_bounds(bounds, dim=chosen.dim)
        on_steps = None if box is None else declared_steps(steps, box, names)
    methods = _methods(method, chosen, tallies_only=tallies_only)
    known_density = None if density is None else _density(density)
    if known_density is None and public is not None and not HASH_ROWS.test(chosen):
        known_density = density_of_sample(chosen, public, queries)
    typical = typical_density(chosen, box) if known_density is None else known_density
    variances = row_variances(
        chosen, records=number, seed=seed, density=typical, public=public, queries=queries
    )
    measured = variances(row_width(reading, width)) if HASH_ROWS.test(chosen) else None
    place = float(measured.density.mean()) if measured is not None else typical
    guessed = known_density is None and measured is None

    most_seconds = positive_number("max_seconds", max_seconds, remedy="try 60")

    def options_for(promise: Promise, *, requested: bool) -> list[Option]:
        request = PredictionRequest(
            records=number,
            kernel=chosen,
            bounds=box,
            promise=promise,
            relation=Relation.of(relation),
            count_share=None if count_share is None else exact("count_share", count_share),
            per_unit=None
            if max_per_unit is None
            else positive_integer("max_per_unit", max_per_unit, at_most=1 << 20),
            density=place,
            density_spread=DENSITY_SPREAD if guessed else 0.0,
            max_bytes=positive_integer("max_bytes", max_bytes, at_most=1 << 50),
            requested=requested,
            row_variance=variances,
            rows=rows,
            width=width,
            mechanism=model.mechanism(promise) or (mechanism if promise.pure else None),
            steps=on_steps,
        )
        if model.reported:
            group = model.report_options(request)
        else:
            group = [model.applied(option) for option in _options(methods, request, reading)]
        quick = [option for option in group if option.seconds <= most_seconds or rows is not None]
        quick = quick or sorted(group, key=lambda option: option.seconds)[:1]
        return sorted(quick, key=lambda option: option.error)

    if error is not None:
        epsilon, delta = promise_for_error(
            error,
            lambda e, d: options_for(Promise.of(epsilon=e, delta=d), requested=True)[:1],
            (None, COMPARISON_DELTA) if delta is None else (delta,),
            alone=epsilon is None and rho is None,
            declare_bounds=box is None and any(each.needs_bounds for each in methods),
        )
    requested = [Promise.of(epsilon=e, delta=delta, rho=rho) for e in _each(epsilon)]
    shown = [(promise, True) for promise in requested]
    if comparison and delta is None and rho is None and not model.reported:
        shown += [(Promise.of(epsilon=each.epsilon, delta=COMPARISON_DELTA), False) for each in requested]
    options = [option for promise, own in shown for option in options_for(promise, requested=own)]
    if not options:
        raise (
            _no_reports(chosen, model)
            if model.reported
            else _nothing(chosen, reading, methods, box is not None)
        )
    return Plan(tuple(options), number, place, BOUND if measured is None else measured.source, chosen)


def _methods(name: str, kernel: Kernel, *, tallies_only: bool) -> list[Method]:
    """Those whose error is predicted and that take the kernel; a method that was named must do both."""
    planned = [method_named(each) for each in planned_methods()]
    planned = [each for each in planned if each.tally is not None or not tallies_only]
    if name == AUTO:
        return [each for each in planned if each.role.test(kernel)]
    if name not in [each.name for each in planned]:
        names = ", ".join(each.name for each in planned)
        raise UsageError(
            parameter="method",
            rule=f"must be {AUTO!r} or one of {names}",
            got=f"{name!r}",
            remedy="choose one",
        )
    method = method_named(name)
    method.role.check(kernel, name)
    return [method]


def _options(methods: Sequence[Method], request: PredictionRequest, reading: Reading | None) -> list[Option]:
    options: list[Option] = []
    for method in methods:
        if reading is None and method.predict is not None:
            options += method.predict(request)
        elif reading is not None and method.predict_reading is not None:
            options += method.predict_reading(request, reading)
    return options


def _density(density: float) -> float:
    number = positive_number("density", density)
    if number > 1:
        raise UsageError(
            parameter="density",
            rule="must be at most 1",
            got=f"{density}",
            remedy="it is a mean kernel value",
        )
    return number


def _nothing(kernel: Kernel, reading: Reading | None, methods: Sequence[Method], bounded: bool) -> UsageError:
    if reading is not None:
        return UsageError(
            rule=f"the error of {reading.basis.name} is not predicted", remedy="release it without a plan"
        )
    if not methods:
        names = ", ".join(planned_methods())
        return UsageError(
            rule=f"none of {names} can release the {kernel.name} kernel", remedy="use another kernel"
        )
    names = ", ".join(method.name for method in methods)
    if not bounded:
        return UsageError(
            rule=f"{names} cannot release the {kernel.name} kernel like this",
            remedy=("declare ", Parameter("bounds")),
        )
    wider: tuple[Part, ...] = ("a larger ", Parameter("bandwidth"), " or narrower ", Parameter("bounds"))
    many = kernel.dim is None or kernel.dim > FEW_COLUMNS
    return UsageError(
        rule=(
            f"{names} must have a table that is small enough for the ",
            Parameter("bandwidth"),
            ", the ",
            Parameter("bounds"),
            " and the number of columns",
        ),
        got="none",
        remedy=("use fewer columns, ", *wider) if many else ("give ", *wider),
    )


def _no_reports(kernel: Kernel, model: TrustModel) -> UsageError:
    if not isinstance(kernel, HashableKernel):
        return UsageError(
            rule=f"reports need a kernel that hashes, which the {kernel.name} kernel does not",
            remedy="use another kernel",
        )
    return UsageError(
        parameter="delta",
        rule=f"must {'be given' if model.name == SHUFFLED else 'not be given'} for {model.name} reports",
        remedy="see docs/explanation/trust.md",
    )


def _each(epsilon: float | Sequence[float] | None) -> Iterable[float | None]:
    if isinstance(epsilon, Sequence):
        if not epsilon:
            raise UsageError(
                parameter="epsilon", rule="must hold at least one value", got="none", remedy="try [0.5, 1.0]"
            )
        return epsilon
    return [epsilon]
