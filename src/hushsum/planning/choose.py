"""From records to a released function in one call."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hushsum.errors import ClaimError, DataRefused, UsageError
from hushsum.kernels.base import Kernel, kernel_class
from hushsum.methods.fourier_features import fourier_features
from hushsum.methods.grid import grid
from hushsum.methods.race import DEFAULT_WIDTH, race
from hushsum.methods.registry import method_named
from hushsum.planning.plan import Option
from hushsum.planning.predict import MAX_BYTES, MAX_SECONDS, METHODS, plan
from hushsum.privacy.budget import Budget
from hushsum.privacy.calibration import GAMMA
from hushsum.privacy.claim import Promise
from hushsum.privacy.relation import Relation
from hushsum.privacy.request import DEFAULT_COUNT_SHARE, check_declared_delta
from hushsum.records.numbers import refuse_path
from hushsum.releases.base import ReleasedFunction
from hushsum.tally.tally import Tally

_UNDECLARED = 100_000
"""The number of records that sizes are chosen for where none is declared: its choice is near the best from a
tenth to ten times as many.
"""

_CAPACITY = 2000
"""Rows to count where nothing is declared. Under pure ε the paid count decides how many are published."""


def release(
    X: object,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    bandwidth: float | None = None,
    kernel: str | Kernel = "euclidean",
    bounds: Sequence[tuple[float, float]] | tuple[float, float] | None = None,
    method: str = "auto",
    records: int | None = None,
    width: int | None = None,
    seed: int = 0,
    relation: str | Relation = Relation.ADD_REMOVE,
    mechanism: str | None = None,
    rows: int | str = "auto",
    count_share: float = DEFAULT_COUNT_SHARE,
    rounded: bool | None = None,
    population: int | None = None,
    allow_large_delta: bool = False,
    budget: Budget | None = None,
    idempotency_key: str | None = None,
    insecure_noise_seed: int | None = None,
    threads: int | None = None,
    max_bytes: int = MAX_BYTES,
    max_seconds: float = MAX_SECONDS,
    allow_real: bool = False,
) -> ReleasedFunction:
    """Count records and release them, by the method and with the sizes that are predicted to err least.
    Spends the claim.

    The number of records is never used but through a paid noisy count; the number of columns is taken as
    public.

    Parameters
    ----------
    X : records
        Private. For several batches, sites or persons make a tally with :func:`hushsum.race` or
        :func:`hushsum.grid`.
    epsilon, delta, rho, relation, count_share, population, allow_large_delta, budget, idempotency_key, \
insecure_noise_seed
        As for ``Tally.release``. With ``delta`` a method may be chosen that keeps pure ε, which is stronger.
    mechanism, rounded
        As for ``Tally.release``; by default what is predicted to err least.
    bandwidth : float
        The scale of the kernel, in the units of the data, chosen without looking at them.
    kernel : str or Kernel
        A name, or a kernel object, which then brings its own bandwidth.
    bounds : list of (low, high), optional
        Declared; records are clipped to it. Grids, the most accurate way in one to four columns, need it.
    method : str
        ``"auto"`` takes the best of :func:`hushsum.plan`, and one of the methods that it plans takes the best
        sizes of that. The other names of ``hushsum.methods.method_names()`` run with their defaults.
    records : int, optional
        About how many there are, declared: sizes are then chosen for that number. The true number is private.
    rows : int or "auto"
        Of hash rows: how many to publish. By default what is planned for the declared number of records, or,
        under pure ε without one, what suits the paid count.
    width : int, optional
        Of hash rows: cells of a row.
    max_bytes : int
        The largest file to consider.
    max_seconds : float
        The longest time to count, roughly and on one core.
    allow_real : bool
        As for :func:`hushsum.plan`.

    Examples
    --------
    >>> import hushsum as hs
    >>> f = hs.release([[1.0], [2.0], [2.5]] * 500, epsilon=1.0, bandwidth=1.0)
    >>> f.claim.relation.value
    'add/remove'
    """
    chosen = kernel if isinstance(kernel, Kernel) else _named(kernel, X, bandwidth)
    if method not in ("auto", *METHODS):
        known = method_named(method)
        if rho is not None or epsilon is None:
            raise ClaimError(
                f"{method} promises epsilon, or epsilon and delta, got rho or nothing; give epsilon"
            )
        _refuse_table_options(method, mechanism, rows, count_share, rounded)
        # The δ of the others is checked here; a method that takes δ has the option itself.
        check_declared_delta(
            Promise.of(epsilon=epsilon, delta=delta), population, allow_large=allow_large_delta
        )
        large = {"allow_large_delta": True} if known.approximate else {}
        sized = {"records": records} if known.sized else {}
        return known.release(
            X,
            chosen,
            bounds=bounds,
            epsilon=epsilon,
            delta=delta,
            relation=relation,
            budget=budget,
            idempotency_key=idempotency_key,
            insecure_noise_seed=insecure_noise_seed,
            **sized,
            **large,
        )
    best = plan(
        records=_UNDECLARED if records is None else records,
        kernel=chosen,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        bounds=bounds,
        method=method if isinstance(rows, str) else "race",
        width=width,
        relation=relation,
        max_bytes=max_bytes,
        max_seconds=max_seconds,
        allow_real=allow_real,
    ).best
    if best.method == "race":
        size, cells = (_CAPACITY, DEFAULT_WIDTH) if records is None else (best.rows, best.width)
        size, cells = size if isinstance(rows, str) else rows, cells if width is None else width
        tally = race(chosen, rows=size, width=cells, seed=seed, bounds=bounds)
    else:
        tally = planned_tally(best, chosen, bounds=bounds, seed=seed)
    tally.add(X, threads=threads)
    return tally.release(
        epsilon=epsilon,
        # Pure ε where the best option keeps it.
        delta=delta if best.delta else None,
        rho=rho,
        relation=relation,
        rows=_published(best, rows, declared=records is not None),
        count_share=count_share,
        rounded=bool(best.settings.get("rounded", False)) if rounded is None else rounded,
        mechanism=GAMMA if mechanism is None and best.mechanism == GAMMA else mechanism,
        population=population,
        allow_large_delta=allow_large_delta,
        budget=budget,
        idempotency_key=idempotency_key,
        insecure_noise_seed=insecure_noise_seed,
        threads=threads,
    )


def _refuse_table_options(
    method: str, mechanism: str | None, rows: int | str, count_share: float, rounded: bool | None
) -> None:
    """Refuse what only releases of a planned tally have, rather than ignore it."""
    given = {
        "mechanism": mechanism is not None,
        "rows": rows != "auto",
        "count_share": count_share != DEFAULT_COUNT_SHARE,
        "rounded": rounded is not None,
    }
    for name, is_given in given.items():
        if is_given:
            raise UsageError(f"{name} is not an option of method {method!r}; leave it out")


def _published(best: Option, rows: int | str, *, declared: bool) -> int | str:
    """How many rows to publish: what was planned for a declared number of records, else by the paid count."""
    if best.method == "grid":
        return "auto"
    return best.rows if declared and isinstance(rows, str) else rows


def planned_tally(
    option: Option,
    kernel: Kernel,
    *,
    bounds: Sequence[tuple[float, float]] | tuple[float, float] | None,
    seed: int = 0,
) -> Tally:
    """An empty tally of the method and the sizes of an option.

    >>> import hushsum as hs
    >>> kernel = hs.GaussianKernel(dim=1, bandwidth=1.0)
    >>> best = hs.plan(records=10_000, kernel=kernel, bounds=(0, 10), epsilon=1.0).best
    >>> planned_tally(best, kernel, bounds=(0, 10)).basis.name
    'grid-weights'
    """
    if option.method == "grid":
        assert bounds is not None
        return grid(kernel, bounds=bounds, spacing=option.settings["spacing"])
    if option.method == "fourier_features":
        return fourier_features(kernel, features=option.rows, seed=seed, bounds=bounds)
    return race(kernel, rows=option.rows, width=option.width, seed=seed, bounds=bounds)


def _named(name: str, X: object, bandwidth: float | None) -> Kernel:
    fields = getattr(kernel_class(name), "__dataclass_fields__", {})
    arguments: dict[str, float | int] = {}
    if "dim" in fields:
        arguments["dim"] = _columns(X)
    if "bandwidth" in fields:
        if bandwidth is None:
            raise UsageError(
                f"bandwidth must be given for the {name} kernel; choose it without looking at the data"
            )
        arguments["bandwidth"] = bandwidth
    elif bandwidth is not None:
        raise UsageError(f"the {name} kernel has no bandwidth; leave it out")
    return kernel_class(name)(**arguments)


def _columns(X: object) -> int:
    refuse_path(X)
    shape = getattr(X, "shape", None)
    if shape is None:
        try:
            shape = np.asarray(X).shape
        except ValueError:
            shape = None
    # Refused out here: NumPy's own message tells the number of records.
    if shape is None or len(shape) not in (1, 2):
        raise DataRefused("records must be rows of one length; pass an array or a frame of two dimensions")
    if len(shape) == 1:
        return 1
    if shape[1] > shape[0]:
        raise DataRefused(
            "the number of columns is taken as public, got more columns than records; "
            "turn the table, or give a kernel with its dim"
        )
    return int(shape[1])
