"""Kernel density estimates of private records.

With ``method="functional"``, features φ with φ(x)·φ(q) = k(x, q) are exact for Gaussian kernels in a box that
is not many bandwidths wide: cosines and sines of a Fourier series, weighted with the root of the kernel's own
coefficients. Gaussian noise on these coefficients is a path of the Gaussian process whose covariance is k.
Elsewhere features are random, and their error does not fall with ε: `functional_error` states it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Annotated, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Box, Floats
from hushsum.declaration import FROM_PUBLIC, Parameter
from hushsum.errors import Argument, ClaimError, SecretRefused, UsageError
from hushsum.kernels import COLUMNS, ColumnKernel, GaussianProfileKernel, Kernel, in_units
from hushsum.methods import typical_density
from hushsum.models._accuracy import PLANNED, PredictedError, part_of, planned_error, terms_of
from hushsum.models._base import Drawn, PrivateModel, declared
from hushsum.models._parameters import SCALE
from hushsum.models._public_rows import USUAL_RECORDS, visible_bandwidth
from hushsum.models._record_checks import generator_of
from hushsum.models._sampler import by_chain, from_grid
from hushsum.models._table_model import (
    DENSITY_RULE,
    FUNCTIONAL,
    METHODS,
    KernelTable,
    TableSums,
    integral_over_box,
    normalising_constant,
    planned,
    spread_points,
    tallies,
)
from hushsum.privacy import (
    COUNT_SHARE,
    GAUSSIAN,
    Claim,
    IntegerNoise,
    LatticePart,
    Mechanism,
    Promise,
    Relation,
    ReleaseRequest,
    lattice_variances,
    perturb_lattice,
    release_noise,
)
from hushsum.records import Bounds
from hushsum.releases import Answers, Bundle, CoefficientFunction, ReleasedFunction
from hushsum.tables import (
    MAX_FREQUENCY,
    MAX_SCALE,
    FourierFeatures,
    FourierSeries,
    GridReading,
    GridWeights,
    LinearReading,
    pair_variance,
)
from hushsum.version import PRODUCER

RANDOM_FEATURES = 16_384
"""Pairs of random features, where there are no exact ones: about 1 s for 100,000 points with errors."""

PADDING = 8.0
"""Bandwidths between the ends of the box in the periodic series, where the kernel is below 10⁻¹³."""

_MOST_PAIRS = 2048
_GAUSSIAN_TAPER = 0.5
_FREQUENCIES_PER_BANDWIDTH = 1.0
"""Highest frequency over the number of bandwidths in a period: beyond, weights are below 64 of 2²⁰ steps, and
all coefficients together add less than 10⁻⁹ to the kernel.
"""


def functional_basis(kernel: Kernel, bounds: Bounds, seed: int) -> FourierSeries | FourierFeatures:
    """The exact features of a kernel on a box, where there are not too many of them, or else random ones."""
    if isinstance(kernel, GaussianProfileKernel):
        width = kernel.gaussian_width()
        periods = [2.0 * float(half) / width + PADDING for half in bounds.half_width]
        highest = math.ceil(_FREQUENCIES_PER_BANDWIDTH * max(periods))
        # Half the lattice points of a ball, or here an ellipsoid.
        ball = math.pi ** (len(periods) / 2) / math.gamma(len(periods) / 2 + 1)
        if highest <= MAX_FREQUENCY and ball * math.prod(periods) / 2.0 <= _MOST_PAIRS:
            return FourierSeries(
                kernel=kernel,
                bounds=bounds,
                frequencies=highest,
                padding=PADDING,
                taper=_GAUSSIAN_TAPER,
                scale=MAX_SCALE,
            )
    return FourierFeatures(kernel, RANDOM_FEATURES, seed, True, bounds)


class FunctionalSums:
    """Σ φ(x) in integers for every kernel, and the number of records; secret.

    Privacy
    -------
    f = Σ k(x, ·) in the space of the features is φ-sum · φ(·): one record present or absent moves its
    coefficients by a vector no longer than Δ2 of its basis (`FourierSeries`, `FourierFeatures`). With k
    kernels, each is calibrated as if one record moved it by √k·Δ2, so that all together are one Gaussian
    mechanism. A fiftieth of ε pays for a noisy count by exact discrete Laplace; what is left of ε, and δ, for
    exact discrete Gaussian noise on all coefficients, with `lattice_variances`. The two add up.
    """

    __slots__ = ("_bases", "_count", "_promise", "_tables")

    def __init__(self, planned: Sequence[KernelTable], promise: Promise, seed: int, box: Box) -> None:
        if promise.pure:
            raise ClaimError(
                "delta",
                ("must be above 0 for ", Argument("method", "functional")),
                got="none",
                remedy=("give ", Argument("delta", 1e-6)),
            )
        bounds = Bounds.of(box, len(box))
        assert bounds is not None
        self._promise = promise
        self._bases = {each.part: functional_basis(each.kernel, bounds, seed) for each in planned}
        self._tables: dict[str, NDArray[np.int64]] = {
            name: np.zeros(basis.shape, np.int64) for name, basis in self._bases.items()
        }
        self._count = 0

    def add(self, records: object) -> None:
        """Count records."""
        for name, basis in self._bases.items():
            batch = basis.prepare(records)
            basis.accumulate(self._tables[name], batch, step=1, threads=1)
        self._count += len(batch)

    def release(self, claim: Claim) -> dict[str, ReleasedFunction]:
        """One path for each kernel, drawn together under the claim."""
        count_share, rest = _shares(self._promise)
        with release_noise(None) as noise:
            noisy, count_noise = noise.laplace(np.array([self._count], np.int64), 1, count_share)
        variances = _variances(list(self._bases.values()), rest)
        return {
            name: CoefficientFunction(
                reading=_reading(basis),
                cells=perturb_lattice(self._tables[name], variance),
                claim=claim,
                noise=IntegerNoise(GAUSSIAN, variance),
                noisy_count=int(noisy[0]),
                count_noise=count_noise,
                producer=PRODUCER,
            )
            for (name, basis), variance in zip(self._bases.items(), variances, strict=True)
        }

    def __repr__(self) -> str:
        return "<FunctionalSums CONFIDENTIAL>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise SecretRefused(
            "private sums must not be pickled or copied", remedy="release the model and share that"
        )


def functional_error(planned: Sequence[KernelTable], records: int, promise: Promise, box: Box) -> float:
    """The mean absolute error of the first kernel's mean value at a point, noise and approximation together.

    Exact features have the error of their noise. Random ones have that of their frequencies too, for the
    density that plans assume; it is the same for every ε.
    """
    bounds = Bounds.of(box, len(box))
    assert bounds is not None
    bases = [functional_basis(each.kernel, bounds, 0) for each in planned]
    basis, kernel = bases[0], planned[0].kernel
    variance = _variances(bases, _shares(promise)[1])[0]
    center = basis.prepare_queries(np.array([(np.array(bounds.low) + np.array(bounds.high)) / 2.0]))
    squared = float(variance) * float(_reading(basis).noise_gain(center)[0]) / records**2
    if isinstance(basis, FourierFeatures):
        dim = kernel.dim if isinstance(kernel, ColumnKernel) else 1
        squared += pair_variance(typical_density(kernel, bounds), dim) / basis.features
    return math.sqrt(2.0 / math.pi * squared)


def _shares(promise: Promise) -> tuple[Fraction, Promise]:
    """The part of ε for the count, and what is left for the coefficients."""
    assert promise.epsilon is not None
    share = promise.epsilon * COUNT_SHARE
    return share, Promise(promise.epsilon - share, promise.delta, None)


def _variances(bases: Sequence[FourierSeries | FourierFeatures], promise: Promise) -> list[Fraction]:
    """The variance of the noise of each basis, all of the same records."""
    moves = [basis.sensitivity(Relation.ADD_REMOVE).l2_squared for basis in bases]
    cells = [math.prod(basis.shape) for basis in bases]
    return lattice_variances([LatticePart(*each) for each in zip(moves, cells, strict=True)], promise)


def _reading(basis: FourierSeries | FourierFeatures) -> LinearReading:
    reading = basis.reading()
    assert isinstance(reading, LinearReading)
    return reading


_GRID_COLUMNS = 3
_STEPS = 60
_PROBES = 256
_SEEDS = np.iinfo(np.int32).max
_SMALLEST = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True)
class _Estimate:
    """A released function, the integral by which its mean kernel values become a density, and the largest
    standard error it has at some public points.
    """

    planned: KernelTable
    function: ReleasedFunction
    integral: float
    error: float

    @classmethod
    def of(cls, planned: KernelTable, function: ReleasedFunction, box: Box) -> _Estimate:
        """Everything from what was released: post-processing."""
        low, high = np.array(box).T
        error = float(function.query(spread_points(low, high, _PROBES, seed=0)).stderr.max())
        constant = normalising_constant(planned.kernel)
        integral = integral_over_box(function, box) if constant is None else constant
        return cls(planned, function, integral, error)

    def floored(self, queries: Floats) -> Floats:
        """Densities, those below their standard error raised to it."""
        values = self.function(queries)
        # Standard errors take longer than values, so they are computed where they may matter.
        small = np.flatnonzero(values < 2.0 * self.error)
        if len(small):
            values[small] = np.maximum(values[small], self.function.query(queries[small]).stderr)
        densities: Floats = np.maximum(values, _SMALLEST) / self.integral
        return densities

    def answers(self, queries: Floats, level: float) -> Answers:
        """Densities with their errors, as they are: noise may make them negative."""
        answers = self.function.query(queries, level=level)
        value, stderr, lower, upper, bound = (
            part / self.integral
            for part in (answers.value, answers.stderr, answers.lower, answers.upper, answers.bound)
        )
        return Answers(value, stderr, lower, upper, bound, level, answers.points)

    def above_noise(self, queries: Floats) -> Floats:
        """Densities, those below three standard errors taken as 0.

        In many columns the box is so large that noise everywhere would outweigh the records.
        """
        values = self.function(queries)
        return np.where(values > 3.0 * self.error, values, 0.0) / self.integral


@declared
class PrivateDensity(PrivateModel):
    """A kernel density estimate of private records, released once.

    Works well in one to four columns, where one grid serves any number of Gaussian bandwidths. Beyond that
    random features do, with ``delta`` much better than without; a density in more than about ten columns is
    mostly noise, whatever the method.

    Attributes
    ----------
    claim_, released_
        What was spent, and for what; only after the release.
    normalised_over_ : str
        ``"all space"`` or ``"bounds"``, for the first kernel; only after the release.

    Privacy
    -------
    Unit: one record; neighbours: add/remove. All kernels that share a grid share one release. k tables of
    the same records split the budget evenly: ε/k each under pure ε; with ``delta``, ρ/k each of the ρ that
    gives (ε, δ), so that the noise grows as √k only.

    Examples
    --------
    >>> import numpy as np
    >>> records = np.random.default_rng(1).normal(0.0, 0.3, size=(20_000, 1))
    >>> model = PrivateDensity(epsilon=1.0, bandwidth=[0.1, 0.2]).fit(records)
    >>> density = np.exp(model.score_samples([[0.0], [0.3]]))
    >>> bool(abs(density[0] - 1.26) < 0.1)
    True
    >>> wider = model.predict([[0.0]], bandwidth=0.2)
    >>> bool(wider[0] < density[0])
    True

    See Also
    --------
    sklearn.neighbors.KernelDensity : the same without privacy.
    """

    COMMAND = "density"
    DEFAULT_BANDWIDTH = 0.125
    kernel: Annotated[
        str | Sequence[str],
        Parameter(
            help="gaussian, laplacian and matern have normalising constants. The kernels of hash rows "
            "have no "
            "finite integral over all space: their densities are normalised over bounds, by "
            "post-processing, and normalised_over_ says so.",
            choices=tuple(COLUMNS.kernels()),
            several=True,
        ),
    ] = "gaussian"
    bandwidth: Annotated[
        float | str | Sequence[float | str] | None,
        Parameter(
            help="Public: choose it by the subject, or on public data. Every kernel is estimated with every "
            "bandwidth; predictions are those of the first unless another is named." + DENSITY_RULE,
            above=0,
            several=True,
            choices=(FROM_PUBLIC,),
        ),
    ] = None
    scale: Annotated[str | None, SCALE] = None
    method: Annotated[
        str,
        Parameter(
            help="Where the sums come from. auto: a grid for Gaussian kernels in up to four columns, random "
            "features beyond, hash rows for hash kernels. functional: functional perturbation in a finite "
            "feature space with the analytic calibration of one Gaussian path, exact for Gaussian kernels "
            "in boxes of not many bandwidths, random features elsewhere; needs delta.",
            choices=METHODS,
        ),
    ] = "auto"

    def kernels(self, n_features: int | None = None) -> list[Kernel]:
        """Every kernel with every bandwidth; predictions are those of the first unless another is named."""
        return [each.kernel for each in self._planned(self._width(n_features))]

    def compared_by(self, n_features: int) -> list[Kernel]:
        """Every kernel with every bandwidth."""
        return self.kernels(n_features)

    def _planned(self, n_features: int) -> list[KernelTable]:
        bandwidth, box = self.effective("bandwidth", n_features), self.column_bounds(n_features)
        scale = self.effective("scale", n_features)
        return planned(self.kernel, bandwidth, self.method, n_features, scale=scale, box=box)

    def _public_bandwidth(self, rows: Floats, promise: Promise) -> float:
        """For the first kernel."""
        dim, box = rows.shape[1], self.column_bounds(rows.shape[1])

        def table(bandwidth: float) -> KernelTable:
            return planned(self.kernel, bandwidth, self.method, dim, scale=self.scale, box=box)[0]

        def error(kernel: Kernel) -> float:
            return self._error_of([replace(table(1.0), kernel=kernel)], USUAL_RECORDS, promise, box)

        return visible_bandwidth(lambda bandwidth: table(bandwidth).kernel, rows, USUAL_RECORDS, error)

    def _mechanism(self, promise: Promise, n_features: int | None) -> Mechanism:
        if n_features is None or not promise.pure:
            return super()._mechanism(promise, n_features)
        empty = tallies(self._planned(n_features), seed=0, box=self.column_bounds(n_features))
        request = ReleaseRequest(**terms_of(part_of(promise, Fraction(1, len(empty)))))
        return reduce(add, (tally.prepare(request).claim.mechanism for tally in empty.values()))

    def _check_together(self, promise: Promise) -> None:
        if self.method == FUNCTIONAL and promise.pure:
            raise ClaimError(
                "delta",
                ("must be above 0 for ", Argument("method", "functional")),
                got="none",
                remedy=("give ", Argument("delta", 1e-6)),
            )

    def _predicted_error(self, records: int, n_features: int, promise: Promise) -> PredictedError:
        planned = self._planned(n_features)
        first = planned[0]
        error = self._error_of(planned, records, promise, self.column_bounds(n_features))
        integral = normalising_constant(first.kernel)
        if integral is None:
            return PredictedError("mean kernel value", error, records, PLANNED)
        return PredictedError("density", error / integral, records, PLANNED)

    def _error_of(self, planned: list[KernelTable], records: int, promise: Promise, box: Box) -> float:
        """The predicted error of mean values of the first kernel."""
        first = planned[0]
        if first.method == FUNCTIONAL:
            return functional_error(planned, records, promise, box)
        # A grid has one spacing whatever ε is; other tables are sized by their release.
        grid = tallies(planned, seed=0, box=box)[first.part].basis if first.shared else None
        return planned_error(
            first.kernel,
            records,
            first.method,
            bounds=box,
            reading=GridReading(grid, first.kernel) if isinstance(grid, GridWeights) else None,
            **terms_of(part_of(promise, Fraction(1, len({each.part for each in planned})))),
        )

    def _facts(self) -> dict[str, Any]:
        return {"kernels": [each.as_json() for each in self._planned(self.n_features_in_)]}

    def _start(self, seed: int) -> TableSums | FunctionalSums:
        planned, box = self._planned(self.n_features_in_), self.column_bounds()
        if self.method == FUNCTIONAL:
            promise = self._promise()
            return FunctionalSums(planned, promise, seed, box)
        return TableSums(tallies(planned, seed=seed, box=box, columns=self._table_columns()))

    def _count(self, secret: TableSums | FunctionalSums, X: Floats, y: NDArray[Any] | None) -> None:
        secret.add(X)

    def _draw(self, secret: TableSums | FunctionalSums, promise: Promise) -> Bundle:
        return self._bundle(Drawn(secret.release(self._claim_of_one())))

    def _part_columns(self) -> dict[str, int]:
        return {each["part"]: self.n_features_in_ for each in self._state.facts["kernels"]}

    def _open(self, bundle: Bundle) -> list[_Estimate]:
        box = self._box(self._fitted("bounds"))
        estimates = []
        for each in map(KernelTable.from_json, self._state.facts["kernels"]):
            part: Any = bundle.parts[each.part]
            function = part.with_kernel(each.kernel) if each.shared else part
            estimates.append(_Estimate.of(each, function, box))
        return estimates

    def score_samples(
        self, X: object, *, kernel: str | None = None, bandwidth: float | None = None
    ) -> Floats:
        """The logarithm of the density at each point, shape (n_queries,).

        A value below its standard error is raised to it, so the logarithm is finite.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
        kernel, bandwidth : optional
            Which of the estimates; the first that fits.
        """
        logarithms: Floats = np.log(self.predict(X, kernel=kernel, bandwidth=bandwidth))
        return logarithms

    def predict(self, X: object, *, kernel: str | None = None, bandwidth: float | None = None) -> Floats:
        """The density at each point, shape (n_queries,); parameters as for :meth:`score_samples`."""
        queries = self._queries(X)
        return self._estimate(kernel, bandwidth).floored(queries)

    def query(
        self, X: object, *, level: float = 0.95, kernel: str | None = None, bandwidth: float | None = None
    ) -> Answers:
        """The density at each point with standard error and interval; not raised to its error as
        :meth:`predict` has it, so noise may make it negative.

        The errors are those of the kernel's own smooth estimate: how far that is from the density of the
        population depends on the bandwidth, and is not part of them. Of a kernel that is normalised over
        ``bounds``, the error of that one constant is left out as well.
        """
        queries = self._queries(X)
        return self._estimate(kernel, bandwidth).answers(queries, level)

    def score(self, X: object, y: object = None) -> float:
        """The total log-likelihood of the points under the density."""
        return float(self.score_samples(X).sum())

    def sample(
        self,
        n_samples: int = 1,
        random_state: Any = None,
        *,
        kernel: str | None = None,
        bandwidth: float | None = None,
    ) -> Floats:
        """Points drawn from the released density inside ``bounds``, shape (n_samples, n_features).

        In up to three columns from the cells of a fine grid, beyond by one random walk a point. Both see the
        released function only, so this spends nothing; ``random_state`` makes it repeatable.
        """
        if isinstance(n_samples, bool) or not isinstance(n_samples, int | np.integer) or n_samples < 1:
            raise UsageError("n_samples", "must be a whole number of at least 1", remedy="give one or more")
        estimate = self._estimate(kernel, bandwidth)
        low, high = np.array(self._box(self._fitted("bounds"))).T
        random = np.random.default_rng(int(generator_of(random_state).randint(_SEEDS)))
        if len(low) <= _GRID_COLUMNS:
            return from_grid(estimate.above_noise, low, high, int(n_samples), random)
        kernel_used = estimate.planned.kernel
        step = np.array(kernel_used.column_bandwidths() if isinstance(kernel_used, ColumnKernel) else 0.25)
        return by_chain(estimate.above_noise, low, high, int(n_samples), random, step=step, steps=_STEPS)

    @property
    def normalised_over_(self) -> str:
        """Where the density of the first kernel integrates to 1; only after the release."""
        _ = self.released_
        return (
            "bounds"
            if normalising_constant(self._estimate(None, None).planned.kernel) is None
            else "all space"
        )

    def _estimate(self, kernel: str | None, bandwidth: float | None) -> _Estimate:
        estimates: list[_Estimate] = self._reading()
        box = self._box(self._fitted("bounds"))
        for each in estimates:
            found = each.planned.kernel
            plain = found.unscaled() if isinstance(found, ColumnKernel) else found
            if kernel not in (None, plain.name):
                continue
            if bandwidth is None:
                return each
            if isinstance(found, ColumnKernel):
                unit = in_units(plain, self._fitted("scale"), box)[0]
                if math.isclose(found.column_bandwidths()[0], bandwidth * unit):
                    return each
        raise UsageError(
            "kernel",
            "and bandwidth must be among those the model was made with",
            got="others",
            remedy="declare them before fit, or leave them out",
        )
