"""Which points are like few of the private records."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin

from hushsum._types import Floats
from hushsum.declaration import setting
from hushsum.errors import Argument, UsageError
from hushsum.kernels import Kernel
from hushsum.methods import private_quantiles
from hushsum.privacy import LAPLACE, PERMUTE_AND_FLIP, Mechanism, Promise
from hushsum.records import clipping_allowed
from hushsum.releases import Answers, Bundle, NoisyTable, normal_answers
from hushsum.tally import Tally

from ._accuracy import (
    MODEL_COUNT_SHARE,
    NOISE,
    PLANNED,
    PredictedError,
    enough_records,
    is_enough,
    part_of,
    terms_of,
)
from ._base import Drawn, KeptRecords, declared, require
from ._column_scaling import ColumnScaling, can_be_kept
from ._linear_rules import class_counts
from ._neighbors import EmbeddingModel, in_ball
from ._outlier_scores import (
    COUNT_SHARE,
    FURTHEST,
    BinScores,
    FunctionScores,
    ScaledDensity,
    Scores,
    average_score,
    bin_error,
    density_is_clear,
)
from ._public_rows import USUAL_RECORDS
from ._table_model import POWER

AUTO, DENSITY, HISTOGRAMS, KERNEL = "auto", "density", "histograms", "kernel"
METHODS: Final = (AUTO, DENSITY, HISTOGRAMS, KERNEL)

QUANTILE_SHARE = Fraction(1, 4)
"""The part of ε that pays for the threshold, where it is a quantile of the records' own scores."""

# What a paid threshold may be: even in ratios, since scores range over orders of magnitude.
_THRESHOLDS: Floats = np.concatenate([[0.0], np.geomspace(1e-6, 1.0, 601)])
_SHARE_OF_AVERAGE: Final = 0.1
_DEVIATIONS: Final = 2.0
_OF_KERNEL: Final = 0.01
# The bandwidth of hash rows, as a part of the range, is this part of the columns where that is more than a
# quarter, up to half of their square root: chosen on the tuning sets of `benchmarks.accuracy.outlier_peers`.
_PART_OF_COLUMNS: Final = 1.0 / 16.0
# Above this part of the average score, noise hides most.
_LARGE_ERROR: Final = 0.5
_PART: Final = "similarity"


@dataclass(frozen=True, slots=True)
class _Reading:
    scores: Scores
    offset: float
    too_few: bool


@declared
class PrivateOutlierDetector(OutlierMixin, EmbeddingModel):  # type: ignore[misc]
    """Predicts which points are like few of the private records: low similarity is an outlier.

    By default the score of a point is the share of the records that are near it, weighted by a Gaussian
    kernel of columns in units of their own, by private histograms, so wide bounds and long tails do no harm.
    The bandwidth is chosen privately, as narrow as noise allows: with many records it follows clusters, with
    few it sees one cloud. In more than 48 columns, and where noise would hide the density (below about
    ``500/ε`` records), the probabilities of the columns' bins are multiplied instead. Records are kept until
    the release, up to 10⁸ numbers. Below about ``70/ε`` the private count cannot be distinguished from noise:
    the detector then knows only that points outside ``bounds`` are outliers.

    With ``method="kernel"``, or a declared bandwidth, records are counted batch by batch into hash rows, in
    units of the bounds; outliers among embeddings have a ``radius``: the score is then the mean squared
    cosine of the angle to the records, from their second moments, or, where noise would hide these, the mean
    cosine. Such scores have no natural threshold: give ``contamination``.

    Attributes
    ----------
    offset_ : float
        The threshold in use; only after the release.
    method_ : str
        The method that was chosen; only after the release.
    claim_, released_
        What was spent, and for what; only after the release.

    Privacy
    -------
    Unit: one record, or one person; neighbours: add/remove. With ``contamination`` ¼ of ε is left for the
    threshold. The rest, and all of δ, is for the scores: the sketch alone, or first a noisy number of records
    (1/10), which decides with public numbers what follows, and then histograms (`Histograms`), or histograms,
    probes and a density (`ScaledDensity`). A record that appears changes the number by 1, and what follows as
    is proven there; one that is replaced disappears and appears; the order changes nothing. Then one grid
    point is chosen as a threshold by permute-and-flip, by the ranks of the records' scores under what was
    already released. A record's score depends on that and on public things alone, so it changes the ranks
    as in any private quantile. The steps compose, adaptively, to the claim.

    What :meth:`predict` says *of the private records themselves* is as private as the records.

    Examples
    --------
    >>> import numpy as np
    >>> records = np.random.default_rng(1).normal(0.0, 0.1, size=(20_000, 2))
    >>> model = PrivateOutlierDetector(epsilon=1.0, random_state=0).fit(records)
    >>> model.predict([[0.0, 0.0], [0.9, -0.9]]).tolist()
    [1, -1]
    """

    COMMAND = "outliers"
    DEFAULT_BANDWIDTH = 0.25
    # Looked at on two of the four classes of AG News against a third one: outliers are decided better by
    # squares at ε = 1, and by products at 0.1.
    CLEAR = 20.0
    novelty = True
    """As in scikit-learn: the detector is for new points. Of the records themselves, the share below the
    threshold is ``contamination`` up to the error of a private quantile only.
    """
    method: str = setting(
        AUTO,
        "What scores are made of: a Gaussian kernel density of columns in units of their own, whose "
        "bandwidth is chosen privately (density); the probabilities of the columns' bins (histograms); or "
        "sums of a declared kernel in units of the bounds, or with a radius (kernel). auto: kernel where a "
        "radius, bandwidth, scale, power, rows or width is given, or more than 10⁸ numbers would be kept for "
        "the declared number of records; else density, or histograms in more than 48 columns and where noise "
        "is predicted to hide a density, by a private number of records.",
        choices=METHODS,
    )
    threshold: float | None = setting(
        None,
        "Scores below it are outliers: a declared number, which costs nothing. Default: a tenth of the "
        "average score of the records, by what was released, for the method density; two standard "
        "deviations below the average, as if columns were independent, for histograms; 0.01 for kernel.",
        at_least=0,
        at_most=1,
    )
    contamination: float | None = setting(
        None,
        "In place of threshold: the fraction of the records that shall fall below the threshold. This "
        "quantile of the records' scores is private: a quarter of ε pays for it, and the records are kept, "
        "in secret, until the release. The fraction is met up to the error of a private quantile, about "
        "30/ε records, never exactly.",
        above=0,
        at_most=0.5,
    )
    power: int = setting(4, POWER)
    records: int | None = setting(
        None,
        "Approximate number of records, declared, for auto, advice and what is kept; the true number is "
        "private. Default: 10,000.",
        at_least=1,
    )

    @property
    def fit_predict(self) -> NoReturn:
        """Not available, as in scikit-learn's novelty detectors."""
        raise AttributeError(
            "fit_predict is not available: the detector is for new points, and what it reports about the "
            "private records themselves is as private as they are; call fit, then predict"
        )

    def _kernel_parameters(self) -> list[str]:
        """The parameters of hash rows and inner products that were given."""
        declared = {each.name: each.default for each in self.PARAMETERS}
        names = ("radius", "bandwidth", "scale", "power", "rows", "width")
        return [name for name in names if getattr(self, name) != declared[name]]

    def _check_together(self, promise: Promise) -> None:
        if self.method in (DENSITY, HISTOGRAMS) and (given := self._kernel_parameters()):
            remedy = ("leave it out, or give ", Argument("method", KERNEL))
            raise UsageError(
                given[0], ("must be left out with ", Argument("method", self.method)), remedy=remedy
            )

    def _choose(self, dim: int) -> str:
        """The declared method; for ``auto`` kernel, or auto where it is chosen at the release."""
        if self.method != AUTO:
            return self.method
        kept = can_be_kept(dim, self.records or USUAL_RECORDS)
        return AUTO if kept and not self._kernel_parameters() else KERNEL

    def _rule(self, dim: int, promise: Promise, records: float) -> str:
        """The method for a public number of records."""
        method = self._choose(dim)
        if method != AUTO:
            return method
        rest = part_of(promise, 1 - COUNT_SHARE)
        return DENSITY if density_is_clear(self.column_bounds(dim), rest, records) else HISTOGRAMS

    def effective(self, name: str, n_features: int | None = None) -> Any:
        """As for every model; the bandwidth and its scale are those of the method kernel alone."""
        if name in ("bandwidth", "scale") and self._choose(self._width(n_features)) != KERNEL:
            return getattr(self, name)
        return super().effective(name, n_features)

    def _default_bandwidth(self, n_features: int) -> float:
        """Records of many columns are far from each other: at a fixed bandwidth their sums would be noise."""
        part = min(_PART_OF_COLUMNS * n_features, math.sqrt(n_features) / 2.0)
        return max(self.DEFAULT_BANDWIDTH, part)

    def _start(self, seed: int) -> tuple[Tally | int, KeptRecords]:
        """The tally, or the seed of one, and the records themselves where a method or the threshold needs
        them.
        """
        kernel = self._choose(self.n_features_in_) == KERNEL
        return self._empty(seed) if kernel else seed, KeptRecords()

    def _count(self, secret: tuple[Tally | int, KeptRecords], X: Floats, y: Any) -> None:
        tally, kept = secret
        if isinstance(tally, Tally):
            tally.add(X)
        if not isinstance(tally, Tally) or self.contamination is not None:
            kept.add(X.copy(), np.empty(len(X)))

    def compared_by(self, n_features: int) -> list[Kernel]:
        """The kernel of hash rows, where there are any."""
        hashed = self._choose(n_features) == KERNEL and self.radius is None
        return super().compared_by(n_features) if hashed else []

    def kept_per_record(self, n_features: int) -> int:
        plain = self._choose(n_features) == KERNEL and self.contamination is None
        return 0 if plain else n_features

    def _mechanism(self, promise: Promise, n_features: int | None) -> Mechanism:
        # Hash rows, of which a record changes one cell each, always have less variance by Laplace noise.
        kernel = self._choose(1 if n_features is None else n_features) == KERNEL
        hashed = promise.pure and kernel and self.radius is None
        noise = Mechanism.of(LAPLACE) if hashed else super()._mechanism(promise, n_features)
        return noise if self.contamination is None else noise + Mechanism.of(PERMUTE_AND_FLIP)

    def _of_scores(self, promise: Promise) -> Promise:
        """What is left of a promise for the scores."""
        if self.contamination is None:
            return promise
        assert promise.epsilon is not None
        return replace(promise, epsilon=promise.epsilon * (1 - QUANTILE_SHARE))

    def _draw(self, secret: tuple[Tally | int, KeptRecords], promise: Promise) -> Drawn:
        tally, kept = secret
        rest = self._of_scores(promise)
        if isinstance(tally, Tally):
            drawn = Drawn({_PART: tally.release(**terms_of(rest), count_share=MODEL_COUNT_SHARE)})
            usual = _OF_KERNEL
        else:
            drawn, usual = self._draw_scores(kept.all()[0], rest, tally)
        offset = usual if self.threshold is None else float(self.threshold)
        if self.contamination is not None:
            assert promise.epsilon is not None
            # Noise may leave most scores below 0: clipped, no check of the records refuses them here.
            scores = np.clip(self._scores(drawn).alone(kept.all()[0]), 0.0, 1.0)
            quantile: Any = {"epsilon": QUANTILE_SHARE * promise.epsilon}
            with clipping_allowed(quiet=True):
                chosen = private_quantiles(
                    scores[:, None], self.contamination, bounds=(0.0, 1.0), grid=_THRESHOLDS, **quantile
                )
            offset = chosen.values[0][0]
        return replace(drawn, arrays={**drawn.arrays, "offset": np.array([offset])})

    def _draw_scores(self, X: Floats, promise: Promise, seed: int) -> tuple[Drawn, float]:
        """A number of records and what follows from it, and the usual threshold."""
        counts, error = class_counts(np.zeros(len(X), np.int64), 1, part_of(promise, COUNT_SHARE))
        records, rest = max(float(counts[0]), error), part_of(promise, 1 - COUNT_SHARE)
        box, arrays = self.column_bounds(), {"records": np.array([counts[0], error])}
        if self._rule(len(box), promise, records) == HISTOGRAMS:
            bins = BinScores.released(X, box, rest, records)
            return Drawn({}, {**arrays, **bins.arrays()}), bins.usual(_DEVIATIONS)
        density = ScaledDensity(box, rest, records, seed)
        function, scaling = density.released(X)
        usual = min(_SHARE_OF_AVERAGE * average_score(function), 1.0)
        return Drawn({_PART: function}, {**arrays, "scaling": scaling.array()}), usual

    def _scores(self, released: Drawn | Bundle) -> Scores:
        """What was released, as scores; ValueError if its parts do not fit together."""
        arrays = released.arrays
        if "shares" in arrays:
            return BinScores.of(self.column_bounds(), arrays)
        function = released.parts[_PART]
        if "scaling" in arrays:
            scaling = ColumnScaling.of(self.column_bounds(), arrays["scaling"], FURTHEST)
            require(isinstance(function, NoisyTable), _PART)
            return FunctionScores(function, scaling.units)
        return FunctionScores(function, partial(in_ball, function))

    def _part_columns(self) -> dict[str, int]:
        return {_PART: self.n_features_in_}

    def _open(self, bundle: Bundle) -> _Reading:
        found = bundle.arrays["offset"]
        require(found.shape == (1,) and np.isfinite(found).all(), "offset")
        offset = float(found[0])
        if "records" in bundle.arrays:
            counted = bundle.arrays["records"]
            require(counted.shape == (2,) and np.isfinite(counted).all() and counted[1] > 0.0, "records")
            records, error = counted.tolist()
            return _Reading(self._scores(bundle), offset, not is_enough(records, error))
        return _Reading(self._scores(bundle), offset, not enough_records([bundle.parts[_PART]]))

    def _predicted_error(self, records: int, n_features: int, promise: Promise) -> PredictedError:
        box, scores = self.column_bounds(n_features), self._of_scores(promise)
        rule, rest = self._rule(n_features, scores, records), part_of(scores, 1 - COUNT_SHARE)
        if rule == KERNEL:
            error = self._error_of(self._kernel(n_features), records, promise, box)
            return PredictedError("score", error, records, PLANNED)
        if rule == HISTOGRAMS:
            note = f"{NOISE}, as a part of the score"
            return PredictedError("score", bin_error(n_features, rest, records), records, note)
        density = ScaledDensity(box, rest, records, 0)
        width = density.bandwidth(density.of_normal)
        note = f"{NOISE} and approximation, for independent columns"
        return PredictedError("score", density.error(width, density.of_normal(width)), records, note)

    def _advice(self, n_features: int, promise: Promise) -> list[str]:
        """Where noise hides most, or another method is usually better."""
        if self._choose(n_features) == KERNEL:
            if not super()._advice(n_features, promise):
                return []
            return [
                f"with {n_features} columns hash rows count near-duplicates and little else; leave method "
                "and bandwidth out, or, for vectors of a text or image model, declare radius"
            ]
        records = self.records or USUAL_RECORDS
        scores = self._of_scores(promise)
        if self._rule(n_features, scores, records) != HISTOGRAMS:
            return []
        error = bin_error(n_features, part_of(scores, 1 - COUNT_SHARE), records)
        if error <= _LARGE_ERROR:
            return []
        return [
            f"for {records:,} records noise is predicted to hide most of the information in {n_features} "
            "columns: fewer columns, more records or epsilon, or a delta help"
        ]

    @property
    def method_(self) -> str:
        """The method that was chosen; only after the release."""
        arrays = self.released_.arrays
        return HISTOGRAMS if "shares" in arrays else DENSITY if "scaling" in arrays else KERNEL

    def score_samples(self, X: object) -> Floats:
        """How usual each point is, shape (n_queries,); the lower, the stranger. The share of the records that
        are near it, or the geometric mean of the shares in its bins.
        """
        queries = self._queries(X)
        reading: _Reading = self._reading()
        if reading.too_few:
            inside: Floats = (queries == self._within_bounds(queries)).all(axis=1).astype(np.float64)
            return inside
        return reading.scores(queries)

    def query(self, X: object, *, level: float = 0.95) -> Answers:
        """The score of each point with standard error and interval; without them where there are
        too few records.
        """
        queries = self._queries(X)
        reading: _Reading = self._reading()
        if reading.too_few:
            scores = self.score_samples(X)
            return normal_answers(scores, np.full(len(scores), np.nan), level, queries)
        return reading.scores.answers(queries, level)

    def decision_function(self, X: object) -> Floats:
        """The score less the threshold, shape (n_queries,); negative for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: object) -> NDArray[np.int64]:
        """1 for points like the records, −1 for outliers, shape (n_queries,)."""
        return np.where(self.decision_function(X) >= 0.0, 1, -1)

    @property
    def offset_(self) -> float:
        """The threshold in use; only after the release."""
        return float(self.released_.arrays["offset"][0])
