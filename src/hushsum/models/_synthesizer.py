"""Synthetic tables of mixed columns, from noisy marginals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, Self, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from hushsum._types import Floats
from hushsum.declaration import setting
from hushsum.errors import UsageError
from hushsum.kernels import Batch, positive_integer
from hushsum.methods import (
    DEFAULT_CELLS,
    all_pairs,
    chosen_tree,
    marginals,
    only_chosen,
    positions_of,
    tree_marginals,
)
from hushsum.privacy import (
    PERMUTE_AND_FLIP,
    Mechanism,
    Promise,
    Sensitivity,
    UnitChange,
    calibrate,
    exact,
    release_noise,
    stated_mechanism,
)
from hushsum.records import DeclaredColumn, NumberColumn, ParameterCheck, choose_mixed, in_memory, pyarrow
from hushsum.releases import Bundle, NoisyTable, ReleasedFunction, nearest_probabilities
from hushsum.tables import Marginals
from hushsum.tally import Tally

from ._accuracy import PredictedError, terms_of
from ._base import Drawn, PrivateModel, declared, require
from ._encoder import declared_columns
from ._public_rows import refuse_repeated_rows
from ._record_checks import seed_of
from ._sampler import MOST_SAMPLES

Codes = NDArray[np.int32]
Pair = tuple[int, int]

PARTS: Final = 5
"""Mixtures that are fitted from different starts: each follows other noise, so their mean has less error."""
MOST_COMPONENTS: Final = 100
FEWEST_COMPONENTS: Final = 64
"""The largest and the smallest number of components of a part.

Between the two, the number is that of the labels.
"""
ITERATIONS: Final = 1000
RATE: Final = 0.1
SHRINKAGE: Final = 0.7
"""The threshold of dependences relative to the size of the noise; see `fit_mixture`."""
SINGLE_WEIGHT: Final = 10.0
"""The weight of one column's probabilities, which all marginals with that column estimate together."""
REFRESHED: Final = 5
"""After this many steps the strengths of dependences are computed anew."""
IMPLIED_WEIGHT: Final = 0.1
"""The weight of a pair of columns that was not released, relative to a released pair: other marginals imply
it.
"""
_BELOW_ONE: Final = 1.0 - 2.0**-20
UNITS: Final = 1 << 24
"""Probabilities are stored as integers of this part."""


@dataclass(frozen=True, slots=True, eq=False)
class ProductMixture:
    """Components of equal weight; within a component the columns are independent.

    ``tables`` has a row for each component and the labels of all columns side by side; those of one column
    add up to 1. Any marginals of records can be written so, given enough components.
    """

    sizes: tuple[int, ...]
    tables: Floats

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where each column begins in a row, and where the last one ends."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    def column(self, i: int) -> Floats:
        """The probabilities of a column's labels in every component."""
        starts = self.starts
        return self.tables[:, starts[i] : starts[i + 1]]

    def marginal(self, members: Sequence[int]) -> Floats:
        """The marginal of one or two columns, as probabilities."""
        if len(members) == 1:
            return np.asarray(self.column(members[0]).mean(axis=0))
        one, two = (self.column(i) for i in members)
        return np.asarray(one.T @ two) / len(self.tables)

    def log_probability(self, codes: Codes) -> Floats:
        """The logarithm of the probability of each record's labels."""
        total = np.zeros((len(codes), len(self.tables)))
        for i in range(len(self.sizes)):
            total += np.log(np.maximum(self.column(i), 1e-12)).T[codes[:, i]]
        return np.asarray(logsumexp(total, axis=1) - math.log(len(self.tables)))

    def sample(self, number: int, random: np.random.Generator) -> Codes:
        """Labels of that number of records, each component drawn equally often up to one.

        The draws of a column within a component are stratified: each alone has the distribution of the
        component, and together they have its frequencies up to one record. They are in the order of a Sobol
        sequence, which is moved by a random shift for each component, so that those of two columns are spread
        evenly over the products of both. That leaves less sampling error than independent draws.
        """
        many = len(self.tables)
        rest = random.permutation(many)[: number % many]
        component = random.permutation(np.concatenate([np.repeat(np.arange(many), number // many), rest]))
        often = np.bincount(component, minlength=many)
        first = np.cumsum(often) - often
        turn = np.empty(number, np.int64)
        turn[np.argsort(component, kind="stable")] = np.arange(number)
        turn -= first[component]
        even = _sobol(int(often.max()), len(self.sizes))
        shift = random.random((many, len(self.sizes)))
        codes = np.empty((number, len(self.sizes)), np.int32)
        for i, size in enumerate(self.sizes):
            steps = np.cumsum(self.column(i), axis=1)
            steps /= steps[:, -1:]
            # All components in one sorted list, component k in [k, k + 1].
            places = (steps + np.arange(many)[:, None]).ravel()
            ranks = np.empty(number, np.int64)
            at = (even[turn, i] + shift[component, i]) % 1.0
            ranks[np.lexsort((at, component))] = np.arange(number)
            within = (ranks - first[component] + random.random(number)) / often[component]
            found = np.searchsorted(places, component + np.minimum(within, _BELOW_ONE), side="right")
            codes[:, i] = np.clip(found - component * size, 0, size - 1)
        return codes

    def as_units(self) -> NDArray[np.int64]:
        """The tables as integers, for a file."""
        return np.rint(self.tables * UNITS).astype(np.int64)

    @classmethod
    def from_units(cls, sizes: Sequence[int], units: NDArray[np.int64]) -> ProductMixture:
        """The mixture of a file; ValueError if it is none."""
        tables = np.asarray(units, np.float64)
        require(tables.shape == (len(tables), sum(sizes)) and len(tables), "mixture")
        mixture = cls(tuple(sizes), tables)
        for i in range(len(sizes)):
            total = mixture.column(i).sum(axis=1, keepdims=True)
            require((total > 0).all() and (mixture.column(i) >= 0).all(), "mixture")
            mixture.column(i)[:] /= total
        return mixture


def fit_mixture(
    sizes: Sequence[int],
    single: Sequence[Floats],
    pairs: Mapping[Pair, Floats],
    *,
    deviation: float,
    seed: int,
) -> ProductMixture:
    """The mixture whose marginals are nearest to noisy ones, as far as their noise lets dependences be seen.

    Least squares by gradient steps (Adam) on the logarithms of the probabilities, so that what is fitted is
    never negative and always consistent. Gram's matrix of the tables holds all marginals of two columns at
    once. A pair that was not released is implied by those on the path between its columns in a spanning tree
    of the released pairs, as in a Markov tree, and counts a tenth; without a path the columns are taken to be
    independent. The result is the mean of several such mixtures, which are fitted from different starts.

    The components differ from their mean in a few directions, whose strengths are the eigenvalues of the
    dependence matrix (Gram's matrix of those differences). Noise has eigenvalues too, of about its standard
    deviation times the root of the noisy cells in a row. A penalty, the sum of ``log(1 + eigenvalue / t)`` at
    a threshold t of that size, suppresses weaker eigenvalues and changes much stronger ones little: at small
    ε only the strongest dependences remain, without noise all of them. Before the penalty the differences of
    each label are divided by the root of its probability, as in correspondence analysis, since a rare label
    can differ little: rare values follow the others, and columns of few labels may differ more.

    Parameters
    ----------
    sizes : list of int
        The number of labels of each column.
    single, pairs : noisy marginals of one and of two columns, in units of probability
    deviation : float
        The standard deviation of the noise of each cell, in the same units.
    seed : int
        Of the starts.

    Notes
    -----
    Fazel, Hindi and Boyd, *Log-det heuristic for matrix rank minimization*, ACC 2003, introduce the penalty.
    Aydore et al., *Differentially private query release through adaptive projection*, ICML 2021, and Liu,
    Vietri and Wu, *Iterative methods for private synthetic data*, NeurIPS 2021, fit such mixtures; McKenna,
    Sheldon and Miklau, *Graphical-model based estimation*, ICML 2019, fit graphical models instead, whose
    cost grows exponentially where many pairs are released.
    """
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    width = int(starts[-1])
    goal, weight = np.zeros((width, width), np.float32), np.zeros((width, width), np.float32)
    single = _combined(single, pairs)
    ones = [nearest_probabilities(each) for each in single]
    released = {
        pair: nearest_probabilities(values.ravel()).reshape(values.shape) for pair, values in pairs.items()
    }
    tree = _implied(ones, released)
    for i, j in itertools.combinations(range(len(sizes)), 2):
        known = (i, j) in pairs
        values = pairs[i, j] if known else tree[i, j]
        rows, columns = slice(starts[i], starts[i + 1]), slice(starts[j], starts[j + 1])
        goal[rows, columns], goal[columns, rows] = values, values.T
        weight[rows, columns] = weight[columns, rows] = 1.0 if known else IMPLIED_WEIGHT
    level = np.concatenate(single).astype(np.float32)
    many = int(np.clip(width, FEWEST_COMPONENTS, MOST_COMPONENTS))
    random = np.random.default_rng(seed)
    logits = random.standard_normal((PARTS, many, width)).astype(np.float32)
    logits += np.log(np.maximum(np.concatenate(ones), 1e-4)).astype(np.float32)
    first, second = np.zeros_like(logits), np.zeros_like(logits)
    edges = starts[:-1]
    noisy_cells = 2.0 * sum(each.size for each in pairs.values()) / width
    threshold = np.float32(SHRINKAGE * deviation * math.sqrt(noisy_cells))
    likely = np.maximum(np.concatenate(ones), max(deviation, 1e-6))
    scale = np.sqrt(len(sizes) / width / likely).astype(np.float32)
    for step in range(1, ITERATIONS + 1):
        tables = _normalised(logits, edges, sizes)
        mean = tables.mean(axis=1, keepdims=True)
        residual = weight * (tables.transpose(0, 2, 1) @ tables / many - goal)
        slope = 2.0 * tables @ residual + np.float32(SINGLE_WEIGHT) * (mean - level)
        if threshold > 0.0:
            # The slope of threshold²·log det(1 + D/threshold), D the scaled dependence matrix, whose inverse
            # is that of a matrix of the components.
            apart = scale * (tables - mean)
            if step % REFRESHED == 1:
                gram = apart @ apart.transpose(0, 2, 1) / (many * threshold)
                weaker = 2.0 * threshold * np.linalg.inv(np.eye(many, dtype=np.float32) + gram)
            slope += scale * (weaker @ apart)
        slope /= many
        slope = tables * (slope - np.add.reduceat(tables * slope, edges, axis=2).repeat(sizes, axis=2))
        first += 0.1 * (slope - first)
        second += 0.01 * (slope * slope - second)
        rate = RATE * np.sqrt(1.0 - step / ITERATIONS) if step > 0.3 * ITERATIONS else RATE
        move = (first / (1.0 - 0.9**step)) / (np.sqrt(second / (1.0 - 0.99**step)) + 1e-12)
        logits -= np.float32(rate) * move
    fitted = _normalised(logits, edges, sizes).reshape(-1, width).astype(np.float64)
    return ProductMixture.from_units(sizes, ProductMixture(tuple(sizes), fitted).as_units())


def _combined(single: Sequence[Floats], pairs: Mapping[Pair, Floats]) -> list[Floats]:
    """The probabilities of each column from all marginals that contain it, by inverse variance."""
    total, weight = [np.array(each, np.float64) for each in single], np.ones(len(single))
    for pair, values in pairs.items():
        for axis, i in enumerate(pair):
            # The sum over the other column has the noise of as many cells.
            other = values.shape[1 - axis]
            total[i] += values.sum(axis=1 - axis) / other
            weight[i] += 1.0 / other
    return [each / float(among) for each, among in zip(total, weight, strict=True)]


def _sobol(number: int, columns: int) -> Floats:
    """The first points of a Sobol sequence, shape (number, columns)."""
    from scipy.stats.qmc import Sobol

    points: Floats = Sobol(columns, scramble=False).random_base2((number - 1).bit_length())
    return points[:number]


def _normalised(logits: NDArray[np.float32], edges: NDArray[np.int64], sizes: Sequence[int]) -> Floats:
    powers = np.exp(logits - np.maximum.reduceat(logits, edges, axis=2).repeat(sizes, axis=2))
    return np.asarray(powers / np.add.reduceat(powers, edges, axis=2).repeat(sizes, axis=2))


def _implied(single: Sequence[Floats], pairs: Mapping[Pair, Floats]) -> dict[Pair, Floats]:
    """The marginals of all pairs in a Markov forest: the spanning forest of strongest dependence."""
    number = len(single)
    found: dict[Pair, Floats] = {}
    part = list(range(number))

    def strength(pair: Pair) -> float:
        joint = pairs[pair]
        return -float(np.abs(joint - np.outer(joint.sum(axis=1), joint.sum(axis=0))).sum())

    def given(i: int, j: int) -> Floats:
        """The probabilities of column j given column i; those of column j alone where there is no data."""
        joint = found[i, j] if i < j else found[j, i].T
        total = joint.sum(axis=1, keepdims=True)
        return np.asarray(np.where(total > 0.0, joint / np.where(total > 0.0, total, 1.0), single[j]))

    for i, j in sorted(pairs, key=strength):
        if part[i] == part[j]:
            continue
        left = [k for k in range(number) if part[k] == part[i]]
        right = [k for k in range(number) if part[k] == part[j]]
        found[i, j] = pairs[i, j]
        for a in left:
            for b in right:
                if (a, b) != (i, j):
                    joint = found[i, j] if a == i else given(i, a).T @ found[i, j]
                    joint = joint if b == j else joint @ given(j, b)
                    found[min(a, b), max(a, b)] = joint if a < b else joint.T
        part = [part[i] if each == part[j] else each for each in part]
    for i, j in itertools.combinations(range(number), 2):
        found.setdefault((i, j), np.outer(single[i], single[j]))
    return found


MOST_LABELS: Final = 1 << 13
"""The most labels of all columns together: a fit takes the square of this number of cells."""


PREDICTED_FROM: Final = (
    "measured on other tables, within 2 × on most; expected_errors() has the error after the release"
)


def variation_after_fitting(noise: float) -> float:
    """The mean total variation of fitted marginals of two columns whose noise, before fitting, has ``noise``.

    A power of it, between how little noise remains in a few strong dependences and how much is lost with the
    weak ones. Both constants were fitted to nyc_payroll_sample and cod_rna at three budgets each
    (`benchmarks/accuracy/synthetic_tables.py`), where noise was 0.05 to 0.6.

    >>> [round(variation_after_fitting(noise), 3) for noise in (0.001, 0.1, 1.0, 100.0)]
    [0.001, 0.027, 0.122, 1.0]
    """
    return min(noise, 0.122 * math.pow(noise, 0.65), 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class FittedMarginals:
    """Released marginals, the mixture fitted to them, and the expected total variation of each."""

    table: NoisyTable
    mixture: ProductMixture
    errors: Floats

    @property
    def basis(self) -> Marginals:
        """The marginals."""
        return cast(Marginals, self.table.basis)


def fit_marginals(table: NoisyTable, seed: int) -> FittedMarginals:
    """Fit a mixture to a released table of marginals.

    The expected errors are those of a table whose truth is known: the same noise is added to the marginals
    of the mixture, and another mixture is fitted to that.

    Raises
    ------
    UsageError
        if a column alone was not released.
    """
    basis = cast(Marginals, table.basis)
    members = basis.sets
    if {(i,) for i in range(len(basis.sizes))} - set(members):
        rule = "the released marginals must contain every column alone"
        raise UsageError(rule, got="some only", remedy="count those too")
    cells = [basis.marginal(table.table, i) / table.count for i in range(len(members))]
    deviation = math.sqrt(table.cell_variance) / table.count
    mixture = _fit(basis, cells, deviation, seed)
    truth = [_cells_of(mixture, each, cell.shape) for each, cell in zip(members, cells, strict=True)]
    random = np.random.default_rng([seed, 1])
    noisy = [each + deviation * random.standard_normal(each.shape) for each in truth]
    again = _fit(basis, noisy, deviation, seed + 1)
    found = [_cells_of(again, each, true.shape) for each, true in zip(members, truth, strict=True)]
    errors = [0.5 * np.abs(one - true).sum() for one, true in zip(found, truth, strict=True)]
    return FittedMarginals(table, mixture, np.array(errors))


def _fit(basis: Marginals, cells: Sequence[Floats], deviation: float, seed: int) -> ProductMixture:
    by_members = dict(zip(basis.sets, cells, strict=True))
    single = [by_members[i,] for i in range(len(basis.sizes))]
    pairs = {(each[0], each[1]): values for each, values in by_members.items() if len(each) == 2}
    return fit_mixture(basis.sizes, single, pairs, deviation=deviation, seed=seed)


def _cells_of(mixture: ProductMixture, members: Sequence[int], shape: tuple[int, ...]) -> Floats:
    if len(members) <= 2:
        return mixture.marginal(members)
    found = np.einsum("ka->ka", mixture.column(members[0]))
    for i in members[1:]:
        found = np.einsum("ka,kb->kab", found, mixture.column(i)).reshape(len(found), -1)
    return np.asarray(found.mean(axis=0)).reshape(shape)


ALL, TREE, AUTO = "all", "tree", "auto"
PART: Final = "marginals"
MOST_NOISE_OF_ALL: Final = 200
"""Under pure ε all marginals are released where their number divided by ε, the scale of the noise of a cell
in records, is at most this; otherwise a tree. With more noise a tree was better on the sets that constants
were tuned on, with less all pairs were. The number of records is not known when this is decided.
"""
TREE_GAP: Final = 0.05
"""The error of pairs that a tree leaves out, beside that of noise, on the same sets."""
_MIXTURE, _ERRORS = "mixture", "expected_errors"


@declared
class PrivateSynthesizer(PrivateModel):
    """Synthetic records of mixed columns that have the noisy marginals of the private ones.

    Works well for tables of up to some tens of columns of categories and numbers. Dependences of three and
    more columns are kept only as far as those of two imply them, and numbers are even within a bin. For the
    density of up to three columns of numbers see `PrivateSampler`.

    Privacy
    -------
    One release. ``marginals="all"`` is a public rule: every column and every two columns with at most
    ``most_cells`` cells are released, m marginals with Δ1 = m and Δ2 = √m, as `Marginals` proves. With
    ``"tree"`` a spanning tree of pairs is chosen first, for ``choice_share`` of ε, by permute-and-flip
    (`chosen_tree`); ε of the choice and of the release add up. Fitting and drawing spend nothing. The
    declarations and types of columns are public knowledge; the number of records is not, and comes from the
    release. Synthetic records carry the claim, not a promise that none of them resembles a private one.

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
    columns: Any = setting(
        None,
        "What each column holds: a dict by name, or a list, of CategoryColumn, DateColumn, FlagColumn and "
        "NumberColumn. "
        "None declares every column as numbers within bounds, cut into bins.",
        optional=True,
    )
    bins: int = setting(16, "Parts of the bounds of each column, where columns are not declared.", at_least=1)
    marginals: str = setting(
        AUTO,
        "Which marginals of two columns are released: all of them, a public rule; a spanning tree, chosen "
        "privately for a part of the budget; or (auto) a tree where there is no δ and more than 200·ε "
        "marginals, otherwise all.",
        choices=(AUTO, ALL, TREE),
    )
    pairs: Any = setting(
        None,
        "The pairs of columns that may be released, by name or position, declared; None for all.",
        optional=True,
    )
    most_cells: int = setting(DEFAULT_CELLS, "Pairs whose marginal has more cells are left out.", at_least=1)
    choice_share: float = setting(0.1, "The part of ε that pays for a tree.", above=0, below=1)

    def check_records(self, X: object, y: object = None, *, reset: bool = True) -> tuple[Any, Any]:
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
                refuse_repeated_rows(self.public, X, rows, self._given_names())
            return self._empty().basis.prepare(rows).arrays[0], None
        declared = self._declared()
        X = in_memory(X)
        names = list(declared) if isinstance(self.columns, Mapping) else None
        choose_mixed(X, count=len(declared), names=names)
        if reset:
            self._set_columns(len(declared), names)
        return self._empty().basis.prepare(X).arrays[0], None

    def _parameter_checks(self) -> list[ParameterCheck]:
        box, names = self._empty().basis.declared_ranges()
        if box is None:
            return []
        default = self.columns is None and self._undeclared("bounds")
        return [ParameterCheck(box, columns=names or self._column_names(), default=default)]

    def _compared(self, X: object, records: Any, target: Any) -> list[Floats]:
        """The columns of numbers: what is counted are labels."""
        basis = self._empty().basis
        return [] if basis.declared_ranges()[0] is None else [basis.declared_numbers(X)]

    def _start(self, seed: int) -> Tally:
        return self._empty()

    def _empty(self, n_features: int | None = None) -> Tally:
        declared = self._declared(n_features)
        return marginals(declared if self._named else list(declared.values()), sets=self._sets(declared))

    def _count(self, secret: Tally, X: Any, y: Any) -> None:
        secret.add(Batch((X,), len(X)))

    def _draw(self, secret: Tally, promise: Promise) -> Drawn:
        if self._rule(promise, self.n_features_in_) == ALL:
            part = secret.release(**terms_of(promise))
        else:
            spent, left = self._split(promise)
            with release_noise(None) as noise:
                chosen = chosen_tree(secret, spent, noise)
            part = only_chosen(secret, chosen).release(**terms_of(replace(promise, epsilon=left)))
        return Drawn({PART: part}, self._fit_to(cast(NoisyTable, part)))

    def fit_released(self, function: ReleasedFunction) -> Self:
        """Fit to a released table of marginals, such as one that several sites or a stream released: free.

        The columns are those of the table; the claim is that of the table too.

        Parameters
        ----------
        function : ReleasedFunction
            Of a tally that :func:`hushsum.methods.marginals` made, with every column alone.
        """
        if not isinstance(function, NoisyTable) or not isinstance(basis := function.basis, Marginals):
            rule = "a synthesizer is fitted to a released table of marginals"
            remedy = "count them with hushsum.methods.marginals"
            raise UsageError(rule, got=type(function).__name__, remedy=remedy)
        declared = list(basis.encodings)
        names = basis.columns
        self.columns = declared if names is None else dict(zip(names, declared, strict=True))
        self._set_columns(len(declared), names)
        seed = seed_of(self.random_state)
        return self._made_of(function, seed, Drawn({PART: function}, self._fit_to(function, seed)))

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
        require(list(basis.encodings) == list(self._declared().values()), "columns")
        require(errors.shape == (len(basis.sets),), "errors")
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
        number = positive_integer("n_samples", n_samples, at_most=MOST_SAMPLES)
        fitted: FittedMarginals = self._reading()
        random = np.random.default_rng(seed_of(random_state))
        codes = fitted.mixture.sample(number, random)
        drawn = [each.drawn(codes[:, i], random) for i, each in enumerate(fitted.basis.encodings)]
        if self.columns is None:
            return np.column_stack([np.asarray(each, np.float64) for each in drawn])
        pa, names = pyarrow(), fitted.basis.columns or [f"x{i}" for i in range(len(drawn))]
        # In the types that the declarations give them; NaN becomes a null.
        types = [pa.type_for_alias(each.type_name) for each in fitted.basis.encodings]
        columns = [pa.array(each, from_pandas=True).cast(to) for each, to in zip(drawn, types, strict=True)]
        return pa.table(columns, names=list(names))

    def decision_function(self, X: object) -> Floats:
        """The logarithm of the probability that a synthetic record has the labels of each of these.

        Parameters
        ----------
        X : records of shape (n_samples, n_features)
            Public ones.
        """
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
        labels = sum(each.size for each in declared.values())
        if labels > MOST_LABELS:
            rule = f"must have at most {MOST_LABELS} labels together"
            raise UsageError("columns", rule, got=labels, remedy="declare fewer bins or categories")
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
        return declared_columns(self.columns, self._column_names())

    def column_bounds(self, n_features: int | None = None) -> list[tuple[float, float]]:
        """The declared range of each column; of categories that of their codes."""
        if self.columns is None:
            return super().column_bounds(n_features)
        return [
            (float(each.low), float(each.high)) if isinstance(each, NumberColumn) else (0.0, float(each.size))
            for each in self._declared().values()
        ]

    def _width(self, n_features: int | None) -> int:
        known = n_features is None and not hasattr(self, "n_features_in_") and self.columns is not None
        return len(self._declared()) if known else super()._width(n_features)

    def _sets(self, declared: Mapping[str, DeclaredColumn]) -> list[tuple[int, ...]]:
        sizes = [each.size for each in declared.values()]
        if self.pairs is None:
            return all_pairs(sizes, self.most_cells)
        given = set(positions_of(self.pairs, len(sizes), list(declared) if self._named else None))
        pairs = all(len(set(each)) == len(each) == 2 for each in given)
        if not pairs or any(sizes[i] * sizes[j] > self.most_cells for i, j in given):
            rule = f"must be pairs of different columns, each with at most {self.most_cells} cells"
            raise UsageError("pairs", rule, got="others", remedy="list pairs, or declare fewer labels")
        return [*((i,) for i in range(len(sizes))), *sorted(given)]

    def _rule(self, promise: Promise, n_features: int) -> str:
        if self.marginals != AUTO:
            return self.marginals
        if not promise.pure:
            return ALL
        assert promise.epsilon is not None
        return (
            TREE if len(self._sets(self._declared(n_features))) > MOST_NOISE_OF_ALL * promise.epsilon else ALL
        )

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
        if tree := self._rule(promise, n_features) == TREE:
            number = tree_marginals(len(sizes), pairs)
            left = Promise.of(epsilon=self._split(promise)[1], delta=promise.delta)
        listed = [sizes[i] * sizes[j] for i, j in pairs] or sizes
        cells = float(np.mean(listed))
        change = UnitChange(Sensitivity(l1=number, l2_squared=number, largest=1), count=1, records=1)
        mechanism = stated_mechanism(left)
        noise = calibrate(left, change, cells=max(sum(listed), number), mechanism=mechanism).table
        # Half the sum of the mean absolute errors of its cells.
        before = 0.5 * cells * math.sqrt(noise.variance * 2.0 / math.pi) / max(records, 1)
        # Columns alone have no dependences between which the fit could distinguish.
        after = variation_after_fitting(before) if pairs else before
        error = min(after + (TREE_GAP if tree else 0.0), 1.0)
        return PredictedError("total variation of a marginal of two columns", error, records, PREDICTED_FROM)
