"""What all models share: they count in secret, release once, and answer from what they released."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from hushsum.errors import DataRefused, UsageError
from hushsum.files.container import canonical_json
from hushsum.models.facts import from_json, to_json
from hushsum.models.lineage import check_first, new_lineage, note_release
from hushsum.models.seen import Seen
from hushsum.models.state import ModelState
from hushsum.models.until_released import until_released
from hushsum.privacy.calibration import GAUSSIAN, LAPLACE
from hushsum.privacy.claim import Claim, Promise
from hushsum.privacy.relation import Relation
from hushsum.privacy.request import check_declared_delta
from hushsum.privacy.spending import Booking
from hushsum.records.bounds import Bounds
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.bundle import Bundle
from hushsum.releases.spending import spend_function

Floats = NDArray[np.float64]

PARAMETERS_OF_THE_OWNER = frozenset({"budget", "idempotency_key", "random_state"})
"""What is not written into the bundle: the owner's budget, and a generator (its seed is written instead)."""

MODELS: dict[str, type[PrivateModel]] = {}
"""Every model by its name, for files."""


class PrivateModel(BaseEstimator):  # type: ignore[misc]
    """The base of all models: a scikit-learn estimator made of released functions only.

    ``fit`` starts anew and only counts, ``partial_fit`` counts further; neither spends anything. The first
    answer, or :meth:`release`, draws the noise once and forgets the records. From then on the model is
    public: it answers for ever, pickles and saves, and takes no more records.

    A subclass says what it counts and how the bundle is read, in five methods: :meth:`_start`,
    :meth:`_count`, :meth:`_draw` and :meth:`_open`, and, where it needs more than columns of numbers,
    :meth:`_records`.

    Privacy
    -------
    Unit: one record. Neighbours: add/remove. The number of columns and their names are taken as public, the
    number of records is not: it is in no attribute and in no message. ``bounds`` is a public constant to
    which records are clipped. ``random_state`` seeds hash functions, never noise.
    """

    epsilon: float
    delta: float | None
    bounds: Any
    random_state: Any
    budget: Any
    idempotency_key: str | None
    n_features_in_: int
    _state: ModelState
    _lineage: str

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__name__.startswith("Private"):
            MODELS[cls.__name__] = cls

    # -- what a subclass says ---------------------------------------------------------------------------

    def _start(self, seed: int) -> Any:
        """Something empty and secret to count into; ``n_features_in_`` is known."""
        raise NotImplementedError

    def _count(self, secret: Any, X: Floats, y: NDArray[Any] | None) -> None:
        """Add checked records to the secret."""
        raise NotImplementedError

    def _ready(self, secret: Any) -> Any:
        """What `_draw` takes: work on the secret that may be refused, done before the debit."""
        return secret

    def _draw(self, secret: Any, promise: Promise) -> Bundle:
        """Draw the noise for the whole promise; make the result with :meth:`_bundle`."""
        raise NotImplementedError

    def _open(self, bundle: Bundle) -> Any:
        """What predictions are computed from; also called for a model that was loaded."""
        return bundle

    def _facts(self) -> dict[str, Any]:
        """Further public facts for the bundle, such as the classes; known when counting starts."""
        return {}

    def _assumptions(self) -> list[str]:
        """What must be public knowledge for the claim to hold, in words that follow "assumes that"."""
        return []

    def _restore(self, facts: dict[str, Any]) -> None:
        """Set the fitted attributes that :meth:`_facts` described."""

    def _claim(self, promise: Promise) -> Claim:
        """What the release will claim, known before anything is drawn."""
        return Claim(
            promise=promise,
            unit="record",
            records_per_unit=1,
            relation=Relation.ADD_REMOVE,
            mechanism=LAPLACE if promise.pure else GAUSSIAN,
            arithmetic="exact integers",
            secure=True,
            assumptions=tuple(self._assumptions()),
        )

    def _records(self, X: object, y: object, *, reset: bool) -> tuple[Floats, NDArray[Any] | None]:
        """Checked records; here of numbers alone, whatever ``y`` is."""
        return self._checked(X, reset=reset), None

    # -- counting ---------------------------------------------------------------------------------------

    def fit(self, X: object, y: object = None, **refused: object) -> Self:
        """Start anew and count these records. Spends nothing.

        A model that was released, fitted again on the very same array objects with the same parameters, stays
        the model that was paid for. Anything else makes a new model, whose release spends again.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Private records; arrays or frames of finite numbers, clipped to ``bounds``.
        y : array-like of shape (n_samples,), optional
            The target, where the model has one.
        """
        self._refuse(refused)
        records, target = self._records(X, y, reset=True)
        if self._is_repeated((X, y), records, target):
            return self
        state = self._begin()
        self._count(state.secret, records, target)
        state.seen = Seen((X, y), self._of_the_owner())
        state.seen.remember(records, target)
        self._state = state
        return self

    @until_released
    def partial_fit(self, X: object, y: object = None, **refused: object) -> Self:
        """Count further records. Spends nothing.

        Raises
        ------
        AlreadyReleased
            after the release: what was paid for is the model as it was then.
        """
        self._refuse(refused)
        state: ModelState | None = getattr(self, "_state", None)
        records, target = self._records(X, y, reset=state is None)
        if state is None:
            state = self._begin()
        state.growing, state.seen = True, None
        # A batch may go into several tables: one that is interrupted between them must not be counted again.
        with state.changing():
            self._count(state.secret, records, target)
        self._state = state
        return self

    def _begin(self) -> ModelState:
        if not hasattr(self, "_lineage"):
            self._lineage = new_lineage()
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        return ModelState(
            secret=self._start(seed), facts=self._described(), seed=seed, key=self.idempotency_key
        )

    def _is_repeated(
        self, given: tuple[object, object], records: Floats, target: NDArray[Any] | None
    ) -> bool:
        """Whether this fit asks for the model that is there and was paid for."""
        state: ModelState | None = getattr(self, "_state", None)
        if state is None or state.bundle is None or state.seen is None:
            return False
        if state.facts != self._described() or not state.seen.same_call(given, self._of_the_owner()):
            return False
        state.seen.check_unchanged(records, target)
        return True

    def _of_the_owner(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in PARAMETERS_OF_THE_OWNER}

    def _checked(self, X: object, y: object = "no_validation", *, reset: bool) -> Any:
        """Columns of finite numbers, for records and for queries, with scikit-learn's own checks; with ``y``
        both.
        """
        try:
            return validate_data(self, X, y, reset=reset, dtype=np.float64)
        except ValueError as error:
            if "could not convert" not in str(error):
                raise
        # Outside of the handler, so that no traceback quotes the value that NumPy quotes.
        raise DataRefused("X must hold numbers, got text; encode it with a public encoding first")

    @staticmethod
    def _refuse(parameters: dict[str, object]) -> None:
        if parameters.pop("sample_weight", None) is not None:
            raise UsageError(
                "sample_weight is refused: a record of weight w moves the sums w times as far, so the noise "
                "would have to be as large as the largest weight allows; leave it out"
            )
        if parameters:
            raise TypeError(f"fit got an unexpected argument {next(iter(parameters))!r}")

    # -- releasing --------------------------------------------------------------------------------------

    def release(self) -> Self:
        """Draw the noise and make the model public. Spends the budget, once; does nothing when repeated.

        Raises
        ------
        NotFittedError
            if no records were counted.
        BudgetExhausted
            if the ledger has not enough left; nothing is released.

        Warns
        -----
        RepeatedSpending
            if this estimator or a clone of it has released before.
        """
        check_is_fitted(self)
        state = self._state
        with state.lock:
            if state.bundle is None:
                bundle = self._spend(state)
                state.settle(bundle, self._open(bundle))
        return self

    def _spend(self, state: ModelState) -> Bundle:
        state.check_whole()
        if state.facts != self._described():
            raise UsageError(
                "parameters were changed between fit and the release, got others than what was counted for; "
                "set them back, or fit again"
            )
        promise = Promise.of(epsilon=self.epsilon, delta=self.delta)
        check_declared_delta(promise, None)
        booking = Booking.of(self.budget, self.idempotency_key)
        check_first(self._lineage, state.key)
        ready = self._ready(state.secret)
        bundle = spend_function(
            # The state's key, which a retry of this release repeats where the owner gave none.
            None if booking is None else replace(booking, idempotency_key=state.key),
            self._claim(promise),
            {"model": type(self).__name__, "fingerprint": _digest(state.facts)},
            lambda: self._draw(ready, promise),
        )
        note_release(self._lineage, state.key)
        return bundle

    def _bundle(
        self,
        promise: Promise,
        *,
        parts: dict[str, ReleasedFunction] | None = None,
        arrays: dict[str, NDArray[Any]] | None = None,
    ) -> Bundle:
        """A bundle of this model's facts and what was drawn for the promise."""
        about = {**self._described(), "seed": self._state.seed}
        return Bundle(self._claim(promise), about, parts or {}, arrays or {})

    def _described(self) -> dict[str, Any]:
        """Everything public that the bundle tells, but for the seed."""
        names = getattr(self, "feature_names_in_", None)
        parameters = {
            name: to_json(name, value)
            for name, value in self.get_params(deep=False).items()
            if name not in PARAMETERS_OF_THE_OWNER
        }
        return {
            "model": type(self).__name__,
            "parameters": parameters,
            "features": self.n_features_in_,
            "feature_names": None if names is None else [str(name) for name in names],
            "assumptions": self._assumptions(),
            **self._facts(),
        }

    # -- answering --------------------------------------------------------------------------------------

    def _queries(self, X: object) -> Floats:
        """Checked queries; they are checked before a budget is spent on answering them."""
        check_is_fitted(self)
        checked: Floats = self._checked(X, reset=False)
        return checked

    def _within_bounds(self, queries: Floats) -> Floats:
        """Queries moved to the nearest point of the box, beyond which there are no records."""
        low, high = np.array(self._box(self._fitted("bounds"))).T
        clipped: Floats = np.clip(queries, low, high)
        return clipped

    def _reading(self) -> Any:
        """What :meth:`_open` made; releases the model first where that has not been done."""
        self.release()
        state = self._state
        if state.reading is None and state.bundle is not None:
            state.reading = self._open(state.bundle)
        return state.reading

    def _fitted(self, name: str) -> Any:
        """A parameter as it was when the records were counted."""
        return from_json(self._state.facts["parameters"][name])

    def _box(self, bounds: object = None) -> list[tuple[float, float]]:
        """The declared bounds, one (low, high) for each column."""
        box = Bounds.of(self.bounds if bounds is None else bounds, self.n_features_in_)
        if box is None:
            raise UsageError(
                "bounds must be declared, got None; give (low, high), or one pair for each column"
            )
        return list(zip(box.low, box.high, strict=True))

    @property
    def released_(self) -> Bundle:
        """Everything public that the model consists of; only after the release."""
        bundle = self._state.bundle if self.__sklearn_is_fitted__() else None
        if bundle is None:
            raise NotFittedError(
                f"this {type(self).__name__} has released nothing yet, so nothing has been spent or claimed; "
                "fit it, then call release() or ask it something"
            )
        return bundle

    @property
    def claim_(self) -> Claim:
        """What the model's one release promises; only after the release."""
        return self.released_.claim

    def save(self, target: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write the released model to a ``.hush`` file; to a path atomically."""
        self.released_.save(target)

    # -- scikit-learn -----------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_state")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        return tags

    def __sklearn_clone__(self) -> Self:
        """An unfitted model with the same parameters and the same budget, and of the same lineage."""
        if not hasattr(self, "_lineage"):
            self._lineage = new_lineage()
        given = self.get_params(deep=False)
        copied = {name: clone(value, safe=False) for name, value in given.items() if name != "budget"}
        twin = type(self)(**copied, budget=self.budget)
        twin._lineage = self._lineage
        if hasattr(self, "_metadata_request"):
            twin._metadata_request = clone(self._metadata_request)
        return twin

    def __getstate__(self) -> dict[str, Any]:
        attributes: dict[str, Any] = dict(super().__getstate__())
        if self.__sklearn_is_fitted__():
            attributes["budget"] = None
        return attributes

    def __copy__(self) -> Self:
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A released model shares its frozen bundle with the copy; an unreleased one refuses."""
        if self.__sklearn_is_fitted__() and self._state.bundle is None:
            self._state.refuse_to_leave()
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin


def _digest(facts: dict[str, Any]) -> str:
    return hashlib.sha256(canonical_json(facts)).hexdigest()
