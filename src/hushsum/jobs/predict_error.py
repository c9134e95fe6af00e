"""How far a model's answers will be off, from declared quantities alone; before anything is read or spent."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hushsum.bases.grid_weights import GridWeights
from hushsum.bases.hash_rows import HashRows
from hushsum.errors import UsageError
from hushsum.jobs.model_choice import ModelChoice, promise_of
from hushsum.jobs.model_claim import counted_beforehand
from hushsum.kernels.base import Kernel
from hushsum.methods.feature_functions import allowed_gap, svm_sensitivity
from hushsum.models.base import PrivateModel
from hushsum.models.density import share_of
from hushsum.models.density_plan import FUNCTIONAL
from hushsum.models.normalisation import normalising_constant
from hushsum.planning.plan import plan
from hushsum.privacy.functional import path_scale

_PLANNED: Final = "mean absolute error of the plan, noise and approximation together"
_NOISE: Final = "standard deviation of the noise"


@dataclass(frozen=True, slots=True)
class PredictedError:
    """The error of ``of`` at one point, for so many records; ``note`` says which error, and from what."""

    of: str
    error: float
    records: int
    note: str


def predicted_error(
    choice: ModelChoice,
    *,
    records: int,
    columns: Sequence[str],
    target: str | None = None,
    classes: Sequence[str] | None = None,
    exact: bool = False,
) -> PredictedError | None:
    """The predicted error of a model; None where it depends on more than what is declared, as that of a
    regression does.

    ``records`` is a declared or guessed number, not the length of private data; ``exact`` is for the mode of
    that name.

    >>> choice = ModelChoice("density", {"epsilon": 1.0, "bandwidth": 0.1})
    >>> told = predicted_error(choice, records=10_000, columns=["x"])
    >>> told.of, 0.0 < told.error < 0.01
    ('density', True)
    """
    predict = _exact_density if exact and choice.name == "density" else _WAYS.get(choice.name)
    if predict is None:
        return None
    model = counted_beforehand(choice, columns=columns, target=target, classes=classes)
    try:
        return predict(model, records)
    except UsageError:
        # A plan may have no option within its limits of size and time.
        return None


def _density(model: Any, records: int) -> PredictedError:
    wanted = model._planned()
    parts = len({each.part for each in wanted})
    method = "fourier_features" if wanted[0].method == FUNCTIONAL else wanted[0].method
    error = _planned(wanted[0].kernel, records, model, method, **share_of(promise_of(model), parts))
    integral = normalising_constant(wanted[0].kernel)
    if integral is None:
        return PredictedError("mean kernel value", error, records, _PLANNED)
    return PredictedError("density", error / integral, records, _PLANNED)


def _exact_density(model: Any, records: int) -> PredictedError:
    kernel = model._planned()[0].kernel
    scale = path_scale(math.sqrt(2.0), promise_of(model)) / records
    return PredictedError("density", scale / (normalising_constant(kernel) or 1.0), records, _NOISE)


def _histogram(model: Any, records: int) -> PredictedError:
    # Nobody's record is in it, and the noise of a bin does not depend on records.
    model.release()
    cell = math.prod(float(edges[1] - edges[0]) for edges in model.bin_edges_)
    return PredictedError("density", model.count_stderr_ / (records * cell), records, _NOISE)


def _kernel_svc(model: Any, records: int) -> PredictedError:
    classes = len(model.classes_)
    machines = 1 if classes == 2 else classes
    c, square = float(model.C), 2.0
    moved = svm_sensitivity(c, records, square, allowed_gap(c, records, square))
    scale = path_scale(math.sqrt(machines) * moved, promise_of(model), calibration=model.calibration)
    return PredictedError("decision", math.sqrt(square) * scale, records, f"{_NOISE}; the margin is 1")


def _classifier(model: Any, records: int) -> PredictedError:
    each = max(1, records // len(model.classes_))
    kernel = model._state.secret[0].reading.kernel
    error = _hashed(kernel, each, model, model._rows())
    return PredictedError("mean kernel value of a class", error, records, _PLANNED)


def _outliers(model: Any, records: int) -> PredictedError:
    kernel = model._state.secret.tally.reading.kernel
    error = _hashed(kernel, records, model, model.rows)
    return PredictedError("score", error, records, _PLANNED)


def _one_sketch(model: Any, records: int) -> PredictedError:
    reading = model._state.secret.reading
    if isinstance(reading.basis, HashRows):
        error = _hashed(reading.kernel, records, model, model.rows)
    else:
        method = "grid" if isinstance(reading.basis, GridWeights) else "fourier_features"
        error = _planned(reading.kernel, records, model, method)
    return PredictedError("mean kernel value", error, records, _PLANNED)


def _neighbors(model: Any, records: int) -> PredictedError:
    told = _one_sketch(model, records)
    return PredictedError("count", told.error * records, records, told.note)


_WAYS: Final[dict[str, Callable[[Any, int], PredictedError]]] = {
    "density": _density,
    "histogram": _histogram,
    "kernel-svc": _kernel_svc,
    "classifier": _classifier,
    "outliers": _outliers,
    "neighbors": _neighbors,
    "modes": _one_sketch,
    "sampler": _one_sketch,
}


def _hashed(kernel: Kernel, records: int, model: Any, rows: int) -> float:
    """Of hash rows, of which a pure release publishes as many as suit it."""
    pure = promise_of(model).pure
    fewer = [each for each in (12, 25, 50, 100, 200, 400, 800, 1600) if pure and each < rows]
    return _planned(kernel, records, model, "race", rows=[*fewer, rows], width=model.width)


def _planned(kernel: Kernel, records: int, model: PrivateModel, method: str, **asked: Any) -> float:
    if not {"epsilon", "rho"} & set(asked):
        asked |= {"epsilon": float(model.epsilon), "delta": model.delta}
    told = plan(records=records, kernel=kernel, bounds=model._box(), method=method, **asked)
    return told.best.error
