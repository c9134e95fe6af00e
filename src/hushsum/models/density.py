"""Private density estimation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from hushsum.errors import UsageError
from hushsum.models.base import Floats, PrivateModel
from hushsum.models.density_functional import FunctionalSums
from hushsum.models.density_plan import FUNCTIONAL, GRID, Box, Wanted, planned, tallies
from hushsum.models.mode_search import spread_points
from hushsum.models.normalisation import integral_over_box, normalising_constant
from hushsum.models.weighted_points import by_chain, from_grid
from hushsum.privacy.accounting.zcdp import zcdp_rho
from hushsum.privacy.claim import Promise
from hushsum.releases.answers import Answers
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.bundle import Bundle
from hushsum.tally.tally import Tally

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

    wanted: Wanted
    function: ReleasedFunction
    integral: float
    error: float

    @classmethod
    def of(cls, wanted: Wanted, function: ReleasedFunction, box: Box) -> _Estimate:
        """Everything from what was released: post-processing."""
        low, high = np.array(box).T
        error = float(function.query(spread_points(low, high, _PROBES, seed=0)).stderr.max())
        constant = normalising_constant(wanted.kernel)
        integral = integral_over_box(function, box) if constant is None else constant
        return cls(wanted, function, integral, error)

    def floored(self, queries: Floats) -> Floats:
        """Densities, those below their standard error raised to it."""
        values = self.function(queries)
        # Standard errors take longer than values, so they are asked for where they may matter.
        small = np.flatnonzero(values < 2.0 * self.error)
        if len(small):
            values[small] = np.maximum(values[small], self.function.query(queries[small]).stderr)
        densities: Floats = np.maximum(values, _SMALLEST) / self.integral
        return densities

    def answers(self, queries: Floats, level: float) -> Answers:
        """Densities with their errors, as they are: noise may make them negative."""
        told = self.function.query(queries, level=level)
        value, stderr, lower, upper, bound = (
            part / self.integral for part in (told.value, told.stderr, told.lower, told.upper, told.bound)
        )
        return Answers(value, stderr, lower, upper, bound, level)

    def above_noise(self, queries: Floats) -> Floats:
        """Densities, those below three standard errors taken as 0.

        In many columns the box is so large that noise everywhere would outweigh the records.
        """
        values = self.function(queries)
        return np.where(values > 3.0 * self.error, values, 0.0) / self.integral


class PrivateDensity(PrivateModel):
    """A kernel density estimate of private records, released once.

    Works well in one to four columns, where one grid serves any number of Gaussian bandwidths. Beyond that
    random features do, with ``delta`` much better than without; a density in more than about ten columns is
    mostly noise, whatever the method.

    Parameters
    ----------
    epsilon, delta : float
        The budget of the one release; pure ε without ``delta``.
    kernel : {"gaussian", "laplacian", "matern", "euclidean", "manhattan", "angular"} or list of them
        ``"gaussian"``, ``"laplacian"`` and ``"matern"`` have normalising constants. The kernels of hash rows
        (``"euclidean"``, ``"manhattan"``, …) have no finite integral over all space: their densities are
        normalised over ``bounds``, by post-processing, and :attr:`normalised_over_` says so.
    bandwidth : float or list of float
        Public: choose it by the subject, or on public data. Every kernel is estimated with every bandwidth.
        Questions are answered for the first of each unless they name another.
    method : {"auto", "grid", "fourier_features", "functional", "race"}
        Where the sums come from. ``"auto"``: a grid for Gaussian kernels in up to four columns, random
        features beyond, hash rows for hash kernels. ``"functional"``: functional perturbation in a finite
        feature space, Fourier features with the analytic calibration of one Gaussian path; needs ``delta``.
    bounds : (low, high), or a list of one pair for each column
        Declared, never read off the data; records are clipped to it.
    random_state : int, RandomState or None
        Seeds hash functions and frequencies, never the noise.
    budget, idempotency_key
        As for ``Tally.release``.

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

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        kernel: str | Sequence[str] = "gaussian",
        bandwidth: float | Sequence[float] = 0.25,
        method: str = "auto",
        bounds: Any = (-1, 1),
        random_state: Any = None,
        budget: Any = None,
        idempotency_key: str | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.method = method
        self.bounds = bounds
        self.random_state = random_state
        self.budget = budget
        self.idempotency_key = idempotency_key

    def _planned(self) -> list[Wanted]:
        return planned(self.kernel, self.bandwidth, self.method, self.n_features_in_)

    def _facts(self) -> dict[str, Any]:
        return {"kernels": [each.as_json() for each in self._planned()]}

    def _start(self, seed: int) -> dict[str, Tally] | FunctionalSums:
        if self.method == FUNCTIONAL:
            promise = Promise.of(epsilon=self.epsilon, delta=self.delta)
            return FunctionalSums(self._planned(), promise, seed, self._box())
        return tallies(self._planned(), seed=seed, box=self._box())

    def _count(self, secret: dict[str, Tally] | FunctionalSums, X: Floats, y: NDArray[Any] | None) -> None:
        for each in [secret] if isinstance(secret, FunctionalSums) else secret.values():
            each.add(X)

    def _draw(self, secret: dict[str, Tally] | FunctionalSums, promise: Promise) -> Bundle:
        if isinstance(secret, FunctionalSums):
            return self._bundle(promise, parts=secret.release(self._claim(promise)))
        share = share_of(promise, len(secret))
        return self._bundle(promise, parts={name: tally.release(**share) for name, tally in secret.items()})

    def _open(self, bundle: Bundle) -> list[_Estimate]:
        box = self._box(self._fitted("bounds"))
        estimates = []
        for each in map(Wanted.from_json, self._state.facts["kernels"]):
            part: Any = bundle.parts[each.part]
            function = part.with_kernel(each.kernel) if each.part == GRID else part
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
            raise UsageError("n_samples must be a whole number of at least 1; ask for one or more")
        estimate = self._estimate(kernel, bandwidth)
        low, high = np.array(self._box(self._fitted("bounds"))).T
        random = np.random.default_rng(int(check_random_state(random_state).randint(_SEEDS)))
        if len(low) <= _GRID_COLUMNS:
            return from_grid(estimate.above_noise, low, high, int(n_samples), random)
        step = float(getattr(estimate.wanted.kernel, "bandwidth", 0.25))
        return by_chain(estimate.above_noise, low, high, int(n_samples), random, step=step, steps=_STEPS)

    @property
    def normalised_over_(self) -> str:
        """Where the density of the first kernel integrates to 1; only after the release."""
        _ = self.released_
        return (
            "bounds"
            if normalising_constant(self._estimate(None, None).wanted.kernel) is None
            else "all space"
        )

    def _estimate(self, kernel: str | None, bandwidth: float | None) -> _Estimate:
        estimates: list[_Estimate] = self._reading()
        for each in estimates:
            found = each.wanted.kernel
            if kernel not in (None, found.name):
                continue
            if bandwidth is None or math.isclose(getattr(found, "bandwidth", math.nan), bandwidth):
                return each
        raise UsageError(
            "kernel and bandwidth must be among those the model was made with, got others; "
            "declare them before fit, or leave them out"
        )


def share_of(promise: Promise, tables: int) -> dict[str, Any]:
    """What each of the tables of the same records may spend, as arguments of ``Tally.release``."""
    if tables == 1 or promise.epsilon is None:
        return {"epsilon": promise.epsilon, "delta": promise.delta or None, "rho": promise.rho}
    if promise.pure:
        return {"epsilon": promise.epsilon / tables}
    return {"rho": Fraction(zcdp_rho(promise.epsilon, promise.delta)) / tables}
