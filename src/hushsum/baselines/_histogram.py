"""A noisy histogram, and the weighted points that it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import numpy as np

from hushsum.kernels import COLUMNS, ColumnKernel, Kernel
from hushsum.methods import DeclaredBox, Method, ReleaseKeywords, register, release_counted
from hushsum.privacy import LAPLACE, Mechanism, Relation
from hushsum.records import Bounds, DeclaredBounds, bins_for_bandwidth
from hushsum.releases import CoefficientFunction, PointsFunction, ReleasedFunction
from hushsum.tables import Bins
from hushsum.tally import Tally

NAME = "histogram"
DEFAULT_WIDTH = 0.25
_DEFAULT_CELLS = 1 << 18


def histogram_tally(
    kernel: Kernel,
    *,
    bounds: DeclaredBounds,
    bins: int | Sequence[int] | None = None,
    columns: Sequence[str] | None = None,
    max_per_unit: int | None = None,
) -> Tally:
    """An empty tally of bins, to be filled by ``add`` and made public by ``release``; it merges and streams.

    Parameters as for `histogram`, and ``columns`` and ``max_per_unit`` as for ``hushsum.race``.

    Examples
    --------
    >>> import hushsum as hs
    >>> from hushsum.baselines import histogram_tally
    >>> tally = histogram_tally(hs.GaussianKernel(dim=1, bandwidth=0.1), bounds=(0, 1), bins=20)
    >>> tally.add([[0.2]] * 700).add([[0.7]] * 300).release(epsilon=1.0).claim.mechanism
    'discrete laplace'
    """
    declared = DeclaredBox.of(kernel, bounds, columns)
    basis = Bins(_bins(declared.bounds, kernel, bins), declared.bounds, declared.columns)
    return Tally(basis, kernel, max_per_unit=max_per_unit)


def histogram(
    X: object,
    kernel: Kernel,
    *,
    bounds: DeclaredBounds,
    epsilon: float,
    delta: float | None = None,
    bins: int | Sequence[int] | None = None,
    relation: str | Relation = Relation.ADD_REMOVE,
    columns: Sequence[str] | None = None,
    **keywords: Unpack[ReleaseKeywords],
) -> PointsFunction:
    """The middles of bins, weighted by noisy counts. Spends ``epsilon``, and ``delta`` if given.

    Works well in one or two columns. A record is read at the middle of its bin: where the kernel is not much
    wider than a bin, that error stays whatever ε is. A grid has less of it for the same noise.

    Parameters
    ----------
    X : records of shape (n, columns)
        Private.
    bounds : (low, high) for all columns, a list of them, or a dictionary by column name
        Declared; records are clipped to it.
    bins : int or list of int, optional
        Bins along each column; default a quarter of the bandwidth wide, at most 2¹⁸ in all.
    relation
        As for ``Tally.release``.
    columns : list of str, optional
        What the columns are called, in their order; frames are then read by these names.
    **keywords
        ``budget``, ``idempotency_key``, ``insecure_noise_seed`` and ``allow_large_delta`` as for
        ``Tally.release``.

    Raises
    ------
    UsageError, ClaimError
        if a parameter breaks its rule.
    DataRefused
        if the records are not finite numbers.

    Privacy
    -------
    Exact integers: a tally of `Bins`, in which one record has one cell, and its release. Weights below 0 stay
    as they are, so that sums over many cells are unbiased.

    Notes
    -----
    Dwork, McSherry, Nissim and Smith 2006; as a baseline in Coleman and Shrivastava 2021, section 5.1.

    Examples
    --------
    >>> import hushsum as hs
    >>> from hushsum.baselines import histogram
    >>> X = [[0.2]] * 9000 + [[0.7]] * 1000
    >>> f = histogram(X, hs.GaussianKernel(dim=1, bandwidth=0.1), bounds=(0, 1), epsilon=1.0)
    >>> f([[0.2], [0.7]]).round(1)
    array([0.9, 0.1])
    >>> narrow = f.with_kernel(hs.GaussianKernel(dim=1, bandwidth=0.05))
    """
    function = release_counted(
        METHOD,
        X,
        lambda: histogram_tally(kernel, bounds=bounds, bins=bins, columns=columns),
        epsilon=epsilon,
        delta=delta,
        relation=relation,
        convert=points_of,
        **keywords,
    )
    assert isinstance(function, PointsFunction)
    return function


def points_of(function: ReleasedFunction) -> PointsFunction:
    """A released histogram as weighted points: the middle of every bin; post-processing."""
    assert isinstance(function, CoefficientFunction)
    basis = function.basis
    assert isinstance(basis, Bins)
    return PointsFunction(
        points=basis.grid.centres(),
        weights=function.table.reshape(-1).astype(np.float64),
        kernel=function.kernel,
        bounds=basis.bounds,
        count=max(function.count, 1.0),
        count_variance=function.count_stderr**2,
        weight_variance=function.cell_variance,
        cell_width=tuple(basis.grid.width.tolist()),
        claim=function.claim,
        method=NAME,
        producer=function.producer,
        columns=basis.columns,
    )


def _bins(box: Bounds, kernel: Kernel, bins: int | Sequence[int] | None) -> tuple[int, ...]:
    if bins is None:
        assert isinstance(kernel, ColumnKernel)
        bins = bins_for_bandwidth(
            box, kernel.column_bandwidths(), fraction=DEFAULT_WIDTH, most_cells=_DEFAULT_CELLS
        )
        return tuple(bins)
    return (bins,) * box.dim if isinstance(bins, int) else tuple(bins)


METHOD = register(
    Method(
        name=NAME,
        role=COLUMNS,
        release=histogram,
        mechanism=Mechanism.of(LAPLACE),
        paper="Dwork, McSherry, Nissim and Smith 2006",
        most_columns=3,
        tally=histogram_tally,
    )
)
