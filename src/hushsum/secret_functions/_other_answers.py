"""A secret function without a path that is kept: noise on every answer, or one release for a test set."""

from __future__ import annotations

import hashlib
import math
import secrets
from dataclasses import dataclass
from fractions import Fraction
from threading import Lock
from typing import Any, NoReturn

import numpy as np

from hushsum._types import Floats
from hushsum.errors import SecretRefused, UsageError, shown
from hushsum.privacy import (
    ANALYTIC,
    REAL_ARITHMETIC,
    Booking,
    Budget,
    Claim,
    Mechanism,
    Promise,
    check_declared_delta,
    path_scale,
    real_noise,
    release_noise,
    rounded,
    spend_json,
)
from hushsum.privacy.accounting import LaplaceTable, compose
from hushsum.secret_functions._secret_function import SecretFunction
from hushsum.secret_functions._served_function import SMALLEST_JITTER, GaussianPath, path_claim

MECHANISMS = ("gaussian", "laplace")
_STEPS = 1000
"""Lattice steps of Laplace noise in a pointwise sensitivity."""


class FreshAnswers:
    """Fresh noise on every answer, for a number of answers that is fixed beforehand: output perturbation.

    The baseline that a served function beats from a few questions on: asking twice gives two answers, whose
    mean is nearer to the truth, so the noise must be large enough for all answers together. It refuses to
    give more than it was made for.

    Parameters
    ----------
    function : SecretFunction
    answers : int
        How many answers there will be in all, repetitions included.
    epsilon, delta : float
        Of all answers together. ``mechanism="laplace"`` takes pure ε as well.
    mechanism : {"gaussian", "laplace"}
    budget, idempotency_key
        As for ``Tally.release``; the budget is debited here, for all answers.

    Privacy
    -------
    Every answer moves by at most Δ = ``function.pointwise``. T Gaussian answers, each chosen after the
    last, are one Gaussian release of sensitivity √T·Δ, calibrated analytically: exact. Laplace noise gets ε/T
    an answer at δ = 0; with δ as much as the composed privacy loss distributions allow. Real arithmetic;
    Gaussian answers are rounded to a thousandth of σ.
    """

    def __init__(
        self,
        function: SecretFunction,
        *,
        answers: int,
        epsilon: float,
        delta: float | None = None,
        mechanism: str = "gaussian",
        allow_large_delta: bool = False,
        budget: Budget | None = None,
        idempotency_key: str | None = None,
        insecure_noise_seed: int | None = None,
    ) -> None:
        if mechanism not in MECHANISMS:
            raise UsageError("mechanism", "must be gaussian or laplace", got=shown(mechanism))
        if type(answers) is not int or answers < 1:
            raise UsageError("answers", "must be an integer above 0", remedy="declare how many there will be")
        promise = Promise.of(epsilon=epsilon, delta=delta)
        check_declared_delta(promise, None, allow_large_delta=allow_large_delta)
        self._function = function
        self._left = answers
        self._lock = Lock()
        self._seed = insecure_noise_seed
        self._sigma = self._rate = None
        if mechanism == "gaussian":
            self._sigma = path_scale(function.pointwise * answers**0.5, promise)
        else:
            self._rate = laplace_rate(promise, answers)
        self.claim = Claim(
            promise=promise,
            unit="record",
            records_per_unit=1,
            relation=function.relation,
            mechanism=Mechanism.of(f"{mechanism}, fresh for each answer"),
            arithmetic=REAL_ARITHMETIC,
            secure=insecure_noise_seed is None,
            assumptions=function.assumptions,
        )
        self._open(Booking.of(budget, idempotency_key), answers)

    def _open(self, booking: Booking | None, answers: int) -> None:
        """Spend for all answers. The answers of one debit are given by one object alone: another one that
        uses its key, in this process or elsewhere, would give as many again.
        """
        mine = secrets.token_hex(16)
        subject = {"fresh answers": answers, "kernel": self._function.kernel.name}
        if spend_json(booking, self.claim, subject, lambda: {"opened": mine})["opened"] != mine:
            raise UsageError(
                "idempotency_key",
                "belongs to answers that were opened before, and what was not given of them is lost",
                remedy="give another key, which spends again",
            )

    @property
    def noise_stderr(self) -> float:
        """The standard deviation of the noise of one answer."""
        if self._sigma is not None:
            return self._function.scale * self._sigma
        assert self._rate is not None
        return self._function.scale * self._function.pointwise * math.sqrt(2.0) / float(self._rate)

    def __call__(self, Q: object) -> Floats:
        """The next answers, shape (n_queries,).

        Raises
        ------
        UsageError
            if more are requested than are left; then none is given.
        """
        rows = self._function.prepared(Q)
        with self._lock:
            if len(rows) > self._left:
                raise UsageError(
                    f"only {self._left} answers are left of those paid for",
                    remedy="serve the function instead",
                )
            self._left -= len(rows)
            seed = None if self._seed is None else self._seed + self._left
        exact = self._function.at(rows)
        if self._sigma is not None:
            with real_noise(seed) as noise:
                noisy = rounded(exact + self._sigma * noise.normal(len(exact)), self._sigma)
        else:
            assert self._rate is not None
            # Rounding moves either of two neighbours by half a step: Δ is one step less than _STEPS.
            step = self._function.pointwise / (_STEPS - 1)
            with release_noise(seed) as noise:
                counts, _ = noise.laplace(np.rint(exact / step).astype(np.int64), _STEPS, self._rate)
            noisy = step * counts.astype(np.float64)
        values: Floats = self._function.scale * noisy
        return values

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise SecretRefused("fresh answers hold the data and must not be pickled or copied")


def laplace_rate(promise: Promise, answers: int) -> Fraction:
    """The ε that each Laplace answer may have: ε/T, or what composition at δ allows.

    >>> laplace_rate(Promise.of(epsilon=1.0), 10)
    Fraction(1, 10)
    """
    whole = promise.epsilon
    assert whole is not None
    low = whole / answers
    if promise.pure or answers == 1:
        return low

    def fits(rate: Fraction) -> bool:
        table = LaplaceTable(Fraction(_STEPS) / rate, _STEPS)
        return compose([table] * answers, delta=promise.delta) <= whole

    high = whole
    while high > low * Fraction(101, 100):
        middle = Fraction(float(low * high) ** 0.5)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


@dataclass(frozen=True, slots=True, eq=False)
class TestSetAnswers:
    """The answers at one given test set, released together; public.

    Attributes
    ----------
    values : array of shape (n_queries,)
    stderr : float
        The standard deviation of the noise of each.
    claim : Claim
    """

    __test__ = False

    values: Floats
    stderr: float
    claim: Claim


def answer_once(
    function: SecretFunction,
    Q: object,
    *,
    epsilon: float,
    delta: float,
    calibration: str = ANALYTIC,
    allow_large_delta: bool = False,
    budget: Budget | None = None,
    idempotency_key: str | None = None,
    insecure_noise_seed: int | None = None,
) -> TestSetAnswers:
    """Semi-interactive use: one release of the answers at points that are known beforehand.

    The noise is that of a path, drawn at these points only, and then the path is discarded: nothing has to be
    kept, and nothing else can be queried. Costs n³ for n distinct points. ``budget`` and ``idempotency_key``
    are as for ``Tally.release``.

    Privacy
    -------
    As `serve`, for the points given here. A second call is a second release, and spends again. The points
    must not depend on the data. Answers are rounded to a thousandth of the noise.

    Examples
    --------
    >>> import hushsum as hs
    >>> from hushsum.secret_functions import answer_once, density_function
    >>> f = density_function([[0.5]] * 5000, hs.GaussianKernel(dim=1, bandwidth=0.2), bounds=(0, 1))
    >>> answers = answer_once(f, [[0.1], [0.5]], epsilon=1.0, delta=1e-6)
    >>> round(answers.stderr, 2), bool(abs(answers.values[1] - 5000) < 50)
    (4.22, True)
    """
    promise = Promise.of(epsilon=epsilon, delta=delta)
    check_declared_delta(promise, None, allow_large_delta=allow_large_delta)
    scale = path_scale(function.sensitivity, promise, calibration=calibration)
    distinct, places = np.unique(function.prepared(Q), axis=0, return_inverse=True)
    claim = path_claim(promise, function, calibration=calibration, secure=insecure_noise_seed is None)

    def make() -> dict[str, Any]:
        path = GaussianPath(
            function.covariance,
            function.bounds.dim,
            largest=function.largest,
            jitter=SMALLEST_JITTER * function.largest,
        )
        with real_noise(insecure_noise_seed) as noise:
            drawn = path.extend(distinct, noise.normal(len(distinct)))
        return {"values": rounded(function.at(distinct) + scale * drawn, scale).tolist()}

    subject = {
        "test set": hashlib.sha256(distinct.tobytes()).hexdigest(),
        "kernel": function.kernel.name,
        "calibration": calibration,
    }
    noisy = spend_json(Booking.of(budget, idempotency_key), claim, subject, make)["values"]
    values = function.scale * np.array(noisy, np.float64)[places.reshape(-1)]
    return TestSetAnswers(values, function.scale * scale * function.largest**0.5, claim)
