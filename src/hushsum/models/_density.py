"""Densities of private records: kernel density estimates and histograms.

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
from typing import Any, cast

import numpy as np

from hushsum import kernels, privacy, tables
from hushsum._types import Box, Floats, Integers, Secret
from hushsum.declaration import FROM_PUBLIC, setting
from hushsum.errors import Argument, UsageError
from hushsum.kernels import ColumnKernel, GaussianKernel, GaussianProfileKernel, Kernel
from hushsum.methods import method_named, planned_methods, typical_density
from hushsum.privacy import Claim, IntegerNoise, LatticePart, Promise, Relation
from hushsum.records import MOST_CELLS, Bounds, CellGrid
from hushsum.releases import (
    Answers,
    Bundle,
    CoefficientFunction,
    PublicFacts,
    ReleasedFunction,
    normal_answers,
)
from hushsum.tables import Bins, FourierFeatures, FourierSeries, GridReading, GridWeights, LinearReading
from hushsum.tally import Tally

from ._accuracy import NOISE, PLANNED, PredictedError, planned_error
from ._base import SCALE, Drawn, declared, refuse_pure, require
from ._public_rows import USUAL_RECORDS, visible_bandwidth
from ._record_checks import seed_of
from ._sampler import MOST_SAMPLES, by_chain, from_grid
from ._table_model import DENSITY_RULE, KERNELS, TalliesModel, empty_table, spread_points, table_method

FUNCTIONAL = "functional"
_FUNCTIONAL = ("for ", Argument("method", FUNCTIONAL))
_PLANNED = map(method_named, planned_methods())
_COUNTED = (each.name for each in _PLANNED if each.tally is not None and {*each.role.kernels()} & {*KERNELS})
METHODS = ("auto", *_COUNTED, FUNCTIONAL)
RANDOM_FEATURES = 16_384
"""Pairs of random features, where there are no exact ones: about 1 s for 100,000 points with errors."""

PADDING = 8.0
"""Bandwidths between the ends of the box in the periodic series, where the kernel is below 10⁻¹³."""

_MOST_PAIRS = 2048
_GAUSSIAN_TAPER = 0.5
# Highest frequency over the number of bandwidths in a period: beyond, weights are below 64 of 2²⁰ steps, and
# all coefficients together add less than 10⁻⁹ to the kernel.
_FREQUENCIES_PER_BANDWIDTH = 1.0


@dataclass(frozen=True, slots=True)
class KernelTable:
    """A kernel with its bandwidth, and the part of the bundle that answers it."""

    kernel: Kernel
    method: str
    part: str

    @property
    def shared(self) -> bool:
        """Whether the part answers other kernels too, so that a query must name the kernel."""
        return self.method != FUNCTIONAL and method_named(self.method).shared

    def as_json(self) -> dict[str, Any]:
        """For the bundle's header."""
        return {"kernel": kernels.kernel_as_json(self.kernel), "method": self.method, "part": self.part}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> KernelTable:
        """The inverse of :meth:`as_json`."""
        return cls(kernels.kernel_from_json(data["kernel"]), data["method"], data["part"])


def planned(
    names: Any, bandwidths: Any, method: str, dim: int, *, scale: str | None, box: Box
) -> list[KernelTable]:
    """Every kernel with every bandwidth, in the order given.

    Gaussian kernels in few columns are read off one grid, whatever their number; every other one needs a
    table of its own.

    Raises
    ------
    UsageError
        if a kernel, a bandwidth or the method is unknown, or cannot serve together.
    """
    listed = _listed("bandwidth", bandwidths)
    planned: list[KernelTable] = []
    for name in _listed("kernel", names):
        takes = kernels.parameter_names(name)
        given = [{"bandwidth": each} for each in listed] if "bandwidth" in takes else [{}]
        for width in given:
            kernel = kernels.in_scale(kernels.named(name, dim=dim, **width), scale, box)
            counting = table_method(kernel, dim) if method == "auto" else method
            table = KernelTable(kernel, counting, part=f"{counting} {len(planned)}")
            planned.append(replace(table, part=counting) if table.shared else table)
    return planned


def _listed(name: str, value: Any) -> list[Any]:
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        return [value]
    values = list(value)
    if not values or len(set(values)) != len(values):
        raise UsageError(name, "must name different values, at least one", remedy="give each once")
    return values


def tallies(
    planned: Sequence[KernelTable], *, seed: int, box: Box, columns: Sequence[str] | None = None
) -> dict[str, Tally]:
    """An empty tally for each part."""
    finest: dict[str, KernelTable] = {}
    # Of kernels that share a table the finest decides its size; the coarser ones are read off it too.
    for each in planned:
        if each.part not in finest or _width(each.kernel) < _width(finest[each.part].kernel):
            finest[each.part] = each
    return {
        part: empty_table(each.kernel, each.method, box=box, columns=columns, seed=seed)
        for part, each in finest.items()
    }


def _width(kernel: Kernel) -> float:
    return kernel.width if isinstance(kernel, ColumnKernel) else 1.0


def normalising_constant(kernel: Kernel) -> float | None:
    """The integral of the kernel over all space; None where it has none, as hash kernels do.

    >>> from hushsum.kernels import GaussianKernel
    >>> round(normalising_constant(GaussianKernel(dim=1, bandwidth=1.0)), 4)
    2.5066
    """
    integral = kernel.integral() if isinstance(kernel, ColumnKernel) else math.inf
    return integral if math.isfinite(integral) else None


def functional_basis(kernel: Kernel, bounds: Bounds, seed: int) -> FourierSeries | FourierFeatures:
    """The exact features of a kernel on a box, where there are not too many of them, or else random ones."""
    if isinstance(kernel, GaussianProfileKernel):
        width = kernel.gaussian_width()
        periods = [2.0 * float(half) / width + PADDING for half in bounds.half_width]
        highest = math.ceil(_FREQUENCIES_PER_BANDWIDTH * max(periods))
        # Half the lattice points of a ball, or here an ellipsoid.
        ball = math.pi ** (len(periods) / 2) / math.gamma(len(periods) / 2 + 1)
        if highest <= tables.MAX_FREQUENCY and ball * math.prod(periods) / 2.0 <= _MOST_PAIRS:
            return FourierSeries(
                kernel=kernel,
                bounds=bounds,
                frequencies=highest,
                padding=PADDING,
                taper=_GAUSSIAN_TAPER,
                scale=tables.MAX_SCALE,
            )
    return FourierFeatures(kernel, RANDOM_FEATURES, seed, True, bounds)


class FunctionalSums(Secret):
    """Σ φ(x) in integers for every kernel, and the number of records.

    Privacy
    -------
    f = Σ k(x, ·) in the space of the features is φ-sum · φ(·): one record present or absent changes its
    coefficients by a vector no longer than Δ2 of its basis (`FourierSeries`, `FourierFeatures`). With k
    kernels, each is calibrated as if one record moved it by √k·Δ2, so that all together are one Gaussian
    mechanism. A fiftieth of ε pays for a noisy count by exact discrete Laplace; what is left of ε, and δ, for
    exact discrete Gaussian noise on all coefficients, with `lattice_variances`. The two add up.
    """

    def __init__(self, planned: Sequence[KernelTable], promise: Promise, seed: int, box: Bounds) -> None:
        refuse_pure(promise, *_FUNCTIONAL)
        self._promise = promise
        self._bases = {each.part: functional_basis(each.kernel, box, seed) for each in planned}
        self._tables: dict[str, Integers] = {
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
        with privacy.release_noise(None) as noise:
            noisy, count_noise = noise.laplace(np.array([self._count], np.int64), 1, count_share)
        variances = _variances(list(self._bases.values()), rest)
        return {
            name: CoefficientFunction(
                reading=_reading(basis),
                cells=privacy.perturb_lattice(self._tables[name], variance),
                facts=PublicFacts(claim),
                noise=IntegerNoise(privacy.GAUSSIAN, variance),
                noisy_count=int(noisy[0]),
                count_noise=count_noise,
            )
            for (name, basis), variance in zip(self._bases.items(), variances, strict=True)
        }


def functional_error(planned: Sequence[KernelTable], records: int, promise: Promise, bounds: Bounds) -> float:
    """The mean absolute error of the first kernel's mean value at a point, noise and approximation together.

    Exact features have the error of their noise. Random ones have that of their frequencies too, for the
    density that plans assume; it is the same for every ε.
    """
    bases = [functional_basis(each.kernel, bounds, 0) for each in planned]
    basis, kernel = bases[0], planned[0].kernel
    variance = _variances(bases, _shares(promise)[1])[0]
    center = basis.prepare_queries(np.array([(np.array(bounds.low) + np.array(bounds.high)) / 2.0]))
    squared = float(variance) * float(_reading(basis).noise_gain(center)[0]) / records**2
    chance = 0.0
    if isinstance(basis, FourierFeatures):
        dim = kernel.dim if isinstance(kernel, ColumnKernel) else 1
        sizes = {"records": records, "dim": dim, "pairs": basis.features, "even": basis.even}
        chance = tables.chance_error(**sizes, density=typical_density(kernel, bounds))
    return math.hypot(math.sqrt(2.0 / math.pi * squared), chance)


def _shares(promise: Promise) -> tuple[Fraction, Promise]:
    """The part of ε for the count, and what is left for the coefficients."""
    assert promise.epsilon is not None
    share = promise.epsilon * privacy.COUNT_SHARE
    return share, Promise(promise.epsilon - share, promise.delta, None)


def _variances(bases: Sequence[FourierSeries | FourierFeatures], promise: Promise) -> list[Fraction]:
    """The variance of the noise of each basis, all of the same records."""
    parts = [
        LatticePart(basis.sensitivity(Relation.ADD_REMOVE).l2_squared, math.prod(basis.shape))
        for basis in bases
    ]
    return privacy.lattice_variances(parts, promise)


def _reading(basis: FourierSeries | FourierFeatures) -> LinearReading:
    reading = basis.reading()
    assert isinstance(reading, LinearReading)
    return reading


_GRID_COLUMNS = 3
_STEPS = 60
_PROBES = 256
_POINTS = 4096


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
        integral = normalising_constant(planned.kernel)
        if integral is None:
            # Of the mean kernel value over the box, at fixed public points, negative answers taken as 0.
            values = np.maximum(function(spread_points(low, high, _POINTS, seed=0)), 0.0)
            volume = math.prod(high - low for low, high in box)
            integral = max(volume * float(values.mean()), float(np.finfo(np.float64).tiny))
        return cls(planned, function, integral, error)

    def floored(self, queries: Floats) -> Floats:
        """Densities at queries. A density below its standard error is raised to the standard error."""
        values = self.function(queries)
        # Standard errors take longer than values, so they are computed where they may matter.
        small = np.flatnonzero(values < 2.0 * self.error)
        if len(small):
            values[small] = np.maximum(values[small], self.function.query(queries[small]).stderr)
        return np.asarray(np.maximum(values, np.finfo(np.float64).tiny) / self.integral)

    def answers(self, queries: Floats, level: float) -> Answers:
        """Densities with their errors, as they are: noise may make them negative."""
        answers = self.function.query(queries, level=level)
        names = ("value", "stderr", "lower", "upper", "bound")
        return replace(answers, **{name: getattr(answers, name) / self.integral for name in names})

    def above_noise(self, queries: Floats) -> Floats:
        """Densities, those below three standard errors taken as 0.

        In many columns the box is so large that noise everywhere would outweigh the records.
        """
        values = self.function(queries)
        return np.where(values > 3.0 * self.error, values, 0.0) / self.integral


@declared
class PrivateDensity(TalliesModel):
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
    kernel: str | Sequence[str] = setting(
        "gaussian",
        "gaussian, laplacian and matern have normalising constants. The kernels of hash rows have no finite "
        "integral over all space: their densities are normalised over bounds, by post-processing, and "
        "normalised_over_ states this.",
        choices=tuple(kernels.COLUMNS.kernels()),
        several=True,
    )
    bandwidth: float | str | Sequence[float | str] | None = setting(
        None,
        "Public: choose it by the subject, or on public data. Every kernel is estimated with every "
        "bandwidth; predictions are those of the first unless another is named." + DENSITY_RULE,
        above=0,
        several=True,
        choices=(FROM_PUBLIC,),
    )
    scale: str | None = setting(None, SCALE)
    method: str = setting(
        "auto",
        "Where the sums come from. auto: a grid for Gaussian kernels in up to four columns, random features "
        "beyond, hash rows for hash kernels. functional: functional perturbation in a finite feature space "
        "with the analytic calibration of one Gaussian path, exact for Gaussian kernels in boxes of not "
        "many bandwidths, random features elsewhere; needs delta.",
        choices=METHODS,
    )

    def compared_by(self, n_features: int) -> list[Kernel]:
        """Every kernel with every bandwidth; predictions are those of the first unless another is named."""
        return [each.kernel for each in self._planned(n_features)]

    def _planned(self, n_features: int) -> list[KernelTable]:
        bandwidth, box = self.effective("bandwidth", n_features), self.column_bounds(n_features)
        scale = self.effective("scale", n_features)
        return planned(self.kernel, bandwidth, self.method, n_features, scale=scale, box=box)

    def _public_bandwidth(self, rows: Floats, promise: Promise) -> float:
        """The bandwidth of the first kernel, chosen from public rows."""
        dim, box = rows.shape[1], self.column_bounds(rows.shape[1])

        def table(bandwidth: float) -> KernelTable:
            return planned(self.kernel, bandwidth, self.method, dim, scale=self.scale, box=box)[0]

        def error(kernel: Kernel) -> float:
            return self._error_of([replace(table(1.0), kernel=kernel)], USUAL_RECORDS, promise, box)

        return visible_bandwidth(lambda bandwidth: table(bandwidth).kernel, rows, USUAL_RECORDS, error)

    def _check_together(self, promise: Promise) -> None:
        if self.method == FUNCTIONAL:
            refuse_pure(promise, *_FUNCTIONAL)

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
            return functional_error(planned, records, promise, self.bounds_of_columns(len(box)))
        # A grid has one spacing whatever ε is; other tables are sized by their release.
        grid = tallies(planned, seed=0, box=box)[first.part].basis if first.shared else None
        parts = len({each.part for each in planned})
        return planned_error(
            first.kernel,
            records,
            first.method,
            bounds=box,
            reading=GridReading(grid, first.kernel) if isinstance(grid, GridWeights) else None,
            **self._terms(promise, parts),
        )

    def _facts(self) -> dict[str, Any]:
        return {"kernels": [each.as_json() for each in self._planned(self.n_features_in_)]}

    def _tallies(self, seed: int, n_features: int | None = None) -> dict[str, Any]:
        planned, box = self._planned(self._width(n_features)), self.bounds_of_columns(n_features)
        if self.method == FUNCTIONAL:
            return {FUNCTIONAL: FunctionalSums(planned, self._promise(), seed, box)}
        return tallies(planned, seed=seed, box=self.column_bounds(n_features), columns=self._table_columns())

    def _draw(self, secret: dict[str, Any], promise: Promise) -> Drawn:
        if self.method != FUNCTIONAL:
            return super()._draw(secret, promise)
        whole = self._claim(self.n_features_in_)
        one = replace(whole, promise=promise, unit=privacy.RECORD, records_per_unit=1)
        return Drawn(secret[FUNCTIONAL].release(one))

    def _part_columns(self) -> dict[str, int]:
        return {each["part"]: self.n_features_in_ for each in self._state.facts["kernels"]}

    def _open(self, bundle: Bundle) -> list[_Estimate]:
        estimates = []
        for each in map(KernelTable.from_json, self._state.facts["kernels"]):
            part: Any = bundle.parts[each.part]
            function = part.with_kernel(each.kernel) if each.shared else part
            estimates.append(_Estimate.of(each, function, self.column_bounds()))
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
        return np.asarray(np.log(self.predict(X, kernel=kernel, bandwidth=bandwidth)))

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
        number = kernels.positive_integer("n_samples", n_samples, at_most=MOST_SAMPLES)
        estimate = self._estimate(kernel, bandwidth)
        low, high = self._fitted_box()
        random = np.random.default_rng(seed_of(random_state))
        if len(low) <= _GRID_COLUMNS:
            return from_grid(estimate.above_noise, low, high, number, random)
        found = estimate.planned.kernel
        step = np.array(found.column_bandwidths() if isinstance(found, ColumnKernel) else 0.25)
        return by_chain(estimate.above_noise, low, high, number, random, step=step, steps=_STEPS)

    @property
    def normalised_over_(self) -> str:
        """The region over which the density of the first kernel integrates to 1; only after the release."""
        _ = self.released_
        kernel = self._estimate(None, None).planned.kernel
        return "bounds" if normalising_constant(kernel) is None else "all space"

    def _estimate(self, kernel: str | None, bandwidth: float | None) -> _Estimate:
        estimates: list[_Estimate] = self._reading()
        box = self._as_counted().column_bounds()
        for each in estimates:
            found = each.planned.kernel
            plain = found.unscaled() if isinstance(found, ColumnKernel) else found
            if kernel not in (None, plain.name):
                continue
            if bandwidth is None:
                return each
            if isinstance(found, ColumnKernel):
                unit = kernels.in_units(plain, self._as_counted().scale, box)[0]
                if math.isclose(found.column_bandwidths()[0], bandwidth * unit):
                    return each
        rule = "and bandwidth must be among those the model was made with"
        raise UsageError("kernel", rule, got="others", remedy="declare them before fit, or leave them out")


_COUNTS = "counts"
_MOST_AUTO_BINS = 32
_MOST_AUTO_CELLS = 4096


@declared
class PrivateHistogram(TalliesModel):
    """How many records lie in each of some declared bins, released once.

    Works well in one to three columns with bins that hold many records: the noise of a bin does not depend on
    how many bins there are. In more columns most bins are empty, and what is seen in them is noise.

    Attributes
    ----------
    counts_ : array of shape (bins of column 1, bins of column 2, …)
        Noisy counts; negative ones stay, so that sums over bins are unbiased. Only after the release.
    count_stderr_ : float
        The standard deviation of the noise of one bin; only after the release.
    bin_edges_ : list of arrays
        One for each column.
    claim_, released_
        What was spent, and for what; only after the release.

    Privacy
    -------
    Unit: one record. A record present or absent changes one bin by 1: Δ1 = Δ2 = 1. A record replaced changes
    two: Δ1 = 2, Δ2 = √2. (Dandekar, Basu and Bressan 2019 take 2 for a Gaussian, which is the L1 value.)

    Examples
    --------
    >>> import numpy as np
    >>> ages = np.random.default_rng(1).normal(40, 10, size=(20_000, 1))
    >>> model = PrivateHistogram(epsilon=1.0, bins=10, bounds=(0, 100)).fit(ages)
    >>> bool(abs(model.predict([[45.0]])[0] - 0.034) < 0.002)
    True
    >>> model.counts_.shape
    (10,)
    """

    COMMAND = "histogram"
    bins: str | int | Sequence[int] = setting(
        "auto",
        "How many equal bins each column is cut into: one number, or a list of one for each column. Public. "
        "'auto': 32, fewer in several columns so that there are at most 4096 in all.",
        choices=("auto",),
        at_least=1,
        several=True,
    )
    relation: str = setting(
        "add/remove",
        "Which neighbours are protected. Under replace the number of records is public.",
        choices=("add/remove", "replace"),
    )

    def _basis(self, dim: int) -> Bins:
        box = self.bounds_of_columns(dim)
        grid = CellGrid.of(box, self._bins(dim), most_cells=MOST_CELLS)
        return Bins(grid.bins, box, self._table_columns())

    def _bins(self, dim: int) -> int | Sequence[int]:
        if not isinstance(self.bins, str):
            return self.bins
        return max(1, min(_MOST_AUTO_BINS, int(_MOST_AUTO_CELLS ** (1.0 / dim))))

    def _tallies(self, seed: int, n_features: int | None = None) -> dict[str, Tally]:
        basis = self._basis(self._width(n_features))
        # The kernel reads sums of similarities off the same counts; here the counts alone are used.
        kernel = GaussianKernel(dim=basis.bounds.dim, bandwidth=float(basis.grid.width.max()))
        return {_COUNTS: Tally(basis, kernel)}

    def _predicted_error(self, records: int, n_features: int, promise: Promise) -> PredictedError:
        # Nobody's record is in it, and the noise of a bin does not depend on records.
        empty: Any = self._draw(self._tallies(0, n_features), promise).parts[_COUNTS]
        error = float(empty.noise.variance**0.5) / (records * float(np.prod(empty.basis.grid.width)))
        return PredictedError("density", error, records, NOISE)

    def _terms(self, promise: Promise, parts: int) -> dict[str, Any]:
        """What one record may cost. A replaced person may have had fewer records, so their number is private
        then, and records come and go one by one.
        """
        relation = self.relation if self.max_per_unit is None else str(Relation.ADD_REMOVE)
        return {**super()._terms(promise, parts), "relation": relation}

    def _relation(self) -> Relation:
        return Relation.of(self.relation)

    def _steps(self) -> int:
        replaced = self._relation() is Relation.REPLACE and self.max_per_unit is not None
        return (2 if replaced else 1) * super()._steps()

    def _part_columns(self) -> dict[str, int]:
        return {_COUNTS: self.n_features_in_}

    def _open(self, bundle: Bundle) -> CoefficientFunction:
        part = bundle.parts[_COUNTS]
        require(isinstance(part, CoefficientFunction) and isinstance(part.basis, Bins), "part")
        return cast(CoefficientFunction, part)

    @property
    def counts_(self) -> Floats:
        """Noisy counts, one axis for each column; only after the release."""
        part = self._reading()
        return np.asarray(part.table.reshape(part.basis.bins), np.float64)

    @property
    def count_stderr_(self) -> float:
        """The standard deviation of the noise of one bin; only after the release."""
        return float(self._reading().noise.variance ** 0.5)

    @property
    def bin_edges_(self) -> list[Floats]:
        """The edges of the bins of each column, shape (bins + 1,) each; only after the release."""
        part = self._reading()
        box = part.basis.bounds
        return [
            np.linspace(low, high, bins + 1)
            for low, high, bins in zip(box.low, box.high, part.basis.bins, strict=True)
        ]

    def score_samples(self, X: object) -> Floats:
        """The logarithm of the density at each point, shape (n_queries,).

        A bin below its standard error is raised to it, so the logarithm is finite.
        """
        return np.asarray(np.log(self.predict(X)))

    def predict(self, X: object) -> Floats:
        """The density at each point, shape (n_queries,): its bin's count over the number of records and the
        bin's volume. Outside of ``bounds`` it is what an empty bin has.
        """
        part, counts, unit = self._counted(self._queries(X))
        floor = max(part.noise.variance**0.5, 1e-100)
        return np.asarray(np.maximum(counts, floor) / unit)

    def query(self, X: object, *, level: float = 0.95) -> Answers:
        """The density at each point with standard error and interval; not raised to its error as
        :meth:`predict` has it, so noise may make it negative. Outside of ``bounds`` it is 0.
        """
        queries = self._queries(X)
        part, counts, unit = self._counted(queries)
        # Of a ratio, where the number of records is noisy as well.
        variance = part.noise.variance + (counts * part.count_stderr / max(part.count, 1.0)) ** 2
        return normal_answers(counts / unit, np.sqrt(variance) / unit, level, queries)

    def _counted(self, queries: Floats) -> tuple[CoefficientFunction, Floats, float]:
        """The counts of the bins of queries, and what divides a count to make it a density."""
        part: CoefficientFunction = self._reading()
        basis = part.basis
        assert isinstance(basis, Bins)
        low, high = np.array(basis.bounds.low), np.array(basis.bounds.high)
        inside = np.all((queries >= low) & (queries <= high), axis=1)
        grid = basis.grid
        cells = grid.flat(grid.codes(basis.prepare_queries(queries).arrays[0]))
        counts = np.where(inside, part.table[0, cells].astype(np.float64), 0.0)
        return part, counts, max(part.count, 1.0) * float(np.prod(grid.width))

    def score(self, X: object, y: object = None) -> float:
        """The total log-likelihood of the points under the histogram."""
        return float(self.score_samples(X).sum())
