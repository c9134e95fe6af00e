"""From records to a released function in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hushsum.errors import ClaimError, DataRefused, UsageError
from hushsum.kernels.bandwidth_scale import in_scale, warn_of_bandwidth
from hushsum.kernels.base import Kernel
from hushsum.kernels.registry import is_expression, named, parameter_names
from hushsum.methods.registry import default_kernel, method_named
from hushsum.planning.automatic_method import (
    UNDECLARED,
    best_option,
    planned_options,
    planned_sizes,
    planned_tally,
)
from hushsum.planning.plan import AUTO, MAX_BYTES, MAX_SECONDS
from hushsum.planning.public_sample import (
    bounds_of_sample,
    kernel_of_sample,
)
from hushsum.privacy.budget import Budget
from hushsum.privacy.claim import RECORD, Promise, Relation, checked_unit
from hushsum.privacy.release_request import ReleaseRequest, check_declared_delta
from hushsum.records.arrow import in_memory
from hushsum.records.bounds import DeclaredBounds, declared_bounds
from hushsum.records.columns_by_name import refuse_path
from hushsum.records.data_derived_parameters import clipping_allowed
from hushsum.records.declared_steps import DeclaredSteps
from hushsum.records.mixed_columns import column_names_of
from hushsum.records.private_rows_as_public import refuse_copied_rows, refuse_private_rows
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.forwarded_properties import PUBLIC_SAMPLE
from hushsum.releases.public_combination import combine


def release(
    X: object,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    bandwidth: float | None = None,
    kernel: str | Kernel | None = None,
    bounds: DeclaredBounds | None = None,
    method: str = AUTO,
    records: int | None = None,
    width: int | None = None,
    columns: Sequence[str] | None = None,
    seed: int = 0,
    relation: str | Relation = Relation.ADD_REMOVE,
    unit: str | None = None,
    mechanism: str | None = None,
    rows: int | str = "auto",
    count_share: float | None = None,
    rounded: bool | None = None,
    population: int | None = None,
    allow_large_delta: bool = False,
    budget: Budget | None = None,
    idempotency_key: str | None = None,
    insecure_noise_seed: int | None = None,
    threads: int | None = None,
    max_bytes: int = MAX_BYTES,
    max_seconds: float = MAX_SECONDS,
    steps: DeclaredSteps | None = None,
    public: object = None,
    scale: str | None = None,
    allow_clipping: bool = False,
) -> ReleasedFunction:
    """Count records and release them, by the method and with the sizes that are predicted to err least.
    Spends the claim.

    The number of records is never used but through a paid noisy count; the number of columns is taken as
    public.

    Parameters
    ----------
    X : records
        Private. The names of a frame's columns are kept, so that frames of queries are read by name. For
        several batches, sites or persons make a tally with :func:`hushsum.race` or :func:`hushsum.grid`.
    epsilon, delta, rho, relation, population, allow_large_delta, budget, idempotency_key, \
insecure_noise_seed
        As for ``Tally.release``. With ``delta`` a method may be chosen that keeps pure ε, which is stronger.
    unit : "record", optional
        For other units make a tally: with ``max_per_unit``, or of a graph by :func:`hushsum.count_graph`.
    mechanism, rounded, count_share
        As for ``Tally.release``; by default what is predicted to err least. A method without a tally has none
        of these, and is not considered where one is given.
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
    records : int, optional
        About how many there are, declared: sizes are then chosen for that number. The true number is private.
    rows : int or "auto"
        Of hash rows: how many to publish. By default what is planned for the declared number of records, or,
        under pure ε without one, what suits the paid count.
    width : int, optional
        Of hash rows: cells of a row.
    columns : list of str, optional
        What the columns are called, in their order; by default as in the frame.
    max_bytes : int
        The largest file to consider.
    max_seconds : float
        The longest time to count, roughly and on one core.
    steps : float, list of float or None, or a dictionary by column name, optional
        Of columns whose values are multiples of a step, such as ages and prices: a grid may then have its
        nodes on them, where the plan predicts that it pays. See :func:`hushsum.grid`.
    public : records, optional
        A public sample that resembles the records, 10 to 10,000 rows of numbers. It decides bandwidth and
        bounds where they are not given, and rows (:func:`hushsum.plan`), and the release is combined with it
        by their variances (:func:`hushsum.combine`). The claim states the assumption that it is public.
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
    if unit is not None:
        # A graph is counted by count_graph, and persons with ids: what is released here are records.
        checked_unit(unit, (RECORD,))
    X = in_memory(X)
    if kernel is None:
        kernel = default_kernel(method, rows=None if rows == "auto" else rows, width=width)
    if public is not None:
        refuse_private_rows(public, X)
        public = in_memory(public)
        kernel = kernel_of_sample(
            kernel,
            dim=None if isinstance(kernel, Kernel) else _columns(X),
            bandwidth=bandwidth,
            public=public,
            records=UNDECLARED if records is None else records,
            bounds=bounds,
            scale=scale,
        )
        bounds = bounds_of_sample(kernel, bounds, public)
        chosen = kernel
        names = _column_names(X, chosen, bounds, columns)
        refuse_copied_rows(public, X, chosen.dim, names)
    else:
        chosen = kernel if isinstance(kernel, Kernel) else _named(kernel, X, bandwidth, columns)
        names = _column_names(X, chosen, bounds, columns)
        by_name = isinstance(kernel, str) and not is_expression(kernel)
        chosen = in_scale(chosen, scale, bounds, names, default=by_name)
    warn_of_bandwidth(chosen, bounds, names)
    if method != AUTO and (method_named(method).predict is None or method_named(method).tally is None):
        known = method_named(method)
        if public is not None:
            raise UsageError(
                parameter="public",
                rule=f"must be left out for {method}, which counts in no tally",
                remedy=f"leave it out, or call hushsum.methods.{method}",
            )
        if rho is not None or epsilon is None:
            raise ClaimError(
                parameter="epsilon",
                rule=f"must be given, with or without delta, for {method}",
                got="rho or nothing",
                remedy="give epsilon",
            )
        _refuse_table_options(method, mechanism, rows, count_share, rounded)
        # The δ of the others is checked here; a method that takes δ has the option itself.
        check_declared_delta(
            Promise.of(epsilon=epsilon, delta=delta), population, allow_large_delta=allow_large_delta
        )
        large = {"allow_large_delta": True} if known.approximate else {}
        sized: dict[str, Any] = {"records": records} if known.sized else {}
        with clipping_allowed(allow_clipping):
            return known.release(
                X,
                chosen,
                bounds=bounds,
                columns=names,
                epsilon=epsilon,
                delta=delta,
                relation=relation,
                budget=budget,
                idempotency_key=idempotency_key,
                insecure_noise_seed=insecure_noise_seed,
                **sized,
                **large,
            )
    best = best_option(
        chosen,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        bounds=bounds,
        method=method,
        records=records,
        relation=relation,
        mechanism=mechanism,
        rows=rows,
        count_share=count_share,
        rounded=rounded,
        width=width,
        columns=names,
        steps=steps,
        max_bytes=max_bytes,
        max_seconds=max_seconds,
        tallies_only=public is not None,
        public=public,
    )
    planned = method_named(best.method)
    if planned.tally is None:
        with clipping_allowed(allow_clipping):
            return planned.release(
                X,
                chosen,
                bounds=bounds,
                columns=names,
                epsilon=epsilon,
                relation=relation,
                seed=seed,
                budget=budget,
                idempotency_key=idempotency_key,
                insecure_noise_seed=insecure_noise_seed,
                **best.sizes,
            )
    tally = planned_tally(
        best,
        chosen,
        bounds=bounds,
        columns=names,
        seed=seed,
        **planned_sizes(best, records=records, rows=rows, width=width),
    )
    tally.add(X, threads=threads, allow_clipping=allow_clipping)
    request = ReleaseRequest(
        epsilon=epsilon,
        rho=rho,
        relation=relation,
        **planned_options(
            best,
            records=records,
            delta=delta,
            rows=rows,
            count_share=count_share,
            rounded=rounded,
        ),
        mechanism=mechanism,
        population=population,
        allow_large_delta=allow_large_delta,
        budget=budget,
        idempotency_key=idempotency_key,
        insecure_noise_seed=insecure_noise_seed,
    )
    if public is None:
        return tally.prepare(request, threads=threads).draw()
    return combine(tally.prepare(request, threads=threads, assumptions=(PUBLIC_SAMPLE,)).draw(), public)


def _refuse_table_options(
    method: str, mechanism: str | None, rows: int | str, count_share: float | None, rounded: bool | None
) -> None:
    """Refuse what only releases of a planned tally have, rather than ignore it."""
    given = {
        "mechanism": mechanism is not None,
        "rows": rows != "auto",
        "count_share": count_share is not None,
        "rounded": rounded is not None,
    }
    for name, is_given in given.items():
        if is_given:
            raise UsageError(
                parameter=name,
                rule=f"must be an option of the method {method!r}",
                got="no option of it",
                remedy="leave it out",
            )


def _named(name: str, X: object, bandwidth: float | None, columns: Sequence[str] | None) -> Kernel:
    wide = _columns(X) if "dim" in parameter_names(name) else None
    return named(name, dim=wide, bandwidth=bandwidth, columns=columns or column_names_of(X))


def _column_names(
    X: object, kernel: Kernel, bounds: object, columns: Sequence[str] | None
) -> tuple[str, ...] | None:
    """What the columns are called: as given, as in the frame, or as in a dictionary of bounds."""
    if kernel.dim is None:
        return None if columns is None else tuple(columns)
    if columns is None:
        found = column_names_of(X)
        # Names that stand for other columns, such as one for a column of lists, are not kept.
        columns = found if found is not None and len(found) == kernel.dim else None
    return declared_bounds(bounds, dim=kernel.dim, columns=columns)[1]


def _columns(X: object) -> int:
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
            parameter="records",
            rule="must be rows of one length",
            remedy="pass an array or a frame of two dimensions",
        )
    if len(shape) == 1:
        return 1
    if shape[1] > shape[0]:
        raise DataRefused(
            rule="the number of columns is taken as public",
            got="more columns than records",
            remedy="turn the table, or give a kernel with its dim",
        )
    return int(shape[1])
