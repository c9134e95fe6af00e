"""What clusterings share: they keep records until the release, cut them into cells, and read those."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.kernels.bandwidth_scale import OF_BOUNDS, different_units
from hushsum.models.base import PrivateModel
from hushsum.models.class_moments_rule import noise_of
from hushsum.models.model_state import KeptRecords, ModelState
from hushsum.models.parameters import INTEGER, SCALE, Parameter, parameters_of_claim, to_json
from hushsum.models.predicted_error import PredictedError, part_of
from hushsum.models.private_cells import MOST_CELLS, SMALLEST_PART, PromiseParts, basis_of
from hushsum.models.record_checks import generator_of
from hushsum.privacy.claim import Promise
from hushsum.records.bounds import Bounds
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.bundle import Bundle
from hushsum.tasks.released_cells import check_function

AUTO: Final = "auto"
RECORDS, FUNCTION = "records", "released function"
CLUSTER_SCALE = replace(
    SCALE,
    help="What distances are measured in: the units of the data, or (bounds) the declared range of each "
    "column. Default: bounds where the declared ranges of two columns differ by more than ten times.",
)


def most_clusters(name: str, of: str) -> Parameter:
    """The declaration of how many clusters "auto" considers."""
    return Parameter(name, INTEGER, f"The most {of} that 'auto' considers.", at_least=1, at_most=64)


@dataclass(frozen=True, slots=True)
class Frame:
    """The units in which records are compared: x = centre + unit·e, where the box is within ±1 for e."""

    centre: Floats
    unit: Floats
    half_widths: Floats

    @classmethod
    def of(cls, box: list[tuple[float, float]], scale: str | None) -> Frame:
        """That of a declared box."""
        low, high = np.array(box, np.float64).T
        column = high - low
        bounds = Bounds.of(box, len(box))
        assert bounds is not None
        by_bounds = scale == OF_BOUNDS or (scale is None and different_units(bounds))
        unit = column / 2.0 if by_bounds else np.full(len(box), float(column.max()) / 2.0)
        return cls((low + high) / 2.0, unit, column / 2.0 / unit)

    @property
    def low(self) -> Floats:
        """The lower ends of the box, in the units of the data."""
        return np.asarray(self.centre - self.unit * self.half_widths)

    @property
    def high(self) -> Floats:
        """The upper ends."""
        return np.asarray(self.centre + self.unit * self.half_widths)

    @property
    def length(self) -> float:
        """What a distance of 1 in these units is in those of the data, or in declared ranges."""
        return 0.5 if self.by_bounds else float(self.unit[0])

    @property
    def by_bounds(self) -> bool:
        """Whether columns have units of their own."""
        return bool((self.unit != self.unit[0]).any())

    def inside(self, X: Floats) -> Floats:
        """Records in these units, clipped to the box; element by element."""
        return np.asarray(np.clip((X - self.centre) / self.unit, -self.half_widths, self.half_widths))

    def places(self, points: Floats) -> Floats:
        """Points in these units, wherever they are."""
        return np.asarray((points - self.centre) / self.unit)


class ClusterModel(PrivateModel):
    """A clustering, fitted to records or to a released function.

    A subclass has the parameter ``scale``, says how many clusters it looks for (:meth:`_number`), what it
    computes of private records (:meth:`_clustered`) and of a released function (:meth:`_of_function`), and
    checks those arrays in ``_open``.
    """

    scale: str | None
    feature_names_in_: NDArray[Any]
    _source: str = RECORDS

    @property
    def centres(self) -> Floats:
        """The centres or means of the clusters, in the units of the data; only after the release."""
        raise NotImplementedError

    def _number(self) -> int:
        """The number of clusters, or the most there may be."""
        raise NotImplementedError

    def _measured_kinds(self, promise: Promise) -> tuple[str, ...]:
        """What the steps of a fit measure of each cell."""
        raise NotImplementedError

    def _clustered(
        self, rows: Floats, frame: Frame, parts: PromiseParts, seed: int
    ) -> dict[str, NDArray[Any]]:
        """What is released of records in the units of the frame; spends the whole promise at most."""
        raise NotImplementedError

    def _of_function(self, function: ReleasedFunction, frame: Frame, seed: int) -> dict[str, NDArray[Any]]:
        """The same, of a released function; spends nothing."""
        raise NotImplementedError

    def fit_released(self, function: ReleasedFunction) -> Self:
        """Cluster a released function: post-processing that spends nothing. No record is needed.

        Takes grids, histograms and other weighted points, random Fourier features in any number of columns,
        and every released function of up to three columns with declared bounds. The model carries the claim
        of the function. ``epsilon``, ``delta`` and ``budget`` of this estimator are not used.

        Parameters
        ----------
        function : ReleasedFunction
            Of columns of numbers.

        Raises
        ------
        UsageError
            if it cannot be clustered: hash rows in more than three columns, or records that are sets.
        """
        self.check_parameters()
        dim = check_function(function)
        self.n_features_in_ = dim
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if function.columns is not None:
            self.feature_names_in_ = np.array(function.columns, dtype=object)
        box = self.column_bounds() if function.bounds is None else _pairs(function.bounds)
        seed = int(generator_of(self.random_state).randint(np.iinfo(np.int32).max))
        arrays = self._of_function(function, Frame.of(box, self.scale), seed)
        self._source = FUNCTION
        facts = self._described()
        facts["parameters"] |= {"bounds": to_json("bounds", box)} | parameters_of_claim(function.claim)
        bundle = Bundle(function.claim, {**facts, "seed": seed}, {}, arrays)
        state = ModelState.opened(bundle, facts, seed)
        state.reading = self._open(bundle)
        self._state = state
        return self

    def _start(self, seed: int) -> KeptRecords:
        self._source = RECORDS
        return KeptRecords()

    def _ready(self, secret: KeptRecords) -> KeptRecords:
        """Refuse columns and promises for which a step could not be released, before anything is spent."""
        promise = Promise.of(epsilon=self.epsilon, delta=self.delta)
        part = part_of(promise, SMALLEST_PART)
        smallest = Promise.of(**{name: each for name, each in part.items() if each})
        for kind in self._measured_kinds(promise):
            # Its variance is computed where the samplers can draw it, and refused otherwise.
            _ = noise_of(basis_of(MOST_CELLS, self.n_features_in_, kind), smallest).variance
        return secret

    def _count(self, secret: KeptRecords, X: Floats, y: NDArray[Any] | None) -> None:
        secret.add(Frame.of(self.column_bounds(), self.scale).inside(X), np.empty((len(X), 0)))

    def _draw(self, secret: KeptRecords, promise: Promise) -> Bundle:
        rows, _ = secret.all()
        frame = Frame.of(self.column_bounds(), self.scale)
        arrays = self._clustered(rows, frame, PromiseParts(promise), self._state.seed)
        return self._bundle(promise, arrays=arrays)

    def _kept_per_record(self, n_features: int) -> int:
        return n_features

    def _facts(self) -> dict[str, Any]:
        return {"source": self._source}

    def _restore(self, facts: dict[str, Any]) -> None:
        if facts["source"] not in (RECORDS, FUNCTION):
            raise ValueError("source")
        self._source = facts["source"]

    def _frame(self) -> Frame:
        """The units of the model as it was fitted."""
        return Frame.of(self._box(self._fitted("bounds")), self._fitted("scale"))

    def fit_predict(self, X: object, y: object = None) -> NDArray[np.int64]:
        """Fit, which releases, and give each record the number of its cluster, for the owner's eyes."""
        labels: NDArray[np.int64] = self.fit(X, y).predict(X)
        return labels

    def _error_of_centres(
        self, records: int, n_features: int, promise: Promise, share: Fraction, kind: str
    ) -> PredictedError:
        """Of a centre in its last step, for clusters of one size that fill the box."""
        frame = Frame.of(self.column_bounds(n_features), self.scale)
        number = self._number()
        basis = basis_of(number, n_features, kind)
        spent = Promise.of(**{name: each for name, each in part_of(promise, share).items() if each})
        deviation = np.sqrt(noise_of(basis, spent).variance * basis.sum_gain)
        radius = float(np.linalg.norm(frame.half_widths))
        error = frame.length * radius * float(np.sqrt(n_features) * deviation) * number / max(records, 1)
        return PredictedError(
            "distance of a centre from the mean of its records",
            error,
            records,
            "expected length of the noise for clusters of equal size whose records fill the bounds; "
            "in tight clusters it is smaller in proportion",
        )


def _pairs(bounds: Bounds) -> list[tuple[float, float]]:
    return list(zip(bounds.low, bounds.high, strict=True))
