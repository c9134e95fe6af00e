"""Functions of private data with their sensitivity in the kernel's own space, and their files; secret."""

from __future__ import annotations

import hashlib
import hmac
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushsum._types import Floats, Rows, Secret
from hushsum.errors import Parameter, UsageError
from hushsum.files import (
    REAL,
    Buffer,
    FileKind,
    Header,
    SecretFile,
    check_spelling,
    decode_array,
    encode_array,
    encoded_size,
)
from hushsum.kernels import POSITIVE_DEFINITE, Batch, Kernel, kernel_as_json, kernel_from_json
from hushsum.methods import GAP_REACHED, MatrixGram, allowed_gap, gap_missed, solve_hinge, svm_sensitivity
from hushsum.privacy import Relation
from hushsum.records import TARGETS, Bounds, ParameterCheck, columns_of
from hushsum.version import PRODUCER

MOST_RECORDS = 1 << 17
# Fields of a function that are stored as they are.
_NUMBERS = ("sensitivity", "pointwise", "constant", "scale")
_PAIRS_AT_A_TIME = 1 << 22
_UNIT = float(np.finfo(np.float64).eps)
# How many times the rounding that it may contain a computed square must be.
_CLEARLY = 16.0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SecretFunction(Secret):
    """f(q) = Σ_i weight_i·(k(x_i, q) + constant), and what one unit can do to it.

    Attributes
    ----------
    kernel : Kernel
        Of columns of numbers, positive definite.
    constant : float
        Added to the kernel: 1 where an intercept is part of the function.
    sensitivity : float
        sup‖f_D − f_D'‖ over neighbours, in the space of the kernel with the constant.
    pointwise : float
        sup|f_D(q) − f_D'(q)| over neighbours and q, for noise that is added to single answers.
    scale : float
        A public factor of the answers, such as 1/n.
    relation : Relation
    assumptions : tuple of str
        What must be public for the claim.
    """

    REFUSAL = "a function of private data must not be pickled or copied", "serve or release it"

    kernel: Kernel
    bounds: Bounds
    points: Rows
    weights: Floats
    sensitivity: float
    pointwise: float
    relation: Relation
    constant: float = 0.0
    scale: float = 1.0
    assumptions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        POSITIVE_DEFINITE.check(self.kernel, "a served function")
        for length in (self.sensitivity, self.pointwise, self.largest):
            if not 0.0 < length < math.inf:
                rule = "the sensitivity of a served function must be above 0 and finite"
                raise UsageError(rule, remedy="change the kernel or its weight")

    def prepared(self, queries: object) -> Rows:
        """Queries as the kernel sees them, in single precision, relative to the centre of the bounds.

        Two queries that agree in that are one point. Negative zeros become zeros.
        """
        rows: Rows = self.kernel.prepare(queries, self.bounds, clip=False).arrays[0] + np.float32(0.0)
        return np.ascontiguousarray(rows)

    def covariance(self, first: Rows, second: Rows) -> Floats:
        """k + constant, in double precision."""
        values = self.kernel.prepared_similarity(Batch((first,), len(first)), Batch((second,), len(second)))
        return values + self.constant

    @property
    def largest(self) -> float:
        """sup k(x, x) + constant."""
        return self.kernel.size_bound() + self.constant

    def at(self, rows: Rows) -> Floats:
        """The exact values, without the public scale; secret."""
        values = np.zeros(len(rows))
        step = max(1, _PAIRS_AT_A_TIME // max(len(rows), 1))
        for start in range(0, len(self.points), step):
            part = slice(start, start + step)
            values += self.weights[part] @ self.covariance(self.points[part], rows)
        return values

    def facts(self) -> dict[str, Any]:
        """What is public about it."""
        return {
            "kernel": kernel_as_json(self.kernel),
            "bounds": self.bounds.as_json(),
            **{name: getattr(self, name) for name in _NUMBERS},
            "relation": str(self.relation),
            "assumptions": list(self.assumptions),
        }

    def fingerprint(self, salt: bytes) -> str:
        """A keyed digest of the records, for the owner's own store: one path is for one function."""
        digest = hmac.new(salt, digestmod=hashlib.sha256)
        for array in (self.points, self.weights):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


def density_function(
    X: object,
    kernel: Kernel,
    *,
    bounds: object,
    relation: str | Relation = Relation.ADD_REMOVE,
    declared_count: float | None = None,
) -> SecretFunction:
    """Σ k(x, ·), divided by the number of records where that is public, and normalised to a density.

    Parameters
    ----------
    X : records of shape (n, columns)
        Private; clipped to ``bounds``.
    kernel : Kernel
        With an integral, positive definite: Gaussian, Laplacian, Matérn, and sums of them with positive
        weights.
    bounds : (low, high), or one pair for each column
        Declared.
    relation : {"add/remove", "replace"}
        Under replace the number of records is public and divides the answers. Under add/remove answers are
        sums, unless a ``declared_count`` divides them.

    Privacy
    -------
    Unit: one record. Present or absent, it moves the function by k(x, ·), whose norm is √k(x, x) ≤ √κ with
    κ = sup k(x, x), and an answer by |k(x, q)| ≤ κ. Replaced, it moves the function by
    √(k(x, x) + k(x', x') − 2·k(x, x')) ≤ √(2κ) and an answer by at most κ where k ≥ 0; where k may be
    negative, by 2√κ and 2κ.
    (The constant of the normalised kernel belongs to neither: it multiplies the answers afterwards.)
    """
    from hushsum.models import normalising_constant

    box, rows = _records(X, kernel, bounds)
    neighbours = Relation.of(relation)
    number = float(len(rows)) if neighbours is Relation.REPLACE else declared_count
    integral = normalising_constant(kernel)
    if integral is None:
        rule = "must have an integral, for a density"
        raise UsageError("kernel", rule, got=kernel.name, remedy="try gaussian")
    if number is not None and not number > 0.0:
        raise UsageError("the number of records must be above 0", remedy="declare another count")
    largest = kernel.size_bound()
    # The squared length of a difference of two records, and the size of one, over κ.
    square, size = (4.0, 2.0) if kernel.signed else (2.0, 1.0)
    if neighbours is Relation.ADD_REMOVE:
        square, size = 1.0, 1.0
    return SecretFunction(
        kernel=kernel,
        bounds=box,
        points=rows,
        weights=np.ones(len(rows)),
        sensitivity=math.sqrt(square * largest),
        pointwise=size * largest,
        relation=neighbours,
        scale=1.0 if number is None else 1.0 / (number * integral),
    )


def gaussian_process_function(
    X: object, y: object, kernel: Kernel, *, bounds: object, target_bounds: tuple[float, float], noise: float
) -> SecretFunction:
    """The posterior mean about the middle of the targets' range, for public inputs and private targets.

    Parameters
    ----------
    noise : float
        σ of C = K + σ²I, in units of half the range; public.

    Privacy
    -------
    Unit: one target, replaced within a range of width B. With A the computed inverse of C it moves
    Σ α_i k(x_i, ·), α = A·y, by at most B·max_i √[AᵀKA]_ii: the norm of a combination of k(x_j, ·) with the
    weights of one column of A. What rounding can take from that number is added to it. An answer moves by at
    most √κ times that, κ = sup k(x, x), and by B·κ·max_i Σ_j |A_ji|. Inputs, kernel and σ must not depend on
    the targets.

    Raises
    ------
    UsageError
        if σ is so small beside the kernel that the sensitivity is not clearly above rounding; before
        anything is spent.
    """
    box, rows = _records(X, kernel, bounds)
    target = Bounds.of(target_bounds, 1)
    if target is None or not noise > 0.0:
        rule = (Parameter("target_bounds"), " and a noise above 0 must be declared")
        raise UsageError(rule, remedy="give (low, high) and 1.0")
    half = (target.high[0] - target.low[0]) / 2.0
    given = np.asarray(y, np.float64).reshape(-1)
    ParameterCheck(target, what=TARGETS).warn(given[:, np.newaxis])
    values = np.clip(given, target.low[0], target.high[0])
    if len(values) != len(rows) or not np.isfinite(values).all():
        raise UsageError("y", "must have one finite number for each record of X")
    gram = kernel.prepared_similarity(Batch((rows,), len(rows)), Batch((rows,), len(rows)))
    inverse, length = _posterior(gram, noise, kernel.size_bound())
    root, columns = math.sqrt(kernel.size_bound()), float(np.abs(inverse).sum(axis=0).max())
    return SecretFunction(
        kernel=kernel,
        bounds=box,
        points=rows,
        weights=inverse @ ((values - (target.low[0] + half)) / half),
        sensitivity=2.0 * length,
        # Both bound |f(q) − f'(q)| ≤ 2·|Σ_j A_ji k(x_j, q)|, as |k| ≤ κ and by Cauchy and Schwarz.
        pointwise=2.0 * root * min(length, root * columns),
        relation=Relation.REPLACE,
        scale=half,
        assumptions=("the inputs X are public, and only the targets y are private",),
    )


def kernel_svm_functions(
    X: object, codes: object, classes: int, kernel: Kernel, *, bounds: object, C: float
) -> list[SecretFunction]:
    """Support vector machines: one for two classes, or one for each against the rest.

    ``codes`` are classes from 0 to ``classes − 1``. To serve several under one claim, each takes √K times
    its own noise: the sensitivity here is that of all of them together.

    Privacy
    -------
    Unit: one record with its class, replaced. Δ = 2C√κ/n + 2√(2g) each, with κ = sup k(x, x) + 1 for the
    intercept; see `fit_machines`. The claim assumes that
    the solver reaches its gap on the records and on all their neighbours; a machine that misses it is
    refused, which reveals one bit that nothing bounds.

    Raises
    ------
    DataRefused
        if the solver misses the gap.
    """
    box, rows = _records(X, kernel, bounds)
    labels = np.asarray(codes, np.int64).reshape(-1)
    if len(labels) != len(rows) or not C > 0.0:
        rule = ("must have one class for each record, and ", Parameter("C"), " must be above 0")
        raise UsageError("y", rule)
    number, square = max(len(rows), 1), kernel.size_bound() + 1.0
    gram = 1.0 + kernel.prepared_similarity(Batch((rows,), len(rows)), Batch((rows,), len(rows)))
    gap = max(allowed_gap(C, number, square), 1e-12 * number * C * (1.0 + square * C))
    machines = 1 if classes <= 2 else classes
    sensitivity = math.sqrt(machines) * svm_sensitivity(C, number, square, gap)
    functions = []
    for machine in range(machines):
        signs = np.where(labels == (1 if machines == 1 else machine), 1.0, -1.0)
        signed = MatrixGram(signs[:, np.newaxis] * gram * signs)
        solution = solve_hinge(signed, len(rows), C / number, gap=gap / 2.0)
        if not solution.gap <= gap / 2.0:
            raise gap_missed(C)
        functions.append(
            SecretFunction(
                kernel=kernel,
                bounds=box,
                points=rows,
                weights=signs * solution.alpha,
                sensitivity=sensitivity,
                pointwise=sensitivity * math.sqrt(square),
                relation=Relation.REPLACE,
                constant=1.0,
                assumptions=(GAP_REACHED,),
            )
        )
    return functions


def _posterior(gram: Floats, noise: float, largest: float) -> tuple[Floats, float]:
    """A, the computed inverse of C = K + σ²I, and what max_i √[AᵀKA]_ii does not exceed.

    [AᵀKA]_ii is a sum of products whose sizes add up to at most κ·(Σ_j |A_ji|)². Each has a relative error
    of at most (2n + 8)·u, with what the kernel values were rounded by.
    """
    try:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            inverse = np.linalg.inv(gram + noise * noise * np.eye(len(gram))).astype(np.float64)
            squares = np.einsum("ji,ji->i", inverse, gram @ inverse)
            rounding = (2 * len(gram) + 8) * _UNIT * largest * np.square(np.abs(inverse).sum(axis=0))
            square, lost = float(squares.max()), float(rounding.max())
    except np.linalg.LinAlgError:
        square, lost = math.nan, math.nan
    if not _CLEARLY * lost <= square < math.inf:
        rule = "must be large enough beside the kernel for a sensitivity that is clearly above rounding"
        remedy = "give a larger noise, in units of half the targets' range"
        raise UsageError("noise", rule, got=f"{noise:g}", remedy=remedy)
    return inverse, math.sqrt(square + lost)


def _records(X: object, kernel: Kernel, bounds: object) -> tuple[Bounds, Rows]:
    POSITIVE_DEFINITE.check(kernel, "a served function")
    box = Bounds.of(bounds, kernel.dim or 1)
    if box is None:
        remedy = "give (low, high), or one pair for each column"
        raise UsageError("bounds", "must be declared", got="None", remedy=remedy)
    rows: Rows = kernel.prepare(X, box).arrays[0] + np.float32(0.0)
    ParameterCheck(box).warn(lambda: columns_of(X, box.dim, None), rows=rows)
    if not 0 < len(rows) <= MOST_RECORDS:
        rule = f"a served function takes 1 to {MOST_RECORDS} records"
        raise UsageError(rule, remedy="release a model instead")
    return box, np.ascontiguousarray(rows)


WARNING = "CONFIDENTIAL: private records. Never for release; they answer questions where they are."

# The largest stored number: single precision holds it, and answers stay finite with it.
_LARGEST = 1e30


def save_secret_functions(
    functions: Sequence[SecretFunction],
    path: str | os.PathLike[str],
    *,
    about: Mapping[str, Any] | None = None,
    encryption_key: bytes | None = None,
) -> None:
    """Write functions to a file, readable by its owner only. It is as secret as the records in it.

    The header is not encrypted: kernel, bounds, the number of records and ``about``, which are further facts
    that may be disclosed, are there.
    """
    sections: list[Buffer] = []
    for each in functions:
        sections += [encode_array(each.points, REAL), encode_array(each.weights, REAL)]
    header: dict[str, Any] = {
        "warning": WARNING,
        "producer": PRODUCER,
        "about": dict(about or {}),
        "functions": [_described(each) for each in functions],
    }
    _FILE.write(path, header, sections, encryption_key=encryption_key)


def load_secret_functions(
    path: str | os.PathLike[str], *, encryption_key: bytes | None = None
) -> tuple[list[SecretFunction], dict[str, Any]]:
    """The functions of a file, bit for bit, and what it says about them.

    Raises
    ------
    FileRefused
        if the file is damaged, of another kind, or the key does not open it.
    UsageError
        if it is encrypted and no key was given.
    """
    return _FILE.read(path, encryption_key=encryption_key)


def _build(header: Header, payload: memoryview) -> tuple[list[SecretFunction], dict[str, Any]]:
    functions, start = [], 0
    for each in header["functions"]:
        middle, end = (start + size for size in _sizes(each))
        functions.append(_function(each, payload[start:middle], payload[middle:end]))
        start = end
    if not isinstance(header["about"], dict):
        raise TypeError("about")
    return functions, dict(header["about"])


def _described(function: SecretFunction) -> dict[str, Any]:
    return {**function.facts(), "records": len(function.points)}


def _function(header: dict[str, Any], points: memoryview, weights: memoryview) -> SecretFunction:
    bounds, number = Bounds.from_json(header["bounds"]), header["records"]
    numbers = {name: float(header[name]) for name in _NUMBERS}
    function = SecretFunction(
        kernel=kernel_from_json(header["kernel"]),
        bounds=bounds,
        points=np.ascontiguousarray(decode_array(points, (number, bounds.dim), REAL), np.float32),
        weights=np.array(decode_array(weights, (number,), REAL)),
        relation=Relation.of(header["relation"]),
        assumptions=tuple(header["assumptions"]),
        **numbers,
    )
    check_spelling(header, _described(function))
    if function.kernel.dim != bounds.dim or not all(0.0 <= each <= _LARGEST for each in numbers.values()):
        raise ValueError("numbers")
    if not (np.abs(function.points) <= _LARGEST).all() or not (np.abs(function.weights) <= _LARGEST).all():
        raise ValueError("records")
    return function


def _sizes(header: dict[str, Any]) -> tuple[int, int]:
    """Where the points of a function end, and where its weights do."""
    points = encoded_size((header["records"], len(header["bounds"])), REAL, reals=True)
    return points, points + encoded_size((header["records"],), REAL, reals=True)


_FILE = SecretFile(
    FileKind.SERVED,
    "this file of secret functions",
    lambda header: sum(_sizes(each)[1] for each in header["functions"]),
    _build,
)
