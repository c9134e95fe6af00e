"""From records to a prepared release: plan, count, prepare. :func:`hushsum.release`, ``hushsum release`` and
the service run it; they differ in where records come from and where the release is delivered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypedDict, Unpack

import numpy as np

from hushsum.declaration import check_fields, shows_keywords
from hushsum.errors import ClaimError, DataRefused, UsageError
from hushsum.kernels import Kernel, error_in_words, in_scale, warn_of_bandwidth
from hushsum.methods import (
    FOURIER_FEATURES,
    DeclaredBox,
    Method,
    OneCallKeywords,
    OneCallRelease,
    Option,
    all_methods,
    method_named,
)
from hushsum.privacy import (
    AUTO,
    BINOMIAL,
    GAUSSIAN,
    RECORD,
    STATED,
    ReleaseKeywords,
    ReleaseRequest,
    checked_unit,
)
from hushsum.records import (
    Bounds,
    DeclaredBounds,
    DeclaredSteps,
    Steps,
    clipping_allowed,
    column_names_of,
    declared_bounds,
    declared_steps,
    in_memory,
    refuse_copied_rows,
    refuse_path,
    refuse_private_rows,
)
from hushsum.releases import PUBLIC_SAMPLE, Prepared, ReleasedFunction, combine, sharpened
from hushsum.tally import Tally

from ._plan import (
    COMPARISON,
    MAX_BYTES,
    MAX_SECONDS,
    QUERIES,
    KernelSpec,
    MethodSpec,
    bounds_of_sample,
    built,
    kernel_of_sample,
    plan,
    step_of_columns,
    takes_sets,
    warn_of_narrow_bandwidth,
)

__all__ = ["UNDECLARED", "DeclaredRecords", "EmptyTally", "ReleaseRecords", "planned_tally", "release"]

UNDECLARED = 100_000
"""The number of records that sizes are chosen for where none is declared: its choice is near the best from a
tenth to ten times as many.
"""

EmptyTally = Callable[[Kernel, "Sequence[str] | None"], Tally]
"""An empty tally for a kernel and the names of its columns."""


class Source(Protocol):
    """Private records: an array or frame, or files."""

    def shape(
        self, kernel: KernelSpec | Kernel, bounds: DeclaredBounds | None
    ) -> tuple[int | None, Sequence[str] | None] | None:
        """The number of columns and their names, or None if they are known only once records are read."""
        ...

    def refuse_copies(self, public: Any, dim: int | None, columns: Sequence[str] | None) -> None:
        """Refuse private rows among the public ones."""
        ...

    def count(self, kernel: KernelSpec | Kernel, empty: EmptyTally) -> Tally:
        """All records in the tally that ``empty`` makes once the columns are known."""
        ...

    def in_memory(self, columns: Sequence[str] | None, box: DeclaredBox) -> Any:
        """All records, checked, so that none is refused after the debit; secret."""
        ...


@dataclass(frozen=True, slots=True)
class Records:
    """Records in memory as a source: an array, a frame, or what else tallies take."""

    data: object
    columns: Sequence[str] | None = None
    threads: int | None = None

    def shape(
        self, kernel: KernelSpec | Kernel, bounds: DeclaredBounds | None
    ) -> tuple[int | None, Sequence[str] | None]:
        """Names as given, as in the frame, or as in a dictionary of bounds."""
        dim = kernel.dim if isinstance(kernel, Kernel) else None if kernel.takes_sets else _width(self.data)
        columns = self.columns
        if dim is None:
            return None, None if columns is None else tuple(columns)
        if columns is None:
            found = column_names_of(self.data)
            # Names that stand for other columns, such as one for a column of lists, are not kept.
            columns = found if found is not None and len(found) == dim else None
        return dim, declared_bounds(bounds, dim=dim, columns=columns)[1]

    def refuse_copies(self, public: Any, dim: int | None, columns: Sequence[str] | None) -> None:
        """Refuse private rows among the public ones."""
        refuse_copied_rows(public, self.data, dim, columns)

    def count(self, kernel: KernelSpec | Kernel, empty: EmptyTally) -> Tally:
        """All records in the tally that ``empty`` makes."""
        assert isinstance(kernel, Kernel)
        tally = empty(kernel, self.columns)
        return tally.add(self.data, threads=self.threads)

    def in_memory(self, columns: Sequence[str] | None, box: DeclaredBox) -> Any:
        """The records, as they are."""
        box.records(self.data)
        return self.data


@dataclass(frozen=True, slots=True)
class DeclaredRecords:
    """Records of which only the columns are known; None for sets.

    A release prepared with them has the plan and the claim that a release of such records will have. No noise
    may be drawn for it.
    """

    columns: Sequence[str] | None

    def shape(
        self, kernel: KernelSpec | Kernel, bounds: DeclaredBounds | None
    ) -> tuple[int | None, Sequence[str] | None]:
        """The columns, as declared."""
        return None if takes_sets(kernel) or self.columns is None else len(self.columns), self.columns

    def refuse_copies(self, public: Any, dim: int | None, columns: Sequence[str] | None) -> None:
        """No record is known yet."""

    def count(self, kernel: KernelSpec | Kernel, empty: EmptyTally) -> Tally:
        """The empty tally."""
        assert isinstance(kernel, Kernel)
        return empty(kernel, self.columns)

    def in_memory(self, columns: Sequence[str] | None, box: DeclaredBox) -> Any:
        """Nothing."""
        return None


@dataclass(frozen=True, slots=True)
class Planned:
    """A release that was planned and counted, and is ready to be drawn.

    ``option`` is what the plan predicts; ``shape`` is that of the tally, None for a method that counts in
    none.
    """

    prepared: Prepared[ReleasedFunction]
    option: Option
    kernel: Kernel
    columns: Sequence[str] | None
    bounds: DeclaredBounds | Bounds | None
    shape: tuple[int, int] | None
    records: int | None

    @property
    def predicted_error(self) -> str:
        """What the ledger says of the error: the one that was planned for, which no record decides."""
        number = self.records or UNDECLARED
        source = "assumed" if self.records is None else "declared"
        error = error_in_words(self.kernel, self.option.error, number)
        return f"{error}; predicted for {number:,} records, as {source}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRecords:
    """What is requested of the release of records; all of it is public.

    Parameters
    ----------
    request : ReleaseRequest
    kernel : KernelSpec or Kernel
    method : MethodSpec
    bounds : optional
        Declared, or taken from the public sample.
    max_per_unit : int, optional
        Records are counted for persons.
    public : records, optional
        A public sample: it decides what is not declared, and the release is combined with it.
    """

    request: ReleaseRequest
    kernel: KernelSpec | Kernel
    method: MethodSpec
    bounds: DeclaredBounds | None = None
    max_per_unit: int | None = None
    public: Any = None
    max_bytes: int = MAX_BYTES
    max_seconds: float = MAX_SECONDS
    threads: int | None = None

    def prepare(self, source: Source) -> Planned:
        """Plan, count and prepare. Nothing is spent, and all that can be refused is refused here."""
        # What cannot be claimed is refused before any record is read.
        _ = self.request.promise
        check_fields(self.request)
        shape = source.shape(self.kernel, self.bounds)
        asked = self if self.public is None else self._with_public(source, shape)
        if shape is not None:
            dim, names = shape
            if self.method.purpose == COMPARISON and not isinstance(asked.kernel, Kernel):
                asked = replace(asked, kernel=asked.kernel.for_comparison(dim))
            kernel = built(asked.kernel, dim, names, asked.bounds)
            option = asked.best(kernel, names)
            warn_of_bandwidth(kernel, asked.bounds, names)
            asked._advise(option)
            if method_named(option.method).tally is None:
                return asked._in_one_call(option, kernel, names, source)
            asked = replace(asked, kernel=kernel)
        return asked._counted(source, None if shape is None else (option, names))

    def _counted(self, source: Source, known: tuple[Option, Sequence[str] | None] | None) -> Planned:
        chosen: list[tuple[Option, Kernel, Sequence[str] | None]] = []

        def empty(kernel: Kernel, columns: Sequence[str] | None) -> Tally:
            option, names = known or (self.best(kernel, columns, tallies_only=True), columns)
            chosen.append((option, kernel, names))
            return self.empty_tally(option, kernel, names)

        tally = source.count(self.kernel, empty)
        option, kernel, names = chosen[0]
        if known is None:
            warn_of_bandwidth(kernel, tally.basis.bounds)
            self._advise(option)
        assumptions = () if self.public is None else (PUBLIC_SAMPLE,)
        prepared = tally.prepare(self.request_for(option), threads=self.threads, assumptions=assumptions)
        plain, sample = prepared.make, self.public
        if sample is not None:
            prepared = replace(prepared, make=lambda: combine(plain(), sample))
        elif self._sharpens(option):
            prepared = replace(prepared, make=lambda: sharpened(plain()))
        shape, bounds = tally.basis.shape, tally.basis.bounds
        return Planned(prepared, option, kernel, names, bounds, shape, self.method.records)

    def _sharpens(self, option: Option) -> bool:
        """Whether a release is read with points that are found in it: where noise does not grow with
        features, so that there are many, and where the table itself is not compared.
        """
        return option.method == FOURIER_FEATURES and bool(option.delta or option.rho) and option.move is None

    def _advise(self, option: Option) -> None:
        """Warn of a bandwidth that is too small for the number of records, where one is declared and no
        public sample adds to them.
        """
        alone = self.public is None and not method_named(option.method).named_only
        if self.method.records is not None and alone:
            warn_of_narrow_bandwidth(option, level=4)

    def _with_public(
        self, source: Source, shape: tuple[int | None, Sequence[str] | None] | None
    ) -> ReleaseRecords:
        kernel = self.kernel
        if not isinstance(kernel, Kernel):
            if kernel.takes_sets:
                raise UsageError("public", "must be left out for sets", got="a kernel of sets")
            dim = None if shape is None else shape[0]
            number = self.method.records or UNDECLARED
            kernel = kernel_of_sample(kernel, dim=dim, public=self.public, records=number, bounds=self.bounds)
        if shape is not None:
            source.refuse_copies(self.public, *shape)
        return replace(self, kernel=kernel, bounds=bounds_of_sample(kernel, self.bounds, self.public))

    def best(self, kernel: Kernel, columns: Sequence[str] | None, *, tallies_only: bool = False) -> Option:
        """The option that is released; without a declared number of records, for a usual one."""
        request, method = self.request, self.method
        # More can be chosen of the release of a tally, and only a tally counts persons.
        of_a_tally = (request.mechanism, request.count_share, request.rounded, self.max_per_unit) != (
            None,
        ) * 4
        return plan(
            records=UNDECLARED if method.records is None else method.records,
            kernel=kernel,
            epsilon=_number(request.epsilon),
            delta=_number(request.delta),
            rho=_number(request.rho),
            bounds=self.bounds,
            method=_with_settings(method.method, self._given_sizes()),
            purpose=method.purpose,
            seed=method.seed,
            rows=request.rows if isinstance(request.rows, int) else None,
            width=method.width,
            relation=request.relation,
            mechanism=GAUSSIAN if request.mechanism == BINOMIAL else request.mechanism,
            count_share=_number(request.count_share),
            max_per_unit=self.max_per_unit,
            max_bytes=self.max_bytes,
            max_seconds=self.max_seconds,
            steps=self._steps(kernel, columns),
            comparison=False,
            tallies_only=tallies_only or of_a_tally or request.rows != AUTO or self.public is not None,
            public=self.public,
        ).best

    def empty_tally(self, option: Option, kernel: Kernel, columns: Sequence[str] | None) -> Tally:
        """The tally of an option, with the sizes that are given; where no number of records is declared, with
        those that suit any.
        """
        usual = self.method.records is None and option.move is None
        undeclared = method_named(option.method).undeclared_sizes if usual else {}
        return planned_tally(
            option,
            kernel,
            bounds=self.bounds,
            columns=columns,
            seed=self.method.seed,
            max_per_unit=self.max_per_unit,
            **{**undeclared, **self._given_sizes()},
        )

    def request_for(self, option: Option) -> ReleaseRequest:
        """The request with what the plan decides where it is not given."""
        request = self.request
        # The rows of least bound are too many for most data: of a method that has them, fewer are published.
        given = request.rows != AUTO or self.method.records is None
        rows = request.rows if given or method_named(option.method).undeclared_sizes else option.rows
        if option.move is not None:
            # The noisy count decides nothing: another owner must publish the same rows.
            rows = option.rows
        return replace(
            request,
            # Pure ε where the best option keeps it.
            delta=request.delta if option.delta else None,
            mechanism=GAUSSIAN if option.delta and request.mechanism is None else request.mechanism,
            rows=rows,
            count_share=option.count_share if request.count_share is None else request.count_share,
            rounded=option.rounded if request.rounded is None else request.rounded,
        )

    def _in_one_call(
        self, option: Option, kernel: Kernel, columns: Sequence[str] | None, source: Source
    ) -> Planned:
        method, request = method_named(option.method), self.request
        assert request.epsilon is not None
        # The budget is debited here, for what the method then makes.
        asked: OneCallKeywords = {
            "epsilon": float(request.epsilon),
            "relation": request.relation,
            "insecure_noise_seed": request.insecure_noise_seed,
        }
        claim = OneCallRelease.of(method, **asked).claim
        records = source.in_memory(columns, DeclaredBox.of(kernel, self.bounds, columns))

        def make() -> ReleasedFunction:
            # The budget is debited: what could be refused of the records was refused when they were read.
            with clipping_allowed(quiet=True):
                function = method.release(
                    records,
                    kernel,
                    bounds=self.bounds,
                    columns=columns,
                    **({"seed": self.method.seed} if method.takes_seed else {}),
                    **asked,
                    **option.sizes,
                )
            assert function.claim == claim
            return function

        prepared = Prepared(claim, {"method": method.name}, make, request)
        return Planned(prepared, option, kernel, columns, self.bounds, None, self.method.records)

    def _given_sizes(self) -> dict[str, int]:
        rows = self.request.rows
        sizes = {"rows": None if isinstance(rows, str) else rows, "width": self.method.width}
        return {name: value for name, value in sizes.items() if value is not None}

    def _steps(self, kernel: Kernel, columns: Sequence[str] | None) -> Steps | None:
        """One step, or None, for each column, in their order."""
        steps: Any = self.method.steps
        if steps is None:
            return None
        if kernel.dim is None or self.bounds is None:
            rule = "need the bounds of columns of numbers"
            raise UsageError("steps", rule, got="no bounds", remedy="declare bounds, or leave steps out")
        box, known = declared_bounds(self.bounds, dim=kernel.dim, columns=columns)
        assert box is not None
        return declared_steps(step_of_columns(steps) if isinstance(steps, tuple) else steps, box, known)


def planned_tally(
    option: Option,
    kernel: Kernel,
    *,
    bounds: DeclaredBounds | None,
    columns: Sequence[str] | None = None,
    seed: int = 0,
    max_per_unit: int | None = None,
    **sizes: int,
) -> Tally:
    """An empty tally of the method and the sizes of an option; ``sizes`` replace those.

    >>> import hushsum as hs
    >>> kernel = hs.GaussianKernel(dim=1, bandwidth=1.0)
    >>> best = hs.plan(records=10_000, kernel=kernel, bounds=(0, 10), epsilon=1.0).best
    >>> planned_tally(best, kernel, bounds=(0, 10)).basis.name
    'grid-weights'
    """
    method = method_named(option.method)
    assert method.tally is not None
    settings = {**option.sizes, **sizes}
    if "seed" in method.settings:
        settings.setdefault("seed", seed)
    return method.tally(kernel, bounds=bounds, columns=columns, max_per_unit=max_per_unit, **settings)


def _with_settings(name: str, given: dict[str, int]) -> str:
    """The method, or under ``"auto"`` the one planned method that has the given sizes."""

    def takes(method: Method) -> bool:
        return method.predict is not None and set(given) <= set(method.settings)

    if name != AUTO:
        if not takes(method_named(name)):
            raise UsageError(
                f"{name} has no {' or '.join(given)}", remedy="leave that out, or choose another method"
            )
        return name
    fitting = [method.name for method in all_methods() if takes(method)]
    return fitting[0] if given and len(fitting) == 1 else AUTO


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _width(X: object) -> int:
    refuse_path(X)
    shape = getattr(X, "shape", None)
    if shape is None:
        try:
            shape = np.asarray(X).shape
        except ValueError:
            shape = None
    # Refused out here: NumPy's own message contains the number of records.
    if shape is None or len(shape) not in (1, 2):
        raise DataRefused(
            "records", "must be rows of one length", remedy="pass an array or a frame of two dimensions"
        )
    if len(shape) == 1:
        return 1
    if shape[1] > shape[0]:
        rule = "the number of columns is taken as public"
        remedy = "turn the table, or give a kernel with its dim"
        raise DataRefused(rule, got="more columns than records", remedy=remedy)
    return int(shape[1])


class MethodKeywords(TypedDict, total=False):
    """The fields of a `MethodSpec`, for calls."""

    method: str
    purpose: str
    records: int | None
    width: int | None
    steps: DeclaredSteps | None
    seed: int


class RecordsKeywords(ReleaseKeywords, MethodKeywords, total=False):
    """What the release of records takes of the request and of the method."""


@shows_keywords(RecordsKeywords, ReleaseRequest, MethodSpec)
def release(
    X: object,
    *,
    bandwidth: float | None = None,
    kernel: str | Kernel | None = None,
    bounds: DeclaredBounds | None = None,
    columns: Sequence[str] | None = None,
    threads: int | None = None,
    max_bytes: int = MAX_BYTES,
    max_seconds: float = MAX_SECONDS,
    public: object = None,
    scale: str | None = None,
    allow_clipping: bool = False,
    **keywords: Unpack[RecordsKeywords],
) -> ReleasedFunction:
    """Count records and release them, by the method and with the sizes of the smallest predicted error.
    Spends the claim.

    The number of records is used only through a noisy count, which the claim covers; the number of columns is
    taken as public.

    Parameters
    ----------
    X : records
        Private. The names of a frame's columns are kept, so that frames of queries are read by name. For
        several batches, sites or persons make a tally with :func:`hushsum.race` or :func:`hushsum.grid`.
    epsilon, delta, rho, relation, population, allow_large_delta, budget, idempotency_key, \
insecure_noise_seed
        As for ``Tally.release``. With ``delta`` a method may be chosen that keeps pure ε, which is stronger.
    unit : "record", optional
        For other units make a tally: with ``max_per_unit``, or of a graph by
        :func:`hushsum.methods.count_graph`.
    mechanism, rounded, count_share
        As for ``Tally.release``; by default those of the smallest predicted error. A method without a tally
        has none of these, and is not considered where one is given.
    bandwidth : float
        How near records must be to count as similar, chosen without looking at them: in the units of the
        data, or as a fraction of the declared range of each column; see ``scale``.
    kernel : str or Kernel, optional
        A name, or a kernel object, which then brings its own bandwidth. By default Gaussian, and Euclidean
        where hash rows are requested: by ``method="race"``, ``rows`` or ``width``.
    bounds : (low, high) for all columns, a list of them, or a dictionary by column name, optional
        Declared; records are clipped to it. Grids, the most accurate method in one to four columns, need it.
    method : str
        ``"auto"`` takes the best of :func:`hushsum.plan`, and one of the methods that it plans takes the best
        sizes of that. The other names of ``hushsum.methods.method_names()`` run with their defaults.
    purpose : {"query", "compare"}, optional
        ``"compare"``: two owners who declare the same (bounds, ``records``, ε and what else is given) release
        tables that :func:`hushsum.compare` tests with the greatest power: few features, chosen by public
        quantities alone so that they are the same, and a noisy count of a larger share. ``bounds`` are
        needed, and a bandwidth is taken from them where none is given. Answers at points have larger errors.
    records : int, optional
        About how many there are, declared: sizes are then chosen for that number. The true number is private.
    rows : int or "auto"
        How many hash rows to publish. By default what is planned for the declared number of records, or,
        under pure ε without one, what suits the noisy count.
    width : int, optional
        Cells of a hash row.
    columns : list of str, optional
        What the columns are called, in their order; by default as in the frame.
    max_bytes : int
        The largest file to consider.
    max_seconds : float
        The longest time to count, roughly and on one core.
    steps : float, list of float or None, or a dictionary by column name, optional
        For columns whose values are multiples of a step, such as ages and prices: a grid may then have its
        nodes on them, where the plan predicts that it pays. See :func:`hushsum.grid`.
    public : records, optional
        A public sample that resembles the records, 10 to 10,000 rows of numbers. It decides bandwidth and
        bounds where they are not given, and rows (:func:`hushsum.plan`), and the release is combined with it
        by their variances (:func:`hushsum.releases.combine`). The claim states the assumption that it is
        public.
        Methods that count in a tally are considered. A held-out part of the private records is not public.
    scale : {"units", "bounds"}, optional
        What the bandwidth is measured in. ``"bounds"``: it is a fraction of the declared range of each
        column. By default that where the declared ranges of two columns differ by more than ten times, and
        ``"units"``, those of the data, otherwise and for kernel objects. The released function has the units
        of the data in any case.

    allow_clipping : bool
        Release records that mostly lie outside the declared bounds, with a warning in place of the refusal.

    Raises
    ------
    DataRefused
        before anything is spent, if most records lie outside the bounds.

    Warns
    -----
    SuspiciousParameter
        before anything is counted or spent, if the bandwidth does not suit the bounds.
        ``warnings.simplefilter("error", hs.errors.SuspiciousParameter)`` makes an error of it.

    Examples
    --------
    >>> import hushsum as hs
    >>> f = hs.release([[1.0], [2.0], [2.5]] * 500, epsilon=1.0, bandwidth=1.0)
    >>> f.claim.relation.value
    'add/remove'
    """
    given: dict[str, Any] = {**keywords}
    spec = MethodSpec(**{name: given.pop(name) for name in MethodKeywords.__annotations__ if name in given})
    request = ReleaseRequest.of(**given)
    if request.unit is not None:
        # A graph is counted by count_graph, and persons with ids: what is released here are records.
        checked_unit(request.unit, (RECORD,))
    X = in_memory(X)
    if public is not None:
        refuse_private_rows(public, X)
        public = in_memory(public)
    chosen: KernelSpec | Kernel
    if isinstance(kernel, Kernel):
        chosen = in_scale(kernel, scale, bounds, columns or column_names_of(X), default=False)
    else:
        chosen = KernelSpec(kernel=kernel, bandwidth=bandwidth, scale=scale).for_records(
            method=spec.method, rows=None if request.rows == AUTO else request.rows, width=spec.width
        )
    source = Records(X, columns, threads)
    known = None if spec.method == AUTO else method_named(spec.method)
    if known is not None and (known.predict is None or known.tally is None):
        if public is not None:
            raise UsageError("public", f"must be left out for {known.name}, which counts in no tally")
        if request.rho is not None or request.epsilon is None:
            rule = f"must be given, with or without delta, for {known.name}"
            raise ClaimError("epsilon", rule, got="rho or nothing", remedy="give epsilon")
        if spec.purpose != QUERIES:
            raise UsageError("purpose", f"must be {QUERIES!r} for {known.name}", got=f"{spec.purpose!r}")
        # What only releases of a planned tally have is refused, rather than ignored.
        for name, usual in {"mechanism": None, "rows": AUTO, "count_share": None, "rounded": None}.items():
            if getattr(request, name) != usual:
                raise UsageError(
                    name, f"must be an option of the method {known.name!r}", got="no option of it"
                )
        dim, names = source.shape(chosen, bounds)
        made = built(chosen, dim, names, bounds)
        warn_of_bandwidth(made, bounds, names)
        sized: dict[str, Any] = {"records": spec.records} if known.sized else {}
        # Also those that were not given: the defaults are those of this call, not of the method.
        kept = {
            name: getattr(request, name) for name in OneCallKeywords.__annotations__ if name not in STATED
        }
        with clipping_allowed(allow_clipping):
            return known.release(
                X, made, bounds=bounds, columns=names, **kept, **request.statement.as_json(), **sized
            )
    requested = ReleaseRecords(
        request=request,
        kernel=chosen,
        method=spec,
        bounds=bounds,
        public=public,
        max_bytes=max_bytes,
        max_seconds=max_seconds,
        threads=threads,
    )
    with clipping_allowed(allow_clipping):
        return requested.prepare(source).prepared.spend()
