"""Audits of everything, or of one basis, kernel or released function.

The audit of a released function uses the public contents of its file. Three questions: does the stated noise
suffice for the claim (calibration), does one record of such a basis change as little as declared
(sensitivity), does noise with these parameters hide it (noise)? The table itself is not looked at: whether
*this* noise was drawn as stated cannot be seen from one table.

The calibration takes nothing over from the code that calibrates: the spent budget is computed forwards, from
noise to claim, where the release went backwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np

from hushsum._types import Integers
from hushsum.errors import ClaimError, SecretRefused, UsageError
from hushsum.kernels import Kernel
from hushsum.privacy import (
    BINOMIAL,
    GAMMA,
    GAUSSIAN,
    LAPLACE,
    PERSON,
    SKELLAM,
    Calibration,
    Claim,
    IntegerNoise,
    Promise,
    Relation,
    Sensitivity,
    UnitChange,
    accounting,
    protecting_distance,
    protecting_noises,
    root_above,
    spent_delta,
    spent_epsilon,
    spent_rho,
)
from hushsum.privacy.noise import NoiseSource
from hushsum.releases import NoisyTable, ReleasedFunction, StreamStep, released_table, stream_unit
from hushsum.tables import AdjacencyRows, Basis, HashRows
from hushsum.tally import Tally

from ._cases import (
    MechanismCase,
    NoiseCase,
    audited_bases,
    basis_cases,
    kernel_cases,
    mechanism_cases,
    noise_cases,
    pool_for,
)
from ._report import AuditReport, AuditRow, Half, report_of
from ._sensitivity import SensitivityAudit, audit_edges, audit_persons, audit_sensitivity, neighbours
from ._statistics import (
    CASES,
    RELEASES,
    THOROUGH_RELEASES,
    GaussianPair,
    SmokeCase,
    audit_gaussian,
    audit_laplace,
    audit_separation,
    audit_smoke,
    gaussian_draws,
)

CAP = 4
_MOST_CELLS = 1 << 17

_COMMON = ("bounds", "columns", "scale")
_DEFAULTS = (("power", 1), ("projection", "dense"))


@dataclass(frozen=True, slots=True)
class Randomness:
    """Fresh randomness for a step, or the same in every run for tests. None of it protects anybody: the noise
    hides made-up records.
    """

    seed: int | None
    step: int

    def numbers(self) -> np.random.Generator:
        """For choosing neighbours."""
        return np.random.default_rng(None if self.seed is None else [self.seed, self.step])

    def noise(self) -> NoiseSource:
        """For the samplers under test."""
        return (
            NoiseSource.fresh() if self.seed is None else NoiseSource.insecure((self.seed << 16) + self.step)
        )


Step = Callable[[Randomness], list[AuditRow]]
"""A test still to be run, with randomness of its own."""


def sensitivity_steps(
    basis: Basis, relation: Relation, *, thorough: bool, cap: int | None = CAP
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
    what = f"{basis_in_words(basis)}{first}, {relation}"

    def records(randomness: Randomness) -> list[AuditRow]:
        rng = randomness.numbers()
        pairs = neighbours(pool_for(searched, rng), relation, rng, thorough=thorough)
        return _sensitivity_rows(what, audit_sensitivity(searched, pairs, relation))

    yield records
    if isinstance(basis, AdjacencyRows):
        edges, rounds = f"{what}, {basis.units[1]}, {basis.graph}", 40 if thorough else 6
        allowed = basis.unit_change(basis.units[1], 1, relation).count
        yield lambda randomness: _sensitivity_rows(
            edges, audit_edges(basis, relation, randomness.numbers(), rounds=rounds), allowed
        )
    if cap is not None and PERSON in basis.units:

        def persons(randomness: Randomness) -> list[AuditRow]:
            rng = randomness.numbers()
            pool, rounds = pool_for(searched, rng), 200 if thorough else 24
            audit = audit_persons(searched, pool, relation, rng, cap=cap, rounds=rounds)
            return _sensitivity_rows(f"{what}, {cap} records a person", audit, cap)

        yield persons


def _sensitivity_rows(what: str, audit: SensitivityAudit, allowed: int = 0) -> list[AuditRow]:
    """Δ1, or whichever norm is too large; and the change of the count if that is too large."""
    declared, found = audit.declared, audit.found
    norms = {
        "Δ1": (float(declared.l1), float(found.l1)),
        "Δ2": (math.sqrt(declared.l2_squared), math.sqrt(found.l2_squared)),
        "Δ∞": (float(declared.largest), float(found.largest)),
    }
    quantity = next((name for name, (most, moved) in norms.items() if moved > most), "Δ1")
    rows = [
        AuditRow(what, Half.SENSITIVITY, quantity, *norms[quantity], float(audit.catches), audit.pairs),
        AuditRow(what, Half.SENSITIVITY, "count", allowed, audit.count, 1.0, audit.pairs),
    ]
    return rows if audit.count > allowed else rows[:1]


def noise_steps(*, thorough: bool) -> Iterator[Step]:
    """The worst pairs of every sampler."""

    def run(case: NoiseCase, randomness: Randomness) -> list[AuditRow]:
        with randomness.noise() as source:
            return [case.run(source, 1.0)]

    return (partial(run, case) for case in noise_cases(thorough=thorough))


def smoke_steps(*, thorough: bool) -> Iterator[Step]:
    """Whole releases of made-up neighbours."""

    def run(case: SmokeCase, randomness: Randomness) -> list[AuditRow]:
        return [audit_smoke(case, seed=randomness.seed, releases=3000 if thorough else RELEASES)]

    return (partial(run, case) for case in CASES)


def mechanism_steps(*, thorough: bool) -> Iterator[Step]:
    """Whole mechanisms with noise on functions, on made-up neighbours."""

    def run(case: MechanismCase, randomness: Randomness) -> list[AuditRow]:
        pair = case.set_up()
        releases = max(pair.releases(), THOROUGH_RELEASES if thorough else 0)
        what = f"{case.name}, {case.pair}"
        return [audit_separation(what, pair, releases=releases, seed=randomness.seed)]

    return (partial(run, case) for case in mechanism_cases(thorough=thorough))


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


# The spent amount of a quantity: exact, or infinity where the noise does not bound it.
Amount = Fraction | float


def audit_calibration(function: NoisyTable) -> list[AuditRow]:
    """Compare what the stated noise spends with the claim, and check that nobody could know that noise."""
    claim = function.claim
    if function.stream_step is not None:
        spent = [_spent_by_stream(claim, function.stream_step, function)]
    else:
        change = function.basis.unit_change(claim.unit, claim.records_per_unit, claim.relation)
        noises = protecting_noises(claim, function.noise, function.count_noise)
        spent = [
            _spent(claim, change, function.cells.size, each, protecting_distance(claim, each))
            for each in noises
        ]
    # Of several noises, each of which protects the records of one site, the worst is reported.
    rows = [_calibration_row(claim.promise, *each) for each in spent or [("noise", math.inf)]]
    known = 0.0 if claim.secure else 1.0
    return [
        max(rows, key=lambda row: row.lower_bound),
        AuditRow("noise source", Half.CALIBRATION, "known seeds", 0.0, known, 1.0, 0),
    ]


def _calibration_row(promise: Promise, quantity: str, spent: Amount) -> AuditRow:
    """The comparison is of exact rationals; floats are for the eye, and must not turn it over."""
    claimed = getattr(promise, quantity, Fraction(0))
    shown = float(spent)
    if spent <= claimed:
        shown = min(shown, float(claimed))
    elif shown <= float(claimed):
        shown = math.nextafter(float(claimed), math.inf)
    return AuditRow("stated noise", Half.CALIBRATION, quantity, float(claimed), shown, 1.0, 0)


def _spent_by_stream(claim: Claim, step: StreamStep, function: NoisyTable) -> tuple[str, Amount]:
    """The quantity that all steps together spend, from the noise of every output, and how much of it."""
    unit = stream_unit(
        function.basis, claim.unit, claim.records_per_unit, claim.relation, removals=step.removals
    )
    promise, noise = claim.promise, step.noise
    if promise.pure:
        return "epsilon", spent_epsilon(noise, unit) if noise.intervals else math.inf
    rho = math.inf if noise.intervals else spent_rho(noise, unit)
    if promise.rho is not None:
        return "rho", rho
    assert promise.epsilon is not None
    if isinstance(rho, float):
        return "delta", math.inf
    return "delta", min(
        accounting.zcdp_delta(rho, promise.epsilon), spent_delta(noise, unit, promise.epsilon)
    )


def _spent(
    claim: Claim, change: UnitChange, cells: int, noises: Calibration, distance: float
) -> tuple[str, Amount]:
    """The quantity of the claim that the noise of table and count spends, and how much of it; ``distance`` is
    that of sums of shares (`hushsum.privacy.accounting`).
    """
    promise, moved, moves = claim.promise, change.table, change.count
    table, count = noises
    counted = count.parameter if moves else None
    one_each = moved.largest == 1 and moves <= 1
    proven = one_each and (not moves or count.mechanism == table.mechanism)
    if table.mechanism == BINOMIAL:
        if promise.epsilon is None or not proven:
            return "delta", math.inf
        trials, count_trials = int(table.parameter), None if counted is None else int(counted)
        return "delta", accounting.binomial_delta(
            promise.epsilon, cells=moved.l2_squared, trials=trials, count_trials=count_trials
        )
    if table.mechanism == SKELLAM:
        kind = "delta" if promise.rho is None else "rho"
        if promise.pure or not proven:
            return kind, math.inf
        cells, variance = moved.l2_squared, table.parameter
        try:
            if promise.epsilon is None:
                return kind, accounting.skellam_rho(cells=cells, variance=variance, count_variance=counted)
            epsilon = promise.epsilon
            return kind, accounting.skellam_delta(
                epsilon, cells=cells, variance=variance, count_variance=counted
            )
        except ClaimError:
            # A file may state any variance; nothing is proven for one that no release has.
            return kind, math.inf
    if promise.pure or (table.mechanism == LAPLACE and promise.epsilon is not None):
        return "epsilon", _sum(_table_epsilon(moved, cells, table), _epsilon(moves, count))
    if table.mechanism == GAMMA:
        separation, counted_epsilon = _table_epsilon(moved, cells, table), _epsilon(moves, count)
        if promise.epsilon is None or not counted_epsilon < promise.epsilon or math.isinf(separation):
            return "delta", math.inf
        left = promise.epsilon - Fraction(counted_epsilon)
        try:
            return "delta", accounting.gamma_radius_delta(left, cells=table.cells, separation=separation)
        except ClaimError:
            return "delta", math.inf
    spent = _sum(_rho(moved.l2_squared, table), _rho(moves**2, count))
    if promise.rho is not None:
        if isinstance(spent, Fraction) and distance:
            spent = accounting.rho_of_sum(spent, distance, cells + 1)
        return "rho", spent
    assert promise.epsilon is not None
    far = (cells + 1) * distance * (1 + 1e-9)
    epsilon = promise.epsilon - 2 * Fraction(far)
    if isinstance(spent, float) or epsilon <= 0:
        return "delta", math.inf
    if one_each:
        delta = accounting.discrete_gaussian_delta(
            epsilon, cells=moved.l2_squared, variance=table.parameter, count_variance=counted
        )
    else:
        delta = accounting.vector_delta(
            epsilon,
            l2_squared=moved.l2_squared,
            cells=cells,
            variance=table.parameter,
            count=moves,
            count_variance=counted,
        )
    return "delta", min(accounting.zcdp_delta(spent, epsilon), delta) * (math.exp(far) if far else 1)


def _table_epsilon(moved: Sensitivity, cells: int, noise: IntegerNoise) -> Amount:
    """Pure ε of the table: of Laplace noise by Δ1, of the Gamma-radius distribution by Δ2, where the table
    has all cells that share its length or some of them.
    """
    if noise.mechanism != GAMMA:
        return _epsilon(moved.l1, noise)
    return root_above(moved.l2_squared) / noise.parameter if noise.cells >= cells else math.inf


def _epsilon(l1: int, noise: IntegerNoise) -> Amount:
    """Pure ε of a change of ``l1``; infinite without noise or with another kind of it."""
    if l1 == 0:
        return Fraction(0)
    whole = noise.mechanism == LAPLACE and noise.parameter > 0 and noise.parts == 1
    return Fraction(l1) / noise.parameter if whole else math.inf


def _rho(l2_squared: int, noise: IntegerNoise) -> Amount:
    if l2_squared == 0:
        return Fraction(0)
    gaussian = noise.mechanism == GAUSSIAN and noise.parameter > 0
    return Fraction(l2_squared) / (2 * noise.parameter) if gaussian else math.inf


def _sum(table: Amount, count: Amount) -> Amount:
    # Not by adding infinity, for which a huge exact amount would have to be a float.
    return math.inf if math.inf in (table, count) else table + count


_MOST_SIMULATED = 1 << 25
_MOST_NOISY_CELLS = 16
_LARGEST_CAP = 16


def released_steps(function: NoisyTable, *, thorough: bool) -> Iterator[Step]:
    """The tests of one released function."""
    yield lambda randomness: audit_calibration(function)
    claim = function.claim
    cap = min(claim.records_per_unit, _LARGEST_CAP) if claim.unit == PERSON else None
    yield from sensitivity_steps(function.basis, claim.relation, thorough=thorough, cap=cap)
    if function.stream_step is not None:
        drawn = function.stream_step.noise.table
        if drawn.mechanism == LAPLACE:
            yield partial(_laplace, drawn, "an output's")
        else:
            # One cell, moved by its deviation: a record moves each output of a stream by less.
            shift = max(1, round(float(drawn.parameter) ** 0.5))
            yield partial(_gaussian, drawn, None, 1, shift)
        return
    change = function.basis.unit_change(claim.unit, claim.records_per_unit, claim.relation)
    protecting = protecting_noises(claim, function.noise, function.count_noise)
    if not protecting:
        return
    # Sums of noises are tested by those that the claim rests on; shares have cases of their own.
    noise, count_noise = protecting[0]
    moved, count = change.table, count_noise if change.count else None
    if noise.mechanism in (LAPLACE, GAMMA):
        yield partial(_laplace, noise, "the table's")
        if count is not None and count.mechanism == LAPLACE:
            yield partial(_laplace, count, "the count's")
    elif noise.mechanism == GAUSSIAN:
        cells = moved.l2_squared // moved.largest**2
        paired = count if count is not None and count.mechanism == GAUSSIAN else None
        yield partial(_gaussian, noise, paired, cells, moved.largest)


def _laplace(noise: IntegerNoise, whose: str, randomness: Randomness) -> list[AuditRow]:
    """One cell moved by about the scale, so that its loss is near 1, where a test needs the fewest draws.

    A scale claims k/scale for a move of every k; over many rows the losses concentrate, and nothing is seen.
    The Gamma-radius distribution of one cell is Laplace's, rounded.
    """
    shift = max(1, round(noise.parameter))
    one = replace(noise, cells=1)

    def draw(size: int) -> Integers:
        if noise.mechanism == LAPLACE:
            return noise.draw(size, source)
        return np.concatenate([one.draw(1, source) for _ in range(size)])

    with randomness.noise() as source:
        try:
            what = f"{noise.mechanism}, {whose} noise, one cell moved by {shift}"
            return [audit_laplace(draw, shift / noise.parameter, shift=shift, what=what)]
        except UsageError:
            return [_untested(f"{noise.mechanism}, {whose} noise", "epsilon", float(shift / noise.parameter))]


def _gaussian(
    noise: IntegerNoise, count: IntegerNoise | None, cells: int, shift: int, randomness: Randomness
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
    also = "" if count is None else " and the count"
    what = f"discrete gaussian, {cells} cells{also} moved by {shift}"
    with randomness.noise() as source:
        counted = None if count is None else (partial(count.draw, source=source), count.parameter)
        draw = partial(noise.draw, source=source)
        try:
            return [audit_gaussian(draw, noise.parameter, cells=cells, shift=shift, count=counted, what=what)]
        except UsageError:
            return [_untested(GAUSSIAN, "mu", GaussianPair(float(noise.parameter), cells, shift).mu)]


def _untested(what: str, quantity: str, claimed: float) -> AuditRow:
    return AuditRow(what, Half.NOISE, quantity, claimed, 0.0, 0.0, 0)


Target = Basis | Kernel | ReleasedFunction | None


def audit(target: Target = None, *, thorough: bool = False, seed: int | None = None) -> AuditReport:
    """Try to break what is claimed, on made-up data, and say how likely a fault would have been found.

    Private data are never touched. An audit finds faults; that it finds none is not a proof, which is why
    every row states its power: the probability that a copy with a fifth less noise, or a fifth less declared
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
    return run_steps(audit_steps(target, thorough=thorough), seed=seed)


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
        steps = (noise_steps, smoke_steps, mechanism_steps)
        return [*_searches(bases, thorough), *(step for make in steps for step in make(thorough=thorough))]
    target = released_table(target)
    if isinstance(target, NoisyTable):
        return list(released_steps(target, thorough=thorough))
    if isinstance(target, Kernel):
        kernel_cases(target.name)
        makers = (basis_cases(name).of_kernel for name in audited_bases())
        bases = [basis for make in makers if make is not None and (basis := make(target)) is not None]
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
    return _searches(bases, thorough)


def _searches(bases: Iterable[Basis], thorough: bool) -> list[Step]:
    return [
        step
        for basis in bases
        for relation in Relation
        for step in sensitivity_steps(basis, relation, thorough=thorough)
    ]


def run_steps(
    steps: list[Step], *, seed: int | None = None, progress: Callable[[float], None] | None = None
) -> AuditReport:
    """Run tests one after the other; ``progress`` is called with the fraction done."""
    rows = []
    for number, step in enumerate(steps):
        rows += step(Randomness(seed, number))
        if progress is not None:
            progress((number + 1) / len(steps))
    return report_of(rows)
