"""The predicted error of random Fourier features."""

from __future__ import annotations

import math

from hushsum.bases.features_theory import pairs_for_laplace, predicted_error
from hushsum.bases.fourier_features import FourierFeatures
from hushsum.planning.plan import Option
from hushsum.planning.question import HEADER_BYTES, Question
from hushsum.privacy.calibration import GAMMA

FEATURES = (500, 1000, 2000, 4000, 8000)
MANY_FEATURES = (16_000, 32_000, 64_000)
KERNELS = ("gaussian", "laplacian")
_NANOSECONDS_WAVE = 0.5
_NANOSECONDS_PRODUCT = 0.022


def features_options(question: Question) -> list[Option]:
    """One option for each number of features whose file is small enough; none for kernels without a spectral
    measure.
    """
    if question.kernel.name not in KERNELS:
        return []
    laws = (False, True) if question.allow_real and question.promise.pure else (False,)
    options = [features_option(question, number, gamma=law) for number in _choices(question) for law in laws]
    return [option for option in options if option.size <= question.max_bytes]


def _choices(question: Question) -> list[int]:
    choices = {*FEATURES, *MANY_FEATURES}
    if question.promise.pure:
        assert question.promise.epsilon is not None
        share = float(question.promise.epsilon) / question.moves
        choices.add(pairs_for_laplace(question.records, share, MANY_FEATURES[-1]))
        if question.allow_real:
            choices.add(pairs_for_laplace(question.records, math.sqrt(2.0) * share, MANY_FEATURES[-1]))
    return sorted(choices)


def features_option(question: Question, number: int, *, gamma: bool = False) -> Option:
    """What so many features are predicted to cost; ``gamma`` is for noise of that law."""
    basis = FourierFeatures(question.kernel, number, seed=0)
    dim = question.dim or 1
    predicted = predicted_error(
        records=question.records,
        dim=dim,
        pairs=number,
        promise=question.promise,
        density=question.density,
        relation=question.relation,
        per_unit=question.per_unit or 1,
        gamma=gamma,
    )
    return Option.of(
        question,
        method="fourier_features",
        settings={"features": number},
        mechanism=GAMMA if gamma else question.noise(basis).mechanism,
        shape=basis.shape,
        noise=predicted.noise,
        approximation=predicted.chance,
        error=predicted.total,
        size=8 * number + HEADER_BYTES,
        seconds=question.records * number * (_NANOSECONDS_WAVE + _NANOSECONDS_PRODUCT * dim) * 1e-9,
    )
