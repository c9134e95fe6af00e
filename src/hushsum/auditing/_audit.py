"""Audits of everything, or of one basis, kernel or released function.

The audit of a released function, from the public contents of its file.

Three questions: does the stated noise suffice for the claim (calibration), does one record of such a basis
move as little as declared (sensitivity), does noise with these parameters hide it (noise)? The table itself
is not looked at: whether *this* noise was drawn as stated cannot be seen from one table.

Whether the noise that a released file states suffices for what it claims; from its public header alone.

Nothing is taken over from the code that calibrates: the spent budget is computed forwards, from noise to
claim, where the release went backwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hushsum.auditing import _noise_cases, _table_cases  # noqa: F401  (registers them)
from hushsum.auditing._noise import GaussianPair, NoiseAudit, audit_gaussian, audit_laplace, gaussian_draws
from hushsum.auditing._registry import (
    MechanismCase,
    NoiseCase,
    audited_bases,
    basis_cases,
    kernel_cases,
    mechanism_cases,
    noise_cases,
    pool_for,
)
from hushsum.auditing._report import AuditReport, AuditRow, Half, report_of
from hushsum.auditing._sensitivity import (
    SensitivityAudit,
    audit_edges,
    audit_persons,
    audit_sensitivity,
    neighbours,
)
from hushsum.auditing._smoke import (
    CASES,
    RELEASES,
    THOROUGH_RELEASES,
    SmokeCase,
    audit_separation,
    audit_smoke,
)
from hushsum.errors import SecretRefused, UsageError
from hushsum.kernels import Kernel
from hushsum.privacy import (
    BINOMIAL,
    GAMMA,
    GAUSSIAN,
    LAPLACE,
    PERSON,
    SKELLAM,
    Claim,
    IntegerNoise,
    Promise,
    Relation,
    Sensitivity,
    UnitChange,
    protecting_distance,
    protecting_noises,
    root_above,
    spent_delta,
    spent_epsilon,
    spent_rho,
)
from hushsum.privacy.accounting import (
    binomial_delta,
    discrete_gaussian_delta,
    rho_of_sum,
    skellam_delta,
    skellam_rho,
    vector_delta,
    zcdp_delta,
)
from hushsum.privacy.noise import NoiseSource
from hushsum.releases import NoisyTable, ReleasedFunction, StreamStep, stream_unit
from hushsum.tables import AdjacencyRows, Basis, HashRows
from hushsum.tally import Tally

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


def audit_calibration(function: NoisyTable) -> list[AuditRow]:
    """What the stated noise spends, against the claim; and whether anyone could know that noise."""
    claim = function.claim
    if function.stream_step is not None:
        return [_spent_by_stream(claim, function.stream_step, function), _known(claim)]
    change = function.basis.unit_change(claim.unit, claim.records_per_unit, claim.relation)
    noises = protecting_noises(claim, function.noise, function.count_noise)
    spent = [
        _spent(claim, change, function.cells.size, *each, distance=protecting_distance(claim, each))
        for each in noises
    ]
    # Of several noises, each of which protects the records of one site, the worst is reported.
    rows = [max(spent, key=lambda row: row.lower_bound) if spent else _row("noise", Fraction(0), None)]
    rows.append(_known(claim))
    return rows


def _known(claim: Claim) -> AuditRow:
    return AuditRow(
        "noise source", Half.CALIBRATION, "known seeds", 0.0, 0.0 if claim.secure else 1.0, 1.0, 0
    )


def _spent_by_stream(claim: Claim, step: StreamStep, function: NoisyTable) -> AuditRow:
    """What all steps together spend, from the noise of every output."""
    unit = stream_unit(
        function.basis, claim.unit, claim.records_per_unit, claim.relation, removals=step.removals
    )
    promise = claim.promise
    if promise.pure:
        assert promise.epsilon is not None
        spent = spent_epsilon(step.noise, unit) if step.noise.intervals else None
        return _row("epsilon", promise.epsilon, spent)
    rho = None if step.noise.intervals else spent_rho(step.noise, unit)
    if promise.rho is not None:
        return _row("rho", promise.rho, rho)
    assert promise.epsilon is not None
    if rho is None:
        return _row("delta", promise.delta, None)
    delta = min(zcdp_delta(rho, promise.epsilon), spent_delta(step.noise, unit, promise.epsilon))
    return _row("delta", promise.delta, Fraction(delta))


def _spent(
    claim: Claim,
    change: UnitChange,
    cells: int,
    table: IntegerNoise,
    count: IntegerNoise,
    *,
    distance: float,
) -> AuditRow:
    """``distance`` is that of sums of shares (`hushsum.privacy.accounting`)."""
    promise, moved, moves = claim.promise, change.table, change.count
    if table.mechanism == BINOMIAL:
        return _row("delta", promise.delta, _binomial_delta(promise, moved, moves, table, count))
    if table.mechanism == SKELLAM:
        return _skellam(promise, moved, moves, table, count)
    if promise.pure or (table.mechanism == LAPLACE and promise.epsilon is not None):
        assert promise.epsilon is not None
        return _row(
            "epsilon", promise.epsilon, _sum(_table_epsilon(moved, cells, table), _epsilon(moves, count))
        )
    rho = _sum(_rho(moved.l2_squared, table), _rho(moves**2, count))
    if promise.rho is not None:
        if rho is not None and distance:
            rho = Fraction(rho_of_sum(rho, distance, cells + 1))
        return _row("rho", promise.rho, rho)
    assert promise.epsilon is not None
    far = (cells + 1) * distance * (1 + 1e-9)
    epsilon = promise.epsilon - 2 * Fraction(far)
    if rho is None or epsilon <= 0:
        return _row("delta", promise.delta, None)
    deltas = [zcdp_delta(rho, epsilon)]
    if moved.largest == 1 and moves <= 1:
        deltas.append(
            discrete_gaussian_delta(
                epsilon,
                cells=moved.l2_squared,
                variance=table.parameter,
                count_variance=count.parameter if moves else None,
            )
        )
    else:
        deltas.append(
            vector_delta(
                epsilon,
                l2_squared=moved.l2_squared,
                cells=cells,
                variance=table.parameter,
                count=moves,
                count_variance=count.parameter if moves else None,
            )
        )
    return _row("delta", promise.delta, Fraction(min(deltas) * math.exp(far) if far else min(deltas)))


def _skellam(
    promise: Promise, moved: Sensitivity, moves: int, table: IntegerNoise, count: IntegerNoise
) -> AuditRow:
    proven = moved.largest == 1 and moves <= 1 and (not moves or count.mechanism == SKELLAM)
    variances = (table.parameter, count.parameter if moves else None)
    if promise.rho is not None:
        rho = skellam_rho(cells=moved.l2_squared, variance=variances[0], count_variance=variances[1])
        return _row("rho", promise.rho, Fraction(rho) if proven else None)
    if promise.epsilon is None or not promise.delta:
        return _row("delta", promise.delta, None)
    delta = skellam_delta(
        promise.epsilon, cells=moved.l2_squared, variance=variances[0], count_variance=variances[1]
    )
    return _row("delta", promise.delta, Fraction(delta) if proven else None)


def _binomial_delta(
    promise: Promise, moved: Sensitivity, moves: int, table: IntegerNoise, count: IntegerNoise
) -> Fraction | None:
    if promise.epsilon is None or moved.largest > 1 or moves > 1:
        return None
    if moves and count.mechanism != BINOMIAL:
        return None
    trials, counted = int(table.parameter), int(count.parameter) if moves else None
    return Fraction(
        binomial_delta(promise.epsilon, cells=moved.l2_squared, trials=trials, count_trials=counted)
    )


def _row(quantity: str, claimed: Fraction, spent: Fraction | None) -> AuditRow:
    """The comparison is of exact rationals; floats are for the eye, and must not turn it over."""
    shown = math.inf if spent is None else float(spent)
    if spent is not None and spent <= claimed:
        shown = min(shown, float(claimed))
    elif shown <= float(claimed):
        shown = math.nextafter(float(claimed), math.inf)
    return AuditRow("stated noise", Half.CALIBRATION, quantity, float(claimed), shown, 1.0, 0)


def _table_epsilon(moved: Sensitivity, cells: int, noise: IntegerNoise) -> Fraction | None:
    """Pure ε of the table: of Laplace noise by Δ1, of the Gamma-radius distribution by Δ2, where the table
    has all cells that share its length or some of them.
    """
    if noise.mechanism != GAMMA:
        return _epsilon(moved.l1, noise)
    return root_above(moved.l2_squared) / noise.parameter if noise.cells >= cells else None


def _epsilon(l1: int, noise: IntegerNoise) -> Fraction | None:
    """Pure ε of a move of ``l1``; None for infinitely much, as without noise or with another kind of it."""
    if l1 == 0:
        return Fraction(0)
    whole = noise.mechanism == LAPLACE and noise.parameter > 0 and noise.parts == 1
    return Fraction(l1) / noise.parameter if whole else None


def _rho(l2_squared: int, noise: IntegerNoise) -> Fraction | None:
    if l2_squared == 0:
        return Fraction(0)
    return (
        Fraction(l2_squared) / (2 * noise.parameter)
        if noise.mechanism == GAUSSIAN and noise.parameter > 0
        else None
    )


def _sum(table: Fraction | None, count: Fraction | None) -> Fraction | None:
    return None if table is None or count is None else table + count


_MOST_SIMULATED = 1 << 25
_MOST_NOISY_CELLS = 16
_LARGEST_CAP = 16


def released_steps(function: NoisyTable, *, thorough: bool) -> Iterator[Step]:
    """The tests of one released function."""
    yield Step("stated noise", lambda randomness, step: audit_calibration(function))
    claim = function.claim
    cap = min(claim.records_per_unit, _LARGEST_CAP) if claim.unit == PERSON else None
    yield from sensitivity_steps(function.basis, thorough=thorough, relations=[claim.relation], cap=cap)
    if function.stream_step is not None:
        drawn = function.stream_step.noise.table
        if drawn.mechanism == LAPLACE:
            yield Step("noise of an output", partial(_laplace, drawn, "an output's"))
        else:
            # One cell, moved by its deviation: a record moves each output of a stream by less.
            shift = max(1, round(float(drawn.parameter) ** 0.5))
            yield Step("noise of an output", partial(_gaussian, drawn, None, 1, shift))
        return
    change = function.basis.unit_change(claim.unit, claim.records_per_unit, claim.relation)
    protecting = protecting_noises(claim, function.noise, function.count_noise)
    if not protecting:
        return
    # Sums of noises are tested by those that the claim rests on; shares have cases of their own.
    noise, count_noise = protecting[0]
    moved, count = change.table, count_noise if change.count else None
    if noise.mechanism in (LAPLACE, GAMMA):
        yield Step("noise of the table", partial(_laplace, noise, "the table's"))
        if count is not None and count.mechanism == LAPLACE:
            yield Step("noise of the count", partial(_laplace, count, "the count's"))
    elif noise.mechanism == GAUSSIAN:
        cells = moved.l2_squared // moved.largest**2
        paired = count if count is not None and count.mechanism == GAUSSIAN else None
        yield Step("noise of table and count", partial(_gaussian, noise, paired, cells, moved.largest))


def _laplace(noise: IntegerNoise, whose: str, randomness: Randomness, step: int) -> list[AuditRow]:
    """One cell moved by about the scale, so that its loss is near 1, where a test needs the fewest draws.

    A scale claims k/scale for a move of every k; over many rows the losses concentrate, and nothing is seen.
    The Gamma-radius distribution of one cell is Laplace's, rounded.
    """
    shift = max(1, round(noise.parameter))
    one = replace(noise, cells=1)

    def draw(size: int) -> NDArray[np.int64]:
        if noise.mechanism == LAPLACE:
            return noise.draw(size, source)
        return np.concatenate([one.draw(1, source) for _ in range(size)])

    with randomness.noise(step) as source:
        try:
            audit = audit_laplace(draw, shift / noise.parameter, shift=shift)
        except UsageError:
            return [_untested(f"{noise.mechanism}, {whose} noise", "epsilon", float(shift / noise.parameter))]
    return [noise_row(replace(audit, mechanism=noise.mechanism), f"{whose} noise, one cell moved by {shift}")]


def _gaussian(
    noise: IntegerNoise, count: IntegerNoise | None, cells: int, shift: int, randomness: Randomness, step: int
) -> list[AuditRow]:
    """The worst pair itself where it can be afforded; otherwise fewer cells, moved further."""
    pair = GaussianPair(
        float(noise.parameter), cells, shift, None if count is None else float(count.parameter)
    )
    try:
        affordable = cells * gaussian_draws(pair) <= _MOST_SIMULATED
    except UsageError:
        affordable = False
    if not affordable:
        cells = min(cells, _MOST_NOISY_CELLS)
        shift = max(1, round((float(noise.parameter) / cells) ** 0.5))
        count = None
    with randomness.noise(step) as source:
        try:
            audit = audit_gaussian(
                lambda size: noise.draw(size, source),
                noise.parameter,
                cells=cells,
                shift=shift,
                count=None if count is None else (lambda size: count.draw(size, source), count.parameter),
            )
        except UsageError:
            return [_untested(GAUSSIAN, "mu", GaussianPair(float(noise.parameter), cells, shift).mu)]
    also = "" if count is None else " and the count"
    return [noise_row(audit, f"{cells} cells{also} moved by {shift}")]


def _untested(what: str, quantity: str, claimed: float) -> AuditRow:
    return AuditRow(what, Half.NOISE, quantity, claimed, 0.0, 0.0, 0)


Target = Basis | Kernel | ReleasedFunction | None


def audit(target: Target = None, *, thorough: bool = False, seed: int | None = None) -> AuditReport:
    """Try to break what is claimed, on made-up data, and say how likely a fault would have been found.

    Private data are never touched. An audit finds faults; that it finds none is not a proof, which is why
    every row states its power: the chance that a copy with a fifth less noise, or a fifth less declared
    sensitivity, would have been caught. A sound claim is called broken with probability 1e-8 at most per row.

    Parameters
    ----------
    target : Basis, Kernel, ReleasedFunction or None
        A tally's ``basis``; a kernel, in the bases that count it; a released function, whose stated noise is
        also held against its claim. None: every registered basis, kernel and sampler, whole releases
        and models.
    thorough : bool, default False
        More neighbours, more noise levels, more releases; minutes instead of seconds.
    seed : int, optional
        Repeats an audit exactly, for tests. By default neighbours and noise are new in every run.

    Returns
    -------
    AuditReport
        Print it for a table; ``report.holds`` and ``report.as_dicts()`` are for programs.

    Raises
    ------
    UsageError
        if no audit is registered for the target.
    SecretRefused
        for a tally: audit its ``basis``, which is public.

    Examples
    --------
    >>> import hushsum as hs
    >>> report = hs.audit(hs.race(hs.EuclideanKernel(dim=2, bandwidth=1.0), rows=70, width=53).basis)
    >>> report.holds, report.weakest_power
    (True, 1.0)
    """
    steps = audit_steps(target, thorough=thorough)
    return run_steps(steps, seed=seed)


def audit_steps(target: Target = None, *, thorough: bool = False) -> list[Step]:
    """The tests that ``audit`` runs for a target, in order."""
    if isinstance(target, Tally):
        raise SecretRefused(
            "an audit takes nothing secret",
            got="a tally",
            remedy="audit tally.basis, or the function it released",
        )
    if target is None:
        bases = [basis for name in audited_bases() for basis in basis_cases(name).examples]
        return [
            *(step for basis in bases for step in sensitivity_steps(basis, thorough=thorough)),
            *noise_steps(thorough=thorough),
            *smoke_steps(thorough=thorough),
            *mechanism_steps(thorough=thorough),
        ]
    if isinstance(target, NoisyTable):
        return list(released_steps(target, thorough=thorough))
    if isinstance(target, Kernel):
        kernel_cases(target.name)
        makers = [basis_cases(name).of_kernel for name in audited_bases()]
        made = [make(target) for make in makers if make is not None]
        bases = [basis for basis in made if basis is not None]
    elif isinstance(target, Basis):
        basis_cases(target.name)
        bases = [target]
    else:
        raise UsageError(
            "target",
            "must be a basis, a kernel or a released table",
            got=type(target).__name__,
            remedy="give one of them, or nothing to audit all that is registered",
        )
    return [step for basis in bases for step in sensitivity_steps(basis, thorough=thorough)]


def run_steps(
    steps: list[Step], *, seed: int | None = None, progress: Callable[[float], None] | None = None
) -> AuditReport:
    """Run tests one after the other; ``progress`` is called with the fraction done."""
    randomness = Randomness(seed)
    rows = []
    for number, step in enumerate(steps):
        rows += step.run(randomness, number)
        if progress is not None:
            progress((number + 1) / len(steps))
    return report_of(rows)
