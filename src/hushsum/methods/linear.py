"""Tallies as one-call methods: make one, count, release."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hushsum.kernels.base import Kernel
from hushsum.methods.registry import Method, Release, register
from hushsum.methods.terms import Terms
from hushsum.privacy.budget import Budget
from hushsum.privacy.calibration import GAUSSIAN, LAPLACE
from hushsum.privacy.relation import Relation
from hushsum.privacy.release_noise import EXACT_INTEGERS
from hushsum.releases.base import ReleasedFunction
from hushsum.tally.tally import Tally

MakeTally = Callable[..., Tally]
"""``make(kernel, *, bounds, ...)``: an empty tally."""


def register_tally(
    name: str,
    make: MakeTally,
    *,
    paper: str,
    kernels: tuple[str, ...],
    most_columns: int | None = None,
    sized: bool = False,
) -> None:
    """Make a kind of tally known as a method, which promises pure ε or (ε, δ) in exact integers."""
    register(
        Method(
            name=name,
            release=one_call(name, make, sized=sized),
            pure=True,
            approximate=True,
            relations=tuple(Relation),
            arithmetic=EXACT_INTEGERS,
            paper=paper,
            kernels=kernels,
            most_columns=most_columns,
            sized=sized,
        )
    )


def one_call(name: str, make: MakeTally, *, sized: bool = False) -> Release:
    """The release of one batch of records by a kind of tally, with the signature of every method.

    Options that are none of the release's are the tally's own. A ``sized`` kind is told the declared number
    of ``records``, and ε, to choose its sizes by; the others take no notice of it.
    """

    def release(
        X: object,
        kernel: Kernel,
        *,
        epsilon: float,
        bounds: object = None,
        delta: float | None = None,
        records: int | None = None,
        relation: str | Relation = Relation.ADD_REMOVE,
        allow_large_delta: bool = False,
        budget: Budget | None = None,
        idempotency_key: str | None = None,
        insecure_noise_seed: int | None = None,
        **own: Any,
    ) -> ReleasedFunction:
        terms = Terms.of(
            epsilon=epsilon,
            delta=delta,
            relation=relation,
            mechanism=GAUSSIAN if delta else LAPLACE,
            arithmetic=EXACT_INTEGERS,
            pure=not delta,
            allow_large_delta=allow_large_delta,
            budget=budget,
            idempotency_key=idempotency_key,
            insecure_noise_seed=insecure_noise_seed,
        )
        if sized and records is not None:
            own = {"records": records, "epsilon": epsilon, **own}
        tally = make(kernel, bounds=bounds, **own).add(X)

        def drawn() -> ReleasedFunction:
            return tally.release(
                epsilon=epsilon,
                delta=delta,
                relation=relation,
                allow_large_delta=allow_large_delta,
                insecure_noise_seed=insecure_noise_seed,
            )

        return terms.released(name, drawn, {"fingerprint": tally.fingerprint})

    return release
