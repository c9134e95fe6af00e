"""Classification by noisy gradient steps, by sketches of the classes, or by sums of vectors by class."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, cast

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Box, Floats
from hushsum.declaration import OWNER, setting
from hushsum.errors import Argument, UsageError
from hushsum.kernels import Kernel
from hushsum.privacy import LAPLACE, Mechanism, Promise
from hushsum.records import Transform
from hushsum.releases import Bundle, TableFunction
from hushsum.tables import MOST_SQUARED, PUBLIC_ROWS, ClassMoments
from hushsum.tally import Tally

from ._accuracy import (
    MODEL_COUNT_SHARE,
    NOISE,
    PLANNED,
    PredictedError,
    enough_records,
    part_of,
    shares_within_noise,
    terms_of,
)
from ._base import ClassificationModel, Drawn, KeptRecords, declared, require
from ._column_scaling import ColumnScaling, can_be_kept, histograms_are_useful, released_scaling
from ._linear_rules import (
    DEEPEST,
    TOTAL_SHARE,
    LinearRule,
    LogisticReading,
    LogisticSteps,
    discriminant_basis,
    largest_edge,
    mean_noise,
    means_basis,
    noise_of,
    spectral_edge,
)
from ._table_model import NEAR, POWER, KernelModel

AUTO, LOGISTIC, KERNEL, MEANS, DISCRIMINANT = "auto", "logistic", "kernel", "means", "discriminant"
METHODS: Final = (AUTO, LOGISTIC, KERNEL, MEANS, DISCRIMINANT)
LIKELIHOOD, MAP = "likelihood", "map"
RULES: Final = (AUTO, LIKELIHOOD, MAP)
MOST_KERNEL_COLUMNS: Final = 32
# Up to this many columns a bandwidth of half the declared range suits the tables of the benchmark. On
# sentence embeddings of AG News (384 columns, ε = 1, δ = 1e-5) the rule of √(columns/8) reaches 0.79, without
# growth 0.37.
_COLUMNS_AT_ONE: Final = 8
_MOST_ROWS: Final = 1000
# Rows of a class at ε = 1. Decisions fall where the sums of the classes are alike and small beside the noise,
# so fewer rows serve than elsewhere. Measured on pulsars, occupancy and RNA at ε from 0.1 to 10: the best
# number grows about as √ε, and the optimum is flat.
_ROWS_AT_ONE: Final = 150

# Above this noise of a slope advice warns: accuracy is then well below that without noise.
_LARGE_NOISE: Final = 0.3

# Above this noise of a slope, class means are compared under pure ε.
_OVERWHELMING: Final = 1.5

BOUNDS, QUANTILES = "bounds", "quantiles"
SCALINGS: Final = (AUTO, BOUNDS, QUANTILES)


# A class with this many standard errors of its count differs from an empty one.
_DISTINCT = 3.0
# A class is divided by no fewer records than this many standard errors of its count.
_FLOOR = 2.0


@dataclass(frozen=True, slots=True)
class SketchReading:
    """The functions of the classes in the order of ``classes_``, how many records each has, by how much its
    sums are divided, the standard error that noise gives to them, which classes take part, and what each
    class weighs where none does.
    """

    functions: list[TableFunction]
    counts: Floats
    sizes: Floats
    noise: Floats
    known: NDArray[np.int64]
    shares: Floats

    @classmethod
    def of(cls, functions: list[Any]) -> SketchReading:
        """A class whose count cannot be distinguished from 0 takes no part beside two that can.

        With fewer than two of those all take part, since a rare class and an empty one look alike. A count
        within the noise is taken as two standard errors, so that such a class weighs too little rather than
        its noise too much.
        """
        counts = np.array([each.count for each in functions])
        errors = np.array([each.count_stderr for each in functions])
        known = np.flatnonzero(counts >= _DISTINCT * errors)
        if not enough_records(functions):
            known = known[:0]
        elif len(known) < 2:
            known = np.arange(len(functions))
        return cls(
            functions=functions,
            counts=np.maximum(counts, 0.0),
            sizes=np.maximum(counts, _FLOOR * errors),
            noise=np.array([(each.noise.variance / each.rows) ** 0.5 for each in functions]),
            known=known,
            shares=shares_within_noise(counts, errors),
        )

    def probabilities(self, queries: Floats, rule: str) -> Floats:
        """The probability of each class at each query, shape (n_queries, n_classes)."""
        if not len(self.known):
            return np.tile(self.shares / self.shares.sum(), (len(queries), 1))
        answers = np.stack([self.functions[code].sum(queries) for code in self.known], axis=1)
        noise = self.noise[self.known]
        if rule == "likelihood":
            answers, noise = answers / self.sizes[self.known], noise / self.sizes[self.known]
        in_noise = np.full((len(queries), len(self.functions)), DEEPEST)
        in_noise[:, self.known] = np.maximum(answers / noise.max(), DEEPEST)
        # Rises with the answer and is positive even where noise made that negative: ln(1 + eˣ), which is x
        # well above the noise.
        masses = np.logaddexp(0.0, in_noise)
        return np.asarray(masses / masses.sum(axis=1, keepdims=True))


@dataclass(frozen=True, slots=True)
class MomentsReading:
    """A linear rule, and how a query becomes the vector that it compares."""

    rule: LinearRule
    vectors: Callable[[Floats], Floats]

    @property
    def counts(self) -> Floats:
        """Noisy numbers of records of the classes."""
        return self.rule.counts

    def probabilities(self, queries: Floats, rule: str) -> Floats:
        """The probability of each class at each query, shape (n_queries, n_classes)."""
        return self.rule.probabilities(self.vectors(queries), rule)


Reading = SketchReading | MomentsReading | LogisticReading

UNDECLARED = 10_000
"""The number of records that a method is chosen for where none is declared."""
_PART, _SCALING = "moments", "scaling"
CALIBRATING: Final = Fraction(1, 8)
"""The part of what is left after histograms that fits logits to the scores of means or discriminant."""


@dataclass(frozen=True, slots=True)
class SketchOfEachClass:
    """One sketch for each class.

    A record is in the sketch of one class only, so each sketch takes the whole budget.
    """

    classes: int
    empty: Callable[[int], Tally]
    """An empty sketch by its seed."""

    def start(self, seed: int, promise: Promise) -> list[Tally]:
        """An empty sketch for each class."""
        return [self.empty(seed) for _ in range(self.classes)]

    def count(self, secret: list[Tally], X: Floats, codes: NDArray[Any]) -> None:
        """Add each record to the sketch of its class."""
        for code, tally in enumerate(secret):
            if (codes == code).any():
                tally.add(X[codes == code])

    def draw(self, secret: list[Tally], promise: Promise) -> Drawn:
        """All sketches, in parallel composition."""
        spent = {**terms_of(promise), "count_share": MODEL_COUNT_SHARE}
        return Drawn({f"class {code}": tally.release(**spent) for code, tally in enumerate(secret)})

    def open(self, bundle: Bundle) -> SketchReading:
        """The functions of the classes."""
        return SketchReading.of([bundle.parts[f"class {code}"] for code in range(self.classes)])


@dataclass(frozen=True, slots=True)
class MomentsByClass:
    """Sums of vectors by class, and second moments, in one table; in units of the bounds."""

    classes: int
    dim: int
    box: Box
    method: str
    records: int
    radius: float
    transform: Transform | None
    digest: str | None
    """The digest of the transformation. The bundle of a loaded model holds the transformation itself."""

    def basis(self, promise: Promise) -> ClassMoments:
        """What is counted."""
        public = self.transform
        dim, radius = (self.dim, self.radius) if public is None else (public.dim, public.radius)
        digest = None if public is None else public.digest
        if self.method == MEANS:
            return means_basis(self.classes, dim, promise, radius, digest)
        return discriminant_basis(self.classes, dim, self.records, promise, radius, digest)

    def start(self, seed: int, promise: Promise) -> Any:
        """An empty table."""
        return Tally(self.basis(promise))

    def count(self, secret: Any, X: Floats, codes: NDArray[Any]) -> None:
        """Add the vectors of records."""
        secret.add(np.column_stack((codes, self.vectors(X, self.transform))))

    def vectors(self, X: Floats, transform: Transform | None) -> Floats:
        """Rows from the middle of the bounds, in units of their half-width; and then transformed."""
        units = in_units(X, self.box)
        return units if transform is None else transform.apply(units)

    def draw(self, secret: Any, promise: Promise) -> Drawn:
        """One release of the table."""
        released = secret.release(**terms_of(promise), count_share=TOTAL_SHARE)
        return Drawn({_PART: released}, {} if self.transform is None else self.transform.arrays())

    def open(self, bundle: Bundle) -> MomentsReading | LogisticReading:
        """A linear rule; ValueError if the parts of a file do not fit together."""
        transform = None if self.digest is None else Transform.from_arrays(bundle.arrays)
        rule = self.rule(bundle, transform)
        return MomentsReading(rule, lambda X: self.vectors(X, transform))

    def rule(self, bundle: Bundle, transform: Transform | None = None) -> LinearRule:
        """The rule of the released table; ValueError if that does not fit."""
        part: Any = bundle.parts[_PART]
        dim = self.dim if transform is None else transform.dim
        require(transform is None or transform.digest == self.digest, "transformation")
        counted = (part.basis.classes, part.basis.dim, part.basis.transform)
        require(counted == (self.classes, dim, self.digest), "classes")
        require(transform is None or transform.columns == self.dim, "columns")
        return LinearRule.of(part, None if transform is None else transform.variances)


@dataclass(frozen=True, slots=True)
class KeptVectors(MomentsByClass):
    """Records that are kept, in secret, until the release, and then measured in units of their columns.

    With ``scaled`` these are the units of private histograms (`ColumnScaling`), and the ball that vectors are
    in has the radius √columns.

    Privacy
    -------
    One record present or absent changes two things. Its values take part in the histograms, which a part of
    the promise pays for (`Histograms.released`). Given these, which are public from then on, its vector is
    computed from the record and public numbers alone (`ColumnScaling`), so it changes what follows as that
    states for every scaling. Logits are fitted by `LogisticSteps` to scores, which follow from the vector and
    the released sums alone, bit for bit. By adaptive composition all together keep the promise.
    """

    scaled: bool = True
    calibrated: bool = False
    """Whether logits are fitted to the scores of the classes."""

    def start(self, seed: int, promise: Promise) -> KeptRecords:
        """Nothing kept yet."""
        return KeptRecords()

    def count(self, secret: KeptRecords, X: Floats, codes: NDArray[Any]) -> None:
        """Keep records, clipped."""
        low, high = np.array(self.box).T
        secret.add(np.clip(X, low, high), codes.copy())

    def remaining(self, promise: Promise) -> Promise:
        """What is left of a promise for what follows the histograms."""
        return after_scaling(promise) if self.scaled else promise

    def scaled_vectors(self, X: Floats, promise: Promise) -> tuple[Floats, dict[str, NDArray[Any]]]:
        """Records in units of their columns, and the scaling, for which a part of the promise is spent."""
        if not self.scaled:
            return self.in_ball(X), {}
        scaling = released_scaling(X, self.box, part_of(promise, scaling_share(promise)), self.records)
        return scaling.units(X), {_SCALING: scaling.array()}

    def in_ball(self, X: Floats) -> Floats:
        """Rows in units of the bounds, enlarged so that the radius becomes √columns."""
        return in_units(X, self.box) * (math.sqrt(self.dim) / self.radius)

    def vectors_of(self, bundle: Bundle) -> Callable[[Floats], Floats]:
        """How a query becomes a vector; ValueError for a file without a scaling."""
        if not self.scaled:
            return self.in_ball
        require(_SCALING in bundle.arrays, _SCALING)
        return ColumnScaling.of(self.box, bundle.arrays[_SCALING]).units

    def basis(self, promise: Promise) -> ClassMoments:
        """What is counted of vectors in the ball of radius √columns."""
        return MomentsByClass.basis(replace(self, radius=math.sqrt(self.dim)), promise)

    def draw(self, secret: KeptRecords, promise: Promise) -> Drawn:
        """Histograms of the columns first, then sums of the records in their units."""
        X, codes = secret.all()
        vectors, scaling = self.scaled_vectors(X, promise)
        rest = self.remaining(promise)
        tally = Tally(self.basis(rest)).add(np.column_stack((codes, vectors)))
        spent = terms_of(part_of(rest, 1 - CALIBRATING) if self.calibrated else rest)
        part = tally.release(**spent, count_share=TOTAL_SHARE)
        if not self.calibrated:
            return Drawn({_PART: part}, scaling)
        steps = LogisticSteps(self.classes, self.classes, part_of(rest, CALIBRATING))
        return Drawn({_PART: part}, {**scaling, **steps.calibrated(LinearRule.of(part), vectors, codes)})

    def open(self, bundle: Bundle) -> MomentsReading | LogisticReading:
        """A linear rule of vectors in units of the columns, or the logits that were fitted to its scores."""
        rule, vectors, size = self.rule(bundle), self.vectors_of(bundle), self.classes
        if not self.calibrated:
            return MomentsReading(rule, vectors)
        unit = bundle.arrays.get("unit", np.zeros(0))
        require(unit.shape == (1,) and np.isfinite(unit).all() and unit[0] > 0.0, "unit")
        return LogisticReading.of(bundle.arrays, size, size, lambda X: rule.compared(vectors(X)) / unit[0])


@dataclass(frozen=True, slots=True)
class GradientSteps(KeptVectors):
    """Logistic regression by noisy gradient steps; see `LogisticSteps` for the privacy of these."""

    def draw(self, secret: KeptRecords, promise: Promise) -> Drawn:
        """Histograms of the columns first, then the steps."""
        X, codes = secret.all()
        vectors, arrays = self.scaled_vectors(X, promise)
        fitted = LogisticSteps(self.classes, self.dim, self.remaining(promise)).fit(vectors, codes)
        return Drawn({}, {**arrays, **fitted})

    def open(self, bundle: Bundle) -> LogisticReading:
        """The weights, and how a query becomes a vector."""
        return LogisticReading.of(bundle.arrays, self.classes, self.dim, self.vectors_of(bundle))


def scaling_share(promise: Promise) -> Fraction:
    """The part of a promise that pays for the histograms; chosen like their other constants."""
    return Fraction(7, 20) if promise.pure else Fraction(1, 4)


def after_scaling(promise: Promise) -> Promise:
    """What is left of a promise when the histograms are paid."""
    return part_of(promise, 1 - scaling_share(promise))


def in_units(X: Floats, box: Box) -> Floats:
    """Rows clipped to the bounds, from their middle and in units of their half-width."""
    low, high = np.array(box).T
    return np.asarray((np.clip(X, low, high) - (low + high) / 2.0) / ((high - low) / 2.0))


@declared
class PrivateClassifier(ClassificationModel, KernelModel):
    """Predicts the class of a point from what was released about the records of each class.

    There are four methods, of which all but ``kernel`` have planes as boundaries. ``logistic`` is logistic
    regression by noisy gradient steps. Its columns are measured in units of their own, from private
    histograms, so wide bounds, long tails and indicators do no harm; records are kept until the release.
    ``means`` compares inner products with noisy class means, and ``discriminant`` also releases a matrix of
    second moments; both count batch by batch, and suit embeddings of a declared length in hundreds of
    columns. ``kernel`` compares one released sketch per class. It follows classes of any shape in few columns
    (up to some tens) that are scaled to ``bounds``; the bandwidth should suit the distance between classes.
    ``auto`` chooses from the declared quantities alone.

    Declare ``radius=1`` for vectors of length 1: otherwise the noise is that of the whole box, or of as many
    columns.

    More than about ``1000/ε`` records are needed. Below about ``100/ε`` the private counts cannot be
    distinguished from noise, and every class gets the same probability, unless one has five standard errors
    more records than any other. A class with fewer than ``40/ε`` records is never predicted if two other
    classes have more.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    method_, column_scaling_ : str
        The method that was chosen, and what columns are measured in.
    class_prior_ : array of shape (n_classes,)
        From the private counts; only after the release.
    claim_, released_
        What was spent, and for what; only after the release.

    Privacy
    -------
    Unit: one record with its label, or one person; neighbours: add/remove. A record is in one class of a
    declared list. The kernel rule releases one sketch per class, in parallel composition, each with the whole
    budget. ``means`` and ``discriminant`` release one table of integers (`ClassMoments`), whose noise is
    calibrated to what a record adds to its class and to the second moments together; ``logistic`` the sums
    of the records' gradients, step by step, each for an equal part of the budget (`LogisticSteps`). Where
    columns are measured in quantiles, histograms are released first, for a quarter of the budget, or 35 %
    under pure ε (`Histograms`): adaptive composition. So are the gradient steps that fit logits to the scores
    of ``means`` and ``discriminant`` for the rule ``map``. ``public`` rows are assumed to be public, and the
    claim says so. Everything else is computed from what was released.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.repeat([[-0.5, 0.0], [0.5, 0.0]], 3000, axis=0)
    >>> labels = np.repeat(["left", "right"], 3000)
    >>> model = PrivateClassifier(epsilon=1.0, classes=["left", "right"], random_state=0).fit(points, labels)
    >>> model.predict([[-0.6, 0.1], [0.6, 0.1]]).tolist()
    ['left', 'right']
    >>> model.claim_.epsilon
    1.0

    Notes
    -----
    Coleman and Shrivastava, CCS 2021, section 4: maximum likelihood and maximum a posteriori from one sketch
    per class; section 7.2 for public data.
    """

    COMMAND = "classifier"
    DEFAULT_BANDWIDTH = 0.5
    CHOSEN: ClassVar = {"method_": METHODS[1:], "column_scaling_": SCALINGS[1:]}
    method: str = setting(
        "auto",
        "What is released: sums of gradients (logistic), of each class a sketch (kernel) or the sum of its "
        "vectors (means), or that and second moments (discriminant). auto: logistic, which keeps the records "
        "until the release, up to 10⁸ numbers. With a radius, public rows or column_scaling='bounds', and in "
        "many columns under pure ε if noise is predicted to hide gradients: discriminant where the predicted "
        "noise in second moments is below 1/√columns of the squared radius; else means, or kernel in up to "
        "32 columns without a radius and public rows.",
        choices=METHODS,
    )
    rule: str = setting(
        "auto",
        "Compare the classes as if all were as frequent (likelihood), which makes few errors in each class, "
        "or so that frequent classes weigh more (map), which makes few errors in all. auto: map for "
        "logistic, else likelihood: the tails of the kernel are long, so that the sums of a frequent class "
        "outweigh a rare one even where it is rare. With map, an eighth of the budget of means and "
        "discriminant calibrates probabilities, if at most 10⁸ numbers are kept and without public.",
        choices=RULES,
    )
    bandwidth: float | None = setting(
        None,
        NEAR,
        help=f"{NEAR.help} In more than 8 columns the default grows with their square root, as distances do.",
    )
    power: int = setting(4, POWER)
    rows: int | str = setting(
        "auto",
        "Rows of each class's sketch; a release with pure ε publishes no more of them than suit the class. "
        "'auto': 150·√ε, or 1000 with delta, whose noise does not grow with rows.",
        choices=("auto",),
        at_least=1,
    )
    radius: float | None = setting(
        None,
        "For all methods but kernel: the length that no record exceeds, from the middle of bounds and in "
        "units of their half-width; declared, longer records are shortened to it. 1 for vectors of length 1 "
        "and bounds from -1 to 1. Default: half of that of the box.",
        above=0,
    )
    column_scaling: str = setting(
        "auto",
        "For all methods but kernel: what columns are measured in, the declared bounds, or (quantiles) units "
        "of about mean 0 and variance 1 by private histograms, straight between two quantiles and beyond "
        "them by the logarithm of the distance. A quarter of the budget pays for them, or 35 % under pure ε, "
        "and records are kept, in secret, until the release. auto: quantiles, if at most 10⁸ numbers are "
        "kept for the declared number of records, without radius and public, and for means and discriminant "
        "where their noise is predicted to be small; else bounds.",
        choices=SCALINGS,
    )
    records: int | None = setting(
        None,
        "Approximate number of records, declared, for auto; the true number is private. Default: 10,000.",
        at_least=1,
    )
    public: Any = setting(
        None,
        "Rows like the records that are public, without labels: an array or a frame; or an "
        "hs.records.Transform that was learned from such rows in units of the bounds, -1 to 1. means and "
        "discriminant learn from them which directions vary how much; bounds='public' takes the range from "
        "them. What is learned from them is stored with the model, and the claim states that they were "
        "assumed to be public; they are not stored.",
        optional=True,
        group=OWNER,
    )

    _digest = cast("str | None", None)
    # Of the transformation that was learned from public rows.

    def chosen_method(self, n_features: int | None = None) -> str:
        """The method for that number of columns and the declared number of records; looks at no data."""
        promise = self.check_parameters()
        return self._choose(self._width(n_features), self.records or UNDECLARED, promise)

    def _check_together(self, promise: Promise) -> None:
        if self.method == KERNEL and self.radius is not None:
            raise UsageError("radius", "must be left out for the method kernel")
        if self.column_scaling != QUANTILES:
            return
        for name in ("radius", "public"):
            if getattr(self, name) is not None:
                raise UsageError(name, ("must be left out with ", Argument("column_scaling", QUANTILES)))
        if self.method == KERNEL:
            raise UsageError("column_scaling", "must be bounds or auto for the method kernel", got=QUANTILES)

    def _uses_public(self) -> bool:
        return self._learns() or super()._uses_public()

    def _learns(self) -> bool:
        """Whether the method learns from public rows, if there are any."""
        return self.method not in (KERNEL, LOGISTIC)

    def _choose(self, dim: int, records: int, promise: Promise) -> str:
        """The method, or for ``auto`` the one with the smallest predicted error; two classes where none are
        declared.
        """
        if self.method != AUTO:
            return self.method
        plain = self.radius is None and self.public is None
        if plain and self.column_scaling != BOUNDS and can_be_kept(dim, records):
            # Under pure ε many columns leave nothing of gradients, but something of class means.
            noise = self._gradient_steps(dim, promise).slope_noise(records) if promise.pure else 0.0
            if noise < _OVERWHELMING or dim <= MOST_KERNEL_COLUMNS:
                return LOGISTIC
        dim = self.public.dim if isinstance(self.public, Transform) else dim
        if dim <= MOST_SQUARED:
            basis = discriminant_basis(self._number_of_classes(), dim, records, promise)
            if spectral_edge(basis, promise, records) <= largest_edge(dim):
                return DISCRIMINANT
        return KERNEL if dim <= MOST_KERNEL_COLUMNS and plain else MEANS

    def _number_of_classes(self) -> int:
        known = self.classes is not None or hasattr(self, "classes_")
        return len(self.declared_classes()) if known else 2

    def _scaling(self, dim: int, method: str) -> str:
        """What columns are measured in, by declared quantities alone."""
        if self.column_scaling != AUTO:
            return self.column_scaling
        if method == KERNEL or self.radius is not None or self.public is not None:
            return BOUNDS
        records, promise = self.records or UNDECLARED, self._promise()
        paid = part_of(promise, scaling_share(promise))
        useful = method == LOGISTIC or histograms_are_useful(dim, records, paid)
        return QUANTILES if useful and can_be_kept(dim, records) else BOUNDS

    def _keeps(self, dim: int) -> bool:
        """Whether records are kept until the release."""
        method = self._choose(dim, self.records or UNDECLARED, self._promise())
        # Of a model that was loaded, public rows are unknown, and they leave columns in units of the bounds.
        scaled = self._digest is None and self._scaling(dim, method) == QUANTILES
        return method == LOGISTIC or scaled or self._calibrates(dim, method)

    def _calibrates(self, dim: int, method: str) -> bool:
        """Whether logits are fitted to the scores of means or discriminant, for which records are kept."""
        learned = self.public is not None or self._digest is not None
        fits = not learned and can_be_kept(dim, self.records or UNDECLARED)
        return self.rule == MAP and method in (MEANS, DISCRIMINANT) and fits

    def _mechanism(self, promise: Promise, n_features: int | None) -> Mechanism:
        """Hash rows, of which a record changes one cell each, always have less variance by Laplace noise."""
        hashed = promise.pure and self.method == KERNEL
        return Mechanism.of(LAPLACE) if hashed else super()._mechanism(promise, n_features)

    def kept_per_record(self, n_features: int) -> int:
        """A record and its label, where records are kept."""
        return n_features + 1 if self._keeps(n_features) else 0

    def compared_by(self, n_features: int) -> list[Kernel]:
        """The kernel of the sketches, where that is the method."""
        return super().compared_by(n_features) if self.chosen_method(n_features) == KERNEL else []

    def _default_bandwidth(self, n_features: int) -> float:
        """Records of many columns are far from each other: at a fixed bandwidth their sums would be noise."""
        return self.DEFAULT_BANDWIDTH * max(1.0, math.sqrt(n_features / _COLUMNS_AT_ONE))

    def _rows(self, promise: Promise) -> int:
        if not isinstance(self.rows, str):
            return self.rows
        if not promise.pure or promise.epsilon is None:
            return _MOST_ROWS
        return min(_MOST_ROWS, max(1, math.ceil(_ROWS_AT_ONE * math.sqrt(promise.epsilon))))

    def _ball(self, dim: int) -> float:
        """The declared radius, or half of that of the box; with public rows the box itself suffices."""
        if self.radius is not None:
            return float(self.radius)
        return math.sqrt(dim) if self.public is not None else max(1.0, math.sqrt(dim) / 2.0)

    def _strategy(self, transform: Transform | None) -> SketchOfEachClass | MomentsByClass:
        """What is counted of each class, released, and compared."""
        dim, classes = self.n_features_in_, len(self.classes_)
        if self.method_ == KERNEL:
            return SketchOfEachClass(classes, self._empty)
        records, scaled = self.records or UNDECLARED, self.column_scaling_ == QUANTILES
        given = self.column_bounds(), self.method_, records, self._ball(dim), transform, self._digest
        if self.method_ == LOGISTIC:
            return GradientSteps(classes, dim, *given, scaled=scaled)
        calibrated = self._calibrates(dim, self.method_)
        if scaled or calibrated:
            return KeptVectors(classes, dim, *given, scaled=scaled, calibrated=calibrated)
        return MomentsByClass(classes, dim, *given)

    def _start(self, seed: int) -> tuple[Any, Any]:
        """The strategy, with the transformation learned from public rows, and what it counts into."""
        dim, promise = self.n_features_in_, self._promise()
        self.method_ = self.chosen_method()
        self.column_scaling_ = self._scaling(dim, self.method_)
        transform = None
        if isinstance(self.public, Transform) and self.method_ != LOGISTIC:
            transform = self.public.of_columns(dim)
        elif self.public is not None and self.method_ not in (KERNEL, LOGISTIC):
            rows = in_units(self._public_rows(), self.column_bounds())
            transform = Transform.whitening(rows, input_radius=self._ball(dim))
        self._digest = None if transform is None else transform.digest
        chosen = self._strategy(transform)
        return chosen, chosen.start(seed, promise)

    def _count(self, secret: tuple[Any, Any], X: Floats, y: Any) -> None:
        chosen, counted = secret
        chosen.count(counted, X, y)

    def _draw(self, secret: tuple[Any, Any], promise: Promise) -> Drawn:
        chosen, counted = secret
        drawn: Drawn = chosen.draw(counted, promise)
        return drawn

    def _open(self, bundle: Bundle) -> Reading:
        return self._strategy(None).open(bundle)

    def _part_columns(self) -> dict[str, int] | dict[str, None]:
        if self.method_ != KERNEL:
            return {} if self.method_ == LOGISTIC else {_PART: None}
        return {f"class {code}": self.n_features_in_ for code in range(len(self.classes_))}

    def _facts(self) -> dict[str, Any]:
        return {**super()._facts(), "transform": self._digest}

    def _restore(self, facts: dict[str, Any]) -> None:
        super()._restore(facts)
        self._digest = facts["transform"]
        require(isinstance(self._digest, str | None), "transform")

    def _assumptions(self) -> list[str]:
        # Which method is chosen may not be known yet; the kernel rule alone learns no transformation.
        learns = self.public is not None and self._learns()
        return [*super()._assumptions(), *([PUBLIC_ROWS] if self._digest is not None or learns else [])]

    def _advice(self, n_features: int, promise: Promise) -> list[str]:
        """Where another model or parameter is usually better, and where noise hides most."""
        if self.classes is None:
            return []
        records = self.records or UNDECLARED
        method = self._choose(n_features, records, promise)
        many, found = n_features > MOST_KERNEL_COLUMNS, []
        if method == LOGISTIC:
            noise = self._gradient_steps(n_features, promise).slope_noise(records)
            if noise > _LARGE_NOISE:
                found.append(
                    f"for {records:,} records noise is predicted to hide most of the information in "
                    f"{n_features} columns (a slope of ± {noise:.2g}; below {_LARGE_NOISE} predictions are "
                    "good): classes will be predicted by their shares, or nearly so; fewer columns, more "
                    "records or epsilon, or a delta help, and a radius if records have a known length"
                )
            return found
        if len(self.declared_classes()) == 2 and promise.pure and not many:
            found.append(
                "for two classes under pure ε consider PrivateLinearSVC with method='objective' too: on "
                "tables of measurements it was up to 3 points better, and far worse for a rare class"
            )
        if self.method == AUTO and method == KERNEL:
            found.append(
                "second moments would be hidden by noise, so sketches are compared; where a plane separates "
                "the classes method='logistic' is better, and a delta or more records help"
            )
        if many and method == KERNEL:
            found.append(
                f"with {n_features} columns sketches distinguish little; leave method out, and declare a "
                "radius if records have a known length, such as 1"
            )
        elif many and self.radius is None and self._scaling(n_features, method) == BOUNDS:
            found.append(
                f"with {n_features} columns leave method and column_scaling out, or declare a radius if "
                "records have a known length, such as 1: the noise is otherwise as large as half of the box"
            )
        return found

    def _gradient_steps(self, dim: int, promise: Promise) -> LogisticSteps:
        """The gradient steps for that number of columns, after the histograms were paid."""
        if self._scaling(dim, LOGISTIC) == QUANTILES:
            promise = after_scaling(promise)
        return LogisticSteps(self._number_of_classes(), dim, promise)

    def _predicted_error(self, records: int, n_features: int, promise: Promise) -> PredictedError:
        classes = len(self.declared_classes())
        method = self._choose(n_features, self.records or records, promise)
        if method == KERNEL:
            kernel, box = self._kernel(n_features), self.column_bounds(n_features)
            error = self._error_of(kernel, max(1, records // classes), promise, box)
            return PredictedError("mean kernel value of a class", error, records, PLANNED)
        if method == LOGISTIC:
            error = self._gradient_steps(n_features, promise).slope_noise(records)
            note = f"{NOISE}, for a record of typical length; above {_LARGE_NOISE} it hides most"
            return PredictedError("slope of the log loss", error, records, note)
        dim = self.public.dim if isinstance(self.public, Transform) else n_features
        if self._scaling(n_features, method) == QUANTILES:
            promise = after_scaling(promise)
        if self._calibrates(n_features, method):
            promise = part_of(promise, 1 - CALIBRATING)
        basis = means_basis(classes, dim, promise)
        if method == DISCRIMINANT:
            basis = discriminant_basis(classes, dim, records, promise)
        error = mean_noise(basis, noise_of(basis, promise).variance, records / classes)
        note = f"{NOISE}, for vectors of the length of the radius"
        return PredictedError("inner product with the mean of a class", error, records, note)

    def predict_proba(self, X: object) -> Floats:
        """The probability of each class at each point, shape (n_queries, n_classes), by ``rule``.

        Under the rule ``map`` those of ``logistic``, and of ``means`` and ``discriminant`` where records are
        kept, are estimates of frequencies, and noise moves them towards the shares of the classes. The other
        methods' follow the rule as it is stated, not a calibration: where the sums of all classes are below
        the noise they are near to one another.
        """
        queries = self._within_bounds(self._queries(X))
        reading: Reading = self._reading()
        rule = self._as_counted().rule
        if rule == AUTO:
            rule = MAP if self.method_ == LOGISTIC else LIKELIHOOD
        return reading.probabilities(queries, rule)

    def predict(self, X: object) -> NDArray[Any]:
        """The most probable class of each point, shape (n_queries,)."""
        best = np.argmax(self.predict_proba(X), axis=1)
        return np.asarray(self.classes_[best])

    @property
    def class_prior_(self) -> Floats:
        """How frequent each class is, by the private counts; only after the release."""
        counts = self._reading().counts
        counts = counts if counts.any() else np.ones(len(counts))
        return np.asarray(counts / counts.sum())
