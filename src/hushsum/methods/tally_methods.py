"""Tallies as methods: what their constructors share, and their release in one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Unpack

from hushsum.bases.base import Basis
from hushsum.kernels.base import Kernel
from hushsum.kernels.registry import Role
from hushsum.methods.one_call_methods import OneCallRelease, ReleaseKeywords
from hushsum.methods.registry import (
    MakeTally,
    Method,
    Predict,
    PredictReading,
    Release,
    method_named,
    register,
)
from hushsum.privacy.claim import Relation
from hushsum.privacy.release_noise import EXACT_INTEGERS
from hushsum.privacy.release_request import PURE_NOISE, ReleaseRequest
from hushsum.records.bounds import Bounds, DeclaredBounds, declared_bounds
from hushsum.releases.base import ReleasedFunction
from hushsum.tally.tally import Tally


def boxed_tally(
    method: str,
    kernel: Kernel,
    make: Callable[[Bounds, tuple[str, ...] | None], Basis],
    *,
    bounds: DeclaredBounds | None,
    columns: Sequence[str] | None,
    max_per_unit: int | None,
) -> Tally:
    """An empty tally of a method that needs bounds: of the basis that ``make`` returns for the box and the
    names of its columns.
    """
    method_named(method).role.check(kernel, method)
    dim = kernel.dim or 1
    box, names = declared_bounds(bounds, dim=dim, columns=columns)
    return Tally(make(Bounds.declared(box, dim, method), names), kernel, max_per_unit=max_per_unit)


def register_tally(
    name: str,
    make: MakeTally,
    *,
    role: Role,
    paper: str,
    most_columns: int | None = None,
    needs_bounds: bool = True,
    sized: bool = False,
    shared: bool = False,
    predict: Predict | None = None,
    predict_reading: PredictReading | None = None,
    undeclared_sizes: Mapping[str, int] = MappingProxyType({}),
) -> None:
    """Make a kind of tally known as a method, which promises pure ε or (ε, δ) in exact integers."""
    register(
        Method(
            name=name,
            role=role,
            release=_one_call(name, make, sized=sized),
            pure=True,
            approximate=True,
            relations=tuple(Relation),
            mechanism=PURE_NOISE,
            arithmetic=EXACT_INTEGERS,
            paper=paper,
            most_columns=most_columns,
            needs_bounds=needs_bounds,
            shared=shared,
            tally=make,
            predict=predict,
            predict_reading=predict_reading,
            sized=sized,
            undeclared_sizes=undeclared_sizes,
        )
    )


def release_counted(
    method: Method,
    X: object,
    count: Callable[[], Tally],
    *,
    epsilon: float,
    delta: float | None,
    relation: str | Relation,
    convert: Callable[[ReleasedFunction], ReleasedFunction] = lambda function: function,
    **keywords: Unpack[ReleaseKeywords],
) -> ReleasedFunction:
    """Count records in the tally that ``count`` makes, and release it; the promise is checked first."""
    request = ReleaseRequest(
        epsilon=epsilon,
        delta=delta,
        relation=relation,
        allow_large_delta=keywords.get("allow_large_delta", False),
        insecure_noise_seed=keywords.get("insecure_noise_seed"),
    )
    tally = count()
    prepared = OneCallRelease.of(
        method,
        epsilon=epsilon,
        delta=delta,
        relation=relation,
        mechanism=tally.prepare(request).claim.mechanism,
        **keywords,
    )
    tally.add(X)

    def drawn() -> ReleasedFunction:
        return convert(tally.prepare(request).draw())

    return prepared.released(drawn, fingerprint=tally.fingerprint)


def _one_call(name: str, make: MakeTally, *, sized: bool = False) -> Release:
    """The release of one batch of records by a kind of tally, with the signature of every method.

    Options that are none of the release's are the tally's own. A ``sized`` kind is given the declared number
    of ``records``, and ε, to choose its sizes by; the others do not use it.
    """

    def release(
        X: object,
        kernel: Kernel,
        *,
        epsilon: float,
        delta: float | None = None,
        records: int | None = None,
        relation: str | Relation = Relation.ADD_REMOVE,
        **others: Any,
    ) -> ReleasedFunction:
        keywords: Any = {key: others.pop(key) for key in ReleaseKeywords.__annotations__ if key in others}
        if sized and records is not None:
            others = {"records": records, "epsilon": epsilon, **others}
        return release_counted(
            method_named(name),
            X,
            lambda: make(kernel, **others),
            epsilon=epsilon,
            delta=delta,
            relation=relation,
            **keywords,
        )

    return release
