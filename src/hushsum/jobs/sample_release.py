"""Synthetic records from a released function or model. Spends nothing: everything is post-processing."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from hushsum._types import Floats
from hushsum.bases.marginals import Marginals
from hushsum.errors import UsageError
from hushsum.jobs.output_files import STANDARD
from hushsum.kernels.base import ColumnKernel
from hushsum.kernels.parameters import positive_integer
from hushsum.records.arrow import pyarrow
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.bundle import Bundle
from hushsum.releases.load import load_released
from hushsum.releases.noisy_table import NoisyTable

MOST_SAMPLES = 10_000_000
_FLOOR = 2.0
"""Standard errors below which a value counts as 0, so that noise in empty space draws no records."""
_GRID_COLUMNS = 3
_STEPS = 50


@runtime_checkable
class SamplingModel(Protocol):
    """A model that draws records."""

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Any:
        """Records inside the bounds, as an array of shape (n_samples, n_features) or an Arrow table."""


@dataclass(frozen=True, slots=True)
class SampleDrawn:
    """Synthetic records as an Arrow table."""

    table: Any

    @classmethod
    def of_numbers(cls, values: Floats, columns: tuple[str, ...]) -> SampleDrawn:
        """Columns of numbers, shape (number, columns)."""
        return cls(pyarrow().table([values[:, i] for i in range(values.shape[1])], names=list(columns)))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.table.column_names)

    def records(self) -> list[list[Any]]:
        """The records one by one, missing values as None."""
        return [list(each) for each in zip(*self.table.to_pydict().values(), strict=True)]


def sample_release(source: str, number: int, *, seed: int | None = None) -> SampleDrawn:
    """Records drawn from what was released, inside its declared bounds.

    ``seed`` repeats a sample; the noise of the release is in the file already.

    Raises
    ------
    UsageError
        if it is neither a function of columns with bounds, nor a table of marginals, nor a model that draws
        records, or nowhere stands out of its noise.
    """
    count = positive_integer("number", number, at_most=MOST_SAMPLES)
    released = load_released(sys.stdin.buffer if source == STANDARD else source)
    if isinstance(released, Bundle):
        return _of_model(released, count, seed)
    if isinstance(released, NoisyTable) and isinstance(released.basis, Marginals):
        from hushsum.models.synthesizer import PrivateSynthesizer

        return SampleDrawn(
            PrivateSynthesizer(random_state=seed).fit_released(released).sample(count, random_state=seed)
        )
    assert isinstance(released, ReleasedFunction)
    bounds = released.bounds
    if bounds is None or not isinstance(released.kernel, ColumnKernel):
        raise UsageError(
            rule="samples need columns of numbers with declared bounds",
            got=f"a {released.kernel.name} function without them",
            remedy="release it with bounds",
        )
    from hushsum.models.weighted_sampling import by_chain, from_grid

    def weights(points: Floats) -> Floats:
        answers = released.query(points)
        known = np.where(np.isfinite(answers.stderr), answers.stderr, 0.0)
        return np.where(answers.value > _FLOOR * known, np.maximum(answers.value, 0.0), 0.0)

    low, high = np.array(bounds.low), np.array(bounds.high)
    random = np.random.default_rng(seed)
    if bounds.dim <= _GRID_COLUMNS:
        drawn = from_grid(weights, low, high, count, random)
    else:
        step = np.array(released.kernel.column_bandwidths())
        drawn = by_chain(weights, low, high, count, random, step=step, steps=_STEPS)
    return SampleDrawn.of_numbers(drawn, _names(released.columns, bounds.dim))


def _of_model(bundle: Bundle, number: int, seed: int | None) -> SampleDrawn:
    from hushsum.jobs.model_answers import AnsweringModel

    answering = AnsweringModel.of(bundle)
    if not isinstance(answering.model, SamplingModel):
        raise UsageError(
            rule="samples are drawn from functions, densities and samplers",
            got=f"a model of the kind {answering.model.COMMAND}",
            remedy="fit a synthesizer, a density or a sampler",
        )
    drawn = answering.model.sample(number, random_state=seed)
    if not isinstance(drawn, np.ndarray):
        return SampleDrawn(drawn)
    return SampleDrawn.of_numbers(drawn, _names(answering.columns, answering.dim))


def _names(columns: tuple[str, ...] | None, dim: int) -> tuple[str, ...]:
    return (
        columns if columns is not None and len(columns) == dim else tuple(f"column_{i}" for i in range(dim))
    )
