"""A function of private data that answers queries under one claim."""

from __future__ import annotations

import math
import secrets
from threading import Lock
from typing import IO, Any, NoReturn

import numpy as np

from hushsum._types import Floats, Rows
from hushsum.errors import FileRefused, QuestionsSpent, SecretRefused, UsageError
from hushsum.privacy.budget import Budget
from hushsum.privacy.claim import Claim, Promise
from hushsum.privacy.functional_perturbation import ANALYTIC, PATH, path_scale
from hushsum.privacy.mechanism import Mechanism
from hushsum.privacy.real_noise import real_noise
from hushsum.privacy.release_noise import REAL_ARITHMETIC
from hushsum.privacy.release_request import check_declared_delta
from hushsum.privacy.spending import Booking, spend_json
from hushsum.served.answer_store import AnswerStore, MemoryStore, RollbackGuard, StoredAnswer, StoreSession
from hushsum.served.gaussian_path import SMALLEST_JITTER, GaussianPath
from hushsum.served.secret_functions import SecretFunction

MOST_QUESTIONS = 5000
_ROUNDING_BITS = 10


class ServedFunction:
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

    def __init__(
        self,
        function: SecretFunction,
        claim: Claim,
        scale: float,
        store: AnswerStore,
        *,
        jitter: float,
        most_questions: int,
        insecure_noise_seed: int | None,
        rollback_guard: RollbackGuard | None,
    ) -> None:
        self.claim = claim
        self._function = function
        self._scale = scale
        self._store = store
        self._most = most_questions
        self._seed = insecure_noise_seed
        self._rollback_guard = rollback_guard
        self._noted = 0
        self._turn = Lock()
        self._unsure = False
        self._path = GaussianPath(
            function.covariance, function.bounds.dim, largest=function.largest, jitter=jitter
        )
        # Answers are returned on a lattice far below the noise that each point has for itself.
        self._step = 2.0 ** (math.floor(math.log2(scale * math.sqrt(jitter))) - _ROUNDING_BITS)

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
                raise QuestionsSpent(
                    rule=f"this function answers at most {self._most} distinct points",
                    remedy="query those that were queried, or release a model, which has no limit",
                )
            if not answered and self._rollback_guard is not None:
                # Before the first answer is kept: a store with answers and without a note is an unknown copy.
                self._rollback_guard.note(0)
            self._unsure = True
            self._catch_up(session)
            points = rows[places]
            exact = self._function.at(points)
            seed = None if self._seed is None else self._seed + answered
            with real_noise(seed) as noise:
                path = self._path.extend(points, noise.normal(len(points)))
            answers = self._step * np.rint((exact + self._scale * path) / self._step)
            session.append(
                [
                    StoredAnswer(keys[place], float(answer), float(value))
                    for place, answer, value in zip(places, answers, path, strict=True)
                ]
            )
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
                    rule=(
                        "the store of answers has some, and nothing shows on this machine that it is its "
                        "newest copy: continuing an older one would draw a second path"
                    ),
                    remedy="bring the folder served of the state folder (HUSHSUM_STATE) along, or serve anew",
                )
            known = noted or 0
        if kept < max(len(self._path), known):
            raise FileRefused(
                rule=(
                    "the store of answers has fewer than were returned, as an older copy has: continuing "
                    "would draw a second path"
                ),
                remedy="put the newest copy back, or end this function",
            )
        return kept

    def _catch_up(self, session: StoreSession) -> None:
        """Take over what other processes, or an earlier life of this one, have drawn."""
        fresh = session.since(len(self._path))
        if fresh:
            points = np.frombuffer(b"".join(each.point for each in fresh), np.float32)
            self._path.recall(
                points.reshape(len(fresh), -1), np.array([each.path for each in fresh], np.float64)
            )

    def __repr__(self) -> str:
        return f"ServedFunction(claim={self.claim!r})"

    def save(self, target: str | IO[bytes]) -> NoReturn:
        """Refused: it needs the data to answer."""
        raise SecretRefused(
            rule="a served function holds the data and is not a file",
            remedy="release a model of hushsum.models",
        )

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise SecretRefused(rule="a served function holds the data and must not be pickled or copied")


def serve(
    function: SecretFunction,
    *,
    epsilon: float,
    delta: float,
    store: AnswerStore | None = None,
    most_questions: int = MOST_QUESTIONS,
    jitter: float | None = None,
    calibration: str = ANALYTIC,
    allow_large_delta: bool = False,
    budget: Budget | None = None,
    idempotency_key: str | None = None,
    insecure_noise_seed: int | None = None,
    rollback_guard: RollbackGuard | None = None,
) -> ServedFunction:
    """Open a function for questions. Spends ``epsilon`` and ``delta`` once, when its store is first opened.

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
    budget, idempotency_key
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
    space of the kernel and post-processing, adaptive questions included, since the joint law of the path does
    not depend on them. It is proven for real numbers, and the claim states it.

    Examples
    --------
    >>> import hushsum as hs
    >>> from hushsum.served import density_function, serve
    >>> f = density_function([[0.5]] * 5000, hs.GaussianKernel(dim=1, bandwidth=0.2), bounds=(0, 1))
    >>> served = serve(f, epsilon=1.0, delta=1e-6)
    >>> bool(abs(served([[0.5]])[0] - 5000) < 50), bool(served([[0.5]]) == served([[0.5]]))
    (True, True)
    """
    promise = Promise.of(epsilon=epsilon, delta=delta)
    check_declared_delta(promise, None, allow_large_delta=allow_large_delta)
    claim = path_claim(promise, function, calibration=calibration, secure=insecure_noise_seed is None)
    served, facts = _prepared(
        function,
        claim,
        MemoryStore() if store is None else store,
        calibration=calibration,
        jitter=jitter,
        most_questions=most_questions,
        insecure_noise_seed=insecure_noise_seed,
        rollback_guard=rollback_guard,
    )
    _open(served, facts, Booking.of(budget, idempotency_key))
    served._check_newest()
    return served


def reopen(
    function: SecretFunction,
    store: AnswerStore,
    promise: Promise,
    *,
    most_questions: int = MOST_QUESTIONS,
    calibration: str = ANALYTIC,
    rollback_guard: RollbackGuard | None = None,
) -> ServedFunction:
    """A function that was served before, on its own store, with the arguments of then. Spends nothing.

    Parameters
    ----------
    rollback_guard : RollbackGuard, optional
        Remembers outside of the store how many answers were given, so that an older copy of it is noticed.

    Raises
    ------
    FileRefused
        if the store was never opened, or has fewer answers than were given: it is not the one that was paid
        for, and a second path of one function would show what the first one hides.
    UsageError
        if the store belongs to another function.
    """
    claim = path_claim(promise, function, calibration=calibration)
    served, facts = _prepared(
        function,
        claim,
        store,
        calibration=calibration,
        jitter=None,
        most_questions=most_questions,
        rollback_guard=rollback_guard,
    )
    if not store.belongs_to(_bound(served, facts)):
        raise FileRefused(
            rule="the store of answers is not the one that was opened", remedy="restore it, or serve anew"
        )
    served._check_newest()
    return served


def path_claim(
    promise: Promise, function: SecretFunction, *, calibration: str = ANALYTIC, secure: bool = True
) -> Claim:
    """What serving a function promises. It does not depend on the records."""
    return Claim(
        promise=promise,
        unit="record",
        records_per_unit=1,
        relation=function.relation,
        mechanism=Mechanism.of(PATH if calibration == ANALYTIC else f"{PATH}, {calibration}"),
        arithmetic=REAL_ARITHMETIC,
        secure=secure,
        assumptions=function.assumptions,
    )


def _prepared(
    function: SecretFunction,
    claim: Claim,
    store: AnswerStore,
    *,
    calibration: str,
    jitter: float | None,
    most_questions: int,
    insecure_noise_seed: int | None = None,
    rollback_guard: RollbackGuard | None = None,
) -> tuple[ServedFunction, dict[str, Any]]:
    """A served function that has not been opened, and the facts to which its store is bound."""
    if type(most_questions) is not int or most_questions < 1:
        raise UsageError(
            parameter="most_questions", rule="must be a whole number above 0", remedy="leave it out for 5000"
        )
    scale = path_scale(function.sensitivity, claim.promise, calibration=calibration)
    lam = SMALLEST_JITTER * function.largest if jitter is None else float(jitter)
    served = ServedFunction(
        function,
        claim,
        scale,
        store,
        jitter=lam,
        most_questions=most_questions,
        insecure_noise_seed=insecure_noise_seed,
        rollback_guard=store.rollback_guard() if rollback_guard is None else rollback_guard,
    )
    facts = {
        "claim": claim.as_json(),
        "function": function.facts(),
        "scale": scale,
        "jitter": lam,
        "most_questions": most_questions,
    }
    return served, facts


def _bound(served: ServedFunction, facts: dict[str, Any]) -> dict[str, Any]:
    """The facts with a keyed digest of the records."""
    salt = served._store.salt(secrets.token_hex(32))
    return {**facts, "fingerprint": served._function.fingerprint(bytes.fromhex(salt))}


def _open(served: ServedFunction, facts: dict[str, Any], booking: Booking | None) -> None:
    """Spend, unless the store was paid for, and bind it to this function.

    It is bound between *drawn* and *staged*: once the ledger records that something was published, there is a
    store to publish from. Who died in between finds a bound store, and closes the entry with `subject_of`.
    """
    store, bound = served._store, _bound(served, facts)
    if store.belongs_to(bound):
        return

    def make() -> dict[str, Any]:
        store.open(bound)
        return {"opened": True}

    spend_json(booking, served.claim, subject_of(served), make)


def subject_of(served: ServedFunction) -> dict[str, object]:
    """What the ledger says of the release."""
    return {"served": served._function.kernel.name, "most_questions": served._most}
