"""Worlds made from the library's registries: what is registered there is audited without an edit here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from benchmarks.outsiders.worlds import MANY, TABLES, Budget, Sampler, World, from_tables, one_by_one

from hushsum.auditing import audit  # noqa: F401  (registers the cases)
from hushsum.auditing.registry import MechanismCase, audited_bases, basis_cases, mechanism_cases, pool_for
from hushsum.auditing.sensitivity import counted
from hushsum.bases.base import Basis
from hushsum.bases.hash_rows import HashRows
from hushsum.kernels.gaussian import GaussianKernel
from hushsum.privacy.calibration import GAMMA, GAUSSIAN, LAPLACE
from hushsum.privacy.claim import Relation
from hushsum.privacy.function_noise import LATTICE_GAUSSIAN
from hushsum.releases.noisy_table import NoisyTable
from hushsum.tally.tally import Tally

_PATH = "gaussian process path"


def basis_worlds() -> Iterator[World]:
    """Every basis with Laplace and Gaussian noise: nothing against the one record that shows most."""
    for name in audited_bases():
        for pure in (True, False):
            basis, record = _sharpest(name, pure=pure)
            mechanism = LAPLACE if pure else GAUSSIAN
            yield World(
                f"basis {name}",
                "one record",
                pure,
                frozenset({name, mechanism}),
                from_tables(_releases(basis, record)),
                MANY if pure and np.count_nonzero(counted(basis, [record])) > 4 else TABLES,
            )
    basis, record = _sharpest("fourier-features", pure=False)
    yield World(
        "basis fourier-features, gamma radius",
        "one record",
        True,
        frozenset({GAMMA}),
        from_tables(_releases(basis, record, mechanism=GAMMA)),
    )


def mechanism_worlds() -> Iterator[World]:
    """Every mechanism with noise on a function, at the pairs that ``hs.audit`` uses."""
    for case in mechanism_cases(thorough=False):
        path = case.name == "ServedFunction"
        covers = {case.name.split(",")[0], case.name, _PATH if path else LATTICE_GAUSSIAN}
        yield World(case.name, case.pair, False, frozenset(covers), _separated(case))


def _separated(case: MechanismCase) -> Any:
    def open_world(budget: Budget) -> Sampler:
        pair = case.make(budget.promise)
        direction = pair.directions[0]
        middle = direction @ (pair.exact[0] + pair.exact[1]) / 2.0
        towards = np.sign(direction @ (pair.exact[1] - pair.exact[0]))
        return one_by_one(lambda side: float(towards * (direction @ pair.release(side, None) - middle)))

    return open_world


def _sharpest(name: str, *, pure: bool) -> tuple[Basis, object]:
    """The example and the record of the basis that are most telling.

    Laplace noise tells of a move what it has of Δ1, and tells it best if few cells share it; for Gaussian
    noise only the length counts.
    """
    best, chosen = -np.inf, None
    for example in basis_cases(name).examples:
        basis = example.prefix(1) if isinstance(example, HashRows) else example
        declared = basis.sensitivity(Relation.ADD_REMOVE)
        for record in pool_for(basis, np.random.default_rng(1)):
            move = counted(basis, [record])
            if pure:
                telling = np.abs(move).sum() / declared.l1 - 0.03 * np.count_nonzero(move)
            else:
                telling = np.sqrt(float((move.astype(np.float64) ** 2).sum()) / declared.l2_squared)
            if telling > best:
                best, chosen = float(telling), (basis, record)
    assert chosen is not None
    return chosen


def _releases(basis: Basis, record: object, mechanism: str | None = None) -> Any:
    tallies = [Tally(basis, _kernel(basis)), Tally(basis, _kernel(basis)).add([record])]

    def release(side: int, budget: Budget) -> Iterable[NoisyTable]:
        rows: dict[str, Any] = {"rows": 1} if isinstance(basis, HashRows) else {}
        function = tallies[side].release(**budget.arguments, **rows, mechanism=mechanism, threads=1)
        assert isinstance(function, NoisyTable)
        return (function,)

    return release


def _kernel(basis: Basis) -> GaussianKernel | None:
    """What a table that serves several kernels is read with; wide, since only its cells are looked at."""
    if basis.counted_kernel() is not None or basis.bounds is None:
        return None
    return GaussianKernel(dim=basis.bounds.dim, bandwidth=10.0)
