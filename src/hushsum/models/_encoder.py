"""A public encoding of categorical, boolean, numeric and missing columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from hushsum._types import Floats
from hushsum.errors import UsageError
from hushsum.kernels import one_of
from hushsum.records import MISSING, Bounds, DeclaredColumn, NumberColumn, choose_mixed, mixed_columns

from ._record_checks import showing_nothing

OUTPUTS: Final = ("one-hot", "codes", "sets")


class PublicEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Encode columns by public declarations: nothing is learned from the records.

    What a record becomes depends on that record and on the declarations alone, so the encoding changes no
    privacy claim. A list of categories, a range or a fill value that was read off the records is a leak that
    no transformer can see.

    Parameters
    ----------
    columns : dict of str to column, or list of columns, optional
        What each column holds: `CategoryColumn`, `DateColumn`, `FlagColumn` or `NumberColumn`. Frames and
        tables are read by the names of a dictionary, and their other columns are left out; arrays are read by
        position. None declares every column as numbers within ``bounds``, none missing.
    output : {"one-hot", "codes", "sets"}
        One-hot numbers for Euclidean, Manhattan and Gaussian kernels: one column for each category, missing
        and "other" among them; a column for numbers, and an indicator where a fill value is declared. Or
        integer codes for the Hamming kernel, numbers cut into their declared bins. Or, for the Jaccard
        kernel, the set of tokens "column=value", as a sparse matrix with a column for each token.
    scale : bool
        Whether one-hot output maps the declared range of numbers to [−1, 1], the default bounds of the
        models; otherwise numbers keep their units.
    bounds : (low, high)
        The range of every column where ``columns`` is None.

    Attributes
    ----------
    n_features_in_ : int
        How many columns a record has.

    Raises
    ------
    UsageError
        A declaration breaks a rule, or a declared column is not there.
    DataRefused
        A value that the declarations do not allow. No message shows a value.

    Examples
    --------
    >>> from hushsum.records import CategoryColumn, FlagColumn
    >>> from hushsum.records import NumberColumn
    >>> encoder = PublicEncoder({
    ...     "age": NumberColumn(0, 120, fill=60),
    ...     "job": CategoryColumn(["care", "trade"], unknown="other"),
    ...     "smoker": FlagColumn(missing="refuse"),
    ... })
    >>> encoder.transform([[30, "care", True], [None, "law", False]])
    array([[-0.5,  0. ,  1. ,  0. ,  0. ,  0. ,  0. ,  1. ],
           [ 0. ,  1. ,  0. ,  0. ,  1. ,  0. ,  1. ,  0. ]])
    >>> list(encoder.get_feature_names_out())[:4]
    ['age', 'age=missing', 'job=care', 'job=trade']
    """

    def __init__(
        self,
        columns: Mapping[str, DeclaredColumn] | Sequence[DeclaredColumn] | None = None,
        *,
        output: str = "one-hot",
        scale: bool = True,
        bounds: tuple[float, float] = (-1.0, 1.0),
    ) -> None:
        self.columns = columns
        self.output = output
        self.scale = scale
        self.bounds = bounds

    def fit(self, X: object, y: object = None) -> Self:
        """Check the declarations against the columns that are there; no value is looked at.

        Parameters
        ----------
        X : array-like, frame or table of shape (n_samples, n_features)
        y : ignored
        """
        if self.columns is None:
            self._numbers(X, reset=True)
            self._declared()
            return self
        declared = list(self._declared())
        by_name = isinstance(self.columns, Mapping)
        choose_mixed(X, count=len(declared), names=declared if by_name else None)
        self.n_features_in_ = len(declared)
        if by_name:
            self.feature_names_in_ = np.array(declared, object)
        return self

    def transform(self, X: object) -> Any:
        """Encode records.

        Parameters
        ----------
        X : array-like, frame or table of shape (n_samples, n_features)

        Returns
        -------
        float64 array, int32 array, or sparse matrix of shape (n_samples, n_features_out)
        """
        if self.columns is None:
            check_is_fitted(self)
            X = self._numbers(X, reset=False)
        declared = self._declared()
        by_name = isinstance(self.columns, Mapping)
        columns = mixed_columns(X, count=len(declared), names=list(declared) if by_name else None)
        parts = [
            (each, chunks, f"column {name!r}")
            for (name, each), chunks in zip(declared.items(), columns, strict=True)
        ]
        if self.output == "codes":
            return np.column_stack([each.codes(chunks, where) for each, chunks, where in parts])
        if self.output == "sets":
            return _tokens([(each.codes(chunks, where), each.size) for each, chunks, where in parts])
        return np.concatenate([self._one_hot(*part) for part in parts], axis=1)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """What the columns of the output are called: "age", "age=missing", "job=care".

        Parameters
        ----------
        input_features : ignored
            The declarations name the columns.
        """
        if self.columns is None:
            check_is_fitted(self)
        names = [name for column, each in self._declared().items() for name in self._names(column, each)]
        return np.array(names, object)

    def output_bounds(self) -> list[tuple[float, float]]:
        """The range of every column of one-hot output, for the ``bounds`` of a model.

        >>> PublicEncoder([NumberColumn(0, 10, fill=5)], scale=False).output_bounds()
        [(0.0, 10.0), (0.0, 1.0)]
        """
        found: list[tuple[float, float]] = []
        for column, each in self._declared().items():
            sides = [(0.0, 1.0)] * len(self._names(column, each))
            if isinstance(each, NumberColumn):
                sides[0] = (-1.0, 1.0) if self.scale else (float(each.low), float(each.high))
            found += sides
        return found

    def _declared(self) -> dict[str, DeclaredColumn]:
        """The columns by name, in order; positions are called x0, x1, …."""
        one_of("output", self.output, OUTPUTS)
        if self.columns is None:
            width = getattr(self, "n_features_in_", 1)
            box = Bounds.of(self.bounds, width)
            if box is None:
                remedy = "declare the range of the columns"
                raise UsageError("bounds", "must be (low, high)", got="none", remedy=remedy)
            names = getattr(self, "feature_names_in_", [f"x{i}" for i in range(width)])
            sides = zip(names, box.low, box.high, strict=True)
            return {str(name): NumberColumn(low, high) for name, low, high in sides}
        return declared_columns(self.columns)

    def _numbers(self, X: object, *, reset: bool) -> Any:
        """Undeclared columns, which must be numbers, checked by scikit-learn's own rules."""
        return showing_nothing(lambda: validate_data(self, X, dtype="numeric", reset=reset), X=X)

    def _names(self, column: str, each: DeclaredColumn) -> list[str]:
        if self.output == "codes":
            return [column]
        if self.output == "one-hot" and isinstance(each, NumberColumn):
            return [column] if each.fill is None else [column, f"{column}={MISSING}"]
        return [f"{column}={label}" for label in each.labels]

    def _one_hot(self, each: DeclaredColumn, chunks: Any, where: str) -> Floats:
        if not isinstance(each, NumberColumn):
            return np.eye(each.size)[each.codes(chunks, where)]
        values, missing = each.numbers(chunks, where)
        if self.scale:
            values = 2.0 * (values - each.low) / (each.high - each.low) - 1.0
        parts = [values] if each.fill is None else [values, missing.astype(np.float64)]
        return np.column_stack(parts)

    def __sklearn_is_fitted__(self) -> bool:
        return self.columns is not None or hasattr(self, "n_features_in_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = self.columns is None
        tags.input_tags.allow_nan = self.columns is not None
        tags.input_tags.categorical = self.columns is not None
        tags.input_tags.string = self.columns is not None
        return tags


def declared_columns(columns: object, order: Sequence[str] | None = None) -> dict[str, DeclaredColumn]:
    """Declared columns by name, in the order of the records' columns; positions are called x0, x1, ….

    Raises
    ------
    UsageError
        if they are not declarations, or one of the records' columns has none.
    """
    if isinstance(columns, Mapping):
        listed = {str(name): columns.get(name) for name in (columns if order is None else order)}
        complete = len(listed) == len(columns)
    else:
        listed = {f"x{i}": each for i, each in enumerate(columns if isinstance(columns, Sequence) else ())}
        complete = True
    declared = {name: each for name, each in listed.items() if isinstance(each, DeclaredColumn)}
    if not complete or not declared or len(declared) != len(listed):
        rule = "must be a dictionary or a list of CategoryColumn, DateColumn, FlagColumn and NumberColumn"
        raise UsageError("columns", rule, got="something else", remedy="declare each column")
    return declared


def _tokens(coded: Sequence[tuple[NDArray[np.int32], int]]) -> Any:
    """One token a column: a sparse 0/1 matrix whose row is the set of a record's tokens."""
    from scipy.sparse import csr_array

    starts = np.cumsum([0, *(size for _, size in coded)])
    indices = np.column_stack([codes + start for (codes, _), start in zip(coded, starts[:-1], strict=True)])
    rows, columns = indices.shape
    indptr = np.arange(0, rows * columns + 1, columns)
    return csr_array((np.ones(rows * columns), indices.ravel(), indptr), shape=(rows, int(starts[-1])))
