"""The single tests that an audit consists of, each with a name, so that progress can be reported."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from hushsum.auditing.edge_sensitivity import audit_edges
from hushsum.auditing.gaussian_smoke_test import THOROUGH_RELEASES, audit_separation
from hushsum.auditing.neighbours import neighbours
from hushsum.auditing.person_sensitivity import audit_persons
from hushsum.auditing.privacy_loss_lower_bound import NoiseAudit
from hushsum.auditing.registry import MechanismCase, NoiseCase, mechanism_cases, noise_cases, pool_for
from hushsum.auditing.report import AuditRow, Half
from hushsum.auditing.sensitivity import SensitivityAudit, audit_sensitivity
from hushsum.auditing.tally_smoke_test import CASES, RELEASES, SmokeCase, audit_smoke
from hushsum.bases.adjacency_rows import AdjacencyRows
from hushsum.bases.base import Basis
from hushsum.bases.hash_rows import HashRows
from hushsum.privacy.claim import PERSON, Relation
from hushsum.privacy.noise import NoiseSource

CAP = 4
_MOST_CELLS = 1 << 17

_COMMON = ("bounds", "columns", "scale")
_DEFAULTS = (("power", 1), ("projection", "dense"))


@dataclass(frozen=True, slots=True)
class Randomness:
    """Fresh randomness for every step, or the same in every run for tests. None of it protects anybody: the
    noise hides made-up records.
    """

    seed: int | None

    def numbers(self, step: int) -> np.random.Generator:
        """For choosing neighbours."""
        return np.random.default_rng(None if self.seed is None else [self.seed, step])

    def noise(self, step: int) -> NoiseSource:
        """For the samplers under test."""
        return NoiseSource.fresh() if self.seed is None else NoiseSource.insecure((self.seed << 16) + step)


@dataclass(frozen=True, slots=True)
class Step:
    """A test still to be run; it is given a number of its own for its randomness."""

    what: str
    run: Callable[[Randomness, int], list[AuditRow]]


def sensitivity_steps(
    basis: Basis, *, thorough: bool, relations: Iterable[Relation] = tuple(Relation), cap: int | None = CAP
) -> Iterator[Step]:
    """Neighbours that differ in a record, in an edge of a graph, and in a person under a cap if there is one.

    Of a large table the first rows are searched: each has its own hash function, and a record's cell in it
    does not depend on how many follow.
    """
    rows, width = basis.shape
    searched: Basis = basis
    if isinstance(basis, HashRows):
        searched = basis.prefix(min(rows, max(1, _MOST_CELLS // width)))
    first = "" if searched.shape == basis.shape else f", first {searched.shape[0]} rows"
    for relation in relations:
        what = f"{basis_in_words(basis)}{first}, {relation}"
        yield Step(what, partial(_records, searched, relation, what, thorough))
        if isinstance(basis, AdjacencyRows):
            named = f"{what}, {basis.units[1]}, {basis.graph}"
            yield Step(named, partial(_edges, basis, relation, named, thorough))
        if cap is not None and PERSON in basis.units:
            named = f"{what}, {cap} records a person"
            yield Step(named, partial(_persons, searched, relation, named, thorough, cap))


def noise_steps(*, thorough: bool) -> Iterator[Step]:
    """The registered worst pairs of every sampler."""
    for case in noise_cases(thorough=thorough):
        yield Step(f"{case.sampler}, {case.pair}", partial(_noise, case))


def smoke_steps(*, thorough: bool) -> Iterator[Step]:
    """Whole releases of made-up neighbours."""
    for case in CASES:
        yield Step(str(case), partial(_smoke, case, 3000 if thorough else RELEASES))


def mechanism_steps(*, thorough: bool) -> Iterator[Step]:
    """Whole mechanisms with noise on functions, on made-up neighbours."""
    for case in mechanism_cases(thorough=thorough):
        yield Step(f"{case.name}, {case.pair}", partial(_mechanism, case, thorough))


def _records(
    basis: Basis, relation: Relation, what: str, thorough: bool, randomness: Randomness, step: int
) -> list[AuditRow]:
    rng = randomness.numbers(step)
    pairs = neighbours(pool_for(basis, rng), relation, rng, thorough=thorough)
    return [sensitivity_row(what, audit_sensitivity(basis, pairs, relation))]


def _persons(
    basis: Basis, relation: Relation, what: str, thorough: bool, cap: int, randomness: Randomness, step: int
) -> list[AuditRow]:
    rng = randomness.numbers(step)
    pool, rounds = pool_for(basis, rng), 200 if thorough else 24
    audit, count = audit_persons(basis, pool, relation, rng, cap=cap, rounds=rounds)
    row = sensitivity_row(what, audit)
    if count <= cap:
        return [row]
    return [row, AuditRow(what, Half.SENSITIVITY, "count", cap, count, 1.0, audit.pairs)]


def _edges(
    basis: AdjacencyRows, relation: Relation, what: str, thorough: bool, randomness: Randomness, step: int
) -> list[AuditRow]:
    audit, count = audit_edges(basis, relation, randomness.numbers(step), rounds=40 if thorough else 6)
    row = sensitivity_row(what, audit)
    allowed = basis.unit_change(basis.units[1], 1, relation).count
    if count <= allowed:
        return [row]
    return [row, AuditRow(what, Half.SENSITIVITY, "count", allowed, count, 1.0, audit.pairs)]


def _noise(case: NoiseCase, randomness: Randomness, step: int) -> list[AuditRow]:
    with randomness.noise(step) as source:
        return [noise_row(case.run(source, 1.0), case.pair)]


def _smoke(case: SmokeCase, releases: int, randomness: Randomness, step: int) -> list[AuditRow]:
    return [audit_smoke(case, seed=randomness.seed, releases=releases)]


def _mechanism(case: MechanismCase, thorough: bool, randomness: Randomness, step: int) -> list[AuditRow]:
    pair = case.set_up()
    releases = max(pair.releases(), THOROUGH_RELEASES if thorough else 0)
    what = f"{case.name}, {case.pair}"
    return [audit_separation(what, pair, releases=releases, seed=randomness.seed)]


def sensitivity_row(what: str, audit: SensitivityAudit) -> AuditRow:
    """Δ1, or whichever norm went too far."""
    declared, found = audit.declared, audit.found
    norms = {
        "Δ1": (float(declared.l1), float(found.l1)),
        "Δ2": (math.sqrt(declared.l2_squared), math.sqrt(found.l2_squared)),
        "Δ∞": (float(declared.largest), float(found.largest)),
    }
    quantity = next((name for name, (allowed, moved) in norms.items() if moved > allowed), "Δ1")
    power = 1.0 if audit.catches else 0.0
    return AuditRow(what, Half.SENSITIVITY, quantity, *norms[quantity], power, audit.pairs)


def noise_row(audit: NoiseAudit, pair: str) -> AuditRow:
    """The row of an audited sampler."""
    return AuditRow(
        f"{audit.mechanism}, {pair}",
        Half.NOISE,
        audit.quantity,
        audit.claimed,
        audit.lower_bound,
        audit.power,
        audit.draws,
    )


def basis_in_words(basis: Basis) -> str:
    """Such as ``hash-rows euclidean(dim=3, bandwidth=1.0)``; defaults are left out."""
    kernel = basis.counted_kernel()
    if kernel is None:
        given = {name: value for name, value in basis.parameters().items() if name not in _COMMON}
    else:
        given = {name: value for name, value in kernel.parameters().items() if (name, value) not in _DEFAULTS}
    arguments = ", ".join(f"{name}={value}" for name, value in given.items())
    counted = "" if kernel is None else f" {kernel.name}"
    return f"{basis.name}{counted}" + (f"({arguments})" if arguments else "")
