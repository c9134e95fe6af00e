"""Transformations of records: matrices learned on declared public rows, ONNX models, one record at a time and
checked before a library runs them, and pipelines of them.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import DataRefused, FileRefused, UsageError

from ._arrow import as_dense
from ._bounds import clipped_to_ball

__all__ = ["RANDOM_OPERATIONS", "OnnxTransform", "Transform", "operations_of"]

FEWEST_ROWS: Final = 10
MOST_COLUMNS: Final = 1 << 12
# Images of records are then far from the largest number of 32 bits.
_LEAST_RIDGE: Final = 1e-24
# The ridge of whitening, in units of the variance per public row: with m rows, a covariance is known to about
# its trace over m. Chosen with the three sets of the embedding benchmark in view.
RIDGE_ROWS: Final = 10.0
# By how much of its largest number a linear step may differ from its matrix: steps may run in float32.
_LINEAR: Final = 1e-3

# Rows and the codes of their labels to a matrix of shape (directions, columns).
Learner = Callable[[Floats, NDArray[np.int64]], Floats]


def public_rows(public: object) -> Floats:
    """Public rows as an array; DataRefused for anything but rows of finite numbers."""
    shape = getattr(public, "shape", None) or np.asarray(public).shape
    if len(shape) != 2 or shape[0] < FEWEST_ROWS or not 0 < shape[1] <= MOST_COLUMNS:
        rule = f"must be at least {FEWEST_ROWS} rows of at most {MOST_COLUMNS} columns"
        raise _public(rule, "another shape", "give more public rows, or leave them out")
    return as_dense(public, dim=int(shape[1])).astype(np.float64)


def _public(rule: str, got: str, remedy: str) -> DataRefused:
    return DataRefused("public", rule, got=got, remedy=remedy)


def label_codes(labels: object, rows: int) -> NDArray[np.int64]:
    """The places of public labels in the sorted list of them; at least two labels of two rows each."""
    given = np.asarray(labels)
    codes = np.unique(given, return_inverse=True)[1].ravel() if given.ndim == 1 else np.zeros(0, np.int64)
    if len(codes) != rows or (np.bincount(codes) < 2).any() or len(np.unique(codes)) < 2:
        raise DataRefused(
            "labels",
            "must be one label for each public row, of two classes at least with two rows each",
            got="others",
            remedy="give the labels of the public rows, or learn without labels",
        )
    return np.asarray(codes, np.int64)


def spectrum(rows: Floats) -> tuple[Floats, Floats]:
    """Variances along principal directions, largest first, and those directions as rows."""
    centred = rows - rows.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred / max(len(rows) - 1, 1))
    return np.maximum(values[::-1], 0.0), vectors[:, ::-1].T


def whitened(rows: Floats, codes: NDArray[np.int64]) -> Floats:
    """Principal directions, each divided by the root of its variance plus a ridge."""
    values, directions = spectrum(rows)
    ridge = RIDGE_ROWS * float(values.sum()) / len(rows)
    if ridge < _LEAST_RIDGE:
        rule = "must differ from each other, in each half of them"
        raise _public(rule, "rows that are all alike", "shuffle them, or give others")
    return np.asarray(directions / np.sqrt(values + ridge)[:, None])


def principal(rows: Floats, codes: NDArray[np.int64]) -> Floats:
    """Principal directions."""
    return spectrum(rows)[1]


def discriminant(rows: Floats, codes: NDArray[np.int64]) -> Floats:
    """Fisher's directions, one less than there are classes: rows are whitened within their classes, and the
    principal directions of the class means are taken.
    """
    numbers = np.bincount(codes)
    means = np.stack([rows[codes == code].mean(axis=0) for code in range(len(numbers))])
    within = whitened(rows - means[codes], codes)
    apart = (means - rows.mean(axis=0)) @ within.T
    _, _, directions = np.linalg.svd(np.sqrt(numbers)[:, None] * apart, full_matrices=False)
    return np.asarray(directions[: len(numbers) - 1] @ within)


def neighbourhood(directions: int) -> Learner:
    """Neighbourhood components (Goldberger et al. 2004), by scikit-learn, from the principal directions."""

    def learn(rows: Floats, codes: NDArray[np.int64]) -> Floats:
        import warnings

        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neighbors import NeighborhoodComponentsAnalysis

        before = whitened(rows, codes)[: max(directions, min(len(rows) // 4, rows.shape[1]))]
        analysis = NeighborhoodComponentsAnalysis(
            n_components=directions, init="pca", max_iter=50, random_state=0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            analysis.fit((rows - rows.mean(axis=0)) @ before.T, codes)
        return np.asarray(analysis.components_ @ before)

    return learn


def matrix_of_steps(steps: Any, rows: Floats) -> tuple[Floats, Floats]:
    """Matrix and constant of a fitted transformer or pipeline whose steps are linear, from its images of the
    unit vectors and of zero; UsageError if its images of the public rows are others.
    """
    size = max(float(np.abs(rows).max()), 1e-12)
    columns = rows.shape[1]
    origin = np.asarray(steps.transform(np.zeros((1, columns))), np.float64)
    images = np.asarray(steps.transform(size * np.eye(columns)), np.float64)
    linear = origin.ndim == 2 and bool(np.isfinite(images).all() and np.isfinite(origin).all())
    if linear:
        matrix = ((images - origin) / size).T
        found = np.asarray(steps.transform(rows), np.float64)
        error = np.abs(rows @ matrix.T + origin - found).max()
        linear = error <= _LINEAR * max(float(np.abs(found - found.mean(axis=0)).max()), 1e-12)
    if not linear:
        raise UsageError(
            "steps",
            "must be linear: its images of unit vectors and of public rows must agree",
            got="another transformation",
            remedy="leave out steps such as Normalizer, or apply them to each record alone beforehand",
        )
    return matrix, np.asarray(origin[0])


def shrunk_variances(rows: Floats, matrix: Floats) -> Floats:
    """The variances of the images' columns, by the covariance that is shrunk towards a multiple of the
    identity as far as its own error demands (Ledoit and Wolf 2004).
    """
    from sklearn.covariance import ledoit_wolf

    return np.asarray(np.maximum(((matrix @ ledoit_wolf(rows)[0]) * matrix).sum(axis=1), 0.0))


# The quantile of lengths that results are clipped to. The direction of a whitened record tells more than its
# length, so most may be shortened: chosen with the three sets of the embedding benchmark in view.
_SHORT: Final = 0.1
# That of results of few columns, learned with labels, of which the length tells something too.
_HALF: Final = 0.5
_INPUT_BITS: Final = 20
_MATRIX_BITS: Final = 20


@dataclass(frozen=True, eq=False)
class Transform:
    """x ↦ M·(x − centre), learned on declared public data, in integers.

    A record is clipped to ``input_radius``, rounded to 20 bits, multiplied by a matrix of integers, and
    scaled. ``radius`` is the length to which the result is to be clipped: a tenth of the public rows that the
    matrix was not learned from are shorter.

    Made by :meth:`whitening`, :meth:`principal` or :meth:`centring`, with public labels by
    :meth:`discriminant` or :meth:`neighbourhood`, or from a fitted scikit-learn pipeline of linear steps by
    :meth:`of_steps`; not by hand.

    Attributes
    ----------
    matrix : array of int64, shape (dim, columns)
    offset : array of int64, shape (dim,)
        The image of the centre.
    scale : float
        What a step of the result is worth.
    input_radius, radius : float
        Declared for records, and learned from public rows for results.
    variances : array of shape (dim,)
        Of the columns of results, estimated from public rows and shrunk (Ledoit and Wolf 2004). Where public
        rows vary much, classes are expected to differ much.

    Privacy
    -------
    The matrix must not depend on private records: its data are declared public, which the claim of a release
    states as an assumption. Products and sums of integers below 2⁵³ are exact in double precision in any
    order, so a record's image does not depend on the batch, on its place in it or on the library that
    multiplies. (In floating point it would: a matrix product gives a row other last bits in another batch.)

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(1000, 3)) * [1.0, 0.1, 0.01]
    >>> transform = Transform.whitening(rows, input_radius=5.0)
    >>> transform.apply(rows).std(axis=0).round(1).tolist()
    [1.0, 0.7, 0.1]
    """

    matrix: NDArray[np.int64]
    offset: NDArray[np.int64]
    scale: float
    input_radius: float
    radius: float
    variances: Floats
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        numbers = (self.scale, self.input_radius, self.radius)
        outputs, columns = self.matrix.shape if self.matrix.ndim == 2 else (0, 0)
        if not (
            self.matrix.dtype == self.offset.dtype == np.int64
            and 0 < columns <= MOST_COLUMNS
            and 0 < outputs <= MOST_COLUMNS
            and self.offset.shape == self.variances.shape == (outputs,)
            and _within(self.matrix, 1 << _MATRIX_BITS)
            and _within(self.offset, (1 << 52) - 1)
            and all(math.isfinite(each) and each > 0.0 for each in numbers)
            and (np.isfinite(self.variances) & (self.variances >= 0.0)).all()
        ):
            raise _nonsense()
        for name in ("matrix", "offset", "variances"):
            # The digest is that of these numbers: nobody may change them later.
            kept = np.array(getattr(self, name))
            kept.flags.writeable = False
            object.__setattr__(self, name, kept)
        hashed = hashlib.sha256()
        for array in (self.matrix, self.offset):
            hashed.update(np.array(array.shape, "<i8").tobytes())
            hashed.update(np.ascontiguousarray(array, "<i8").tobytes())
        hashed.update(np.array(numbers, "<f8").tobytes())
        hashed.update(np.ascontiguousarray(self.variances, "<f8").tobytes())
        object.__setattr__(self, "digest", hashed.hexdigest())

    @property
    def dim(self) -> int:
        """Columns of the result."""
        return int(self.matrix.shape[0])

    @property
    def columns(self) -> int:
        """Columns of a record."""
        return int(self.matrix.shape[1])

    @classmethod
    def whitening(cls, public: object, *, input_radius: float, directions: int | None = None) -> Transform:
        """Principal directions of public rows, each divided by the root of its variance plus a ridge.

        Parameters
        ----------
        public : array-like of shape (n_rows, n_columns)
            Public, at least 10 rows; resembling the private records. No labels are used.
        input_radius : float
            Declared: longer records are shortened to it first.
        directions : int, optional
            The number of directions to keep, those of the largest variance. Default: all.
        """
        return cls._learned(public_rows(public), input_radius, directions, whitened)

    @classmethod
    def principal(cls, public: object, *, input_radius: float, directions: int | None = None) -> Transform:
        """Principal directions of public rows, centred and not scaled; parameters as :meth:`whitening`."""
        return cls._learned(public_rows(public), input_radius, directions, principal)

    @classmethod
    def centring(cls, public: object, *, input_radius: float) -> Transform:
        """Records less the mean of public rows; parameters as :meth:`whitening`."""
        return cls._learned(
            public_rows(public), input_radius, None, lambda rows, codes: np.eye(rows.shape[1])
        )

    @classmethod
    def discriminant(cls, public: object, labels: object, *, input_radius: float) -> Transform:
        """Fisher's directions of public rows with public labels: one less than there are classes.

        Noise is then in so few numbers that a small ε suffices; what the directions do not show is lost.

        Parameters
        ----------
        public : array-like of shape (n_rows, n_columns)
        labels : array-like of shape (n_rows,)
            Public too.
        input_radius : float
            As for :meth:`whitening`.
        """
        return cls._supervised(public_rows(public), labels, input_radius, discriminant)

    @classmethod
    def neighbourhood(
        cls, public: object, labels: object, *, input_radius: float, directions: int
    ) -> Transform:
        """Neighbourhood components: directions in which the nearest public row has the same label more often.

        Parameters are those of :meth:`discriminant`, and the number of directions. scikit-learn learns them.
        """
        rows = public_rows(public)
        _check_directions(directions, rows.shape[1])
        return cls._supervised(rows, labels, input_radius, neighbourhood(directions))

    @classmethod
    def of_steps(cls, steps: Any, public: object, *, input_radius: float) -> Transform:
        """A fitted scikit-learn transformer or pipeline of linear steps, such as StandardScaler, PCA,
        TruncatedSVD, LinearDiscriminantAnalysis or GaussianRandomProjection.

        Its matrix is taken from its images of unit vectors, in integers. It must have been fitted on
        public rows.

        Parameters
        ----------
        steps : object with ``transform``
        public : array-like of shape (n_rows, n_columns)
            Public rows, on which the matrix is compared with the steps; the radius of results is learned from
            them.
        input_radius : float
            As for :meth:`whitening`.
        """
        rows = public_rows(public)
        check_radius("input_radius", input_radius, "record")
        clipped = clipped_to_ball(rows, input_radius)
        matrix, constant = matrix_of_steps(steps, clipped)
        lengths = np.linalg.norm(clipped @ matrix.T + constant, axis=1)
        return cls._of_matrix(clipped, matrix, constant, input_radius, float(np.quantile(lengths, _HALF)))

    @classmethod
    def _supervised(cls, rows: Floats, labels: object, input_radius: float, learn: Learner) -> Transform:
        codes = label_codes(labels, len(rows))
        # Rows of one class often come together: both halves need all classes.
        order = np.argsort(codes, kind="stable")
        order = np.concatenate((order[::2], order[1::2]))
        return cls._learned(rows[order], input_radius, None, learn, codes[order], _HALF)

    @classmethod
    def _learned(
        cls,
        rows: Floats,
        input_radius: float,
        directions: int | None,
        learn: Learner,
        codes: NDArray[np.int64] | None = None,
        quantile: float = _SHORT,
    ) -> Transform:
        """A transform learned from all rows.

        The length of results is estimated by cross-fitting: the rows of each half are transformed by what was
        learned from the other half.
        """
        check_radius("input_radius", input_radius, "record")
        if directions is not None:
            _check_directions(directions, rows.shape[1])
        codes = np.zeros(len(rows), np.int64) if codes is None else codes
        clipped = clipped_to_ball(rows, input_radius)
        half = len(clipped) // 2
        parts = [slice(None, half), slice(half, None)]
        lengths = np.concatenate(
            [
                np.linalg.norm(
                    (clipped[held] - clipped[fit].mean(axis=0))
                    @ learn(clipped[fit], codes[fit])[:directions].T,
                    axis=1,
                )
                for fit, held in (parts, parts[::-1])
            ]
        )
        matrix = learn(clipped, codes)[:directions]
        radius = float(np.quantile(lengths, quantile))
        return cls._of_matrix(clipped, matrix, -matrix @ clipped.mean(axis=0), input_radius, radius)

    @classmethod
    def _of_matrix(
        cls, rows: Floats, matrix: Floats, constant: Floats, input_radius: float, radius: float
    ) -> Transform:
        """x ↦ matrix·x + constant in integers."""
        largest = float(np.abs(matrix).max()) or 1.0
        whole = np.rint(matrix / largest * (1 << _MATRIX_BITS)).astype(np.int64)
        scale = largest * input_radius / float(1 << (_MATRIX_BITS + _INPUT_BITS))
        return cls(
            whole,
            np.rint(np.clip(-constant / scale, -(2.0**53), 2.0**53)).astype(np.int64),
            scale,
            float(input_radius),
            max(radius, 1e-12),
            shrunk_variances(rows, matrix),
        )

    def of_columns(self, columns: int) -> Transform:
        """Itself; DataRefused unless it transforms records with that many columns."""
        if self.columns != columns:
            rule = "must be a transformation of as many columns as records have"
            raise _public(rule, f"one of {self.columns}", "learn it from rows of these columns")
        return self

    def apply(self, rows: object) -> Floats:
        """The images of records, shape (n_records, dim); each depends on its record alone, bit for bit.

        Raises
        ------
        DataRefused
            for anything but rows of finite numbers of the right width.
        """
        dense = as_dense(rows, dim=self.columns).astype(np.float64)
        steps = np.rint(clipped_to_ball(dense, self.input_radius) * ((1 << _INPUT_BITS) / self.input_radius))
        products = steps @ self.matrix.T.astype(np.float64)
        images: Floats = (products - self.offset.astype(np.float64)) * self.scale
        return images

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything, as arrays for a file."""
        return {
            "transform matrix": self.matrix,
            "transform offset": self.offset,
            "transform scales": np.array([self.scale, self.input_radius, self.radius]),
            "transform variances": self.variances,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Transform:
        """The inverse of :meth:`arrays`; FileRefused for arrays that make no transformation."""
        scale, input_radius, radius = (float(each) for each in arrays["transform scales"])
        matrix, offset = arrays["transform matrix"], arrays["transform offset"]
        variances = arrays["transform variances"]
        if matrix.ndim != 2 or offset.ndim != 1 or matrix.dtype.kind != "i" or offset.dtype.kind != "i":
            raise _nonsense()
        whole = matrix.astype(np.int64), offset.astype(np.int64)
        return cls(*whole, scale, input_radius, radius, variances.astype(np.float64))


def _within(whole: NDArray[np.int64], most: int) -> bool:
    """Whether no number is larger in size; the size of the least integer is no integer of its type."""
    return int(whole.max(initial=0)) <= most and int(whole.min(initial=0)) >= -most


def _nonsense() -> FileRefused:
    return FileRefused("the transformation makes no sense", remedy="ask who wrote it")


def check_radius(name: str, radius: float, what: str) -> None:
    """Refuse a radius outside of 1e-15 to 1e15; ``what`` names what the radius limits."""
    if not 1e-15 <= radius <= 1e15:
        remedy = f"give the length that no {what} exceeds"
        raise UsageError(name, "must be from 1e-15 to 1e15", got=f"{radius:g}", remedy=remedy)


def _check_directions(directions: int, columns: int) -> None:
    if not 1 <= directions <= columns:
        raise UsageError(
            "directions",
            f"must be from 1 to {columns}, the number of columns",
            got=directions,
            remedy="leave it out, or give one in that range",
        )


_DRAWING = """
    RandomNormal RandomNormalLike RandomUniform RandomUniformLike Multinomial Bernoulli Sampling GreedySearch
    BeamSearch WhisperBeamSearch BiasDropout BitmaskDropout
"""
# Operations that draw from a generator. It is one for all runs, so that a record's output would depend on how
# many records came before it.
RANDOM_OPERATIONS: Final = frozenset(_DRAWING.split())
# Draws in training alone; what it does is seen when a record is run twice.
DROPOUT: Final = "Dropout"
_DEEPEST: Final = 64
_MODEL_GRAPH, _MODEL_FUNCTION = 7, 25
_GRAPH_NODE, _GRAPH_TENSOR, _GRAPH_SPARSE = 1, 5, 15
_FUNCTION_NODE = 7
_NODE_TYPE, _NODE_ATTRIBUTE = 4, 5
_ATTRIBUTE_TENSORS, _ATTRIBUTE_GRAPHS = (5, 10), (6, 11)
_TENSOR_EXTERNAL = 13


def operations_of(content: bytes) -> set[str]:
    """The names of all operations of a model, also of those inside of others.

    Raises
    ------
    UsageError
        for bytes that are no such model, for weights in other files, which no digest of this one would cover,
        and for operations that draw random numbers.
    """
    found: set[str] = set()
    try:
        for field, part in _messages(memoryview(content)):
            if field == _MODEL_GRAPH:
                _graph(part, found, 0)
            elif field == _MODEL_FUNCTION:
                for inner, node in _messages(part):
                    if inner == _FUNCTION_NODE:
                        _node(node, found, 0)
    except UsageError:
        raise
    except (ValueError, IndexError):
        raise _not_onnx() from None
    if not found:
        raise _not_onnx()
    drawn = sorted(found & RANDOM_OPERATIONS)
    if drawn:
        raise UsageError("model", _SAME, got=f"the random operation {drawn[0]}", remedy=_WITHOUT_RANDOM)
    return found


def _graph(data: memoryview, found: set[str], depth: int) -> None:
    if depth > _DEEPEST:
        raise ValueError("depth")
    for tag, part in _messages(data):
        if tag == _GRAPH_NODE:
            _node(part, found, depth)
        elif tag == _GRAPH_TENSOR:
            _tensor(part)
        elif tag == _GRAPH_SPARSE:
            for _, inner in _messages(part):
                _tensor(inner)


def _node(data: memoryview, found: set[str], depth: int) -> None:
    for tag, part in _messages(data):
        if tag == _NODE_TYPE:
            found.add(bytes(part).decode())
        elif tag == _NODE_ATTRIBUTE:
            for inner, value in _messages(part):
                if inner in _ATTRIBUTE_GRAPHS:
                    _graph(value, found, depth + 1)
                elif inner in _ATTRIBUTE_TENSORS:
                    _tensor(value)


def _tensor(data: memoryview) -> None:
    for tag, _ in _fields(data):
        if tag == _TENSOR_EXTERNAL:
            raise _not_onnx("weights in other files")


def _messages(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    """The fields that have a length: texts and messages."""
    return ((tag, part) for tag, part in _fields(data) if part is not None)


def _fields(data: memoryview) -> Iterator[tuple[int, memoryview | None]]:
    """The fields of a protocol buffer; those of numbers without their value.

    Raises
    ------
    ValueError, IndexError
        where the bytes are none.
    """
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == 0:
            _, at = _varint(data, at)
            yield tag >> 3, None
        elif kind == 2:
            size, at = _varint(data, at)
            if size > len(data) - at:
                raise ValueError("size")
            yield tag >> 3, data[at : at + size]
            at += size
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
            if at > len(data):
                raise ValueError("size")
            yield tag >> 3, None
        else:
            raise ValueError("kind")


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("number")


def _not_onnx(got: str = "something else") -> UsageError:
    remedy = "export it anew, with its weights inside"
    return UsageError("model", "must be a model in the ONNX format", got=got, remedy=remedy)


_SAME: Final = "must give one record the same output in every run"
_WITHOUT_RANDOM: Final = "export it without random nodes, for inference"
MOST_BYTES: Final = 1 << 31
_DIGEST_MARK: Final = b"hushsum onnx transformation 1"


class OnnxTransform:
    """x ↦ a public model's output for x alone, shortened to ``radius``.

    It is slow: every record is a run of the model, on one thread. Where the model is linear, use
    :class:`hushsum.records.Transform`. Needs the package onnxruntime (the extra ``onnx``).

    Parameters
    ----------
    model : bytes, or a path
        In the ONNX format. Its weights must not depend on private records.
    radius : float
        Declared: longer outputs are shortened to it.
    output : str, optional
        The name of the output to take; by default the first. Its shape is (1, dim) or (dim,).

    Attributes
    ----------
    digest : str
        SHA-256 of the model, the output's name and the radius; ``hs.methods.monomials(…, transform=…)`` puts
        it into the fingerprint of a tally, so that only tallies of one model merge.
    columns : int or None
        Of a record, where the model has one input of a fixed width.

    Privacy
    -------
    A matrix product gives a row other last bits in another batch, position or thread. So the model is run on
    one record at a time, by a session with one thread, sequential execution and no memory patterns that
    depend on earlier runs; its output depends on that record alone. A model with random operations is
    refused: their generator runs on from record to record. So is one that gives the first record different
    outputs in two runs, or any record if it has an operation that may draw, and one with weights in other
    files, which the digest would not cover. An output that is not finite is refused, for the owner to see.
    One machine and one version of onnxruntime must transform all records of a tally: another may round
    differently.

    Examples
    --------
    ``hs.records.OnnxTransform("encoder.onnx", radius=1.0).apply(X)``: see *Classify embeddings*.
    """

    def __init__(self, model: bytes | str | Path, *, radius: float, output: str | None = None) -> None:
        check_radius("radius", radius, "output")
        content = bytes(model) if isinstance(model, bytes | bytearray) else _file(Path(model))
        self.radius = float(radius)
        self._every = DROPOUT in operations_of(content)
        self._session = _session(content)
        outputs = [each.name for each in self._session.get_outputs()]
        if output is not None and output not in outputs:
            raise UsageError("output", f"must be one of {', '.join(outputs)}", got=f"{output!r}")
        self.output = output or outputs[0]
        hashed = hashlib.sha256(_DIGEST_MARK)
        hashed.update(np.array([self.radius], "<f8").tobytes())
        hashed.update(self.output.encode() + b"\0")
        hashed.update(content)
        self.digest = hashed.hexdigest()
        inputs = self._session.get_inputs()
        if not inputs:
            remedy = "export it with the record as its input"
            raise UsageError("model", "must have an input", got="none", remedy=remedy)
        shape = inputs[0].shape if len(inputs) == 1 else []
        fixed = len(shape) == 2 and isinstance(shape[1], int)
        self.columns: int | None = shape[1] if fixed else None
        self._input: str = inputs[0].name

    def apply(self, rows: object) -> Floats:
        """The images of records of numbers, shape (n_records, dim); each depends on its record alone.

        Raises
        ------
        DataRefused
            for anything but rows of finite numbers, and for outputs that are not.
        """
        if self.columns is None:
            raise UsageError(
                "model",
                "must have one input of shape (records, columns) for rows of numbers",
                got="other inputs",
                remedy="call apply_inputs with the inputs of each record",
            )
        dense = as_dense(rows, dim=self.columns)
        return self.apply_inputs({self._input: row[None]} for row in dense)

    def apply_inputs(self, records: Iterable[Mapping[str, NDArray[Any]]]) -> Floats:
        """The images of records given as the model's inputs, by name: token numbers and masks, for instance.
        Each has a first axis of length 1.
        """
        images = [self._image(inputs) for inputs in records]
        if not images:
            return np.zeros((0, 0))
        if len({each.shape for each in images}) > 1:
            raise DataRefused(
                "model",
                "must give outputs of one length",
                got="several",
                remedy="take an output that is pooled over a record",
            )
        return clipped_to_ball(np.stack(images), self.radius)

    def _image(self, inputs: Mapping[str, NDArray[Any]]) -> Floats:
        image = self._run(inputs)
        if self._every or not self._checked:
            if not np.array_equal(image, self._run(inputs)):
                raise DataRefused("model", _SAME, got="different ones", remedy=_WITHOUT_RANDOM)
            self._checked = True
        return image

    _checked = False

    def _run(self, inputs: Mapping[str, NDArray[Any]]) -> Floats:
        image: Floats = np.zeros((0, 0, 0))
        # Where the model fails, its message may quote the record.
        with suppress(Exception):
            (found,) = self._session.run([self.output], dict(inputs))
            image = np.asarray(found, np.float64)
        if image.ndim == 2 and len(image) == 1:
            image = image[0]
        if image.ndim != 1 or not np.isfinite(image).all():
            raise DataRefused(
                "model",
                "must give finite outputs of shape (1, dim) or (dim,) for one record",
                got="another output",
                remedy="take another output, or export the model with pooling",
            )
        return image


def _file(path: Path) -> bytes:
    if not path.is_file() or path.stat().st_size > MOST_BYTES:
        got = "a larger one" if path.is_file() else "none"
        raise UsageError("model", "must be a file in the ONNX format of at most 2 GiB", got=got)
    return path.read_bytes()


def _session(content: bytes) -> Any:
    """A session whose answers do not depend on earlier ones."""
    try:
        import onnxruntime
    except ImportError:
        raise UsageError(
            "models in the ONNX format need the package onnxruntime", remedy="install hushsum[onnx]"
        ) from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.enable_mem_pattern = False
    options.use_deterministic_compute = True
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception:
        # What the library raises differs between versions; its text may contain paths.
        raise _not_onnx() from None
