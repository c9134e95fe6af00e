"""Synthetic tables of mixed columns, from noisy marginals."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final, Self, cast

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.bases.marginals import Marginals
from hushsum.errors import UsageError
from hushsum.kernels.base import Batch
from hushsum.kernels.parameters import positive_integer
from hushsum.methods.marginals import (
    DEFAULT_CELLS,
    all_pairs,
    chosen_tree,
    marginals,
    only_chosen,
    positions_of,
    tree_marginals,
)
from hushsum.models.base import PrivateModel
from hushsum.models.marginal_fit import BEFORE_FITTING, FittedMarginals, error_before_fitting, fit_marginals
from hushsum.models.model_state import ModelState
from hushsum.models.parameters import ANY, INTEGER, NUMBER, TEXT, Parameter, parameters_of_claim
from hushsum.models.predicted_error import PredictedError
from hushsum.models.product_mixture import ProductMixture
from hushsum.models.public_rows import refuse_repeated_rows
from hushsum.models.record_checks import generator_of
from hushsum.models.synthetic_columns import (
    arrow_column,
    bounds_of_column,
    check_labels,
    columns_in_order,
)
from hushsum.privacy.claim import Promise, exact
from hushsum.privacy.mechanism import Mechanism
from hushsum.privacy.release_noise import PERMUTE_AND_FLIP, release_noise
from hushsum.records import arrow
from hushsum.records.data_derived_parameters import ParameterCheck
from hushsum.records.declared_columns import DeclaredColumn
from hushsum.records.mixed_columns import choose_mixed
from hushsum.records.number_column import NumberColumn
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.bundle import Bundle
from hushsum.releases.noisy_table import NoisyTable
from hushsum.tally.tally import Tally

ALL, TREE, AUTO = "all", "tree", "auto"
PART: Final = "marginals"
MOST_SAMPLES: Final = 1 << 30
MOST_COLUMNS_OF_ALL: Final = 12
"""Up to so many columns all pairs are better than a tree under pure ε: they were on all sets that constants
were tuned on (`benchmarks/synthetic_tables.py`), which have 9 to 11.
"""
_MIXTURE, _ERRORS = "mixture", "expected_errors"


class PrivateSynthesizer(PrivateModel):
    """Synthetic records of mixed columns that have the noisy marginals of the private ones.

    Works well for tables of up to some tens of columns of categories and numbers. Dependences of three and
    more columns are kept only as far as those of two imply them, and numbers are even within a bin. For the
    density of up to three columns of numbers see `PrivateSampler`.

    Privacy
    -------
    One release. ``marginals="all"`` is a public rule: every column and every two columns with at most
    ``most_cells`` cells are released, m marginals with Δ1 = m and Δ2 = √m, whose proof is in
    `hushsum.bases.marginals`. With ``"tree"`` a spanning tree of pairs is chosen first, for ``choice_share``
    of ε, by permute-and-flip (`hushsum.methods.marginals.chosen_tree`); ε of the choice and of the release
    add up. Fitting (`hushsum.models.product_mixture`) and drawing spend nothing. The declarations and types
    of columns are public knowledge; the number of records is not, and comes from the release. Synthetic
    records carry the claim, not a promise that none of them resembles a private one.

    Examples
    --------
    >>> from hushsum.models import CategoryColumn, NumberColumn
    >>> columns = {"age": NumberColumn(0, 100, bins=10), "sex": CategoryColumn(["f", "m"])}
    >>> model = PrivateSynthesizer(columns=columns, epsilon=1.0, delta=1e-6)
    >>> table = model.fit([[31, "f"], [72, "m"]] * 5000).sample(1000, random_state=0)
    >>> table.column_names, table.num_rows
    (['age', 'sex'], 1000)
    """

    COMMAND = "synthesizer"
    PARAMETERS = (
        Parameter(
            "columns",
            ANY,
            "What each column holds: a dict by name, or a list, of CategoryColumn, FlagColumn and "
            "NumberColumn. None declares every column as numbers within bounds, cut into bins.",
            optional=True,
        ),
        Parameter(
            "bins", INTEGER, "Parts of the bounds of each column, where columns are not declared.", at_least=1
        ),
        Parameter(
            "marginals",
            TEXT,
            "Which marginals of two columns are released: all of them, a public rule; a spanning tree, "
            "chosen privately for a part of the budget; or (auto) a tree for more than 12 columns without δ, "
            "otherwise all.",
            choices=(AUTO, ALL, TREE),
        ),
        Parameter(
            "pairs",
            ANY,
            "The pairs of columns that may be released, by name or position, declared; None for all.",
            optional=True,
        ),
        Parameter(
            "most_cells", INTEGER, "Pairs whose marginal has more cells are left out.", at_least=1
        ),
        Parameter(
            "choice_share", NUMBER, "The part of ε that pays for a tree.", above=0, below=1
        ),
    )  # fmt: skip

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        columns: Any = None,
        bounds: Any = (-1, 1),
        bins: int = 16,
        marginals: str = AUTO,
        pairs: Any = None,
        most_cells: int = DEFAULT_CELLS,
        choice_share: float = 0.1,
        public: Any = None,
        random_state: Any = None,
        budget: Any = None,
        idempotency_key: str | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.columns = columns
        self.bounds = bounds
        self.bins = bins
        self.marginals = marginals
        self.pairs = pairs
        self.most_cells = most_cells
        self.choice_share = choice_share
        self.public = public
        self.random_state = random_state
        self.budget = budget
        self.idempotency_key = idempotency_key

    def check_records(
        self, X: object, y: object = None, *, reset: bool = True
    ) -> tuple[Any, NDArray[Any] | None]:
        """The label of each value, by the declarations.

        Raises
        ------
        DataRefused
            A value that the declarations do not allow, or no records; no message shows a value.
        """
        if self.columns is None:
            rows = self._checked(X, reset=reset)
            # Here, since what is counted, and compared by `fit`, are labels.
            if self.public is not None:
                refuse_repeated_rows(self.public, X, rows, super()._column_names())
            return self._empty().basis.prepare(rows).arrays[0], None
        declared = self._declared()
        X = arrow.in_memory(X)
        names = list(declared) if isinstance(self.columns, Mapping) else None
        choose_mixed(X, count=len(declared), names=names)
        if reset:
            self.n_features_in_ = len(declared)
            if names is not None:
                self.feature_names_in_ = np.array(names, object)
        return self._empty().basis.prepare(X).arrays[0], None

    def _parameter_checks(self) -> list[ParameterCheck]:
        box, names = self._empty().basis.declared_ranges()
        return [] if box is None else [ParameterCheck(box, columns=names or self._column_names())]

    def _compared(self, X: object, records: Any, target: NDArray[Any] | None) -> list[Floats]:
        """The columns of numbers: what is counted are labels."""
        basis = self._empty().basis
        return [] if basis.declared_ranges()[0] is None else [basis.declared_numbers(X)]

    def _start(self, seed: int) -> Tally:
        return self._empty()

    def _empty(self, n_features: int | None = None) -> Tally:
        declared = self._declared(n_features)
        return marginals(declared if self._named else list(declared.values()), sets=self._sets(declared))

    def _count(self, secret: Tally, X: Any, y: NDArray[Any] | None) -> None:
        secret.add(Batch((X,), len(X)))

    def _draw(self, secret: Tally, promise: Promise) -> Bundle:
        if self._rule(promise, self.n_features_in_) == ALL:
            part = secret.release(epsilon=self.epsilon, delta=self.delta)
        else:
            spent, left = self._split(promise)
            with release_noise(None) as noise:
                chosen = chosen_tree(secret, spent, noise)
            part = only_chosen(secret, chosen).release(epsilon=left, delta=self.delta)
        return self._bundle(promise, parts={PART: part}, arrays=self._fit_to(cast(NoisyTable, part)))

    def fit_released(self, function: ReleasedFunction) -> Self:
        """Fit to a released table of marginals, such as one that several sites or a stream released: free.

        The columns are those of the table; the claim is that of the table too.

        Parameters
        ----------
        function : ReleasedFunction
            Of a tally that :func:`hushsum.marginals` made, with every column alone.
        """
        if not isinstance(function, NoisyTable) or not isinstance(basis := function.basis, Marginals):
            raise UsageError(
                rule="a synthesizer is fitted to a released table of marginals",
                got=type(function).__name__,
                remedy="count them with hushsum.marginals",
            )
        declared = [each.column for each in basis.encodings]
        named = basis.columns is not None
        self.columns = dict(zip(basis.columns or (), declared, strict=True)) if named else declared
        self.n_features_in_ = len(declared)
        if basis.columns is not None:
            self.feature_names_in_ = np.array(basis.columns, object)
        seed = int(generator_of(self.random_state).randint(np.iinfo(np.int32).max))
        facts = self._described()
        facts["parameters"] |= parameters_of_claim(function.claim)
        arrays = self._fit_to(function, seed)
        bundle = Bundle(function.claim, {**facts, "seed": seed}, {PART: function}, arrays)
        self._state = ModelState.opened(bundle, facts, seed)
        return self

    def _fit_to(self, table: NoisyTable, seed: int | None = None) -> dict[str, NDArray[Any]]:
        """The mixture, and the expected error of each marginal: all computed from the release."""
        fitted = fit_marginals(table, self._state.seed if seed is None else seed)
        return {_MIXTURE: fitted.mixture.as_units(), _ERRORS: fitted.errors}

    def _part_columns(self) -> dict[str, int]:
        return {PART: self.n_features_in_}

    def _open(self, bundle: Bundle) -> FittedMarginals:
        table = bundle.parts[PART]
        if not isinstance(table, NoisyTable) or not isinstance(basis := table.basis, Marginals):
            raise ValueError("part")
        errors = np.asarray(bundle.arrays[_ERRORS], np.float64)
        if [each.column for each in basis.encodings] != list(self._declared().values()):
            raise ValueError("columns")
        if errors.shape != (len(basis.sets),):
            raise ValueError("errors")
        return FittedMarginals(table, ProductMixture.from_units(basis.sizes, bundle.arrays[_MIXTURE]), errors)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Any:
        """Synthetic records. Spends nothing beyond the one release.

        Parameters
        ----------
        n_samples : int
        random_state : int, RandomState or None
            Of the draws; with an integer they are the same every time.

        Returns
        -------
        pyarrow.Table, or array of shape (n_samples, n_features)
            A table with the declared names and types; an array where no columns were declared.
        """
        given: Any = n_samples
        whole = int(given) if isinstance(given, np.integer) else given
        number = positive_integer("n_samples", whole, at_most=MOST_SAMPLES)
        fitted: FittedMarginals = self._reading()
        random = np.random.default_rng(int(generator_of(random_state).randint(np.iinfo(np.int32).max)))
        codes = fitted.mixture.sample(number, random)
        drawn = [each.column.drawn(codes[:, i], random) for i, each in enumerate(fitted.basis.encodings)]
        if self.columns is None:
            return np.column_stack([np.asarray(each, np.float64) for each in drawn])
        names = fitted.basis.columns or [f"x{i}" for i in range(len(drawn))]
        columns = [
            arrow_column(each.column, values)
            for each, values in zip(fitted.basis.encodings, drawn, strict=True)
        ]
        return arrow.pyarrow().table(columns, names=list(names))

    def decision_function(self, X: object) -> Floats:
        """The logarithm of the probability that a synthetic record has the labels of each of these.

        Parameters
        ----------
        X : records of shape (n_samples, n_features)
            Public ones.
        """
        if not self.__sklearn_is_fitted__():
            raise self._not_fitted()
        fitted: FittedMarginals = self._reading()
        rows = self._checked(X, reset=False) if self.columns is None else X
        return fitted.mixture.log_probability(fitted.basis.prepare_queries(rows).arrays[0])

    def _example(self) -> Any:
        return self.sample(1, random_state=0)

    def expected_errors(self) -> dict[tuple[str, ...], float]:
        """The expected total variation between the fitted and the private marginal, for each released one.

        It is found by adding the same noise to the fitted marginals and fitting again, so that the truth is
        known. Draws of n records add their own sampling error.
        """
        fitted: FittedMarginals = self._reading()
        return dict(zip(fitted.basis.set_names(), fitted.errors.tolist(), strict=True))

    @property
    def function_(self) -> NoisyTable:
        """The released marginals, a function of the Hamming kernel; only after the release."""
        fitted: FittedMarginals = self._reading()
        return fitted.table

    def _check_together(self, promise: Promise) -> None:
        if self.columns is None:
            return
        declared = self._declared()
        check_labels(declared.values())
        if self.pairs is not None:
            self._sets(declared)

    @property
    def _named(self) -> bool:
        return isinstance(self.columns, Mapping)

    def _declared(self, n_features: int | None = None) -> dict[str, DeclaredColumn]:
        """The declarations by name, in the order of the records' columns."""
        if self.columns is None:
            return {
                f"x{i}": NumberColumn(low, high, bins=self.bins)
                for i, (low, high) in enumerate(self.column_bounds(n_features))
            }
        return columns_in_order(self.columns, self._column_names())

    def column_bounds(self, n_features: int | None = None) -> list[tuple[float, float]]:
        """The declared range of each column; of categories that of their codes."""
        if self.columns is None:
            return super().column_bounds(n_features)
        return [bounds_of_column(each) for each in self._declared().values()]

    def _width(self, n_features: int | None) -> int:
        known = n_features is None and not hasattr(self, "n_features_in_") and self.columns is not None
        return len(self._declared()) if known else super()._width(n_features)

    def _sets(self, declared: Mapping[str, DeclaredColumn]) -> list[tuple[int, ...]]:
        sizes = [each.size for each in declared.values()]
        if self.pairs is None:
            return all_pairs(sizes, self.most_cells)
        given = set(positions_of(self.pairs, len(sizes), list(declared) if self._named else None))
        if not all(len(set(each)) == len(each) == 2 for each in given) or any(
            sizes[i] * sizes[j] > self.most_cells for i, j in given
        ):
            raise UsageError(
                parameter="pairs",
                rule=f"must be pairs of different columns, each with at most {self.most_cells} cells",
                got="others",
                remedy="list pairs, or declare fewer labels",
            )
        return [*((i,) for i in range(len(sizes))), *sorted(given)]

    def _rule(self, promise: Promise, n_features: int) -> str:
        if self.marginals != AUTO:
            return self.marginals
        return TREE if promise.pure and n_features > MOST_COLUMNS_OF_ALL else ALL

    def _split(self, promise: Promise) -> tuple[Fraction, Fraction]:
        """ε of the choice, and what is left for the release."""
        assert promise.epsilon is not None
        spent = promise.epsilon * exact("choice_share", self.choice_share)
        return spent, promise.epsilon - spent

    def _mechanism(self, promise: Promise, n_features: int | None) -> Mechanism:
        noise = super()._mechanism(promise, n_features)
        chosen = Mechanism.of(PERMUTE_AND_FLIP) + noise
        columns = len(self._declared()) if n_features is None and self.columns is not None else n_features
        if columns is not None:
            return noise if self._rule(promise, columns) == ALL else chosen
        return {ALL: noise, TREE: chosen}.get(self.marginals, noise | chosen if promise.pure else noise)

    def _predicted_error(self, records: int, n_features: int, promise: Promise) -> PredictedError:
        declared = self._declared(n_features)
        sizes = [each.size for each in declared.values()]
        pairs = [each for each in self._sets(declared) if len(each) == 2]
        number, left = len(sizes) + len(pairs), promise
        if self._rule(promise, n_features) == TREE:
            number = tree_marginals(len(sizes), pairs)
            left = Promise.of(epsilon=self._split(promise)[1], delta=promise.delta)
        error = error_before_fitting(sizes, pairs, number, left, records)
        return PredictedError("total variation of a marginal of two columns", error, records, BEFORE_FITTING)
