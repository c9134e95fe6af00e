"""Functions of private data with their sensitivity in the kernel's own space, their files, and three ways to
answer queries from them; secret.

A served function answers with one consistent noise path and a store of its answers, so that a point always
has the same answer. Without a path that is kept: fresh noise on every answer, or one release for a test set.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass, replace
from fractions import Fraction
from pathlib import Path
from threading import Lock, RLock
from typing import IO, Any, NoReturn, Protocol, TypedDict, TypeVar, Unpack

import numpy as np

from hushsum._types import Floats, Rows, Secret
from hushsum.errors import FileRefused, Parameter, QuestionsSpent, SecretRefused, UsageError, shown
from hushsum.files import (
    REAL,
    Buffer,
    FileKind,
    Header,
    NumberGuard,
    RollbackGuard,
    SecretFile,
    check_spelling,
    decode_array,
    encode_array,
    encoded_size,
)
from hushsum.kernels import POSITIVE_DEFINITE, Batch, Kernel, kernel_as_json, kernel_from_json
from hushsum.methods import GAP_REACHED, MatrixGram, allowed_gap, gap_missed, solve_hinge, svm_sensitivity
from hushsum.privacy import (
    ANALYTIC,
    PATH,
    REAL_ARITHMETIC,
    BookingKeywords,
    Claim,
    Mechanism,
    Promise,
    Relation,
    ReleaseRequest,
    path_scale,
    release_noise,
    rounded,
    spend_json,
)
from hushsum.privacy.accounting import LaplaceTable, compose
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
    sensitivity, pointwise = math.sqrt(square * largest), size * largest
    scale, weights = 1.0 if number is None else 1.0 / (number * integral), np.ones(len(rows))
    return SecretFunction(kernel, box, rows, weights, sensitivity, pointwise, neighbours, scale=scale)


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
    pointwise = sensitivity * math.sqrt(square)
    functions = []
    for machine in range(machines):
        signs = np.where(labels == (1 if machines == 1 else machine), 1.0, -1.0)
        signed = MatrixGram(signs[:, np.newaxis] * gram * signs)
        solution = solve_hinge(signed, len(rows), C / number, gap=gap / 2.0)
        if not solution.gap <= gap / 2.0:
            raise gap_missed(C)
        weights = signs * solution.alpha
        made = SecretFunction(kernel, box, rows, weights, sensitivity, pointwise, Relation.REPLACE, 1.0)
        functions.append(replace(made, assumptions=(GAP_REACHED,)))
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


_APPLICATION = 0x48555348
_FORMAT = 1
_WAIT_SECONDS = 60.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """One answer: the point's bytes, the returned value, and the path's value behind it, which is secret."""

    point: bytes
    answer: float
    path: float


class StoreSession(Protocol):
    """One writer's turn; everything in it happens, or nothing does."""

    def find(self, point: bytes) -> float | None:
        """The answer that was returned for this point."""

    def count(self) -> int:
        """How many answers are kept."""

    def since(self, number: int) -> list[StoredAnswer]:
        """The answers from the given position on, in the order in which they were drawn."""

    def append(self, answers: list[StoredAnswer]) -> None:
        """Keep new answers."""


class AnswerStore(Protocol):
    """A place for answers with one writer at a time, which survives restarts."""

    def salt(self, proposed: str) -> str:
        """A random word that the store keeps from its first use on: ``proposed``, or an earlier one."""

    def belongs_to(self, facts: dict[str, Any]) -> bool:
        """Whether the store was opened for this function; refuses one that was for another."""

    def open(self, facts: dict[str, Any]) -> None:
        """Bind an empty store to a function; refuses the store of another function."""

    def answers(self, points: list[bytes]) -> list[float | None]:
        """The answers that were returned for points, without waiting for a writer."""

    def count(self) -> int:
        """How many answers are kept, without waiting for a writer."""

    def session(self) -> Any:
        """A context that gives a `StoreSession`, exclusive among threads and processes."""

    def rollback_guard(self) -> RollbackGuard[int] | None:
        """The guard of this store where no other is given; None if there can be no older copy of it."""


class SqliteStore(Secret):
    """Answers in one SQLite file, for any number of threads and processes on one machine.

    The file is as secret as the data: it holds the path, without which an answer protects nobody. It is made
    readable by its owner alone. Losing it means that the path is lost: a function served anew spends anew.

    How many answers were given is also noted in the folder ``served`` of the user's state folder. An older
    copy of the file, which would draw a second path, is refused there; so is one with answers and without a
    note, as after a move to another machine without it.

    Parameters
    ----------
    path : str or path
    """

    REFUSAL = "a store of answers must not be pickled", "open its file where it is needed"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._lock = RLock()
        self._connection: sqlite3.Connection | None = None
        self._process = 0

    def _connected(self) -> sqlite3.Connection:
        # A connection must not cross a fork.
        if self._connection is None or self._process != os.getpid():
            try:
                # Never opened beside SQLite: closing it would end the locks that this process has on it.
                with suppress(FileExistsError):
                    os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
                connection = sqlite3.connect(
                    self._path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False
                )
                connection.execute("PRAGMA synchronous=FULL")
                self._prepare(connection)
            except (sqlite3.DatabaseError, UnicodeDecodeError, OSError) as error:
                rule = f"the store of answers cannot be opened ({type(error).__name__})"
                raise FileRefused(rule, remedy="give another path") from None
            self._connection, self._process = connection, os.getpid()
        return self._connection

    @staticmethod
    def _prepare(connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables == 0:
            connection.execute(f"PRAGMA application_id={_APPLICATION}")
            connection.execute(f"PRAGMA user_version={_FORMAT}")
            connection.execute("CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
            connection.execute(
                "CREATE TABLE answers (number INTEGER PRIMARY KEY, point BLOB UNIQUE NOT NULL, "
                "answer REAL NOT NULL, path REAL NOT NULL)"
            )
            connection.execute("COMMIT")
            return
        # Not committed: even without a change that would wait for those who read.
        connection.execute("ROLLBACK")
        if application != _APPLICATION:
            raise sqlite3.DatabaseError("another application's file")

    def salt(self, proposed: str) -> str:
        """A random word that the store keeps from its first use on."""
        with self._exclusive() as connection:
            connection.execute("INSERT OR IGNORE INTO facts VALUES ('salt', ?)", (proposed,))
            found = connection.execute("SELECT value FROM facts WHERE name = 'salt'").fetchone()
            return str(found[0])

    def belongs_to(self, facts: dict[str, Any]) -> bool:
        """Whether the store was opened for this function."""
        with self._exclusive() as connection:
            return _is_bound(connection, facts)

    def open(self, facts: dict[str, Any]) -> None:
        """Bind an empty store to a function."""
        with self._exclusive() as connection:
            if not _is_bound(connection, facts):
                text = json.dumps(facts, sort_keys=True)
                connection.execute("INSERT INTO facts VALUES ('function', ?)", (text,))

    def answers(self, points: list[bytes]) -> list[float | None]:
        """The answers that were returned for points; None where there is none."""
        with self._reading() as session:
            return [session.find(point) for point in points]

    def count(self) -> int:
        """How many answers are kept."""
        with self._reading() as session:
            return session.count()

    @contextmanager
    def session(self) -> Iterator[StoreSession]:
        """One writer's turn."""
        with self._exclusive() as connection:
            yield _SqliteSession(connection)

    def rollback_guard(self) -> RollbackGuard[int] | None:
        """The number of answers, in the user's state folder: all copies of this file have the same one."""
        salt = self.salt(secrets.token_hex(32))
        name = hashlib.sha256(f"rollback guard {salt}".encode()).hexdigest()[:32]
        return NumberGuard("served", name, "answers that were given")

    @contextmanager
    def _reading(self) -> Iterator[StoreSession]:
        with self._lock, self._errors_translated():
            yield _SqliteSession(self._connected())

    @contextmanager
    def _exclusive(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._errors_translated():
            connection = self._connected()
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                # Also after a COMMIT that failed: a reader on this connection would see its answers.
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _errors_translated(self) -> Iterator[None]:
        """Say what SQLite said in one sentence, and trust the connection no more."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            # SQLite quotes a damaged schema in its messages, which Python then cannot decode.
            self.close()
            rule = f"the store of answers cannot be read or written now ({type(error).__name__})"
            raise FileRefused(rule, remedy="nothing new was returned, query again") from None

    def close(self) -> None:
        """Close the file; it is opened again when needed."""
        with self._lock:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
            self._connection = None


def _is_bound(connection: sqlite3.Connection, facts: dict[str, Any]) -> bool:
    found = connection.execute("SELECT value FROM facts WHERE name = 'function'").fetchone()
    if found is not None and found[0] != json.dumps(facts, sort_keys=True):
        rule = "the store of answers belongs to another function, or to other data, kernel, budget or limits"
        raise UsageError(rule, remedy="give each served function a store of its own")
    return found is not None


class _SqliteSession:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def find(self, point: bytes) -> float | None:
        found = self._connection.execute("SELECT answer FROM answers WHERE point = ?", (point,)).fetchone()
        return None if found is None else _number(found[0])

    def count(self) -> int:
        # Numbers are given one after the other, and none is ever deleted.
        (newest,) = self._connection.execute("SELECT coalesce(max(number), 0) FROM answers").fetchone()
        return _kept(newest, int)

    def since(self, number: int) -> list[StoredAnswer]:
        query = "SELECT point, answer, path FROM answers WHERE number > ? ORDER BY number"
        rows = self._connection.execute(query, (number,))
        return [StoredAnswer(_kept(point, bytes), *map(_number, values)) for point, *values in rows]

    def append(self, answers: list[StoredAnswer]) -> None:
        rows = [astuple(each) for each in answers]
        self._connection.executemany("INSERT INTO answers (point, answer, path) VALUES (?, ?, ?)", rows)


def _number(value: object) -> float:
    number = _kept(value, float)
    if not math.isfinite(number):
        raise sqlite3.DatabaseError("not a number")
    return number


def _kept(value: object, kind: type[T]) -> T:
    """A value of the type that was stored; SQLite keeps whatever the bytes of a damaged file say."""
    if not isinstance(value, kind):
        raise sqlite3.DatabaseError("a value of another type")
    return value


class MemoryStore(SqliteStore):
    """Answers in memory, for experiments: they are forgotten with the process, and the path with them."""

    def __init__(self) -> None:
        super().__init__(":memory:")

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            self._prepare(self._connection)
            self._process = os.getpid()
        if self._process != os.getpid():
            raise SecretRefused("answers in memory must not cross a fork: the path would be continued twice")
        return self._connection

    def rollback_guard(self) -> RollbackGuard[int] | None:
        """None: memory has no older copy."""
        return None

    def close(self) -> None:
        """Nothing: closing would forget the path."""


Covariance = Callable[[Rows, Rows], Floats]

SMALLEST_JITTER = 1e-8
"""λ over sup k: the variance that every point has for itself, whatever is known about its neighbours."""

# Rows of the factor that are kept and solved together.
_BLOCK = 256


class GaussianPath(Secret):
    """G + √λ·J at the points queried so far: G a path with the given covariance, J fresh at every point.

    New values are drawn from the distribution given all earlier ones, by further rows of the Cholesky factor
    of K + λI = LLᵀ: the values are L·ξ for independent standard normal ξ, so a further point needs one ξ
    more. The joint distribution of all values does not depend on the order or the times of the queries. The
    n-th point costs n² operations; 4·n² bytes are held.

    Parameters
    ----------
    covariance : callable
        ``covariance(A, B)``, the matrix k(a, b).
    largest : float
        sup k(x, x).
    jitter : float
        λ, at least 1e-8·sup k and fixed beforehand. Two points at a distance that floating point cannot see
        still differ by independent noise of this variance, so their difference reveals no gradient.

    Privacy
    -------
    Conditional variances are never taken below λ, where rounding alone could bring them. The state is secret:
    anyone who knows the path can subtract it from the answers.
    """

    REFUSAL = "a path must not be pickled or copied: it would be continued twice", "serve answers"

    def __init__(
        self, covariance: Covariance, dim: int, *, largest: float = 1.0, jitter: float = SMALLEST_JITTER
    ) -> None:
        if not (math.isfinite(jitter) and jitter >= SMALLEST_JITTER * largest):
            rule = f"must be at least {SMALLEST_JITTER:g} times the largest variance"
            raise UsageError("jitter", rule, got=f"{jitter:g}")
        self._covariance = covariance
        self._jitter = jitter
        self._points: Rows = np.empty((0, dim), np.float32)
        self._normals: Floats = np.empty(0)
        # Block b of the factor's rows: what is left of its diagonal block, and that block.
        self._left: list[Floats] = []
        self._diagonal: list[Floats] = []

    def __len__(self) -> int:
        return len(self._normals)

    def emptied(self) -> GaussianPath:
        """A path that knows no point yet, with the same covariance."""
        return GaussianPath(self._covariance, self._points.shape[1], largest=0.0, jitter=self._jitter)

    def extend(self, points: Rows, normals: Floats) -> Floats:
        """The values at new points, from as many standard normal numbers."""
        values = np.empty(len(points))
        for part, across, corner in self._grown(points):
            values[part] = across.T @ self._normals + corner @ normals[part]
            self._keep(points[part], across, corner, normals[part])
        return values

    def recall(self, points: Rows, values: Floats) -> None:
        """Take over values that this path had earlier."""
        from scipy.linalg import solve_triangular

        for part, across, corner in self._grown(points):
            left = values[part] - across.T @ self._normals
            normals = np.asarray(solve_triangular(corner, left, lower=True), np.float64)
            self._keep(points[part], across, corner, normals)

    def _grown(self, points: Rows) -> Iterator[tuple[slice, Floats, Floats]]:
        """New rows of the factor, at most to the end of a block; each part is kept before the next one."""
        start = 0
        while start < len(points):
            part = slice(start, min(start + _BLOCK - len(self) % _BLOCK, len(points)))
            yield part, *self._rows(points[part])
            start = part.stop

    def _rows(self, points: Rows) -> tuple[Floats, Floats]:
        """L⁻¹·K(earlier, new), and the factor of what the earlier points leave open about the new ones."""
        across = self._solve(self._covariance(self._points, points))
        rest = self._covariance(points, points)
        rest[np.diag_indices_from(rest)] += self._jitter
        return across, _floored_cholesky(rest - across.T @ across, self._jitter)

    def _solve(self, right: Floats) -> Floats:
        from scipy.linalg import solve_triangular

        found = np.empty_like(right)
        for block, (left, diagonal) in enumerate(zip(self._left, self._diagonal, strict=True)):
            first = block * _BLOCK
            last = min(first + _BLOCK, len(self))
            size = last - first
            rest = right[first:last] - left[:size] @ found[:first]
            found[first:last] = solve_triangular(diagonal[:size, :size], rest, lower=True, check_finite=False)
        return found

    def _keep(self, points: Rows, across: Floats, corner: Floats, normals: Floats) -> None:
        first = len(self) % _BLOCK
        if first == 0:
            self._left.append(np.zeros((_BLOCK, len(self))))
            self._diagonal.append(np.zeros((_BLOCK, _BLOCK)))
        width = self._left[-1].shape[1]
        last = first + len(points)
        self._left[-1][first:last] = across[:width].T
        self._diagonal[-1][first:last, :first] = across[width:].T
        self._diagonal[-1][first:last, first:last] = corner
        self._points = np.concatenate((self._points, points))
        self._normals = np.concatenate((self._normals, normals))


def _floored_cholesky(matrix: Floats, floor: float) -> Floats:
    """The factor of a matrix whose pivots are at least ``floor`` but for rounding, which is undone."""
    factor = np.zeros_like(matrix)
    for i in range(len(matrix)):
        pivot = math.sqrt(max(float(matrix[i, i] - factor[i, :i] @ factor[i, :i]), floor))
        factor[i, i] = pivot
        factor[i + 1 :, i] = (matrix[i + 1 :, i] - factor[i + 1 :, :i] @ factor[i, :i]) / pivot
    return factor


MOST_QUESTIONS = 5000
_ROUNDING_BITS = 10


class ServedFunction(Secret):
    """f + s·G for one path G, answered point by point and remembered; secret inside, public answers.

    Made by `serve`. The same point always has the same answer: in one call or in many, in any thread or
    process that opens the store, and after a restart. The n-th distinct point costs about n² operations, and
    there is a limit to their number, set beforehand. Not a file, not to be pickled or copied: it holds the
    data.

    Attributes
    ----------
    claim : Claim
        What all answers together promise, however many and however chosen: real arithmetic.
    noise_stderr : float
        The standard deviation of the noise of one answer.
    """

    REFUSAL = "a served function holds the data and must not be pickled or copied", None

    def __init__(
        self,
        function: SecretFunction,
        promise: Promise,
        store: AnswerStore,
        *,
        most_questions: int = MOST_QUESTIONS,
        calibration: str = ANALYTIC,
        jitter: float | None = None,
        insecure_noise_seed: int | None = None,
        rollback_guard: RollbackGuard[int] | None = None,
    ) -> None:
        if type(most_questions) is not int or most_questions < 1:
            raise UsageError("most_questions", "must be an integer above 0", remedy="leave it out for 5000")
        secure = insecure_noise_seed is None
        self.claim = path_claim(promise, function, calibration=calibration, secure=secure)
        self._function, self._store, self._most = function, store, most_questions
        self._seed = insecure_noise_seed
        self._scale = path_scale(function.sensitivity, promise, calibration=calibration)
        self._jitter = SMALLEST_JITTER * function.largest if jitter is None else float(jitter)
        self._rollback_guard = store.rollback_guard() if rollback_guard is None else rollback_guard
        self._noted = 0
        self._turn = Lock()
        self._unsure = False
        self._path = GaussianPath(
            function.covariance, function.bounds.dim, largest=function.largest, jitter=self._jitter
        )
        # Answers are returned on a lattice far below the noise that each point has for itself.
        self._step = 2.0 ** (math.floor(math.log2(self._scale * math.sqrt(self._jitter))) - _ROUNDING_BITS)

    def _facts(self) -> dict[str, Any]:
        """What its store is bound to: public facts, and a keyed digest of the records."""
        salt = self._store.salt(secrets.token_hex(32))
        return {
            "claim": self.claim.as_json(),
            "function": self._function.facts(),
            "scale": self._scale,
            "jitter": self._jitter,
            "most_questions": self._most,
            "fingerprint": self._function.fingerprint(bytes.fromhex(salt)),
        }

    @property
    def noise_stderr(self) -> float:
        """The standard deviation of the noise of one answer."""
        return self._function.scale * self._scale * math.sqrt(self._function.largest)

    def __call__(self, Q: object) -> Floats:
        """The answers at queries of shape (n_queries, columns), shape (n_queries,). Spends nothing.

        Raises
        ------
        QuestionsSpent
            if there would be more distinct points than the limit; then none of the new ones is answered.
        FileRefused
            if the store cannot be written, or has fewer answers than were given.
        """
        rows = self._function.prepared(Q)
        keys = [row.tobytes() for row in rows]
        answers = self._store.answers(keys)
        if any(each is None for each in answers):
            answers = self._draw(rows, keys)
        given = self._store.count()
        if self._rollback_guard is not None and given > self._noted:
            self._rollback_guard.note(given)
            self._noted = given
        values: Floats = self._function.scale * np.array(answers, np.float64)
        return values

    def _draw(self, rows: Rows, keys: list[bytes]) -> list[float | None]:
        """Answer the points that have no answer yet, in one writer's turn."""
        # Longer than the store's turn: no other thread may draw between a failure and forgetting it.
        with self._turn:
            if self._unsure:
                # What the store did not keep must not be continued: forget it, and read the store again.
                self._path = self._path.emptied()
                self._unsure = False
            answers = self._drawn(rows, keys)
            self._unsure = False
            return answers

    def _drawn(self, rows: Rows, keys: list[bytes]) -> list[float | None]:
        with self._store.session() as session:
            answered = self._number_kept(session)
            new = {key: place for place, key in reversed(list(enumerate(keys))) if session.find(key) is None}
            places = sorted(new.values())
            # Before the path is touched: a refusal must cost nothing.
            if answered + len(places) > self._most:
                rule = f"this function answers at most {self._most} distinct points"
                remedy = "query those that were queried, or release a model, which has no limit"
                raise QuestionsSpent(rule, remedy=remedy)
            if not answered and self._rollback_guard is not None:
                # Before the first answer is kept: a store with answers and without a note is an unknown copy.
                self._rollback_guard.note(0)
            self._unsure = True
            self._catch_up(session)
            points = rows[places]
            exact = self._function.at(points)
            seed = None if self._seed is None else self._seed + answered
            with release_noise(seed) as noise:
                path = self._path.extend(points, noise.normal(len(points)))
            answers = self._step * np.rint((exact + self._scale * path) / self._step)
            drawn = zip(places, answers.tolist(), path.tolist(), strict=True)
            session.append([StoredAnswer(keys[place], answer, value) for place, answer, value in drawn])
            return [session.find(key) for key in keys]

    def _check_newest(self) -> None:
        """Refuse an older copy of the store."""
        with self._store.session() as session:
            self._number_kept(session)

    def _number_kept(self, session: StoreSession) -> int:
        """How many answers the store has; refused if there were more."""
        kept, known = session.count(), 0
        if self._rollback_guard is not None:
            noted = self._rollback_guard.known()
            if noted is None and kept:
                raise FileRefused(
                    "the store of answers has some, and nothing shows on this machine that it is its "
                    "newest copy: continuing an older one would draw a second path",
                    remedy="bring the folder served of the state folder (HUSHSUM_STATE) along, or serve anew",
                )
            known = noted or 0
        if kept < max(len(self._path), known):
            raise FileRefused(
                "the store of answers has fewer than were returned, as an older copy has: continuing "
                "would draw a second path",
                remedy="put the newest copy back, or end this function",
            )
        return kept

    def _catch_up(self, session: StoreSession) -> None:
        """Take over what other processes, or an earlier life of this one, have drawn."""
        if fresh := session.since(len(self._path)):
            points = np.frombuffer(b"".join(each.point for each in fresh), np.float32)
            values = np.array([each.path for each in fresh], np.float64)
            self._path.recall(points.reshape(len(fresh), -1), values)

    def __repr__(self) -> str:
        return f"ServedFunction(claim={self.claim!r})"

    def save(self, target: str | IO[bytes]) -> NoReturn:
        """Refused: it needs the data to answer."""
        rule = "a served function holds the data and is not a file"
        raise SecretRefused(rule, remedy="release a model of hushsum.models")


def _requested(epsilon: float, delta: float | None, keywords: BookingKeywords) -> ReleaseRequest:
    """The request of a call, with a δ that was checked."""
    if unknown := keywords.keys() - BookingKeywords.__annotations__.keys():
        raise TypeError(f"got an unexpected keyword argument {min(unknown)!r}")
    request = ReleaseRequest.of(epsilon=epsilon, delta=delta, **keywords)
    request.check_delta()
    return request


def serve(
    function: SecretFunction,
    *,
    epsilon: float,
    delta: float,
    store: AnswerStore | None = None,
    most_questions: int = MOST_QUESTIONS,
    jitter: float | None = None,
    calibration: str = ANALYTIC,
    rollback_guard: RollbackGuard[int] | None = None,
    **keywords: Unpack[BookingKeywords],
) -> ServedFunction:
    """Open a function for queries. Spends ``epsilon`` and ``delta`` once, when its store is first opened.

    Parameters
    ----------
    function : SecretFunction
        From `density_function`, `gaussian_process_function` or `kernel_svm_functions`.
    store : AnswerStore, optional
        Where answers are kept; default in memory, which loses the path with the process. A store that
        belongs to this function, with the same data and parameters, is continued without spending again.
    most_questions : int
        How many distinct points are answered; the n-th costs n², and 4n² bytes are held.
    jitter : float, optional
        λ: at least, and by default, 1e-8 times the largest variance.
    calibration : {"analytic", "as-published"}
        The least noise, or the paper's √(2 ln(2/δ))·Δ/ε for ε ≤ 1.
    budget, idempotency_key, allow_large_delta, insecure_noise_seed
        As for ``Tally.release``.
    rollback_guard : RollbackGuard, optional
        Who remembers how many answers were returned; default: the store's own, which for a `SqliteStore` is a
        number in the user's state folder.

    Raises
    ------
    FileRefused
        if the store is an older copy: it would answer points a second time, by another path.

    Privacy
    -------
    All answers together are a part of one draw of f + s·(G + √λ·J), rounded: the Gaussian mechanism in the
    space of the kernel and post-processing, adaptive queries included, since the joint distribution of the
    path does not depend on them. It is proven for real numbers, and the claim states it.

    Examples
    --------
    >>> import hushsum as hs
    >>> from hushsum.secret_functions import density_function, serve
    >>> f = density_function([[0.5]] * 5000, hs.GaussianKernel(dim=1, bandwidth=0.2), bounds=(0, 1))
    >>> served = serve(f, epsilon=1.0, delta=1e-6)
    >>> bool(abs(served([[0.5]])[0] - 5000) < 50), bool(served([[0.5]]) == served([[0.5]]))
    (True, True)
    """
    request = _requested(epsilon, delta, keywords)
    kept = MemoryStore() if store is None else store
    served = ServedFunction(
        function,
        request.promise,
        kept,
        calibration=calibration,
        most_questions=most_questions,
        jitter=jitter,
        insecure_noise_seed=request.insecure_noise_seed,
        rollback_guard=rollback_guard,
    )
    booking, facts = request.booking, served._facts()

    def make() -> dict[str, Any]:
        # The store is bound between *drawn* and *staged*: once the ledger records that something was
        # published, there is a store to publish from. Who died in between finds a bound store, and closes
        # the entry with `subject_of`.
        kept.open(facts)
        return {"opened": True}

    if not kept.belongs_to(facts):
        spend_json(booking, served.claim, subject_of(served), make)
    served._check_newest()
    return served


class ServingKeywords(TypedDict, total=False):
    """The keyword arguments of :func:`serve` that a function has each time it is opened."""

    most_questions: int
    calibration: str
    jitter: float | None
    rollback_guard: RollbackGuard[int] | None


def reopen(
    function: SecretFunction, store: AnswerStore, promise: Promise, **keywords: Unpack[ServingKeywords]
) -> ServedFunction:
    """A function that was served before, on its own store, with the arguments of then. Spends nothing.

    Parameters
    ----------
    **keywords
        ``most_questions``, ``calibration``, ``jitter`` and ``rollback_guard`` as for :func:`serve`.

    Raises
    ------
    FileRefused
        if the store was never opened, or has fewer answers than were given: it is not the one that was paid
        for, and a second path of one function would show what the first one hides.
    UsageError
        if the store belongs to another function.
    """
    served = ServedFunction(function, promise, store, **keywords)
    if not store.belongs_to(served._facts()):
        rule = "the store of answers is not the one that was opened"
        raise FileRefused(rule, remedy="restore it, or serve anew")
    served._check_newest()
    return served


def path_claim(
    promise: Promise, function: SecretFunction, *, calibration: str = ANALYTIC, secure: bool = True
) -> Claim:
    """What serving a function promises. It does not depend on the records."""
    mechanism = PATH if calibration == ANALYTIC else f"{PATH}, {calibration}"
    return _claim(promise, function, mechanism, secure=secure)


def _claim(promise: Promise, function: SecretFunction, mechanism: str, *, secure: bool) -> Claim:
    return Claim(
        promise=promise,
        unit="record",
        records_per_unit=1,
        relation=function.relation,
        mechanism=Mechanism.of(mechanism),
        arithmetic=REAL_ARITHMETIC,
        secure=secure,
        assumptions=function.assumptions,
    )


def subject_of(served: ServedFunction) -> dict[str, object]:
    """What the ledger says of the release."""
    return {"served": served._function.kernel.name, "most_questions": served._most}


MECHANISMS = ("gaussian", "laplace")
# Lattice steps of Laplace noise in a pointwise sensitivity.
_STEPS = 1000


class FreshAnswers(Secret):
    """Fresh noise on every answer, for a number of answers that is fixed beforehand: output perturbation.

    The baseline that a served function beats from a few queries on: querying twice gives two answers, whose
    mean is nearer to the truth, so the noise must be large enough for all answers together. It refuses to
    give more than it was made for.

    Parameters
    ----------
    function : SecretFunction
    answers : int
        How many answers there will be in all, repetitions included.
    epsilon, delta : float
        Of all answers together. ``mechanism="laplace"`` takes pure ε as well.
    mechanism : {"gaussian", "laplace"}
    budget, idempotency_key, allow_large_delta, insecure_noise_seed
        As for ``Tally.release``; the budget is debited here, for all answers.

    Attributes
    ----------
    claim : Claim
    noise_stderr : float
        The standard deviation of the noise of one answer.

    Privacy
    -------
    Every answer moves by at most Δ = ``function.pointwise``. T Gaussian answers, each chosen after the
    last, are one Gaussian release of sensitivity √T·Δ, calibrated analytically: exact. Laplace noise gets ε/T
    an answer at δ = 0; with δ as much as the composed privacy loss distributions allow. Real arithmetic;
    Gaussian answers are rounded to a thousandth of σ.
    """

    REFUSAL = "fresh answers hold the data and must not be pickled or copied", None

    def __init__(
        self,
        function: SecretFunction,
        *,
        answers: int,
        epsilon: float,
        delta: float | None = None,
        mechanism: str = "gaussian",
        **keywords: Unpack[BookingKeywords],
    ) -> None:
        if mechanism not in MECHANISMS:
            raise UsageError("mechanism", "must be gaussian or laplace", got=shown(mechanism))
        if type(answers) is not int or answers < 1:
            raise UsageError("answers", "must be an integer above 0", remedy="declare how many there will be")
        request = _requested(epsilon, delta, keywords)
        promise, self._seed = request.promise, request.insecure_noise_seed
        self._function = function
        self._left = answers
        self._lock = Lock()
        self._sigma = self._rate = None
        if mechanism == "gaussian":
            self._sigma = deviation = path_scale(function.pointwise * answers**0.5, promise)
        else:
            self._rate = laplace_rate(promise, answers)
            deviation = function.pointwise * math.sqrt(2.0) / float(self._rate)
        self.noise_stderr = function.scale * deviation
        secure = self._seed is None
        self.claim = _claim(promise, function, f"{mechanism}, fresh for each answer", secure=secure)
        # The answers of one debit are given by one object alone: another one that uses its key, in this
        # process or elsewhere, would give as many again.
        mine = secrets.token_hex(16)
        subject = {"fresh answers": answers, "kernel": function.kernel.name}
        if spend_json(request.booking, self.claim, subject, lambda: {"opened": mine})["opened"] != mine:
            rule = "belongs to answers that were opened before, and what was not given of them is lost"
            raise UsageError("idempotency_key", rule, remedy="give another key, which spends again")

    def __call__(self, Q: object) -> Floats:
        """The next answers, shape (n_queries,).

        Raises
        ------
        UsageError
            if more are requested than are left; then none is given.
        """
        rows = self._function.prepared(Q)
        with self._lock:
            if len(rows) > self._left:
                rule = f"only {self._left} answers are left of those paid for"
                raise UsageError(rule, remedy="serve the function instead")
            self._left -= len(rows)
            seed = None if self._seed is None else self._seed + self._left
        exact = self._function.at(rows)
        with release_noise(seed) as noise:
            if self._sigma is not None:
                noisy = rounded(exact + self._sigma * noise.normal(len(exact)), self._sigma)
            else:
                assert self._rate is not None
                # Rounding moves either of two neighbours by half a step: Δ is one step less than _STEPS.
                step = self._function.pointwise / (_STEPS - 1)
                counts, _ = noise.laplace(np.rint(exact / step).astype(np.int64), _STEPS, self._rate)
                noisy = step * counts.astype(np.float64)
        values: Floats = self._function.scale * noisy
        return values


def laplace_rate(promise: Promise, answers: int) -> Fraction:
    """The ε that each Laplace answer may have: ε/T, or what composition at δ allows.

    >>> laplace_rate(Promise.of(epsilon=1.0), 10)
    Fraction(1, 10)
    """
    whole = promise.epsilon
    assert whole is not None
    low = whole / answers
    if promise.pure or answers == 1:
        return low

    high = whole
    while high > low * Fraction(101, 100):
        middle = Fraction(float(low * high) ** 0.5)
        table = LaplaceTable(Fraction(_STEPS) / middle, _STEPS)
        fits = compose([table] * answers, delta=promise.delta) <= whole
        low, high = (middle, high) if fits else (low, middle)
    return low


@dataclass(frozen=True, slots=True, eq=False)
class TestSetAnswers:
    """The answers at one given test set, released together; public.

    Attributes
    ----------
    values : array of shape (n_queries,)
    stderr : float
        The standard deviation of the noise of each.
    claim : Claim
    """

    __test__ = False

    values: Floats
    stderr: float
    claim: Claim


def answer_once(
    function: SecretFunction,
    Q: object,
    *,
    epsilon: float,
    delta: float,
    calibration: str = ANALYTIC,
    **keywords: Unpack[BookingKeywords],
) -> TestSetAnswers:
    """Semi-interactive use: one release of the answers at points that are known beforehand.

    The noise is that of a path, drawn at these points only, and then the path is discarded: nothing has to be
    kept, and nothing else can be queried. Costs n³ for n distinct points. ``budget``, ``idempotency_key``,
    ``allow_large_delta`` and ``insecure_noise_seed`` are as for ``Tally.release``.

    Privacy
    -------
    As `serve`, for the points given here. A second call is a second release, and spends again. The points
    must not depend on the data. Answers are rounded to a thousandth of the noise.

    Examples
    --------
    >>> import hushsum as hs
    >>> from hushsum.secret_functions import answer_once, density_function
    >>> f = density_function([[0.5]] * 5000, hs.GaussianKernel(dim=1, bandwidth=0.2), bounds=(0, 1))
    >>> answers = answer_once(f, [[0.1], [0.5]], epsilon=1.0, delta=1e-6)
    >>> round(answers.stderr, 2), bool(abs(answers.values[1] - 5000) < 50)
    (4.22, True)
    """
    request = _requested(epsilon, delta, keywords)
    promise, seed = request.promise, request.insecure_noise_seed
    scale = path_scale(function.sensitivity, promise, calibration=calibration)
    distinct, places = np.unique(function.prepared(Q), axis=0, return_inverse=True)
    claim = path_claim(promise, function, calibration=calibration, secure=seed is None)

    def make() -> dict[str, Any]:
        jitter, dim = SMALLEST_JITTER * function.largest, function.bounds.dim
        path = GaussianPath(function.covariance, dim, largest=function.largest, jitter=jitter)
        with release_noise(seed) as noise:
            drawn = path.extend(distinct, noise.normal(len(distinct)))
        return {"values": rounded(function.at(distinct) + scale * drawn, scale).tolist()}

    subject = {
        "test set": hashlib.sha256(distinct.tobytes()).hexdigest(),
        "kernel": function.kernel.name,
        "calibration": calibration,
    }
    noisy = spend_json(request.booking, claim, subject, make)["values"]
    values = function.scale * np.array(noisy, np.float64)[places.reshape(-1)]
    return TestSetAnswers(values, function.scale * scale * function.largest**0.5, claim)
