"""What all models share: they count in secret, release once, and predict from what they released."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from hushsum._types import Floats, PathOrFile
from hushsum.errors import FileRefused, HushsumError, UsageError
from hushsum.files.container import canonical_json
from hushsum.kernels.bandwidth_scale import warn_of_bandwidth
from hushsum.kernels.base import ColumnKernel
from hushsum.models.model_declaration import DeclaredModel, all_parameters
from hushsum.models.model_state import ModelState, until_released
from hushsum.models.parameters import documented, from_json, to_json
from hushsum.models.public_rows import refuse_repeated_rows
from hushsum.models.record_checks import (
    checked_records,
    generator_of,
    refuse_fit_arguments,
    warn_of_fitted_steps,
)
from hushsum.models.repeated_fits import RefitGuard, check_first, new_lineage, note_release
from hushsum.privacy.claim import Claim, Promise
from hushsum.privacy.release_request import check_declared_delta
from hushsum.privacy.spending import Booking
from hushsum.records.bounds import Bounds
from hushsum.records.data_derived_parameters import ParameterCheck, clipping_allowed
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.bundle import Bundle
from hushsum.releases.prepared_release import spend_function

MODELS: dict[str, type[PrivateModel]] = {}
"""Every model by the name of its class, for files."""


@contextmanager
def sensible_file() -> Iterator[None]:
    """What goes wrong inside is the fault of the file that the model was read from."""
    try:
        yield
    except FileRefused:
        raise
    except HushsumError as error:
        raise FileRefused(rule=("the file's model makes no sense: ", *error.parts())) from None
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, IndexError):
        raise FileRefused(
            rule="the file's model makes no sense, though its checksum holds", remedy="ask who wrote it"
        ) from None


class PrivateModel(DeclaredModel):
    """The base of all models: a scikit-learn estimator made of released functions only.

    ``fit`` counts the records and releases, which spends the budget. ``partial_fit`` only counts, and
    :meth:`release` then spends. From the release on the model is public: it has forgotten the records,
    predicts without spending, pickles and saves, and takes no more records. Before it, predictions raise
    ``NotFittedError``.

    A subclass declares its parameters (``PARAMETERS``) and the name of its command (``COMMAND``), and says
    what it counts and how the released bundle is read: :meth:`_start`, :meth:`_count`, :meth:`_draw` and
    :meth:`_open`, and, where it needs more than columns of numbers, :meth:`check_records`.

    Privacy
    -------
    Unit: one record. Neighbours: add/remove. Models do not take persons yet: one with m records is protected
    by m times the ε, and a dataset of persons takes a model only if it declares m. The number of columns and
    their names are taken as public, the number of records is not: it is in no attribute and in no message.
    ``bounds`` is a public constant to which records are clipped. ``random_state`` seeds hash functions,
    never noise.
    """

    budget: Any
    idempotency_key: str | None
    _state: ModelState
    _lineage: str

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not cls.__name__.startswith("Private"):
            return
        if "PARAMETERS" in vars(cls):
            cls.PARAMETERS = all_parameters(cls)
            cls.__doc__ = documented(cls.__doc__ or "", cls.PARAMETERS)
        MODELS[cls.__name__] = cls

    def _start(self, seed: int) -> Any:
        """Something empty and secret to count into; ``n_features_in_`` is known."""
        raise NotImplementedError

    def _count(self, secret: Any, X: Floats, y: NDArray[Any] | None) -> None:
        """Add checked records to the secret."""
        raise NotImplementedError

    def _ready(self, secret: Any) -> Any:
        """What `_draw` takes: the work on the secret that may be refused, done before a budget is debited."""
        return secret

    def _draw(self, secret: Any, promise: Promise) -> Bundle:
        """Draw the noise for the whole promise; make the result with :meth:`_bundle`."""
        raise NotImplementedError

    def _open(self, bundle: Bundle) -> Any:
        """What predictions are computed from; also called for a model that was loaded."""
        return bundle

    def _part_columns(self) -> Mapping[str, int | None]:
        """The released parts that the bundle may hold, and how many columns each compares: a file with others
        is refused. None leaves the number to :meth:`_open`.
        """
        return {}

    def _facts(self) -> dict[str, Any]:
        """Further public facts for the bundle, such as the classes; known when counting starts."""
        return {}

    def _restore(self, facts: dict[str, Any]) -> None:
        """Set the fitted attributes that :meth:`_facts` described."""

    def check_records(
        self, X: object, y: object = None, *, reset: bool = True
    ) -> tuple[Floats, NDArray[Any] | None]:
        """Records and targets as the model counts them, checked.

        Raises
        ------
        DataRefused
            if they break a rule; no message shows a value or the number of records.
        """
        return self._checked(X, reset=reset), None

    def fit(self, X: object, y: object = None, *, allow_clipping: bool = False, **refused: object) -> Self:
        """Count these records and release the model. Spends the budget, once.

        A fit that failed while it released, and one that is repeated on the very same array objects with the
        same parameters, does not spend again: the first is resumed, the second is the model that was paid
        for. Anything else makes a new model, whose release spends again.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Private records; arrays or frames of finite numbers, clipped to ``bounds``.
        y : array-like of shape (n_samples,), optional
            The target, where the model has one.
        allow_clipping : bool
            Fit records that mostly lie outside ``bounds``, with a warning in place of the refusal.

        Raises
        ------
        UsageError
            if a parameter breaks a rule.
        DataRefused
            if the records do, or most of them lie outside ``bounds``; nothing is spent.
        BudgetExhausted
            if the budget does not suffice; nothing is released.

        Warns
        -----
        RepeatedSpending
            if this estimator or a clone of it has released before.
        """
        refuse_fit_arguments(refused)
        self.check_parameters()
        records, target = self.check_records(X, y, reset=True)
        if self.public is not None:
            refuse_repeated_rows(self.public, X, records, super()._column_names())
        if not self._is_repeated((X, y), records, target):
            state = self._begin()
            with clipping_allowed(allow_clipping):
                # One warning of a scaler suffices.
                warned = warn_of_fitted_steps(self)
                self._compare(state, X, records, target, whole=not warned)
            with clipping_allowed(quiet=True):
                self._count(state.secret, records, target)
            state.guard = RefitGuard((X, y), self._of_the_owner())
            state.guard.remember(records, target)
            self._state = state
        return self.release()

    @until_released
    def partial_fit(
        self, X: object, y: object = None, *, allow_clipping: bool = False, **refused: object
    ) -> Self:
        """Count further records. Spends nothing; :meth:`release` does.

        Raises
        ------
        AlreadyReleased
            after the release: what was paid for is the model as it was then.
        """
        refuse_fit_arguments(refused)
        self.check_parameters()
        state: ModelState | None = getattr(self, "_state", None)
        records, target = self.check_records(X, y, reset=state is None)
        if self.public is not None:
            refuse_repeated_rows(self.public, X, records, super()._column_names())
        if state is None:
            state = self._begin()
        with clipping_allowed(allow_clipping):
            self._compare(state, X, records, target, whole=False)
        state.guard = None
        # A batch may go into several tables: one that is interrupted between them must not be counted again.
        with state.changing(), clipping_allowed(quiet=True):
            self._count(state.secret, records, target)
        self._state = state
        return self

    def _begin(self) -> ModelState:
        if not hasattr(self, "_lineage"):
            self._lineage = new_lineage()
        for kernel in self.compared_by(self.n_features_in_):
            warn_of_bandwidth(kernel, self.column_bounds(), level=4)
        booking = Booking.of(self.budget, self.idempotency_key)
        if booking is not None:
            # A dataset of persons may refuse the claim, which is for records: before anything is counted.
            booking.budget.cost(self.claim(self.n_features_in_))
        seed = int(generator_of(self.random_state).randint(np.iinfo(np.int32).max))
        return ModelState(
            secret=self._start(seed), facts=self._described(), seed=seed, key=self.idempotency_key
        )

    def _is_repeated(
        self, given: tuple[object, object], records: Floats, target: NDArray[Any] | None
    ) -> bool:
        """Whether this fit is of the model that is there: paid for, or counted and not yet released."""
        state: ModelState | None = getattr(self, "_state", None)
        if state is None or state.guard is None:
            return False
        if state.facts != self._described() or not state.guard.same_call(given, self._of_the_owner()):
            return False
        state.guard.check_unchanged(records, target)
        return True

    def _of_the_owner(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.not_stored()}

    def _checked(self, X: object, y: object = "no_validation", *, reset: bool) -> Any:
        """Columns of finite numbers, for records and for queries; with ``y`` both."""
        return checked_records(self, X, y, reset=reset)

    def _compare(
        self, state: ModelState, X: object, records: Floats, target: NDArray[Any] | None, *, whole: bool
    ) -> None:
        """Warn the owner of declared parameters that the records give away; refuse those that do not fit."""
        if not state.checks:
            state.checks = self._parameter_checks()
        for check, values in zip(state.checks, self._compared(X, records, target), strict=True):
            check.warn(values, whole=whole)

    def _parameter_checks(self) -> list[ParameterCheck]:
        """Of the records, and of whatever else :meth:`_compared` returns, in the same order."""
        kernels = self.compared_by(self.n_features_in_)
        widths = [each.bandwidth for each in kernels if isinstance(each, ColumnKernel)]
        # Kernels of codes or directions take no bounds, and their records are not clipped.
        clipped = bool(widths) or not kernels
        box = Bounds.of(self.column_bounds(), self.n_features_in_) if clipped else None
        return [ParameterCheck(box, bandwidths=widths, columns=self._column_names())]

    def _compared(self, X: object, records: Floats, target: NDArray[Any] | None) -> list[Floats]:
        """The records as they came, before clipping."""
        return [records]

    def release(self) -> Self:
        """Draw the noise and make the model public. Spends the budget, once; does nothing when repeated.

        For a model that counted with :meth:`partial_fit`; :meth:`fit` calls it itself.

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
        state: ModelState | None = getattr(self, "_state", None)
        if state is None:
            raise self._not_fitted()
        with state.lock:
            if state.bundle is None:
                bundle = self._spend(state)
                state.settle(bundle, self._open(bundle))
        return self

    def _spend(self, state: ModelState) -> Bundle:
        state.check_whole()
        if state.facts != self._described():
            raise UsageError(
                rule="parameters were changed between fit and the release",
                got="others than what was counted for",
                remedy="set them back, or fit again",
            )
        promise = Promise.of(epsilon=self.epsilon, delta=self.delta)
        check_declared_delta(promise, None)
        booking = Booking.of(self.budget, self.idempotency_key)
        check_first(self._lineage, state.key)
        ready = self._ready(state.secret)
        fingerprint = hashlib.sha256(canonical_json(state.facts)).hexdigest()
        bundle = spend_function(
            # The state's key, which a retry of this release repeats where the owner gave none.
            None if booking is None else replace(booking, idempotency_key=state.key),
            self._claim(promise, self.n_features_in_),
            {"model": type(self).__name__, "fingerprint": fingerprint},
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
        return Bundle(self._claim(promise, self.n_features_in_), about, parts or {}, arrays or {})

    def _described(self) -> dict[str, Any]:
        """Everything public in the bundle, except for the seed."""
        parameters = {
            name: to_json(name, self.effective(name))
            for name in self.get_params(deep=False)
            if name not in self.not_stored()
        }
        return {
            "model": type(self).__name__,
            "parameters": parameters,
            "features": self.n_features_in_,
            "feature_names": self._column_names(),
            "assumptions": self._assumptions(),
            **self._facts(),
        }

    def _column_names(self) -> list[str] | None:
        """As of the records that were counted, also where queries come without names."""
        state: ModelState | None = getattr(self, "_state", None)
        known: list[str] | None = None if state is None else state.facts.get("feature_names")
        return super()._column_names() if known is None else known

    def _queries(self, X: object) -> Floats:
        """Checked queries. A file whose model makes no sense is refused before they are looked at."""
        self._reading()
        checked: Floats = self._checked(X, reset=False)
        return checked

    def _within_bounds(self, queries: Floats) -> Floats:
        """Queries moved to the nearest point of the box, beyond which there are no records."""
        low, high = np.array(self._box(self._fitted("bounds"))).T
        return np.asarray(np.clip(queries, low, high))

    def _reading(self) -> Any:
        """What :meth:`_open` made of what was released.

        A model that was read from a file is opened and queried once here, not when it is read: what a short
        file requires to be computed is computed for whoever queries it.

        Raises
        ------
        FileRefused
            if the parts of a file do not fit together.
        """
        if not self.__sklearn_is_fitted__():
            raise self._not_fitted()
        state = self._state
        if state.reading is None and state.bundle is not None:
            with sensible_file():
                state.reading = self._open(state.bundle)
                try:
                    self._probe()
                    if state.from_file and canonical_json(self._described()) != canonical_json(state.facts):
                        raise ValueError("a model has one description")
                except BaseException:
                    state.reading = None
                    raise
        return state.reading

    def _probe(self) -> None:
        """Query a model that was read once, inside its bounds: parts that do not fit together fail here."""
        names = ("decision_function", "score_samples", "predict", "sample")
        answer = next(getattr(self, name) for name in names if hasattr(self, name))
        # A point without column names is fine here.
        with np.errstate(all="ignore"), warnings.catch_warnings(category=UserWarning, action="ignore"):
            answer(*([] if answer.__name__ == "sample" else [self._example()]))

    def _fitted(self, name: str) -> Any:
        """A parameter as it was when the records were counted."""
        return from_json(self._state.facts["parameters"][name])

    def _not_fitted(self) -> NotFittedError:
        return NotFittedError(
            f"this {type(self).__name__} has released nothing yet, so nothing has been spent or claimed; "
            "call fit, or release() after partial_fit"
        )

    @property
    def released_(self) -> Bundle:
        """Everything public that the model consists of; only after the release."""
        bundle = self._state.bundle if hasattr(self, "_state") else None
        if bundle is None:
            raise self._not_fitted()
        return bundle

    @property
    def claim_(self) -> Claim:
        """What the model's one release promises; only after the release."""
        return self.released_.claim

    def save(self, target: PathOrFile) -> None:
        """Write the released model to a ``.hush`` file; to a path atomically."""
        self.released_.save(target)

    def _html_repr(self) -> str:
        """scikit-learn's diagram for notebooks, and the claim of what was released."""
        with warnings.catch_warnings():
            # scikit-learn reads the docstring and warns about its section Privacy.
            warnings.filterwarnings("ignore", "Unknown section", UserWarning)
            diagram: str = super()._html_repr()
        return diagram + (self.claim_._repr_html_() if self.__sklearn_is_fitted__() else "")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_state") and self._state.bundle is not None

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
        if hasattr(self, "_state"):
            attributes["budget"] = None
        return attributes

    def __copy__(self) -> Self:
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A released model shares its frozen bundle with the copy; an unreleased one refuses."""
        if hasattr(self, "_state") and self._state.bundle is None:
            self._state.refuse_to_leave()
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin
