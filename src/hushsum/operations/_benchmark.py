"""Run methods side by side on public data, and measure the error and the cost of each."""

from __future__ import annotations

import io
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum.declaration import check_fields, request, required, setting
from hushsum.errors import Argument, HushsumError, SuspiciousParameter, UsageError
from hushsum.kernels import GaussianProfileKernel, Kernel, kernel_as_json
from hushsum.methods import method_named, method_names, planned_methods
from hushsum.planning import KernelSpec, plan, release
from hushsum.privacy import AUTO, DELTA
from hushsum.records import DeclaredBounds, clipping_allowed, read_columns
from hushsum.releases import ReleasedFunction

from ._files import Progress, PublicFile

__all__ = ["BenchmarkTerms", "MethodMeasured", "MethodsBenchmarked", "benchmark_methods"]

_LEAST_TRUTH = 1e-12
_SKLEARN_QUERIES = 20


@request
class BenchmarkTerms:
    """The promises, queries and repetitions of a comparison of methods.

    ``methods`` default to ``auto`` and all that can release the kernel under the promise; ``queries`` are
    drawn from the records; ``repeats`` is how many releases with fresh noise are averaged over.
    """

    epsilon: tuple[float, ...] = required("ε, or several.", above=0, below=1e9, metavar="E[,E...]")
    delta: float | None = setting(None, DELTA)
    bounds: DeclaredBounds | None = None
    methods: tuple[str, ...] | None = setting(
        None,
        "auto, or names such as race, grid, mwem; default: all that can release the kernel.",
        metavar="NAMES",
    )
    queries: int = setting(500, "Queries, drawn from the records.", at_least=1, at_most=1 << 20)
    repeats: int = setting(3, "Releases to average over.", at_least=1, at_most=1 << 20)


@dataclass(frozen=True, slots=True)
class MethodMeasured:
    """One method at one ε: mean errors of f(q)/N, seconds, and bytes of the file.

    ``predicted`` is the error predicted by :func:`hushsum.plan`, for methods that it supports; ``query`` the
    seconds of one query; ``relation`` whom the claim protects.
    """

    epsilon: float
    delta: float
    method: str
    mechanism: str
    relation: str
    error: float
    relative: float
    predicted: float | None
    build: float
    query: float
    size: int


@dataclass(frozen=True, slots=True)
class MethodsBenchmarked:
    """All measurements, the seconds of a query of exact answers, and who was left out and why."""

    records: int
    density: float
    kernel: Kernel
    methods: tuple[MethodMeasured, ...]
    exact_query_seconds: dict[str, float]
    left_out: dict[str, str]

    def as_json(self) -> dict[str, Any]:
        """The comparison for a machine."""
        return {**asdict(self), "kernel": kernel_as_json(self.kernel)}


def benchmark_methods(
    records: PublicFile,
    terms: BenchmarkTerms,
    *,
    kernel: KernelSpec,
    public: bool,
    progress: Progress | None = None,
) -> MethodsBenchmarked:
    """Release public records by every method, and compare the answers with the exact ones.

    The data must be public: true errors, and which method is best, are functions of the records that no
    budget was paid for.

    Raises
    ------
    UsageError
        unless ``public``; for kernels on sets; and if a method that was named does not exist.
    DataRefused
        for records that are not finite numbers.
    """
    if not public:
        raise UsageError(
            "public",
            "must be declared: a comparison shows true errors, which leak what private records are",
            remedy=(
                "give ",
                Argument("public", True),
                " if anybody may see them, or use hushsum plan, which reads no records",
            ),
        )
    if kernel.takes_sets:
        raise UsageError("kernel", "must compare columns of numbers", got=repr(kernel.name))
    check_fields(terms)
    for name in terms.methods or ():
        if name != AUTO:
            method_named(name)
    blocks = read_columns(records.path, records.columns, records.cells)
    names = tuple(blocks.blocks)
    X = blocks.choose(names)
    made = kernel.build(X.shape[1], names, terms.bounds)
    queries = X[np.random.default_rng(0).choice(len(X), min(terms.queries, len(X)), replace=False)]
    race = _Benchmark(X, made, queries, terms)
    measured, left_out = [], {}
    runs = _runs(made, terms)
    for i, (name, epsilon) in enumerate(runs):

        def repeated(part: float, done: int = i) -> None:
            if progress is not None:
                progress((done + part) / len(runs))

        repeated(0.0)
        if name in left_out:
            continue
        try:
            measured.append(race.run(name, epsilon, repeated))
        except HushsumError as error:
            left_out[name] = str(error)
    order = sorted(measured, key=lambda each: (terms.epsilon.index(each.epsilon), each.error))
    return MethodsBenchmarked(len(X), float(race.truth.mean()), made, tuple(order), race.exact, left_out)


def _runs(kernel: Kernel, terms: BenchmarkTerms) -> list[tuple[str, float]]:
    methods = [method_named(name) for name in method_names()]
    # What is private without δ is private with it.
    fitting = [each.name for each in methods if each.suits(kernel, delta=terms.delta) or each.suits(kernel)]
    names: Sequence[str] = terms.methods or [AUTO, *fitting]
    return [(name, epsilon) for name in dict.fromkeys(names) for epsilon in terms.epsilon]


class _Benchmark:
    """The records, the queries and their exact answers."""

    def __init__(self, X: NDArray[Any], kernel: Kernel, queries: NDArray[Any], terms: BenchmarkTerms) -> None:
        self.X, self.kernel, self.queries, self.terms = X, kernel, queries, terms
        start = time.perf_counter()
        self.truth = kernel.exact_sum(X, queries) / len(X)
        self.exact = {"exact sums": (time.perf_counter() - start) / len(queries)}
        if isinstance(kernel, GaussianProfileKernel):
            self.exact["scikit-learn KernelDensity"] = self._sklearn_seconds(kernel.gaussian_width())

    def run(self, name: str, epsilon: float, report: Callable[[float], None]) -> MethodMeasured:
        """Means over releases with fresh noise; ``report`` receives the fraction of them that is done."""
        errors, relative, built, query_seconds = [], [], [], []
        function: ReleasedFunction | None = None
        for seed in range(self.terms.repeats):
            start = time.perf_counter()
            function = self._release(name, epsilon, seed)
            ended = time.perf_counter()
            away = np.abs(function(self.queries) - self.truth)
            query_seconds.append((time.perf_counter() - ended) / len(self.queries))
            built.append(ended - start)
            errors.append(away.mean())
            relative.append((away / np.maximum(self.truth, _LEAST_TRUTH)).mean())
            report((seed + 1) / self.terms.repeats)
        assert function is not None
        file = io.BytesIO()
        function.save(file)
        return MethodMeasured(
            epsilon=epsilon,
            delta=function.claim.delta,
            method=name,
            mechanism=str(function.claim.mechanism),
            relation=str(function.claim.relation),
            error=float(np.mean(errors)),
            relative=float(np.mean(relative)),
            predicted=self._predicted(name, epsilon),
            build=min(built),
            query=min(query_seconds),
            size=len(file.getvalue()),
        )

    def _release(self, name: str, epsilon: float, seed: int) -> ReleasedFunction:
        terms = self.terms
        with warnings.catch_warnings(), clipping_allowed(quiet=True):
            warnings.simplefilter("ignore", SuspiciousParameter)
            if self._is_planned(name):
                return release(
                    self.X,
                    epsilon=epsilon,
                    delta=terms.delta,
                    kernel=self.kernel,
                    bounds=terms.bounds,
                    method=name,
                    records=len(self.X),
                    seed=seed,
                )
            method = method_named(name)
            return method.release(
                self.X,
                self.kernel,
                epsilon=epsilon,
                delta=terms.delta if method.approximate else None,
                bounds=terms.bounds,
                relation=method.relations[0],
                **({"records": len(self.X)} if method.sized else {}),
            )

    def _is_planned(self, name: str) -> bool:
        """Whether a plan chooses its sizes; that of a method without a tally has none to choose."""
        return name == AUTO or (name in planned_methods() and method_named(name).tally is not None)

    def _predicted(self, name: str, epsilon: float) -> float | None:
        if not self._is_planned(name):
            return None
        return plan(
            records=len(self.X),
            kernel=self.kernel,
            epsilon=epsilon,
            delta=self.terms.delta,
            bounds=self.terms.bounds,
            method=name,
        ).best.error

    def _sklearn_seconds(self, bandwidth: float) -> float:
        from sklearn.neighbors import KernelDensity

        model = KernelDensity(bandwidth=bandwidth, kernel="gaussian").fit(self.X)
        some = self.queries[:_SKLEARN_QUERIES]
        start = time.perf_counter()
        model.score_samples(some)
        return (time.perf_counter() - start) / len(some)
