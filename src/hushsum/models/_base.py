"""What all models share: declared parameters, a claim before any record, one release, predictions from it."""

from __future__ import annotations

import hashlib
import inspect
import secrets
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Lock
from types import MethodType
from typing import Any, ClassVar, Self, TypeVar, cast, dataclass_transform

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from hushsum import declaration, errors, privacy
from hushsum._types import Floats, PathOrFile, Secret
from hushsum.declaration import Parameter, parameters_of, setting
from hushsum.files import canonical_json
from hushsum.kernels import (
    SCALES,
    ColumnKernel,
    Kernel,
    check_cap,
    default_bandwidth,
    kernel_as_json,
    kernel_from_json,
    warn_of_bandwidth,
)
from hushsum.privacy import Booking, Claim, Mechanism, Promise, Relation
from hushsum.privacy.accounting import promise_of_one
from hushsum.records import (
    TARGETS,
    Bounds,
    DeclaredColumn,
    ParameterCheck,
    UnitCap,
    clipping_allowed,
    column_from_json,
    column_names_of,
    level_outside,
)
from hushsum.releases import Bundle, Prepared, PublicFacts, ReleasedFunction, load_released

from ._accuracy import NoPlanWithinLimits, PredictedError
from ._public_rows import PUBLIC_PARAMETERS, bounds_of_rows, public_table, refuse_repeated_rows
from ._record_checks import (
    checked_records,
    refuse_fit_arguments,
    seed_of,
    showing_nothing,
    warn_of_fitted_steps,
)

_KERNEL = "a kernel"
_COLUMN = "a column"

DELTA = Parameter(
    "delta",
    help="δ of the one release; without it the claim is pure ε.",
    at_least=0,
    below=1,
    group=declaration.RELEASE,
)
SCALE = Parameter(
    "scale",
    declaration.TEXT,
    "What the bandwidth is measured in: the units of the data, or (bounds) the declared range of each "
    "column, of which it is then a fraction. Default: bounds where the declared ranges of two columns "
    "differ by more than ten times.",
    choices=SCALES,
    optional=True,
)


def with_default_bandwidth(parameter: Parameter, part: float) -> Parameter:
    """The parameter; a bandwidth may be left out, and is then that part of the declared range of a column."""
    if parameter.name != "bandwidth" or not part:
        return parameter
    words = f" Default: {part:g} of the declared range of each column, or of the widest where scale is units."
    return replace(parameter, help=parameter.help + words, optional=True)


def documented(docstring: str, parameters: Sequence[Parameter]) -> str:
    """A class docstring with the section *Parameters* put before its next section."""
    lines = docstring.expandtabs().splitlines()
    indent = "    "
    section = ["Parameters", "----------"]
    for each in parameters:
        section += each.described().splitlines()
    rule = next((i for i, line in enumerate(lines) if set(line.strip()) == {"-"}), len(lines) + 1)
    return "\n".join([*lines[: rule - 1], *(indent + line for line in section), "", *lines[rule - 1 :]])


def to_json(name: str, value: object) -> Any:
    """A parameter for a file's header; kernels and declared columns under marks of their own.

    >>> to_json("bandwidth", (np.float64(0.5), None))
    [0.5, None]
    """
    if isinstance(value, np.generic | np.ndarray):
        return to_json(name, value.tolist())
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Kernel):
        return {_KERNEL: kernel_as_json(value)}
    if isinstance(value, Bounds):
        return value.as_json()
    if isinstance(value, DeclaredColumn):
        return {_COLUMN: value.as_json()}
    if isinstance(value, Mapping):
        return {str(key): to_json(name, each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(name, each) for each in value]
    try:
        return [to_json(name, each) for each in iter(value)]  # type: ignore[call-overload]
    except TypeError:
        rule = "must be made of numbers, names and kernels to be stored with the model"
        raise errors.UsageError(name, rule, got=type(value).__name__, remedy="give such a value") from None


def from_json(value: Any) -> Any:
    """The inverse of :func:`to_json`, with lists for all sequences.

    >>> from_json(to_json("bounds", ((0, 1), (2, 3))))
    [[0, 1], [2, 3]]
    """
    if isinstance(value, dict):
        if set(value) == {_KERNEL}:
            return kernel_from_json(value[_KERNEL])
        if set(value) == {_COLUMN}:
            return column_from_json(value[_COLUMN])
        return {key: from_json(each) for key, each in value.items()}
    if isinstance(value, list):
        return [from_json(each) for each in value]
    return value


def labels_to_json(labels: NDArray[Any]) -> dict[str, Any]:
    """Class labels: integers, reals, truth values or strings.

    >>> labels_to_json(np.array(["no", "yes"]))
    {'kind': 'U', 'values': ['no', 'yes']}
    """
    values = labels.tolist()
    if labels.dtype.kind not in "biufUO" or any(not isinstance(each, int | float | str) for each in values):
        rule = "must be numbers, truth values or strings to be stored"
        raise errors.UsageError("labels", rule, remedy="encode them so")
    return {"kind": labels.dtype.kind, "values": values}


def labels_from_json(data: dict[str, Any]) -> NDArray[Any]:
    """The inverse of :func:`labels_to_json`.

    >>> labels_from_json({"kind": "b", "values": [False, True]})
    array([False,  True])
    """
    types = {"b": np.bool_, "i": np.int64, "u": np.uint64, "f": np.float64, "U": np.str_, "O": object}
    return np.array(data["values"], dtype=types[data["kind"]])


MODELS: dict[str, type[PrivateModel]] = {}
"""Every model by the name of its class, for files."""
_MOST_FEATURES = 1 << 20
_GROUPS = (declaration.RELEASE, declaration.RECORDS, declaration.SETTING, declaration.OWNER)
# For an estimator and its clones: the keys of the releases that they began in this process, and whether they
# were completed.
_SPENT: dict[str, dict[str, bool]] = {}
_SPENT_LOCK = Lock()
Method = TypeVar("Method", bound=Callable[..., Any])
M = TypeVar("M", bound="type[PrivateModel]")


@dataclass(eq=False, repr=False)
class ModelState:
    """What a model has counted, or released; its estimator's attributes do not change when it releases.

    Before the release ``secret`` holds whatever was counted, and ``cap`` who was counted; after it, these are
    dropped, and ``bundle`` and ``reading`` (what predictions are computed from) are public.

    Privacy
    -------
    An unreleased state is neither pickled nor copied: it holds private sums, and a copy could be released
    too.
    """

    facts: dict[str, Any]
    seed: int
    bundle: Bundle | None = None
    secret: Any = None
    key: str = field(default_factory=lambda: secrets.token_hex(16))
    cap: UnitCap | None = None
    checks: list[ParameterCheck] = field(default_factory=list)
    reading: Any = None
    broken: bool = False
    from_file: bool = False
    lock: Lock = field(default_factory=Lock)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Count all of a batch.

        If counting fails midway, the state is marked as damaged and refuses further use.
        """
        self.check_whole()
        self.broken = True
        yield
        self.broken = False

    def check_whole(self) -> None:
        """Refuse a state that was interrupted while counting."""
        if self.broken:
            rule = "this model was interrupted while counting and may hold a part of a batch"
            raise errors.UsageError(rule, remedy="fit it anew")

    def settle(self, bundle: Bundle, reading: object) -> None:
        """Keep what was released and forget the records."""
        self.bundle, self.reading, self.secret, self.cap, self.checks = bundle, reading, None, None, []

    def __repr__(self) -> str:
        return "<ModelState CONFIDENTIAL>" if self.bundle is None else "<ModelState released>"

    def refuse_to_leave(self) -> None:
        """Refuse to copy or pickle an unreleased model."""
        if self.bundle is None:
            raise errors.SecretRefused(
                "a model that has not been released holds private sums and must not be pickled or copied",
                remedy="call release() first, which spends its budget, and share that",
            )

    def __reduce_ex__(self, protocol: object) -> tuple[Callable[..., ModelState], tuple[Any, ...]]:
        self.refuse_to_leave()
        return ModelState, (self.facts, self.seed, self.bundle)


def until_released(method: Method) -> Method:
    """A method that is gone once the model is released: looking it up raises ``AlreadyReleased``.

    scikit-learn finds out with ``hasattr`` what an estimator can do, and would call what it finds.
    """
    return cast(Method, _UntilReleased(method))


class _UntilReleased:
    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    def __get__(self, model: Any, owner: type) -> Callable[..., Any]:
        if model is None:
            return self._method
        state = getattr(model, "_state", None)
        if state is not None and state.bundle is not None:
            raise errors.AlreadyReleased(
                "a released model takes no more records, because its budget was spent on those it had",
                remedy="fit again, which spends again",
            )
        return MethodType(self._method, model)


class KeptRecords(Secret):
    """Features and targets, kept until the release because a method needs all at once."""

    def __init__(self) -> None:
        self._features: list[Floats] = []
        self._target: list[NDArray[Any]] = []

    def add(self, features: Floats, target: NDArray[Any]) -> None:
        """Keep a batch."""
        self._features.append(features)
        self._target.append(target)

    def all(self) -> tuple[Floats, NDArray[Any]]:
        """Everything, for the one fit."""
        return np.concatenate(self._features), np.concatenate(self._target)


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a release drew: functions, and further arrays."""

    parts: Mapping[str, ReleasedFunction] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)


@dataclass_transform(kw_only_default=True, eq_default=False)
def declared(kind: M) -> M:
    """Make the annotated attributes of a class the parameters of its constructor, and declare them.

    A class with a ``COMMAND`` is a model: it is known to files, to the command line and to the service, and
    its docstring lists its parameters.
    """
    made: Any = dataclass(eq=False, repr=False, kw_only=True)(kind)
    parameters = [with_default_bandwidth(each, made.DEFAULT_BANDWIDTH) for each in parameters_of(made)]
    known = [each.name for each in parameters]
    if lacking := set(inspect.signature(made).parameters) ^ set(known):
        raise TypeError(f"parameters must be declared: {sorted(lacking)}")
    made.PARAMETERS = tuple(sorted(parameters, key=lambda each: _GROUPS.index(each.group)))
    if made.COMMAND:
        made.__doc__ = documented(made.__doc__ or "", made.PARAMETERS)
        MODELS[made.__name__] = made
    return kind


@declared
class PrivateModel(BaseEstimator):  # type: ignore[misc]
    """The base of all models: a scikit-learn estimator made of released functions only.

    ``fit`` counts the records and releases, which spends the budget. ``partial_fit`` only counts, and
    :meth:`release` then spends. From the release on the model is public: it has forgotten the records,
    predicts without spending, pickles and saves, and takes no more records. Before it, predictions raise
    ``NotFittedError``.

    A subclass is decorated with :func:`declared` and declares its parameters as annotated attributes. It says
    what it counts and how the released bundle is read: :meth:`_start`, :meth:`_count`, :meth:`_draw` and
    :meth:`_open`, and, where it needs more than columns of numbers, :meth:`check_records`.

    Privacy
    -------
    Unit: one record or, with ``max_per_unit``, one person. Neighbours: add/remove. The number of columns and
    their names are taken as public; the number of records is not, and is in no attribute and in no message.
    ``bounds`` is a public constant to which records are clipped. ``random_state`` seeds hash functions,
    never noise.

    *Persons.* Let m be ``max_per_unit``. One cap for the whole model keeps the first m records of each
    person, over all batches, classes and tables, before anything else sees them (`UnitCap`). Which records of
    a person are kept depends on that person's records alone. So whichever way a person changes the data, what
    is counted changes by at most m records:

    - a person appears or disappears, with any number of records: at most m records come or go;
    - their records have one label, cell or value, or different ones: they are still at most m records;
    - a record beyond the m-th appears: nothing changes; before the others: one record replaces another;
    - the records of others come in another order, or in other batches: the same records are kept of each.

    Everything that a model draws is (ε', δ')-private for one record, with ε' = ε/m and δ' such that
    δ'·(1 + e^ε' + … + e^((m−1)ε')) ≤ δ (`promise_of_one`), whatever the data are. Going through the m records
    one after the other, the probabilities of every event differ by at most (ε, δ) in the end. This holds for
    the release as a whole, so also for steps that depend on earlier ones, for tables of different classes,
    and for noise on real numbers. Under pure ε each scale is that of m records: sensitivities of scores × m,
    Δ1 × m, Δ2 × m. With δ the noise of a Gaussian table is that for Δ2 × m up to 1 % (ε ≤ 1) or 6 % (ε = 4),
    and less for hash rows. The parts of a released bundle state what they promise for one record, and
    :attr:`claim_` what the model promises for a person. Where a *replaced* person is protected, 2m takes the
    place of m: up to m records disappear and up to m appear.
    """

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = ()
    """The parameters, declared: from here come checks, forms, command line options and documentation."""
    COMMAND: ClassVar[str] = ""
    """What the command line and the service call the model."""
    NEEDS_DELTA: ClassVar[bool] = False
    """Whether the defaults cannot be released with pure ε."""
    DEFAULT_BANDWIDTH: ClassVar[float] = 0.0
    """The default bandwidth of a model that has one, as a part of the declared range of a column."""

    CHOSEN: ClassVar[Mapping[str, Sequence[str]]] = {}
    """Attributes that are chosen when counting starts and stored with the model, and what each may be."""

    epsilon: float = setting(1.0, "ε of the one release.", above=0, group=declaration.RELEASE)
    delta: float | None = setting(None, DELTA)
    bounds: Any = setting(
        (-1, 1),
        "The range of every column: declared, never computed from the records, which are clipped to it. "
        "'public': the range of the public rows, extended by a tenth on either side.",
        type=declaration.BOUNDS_TYPE,
        choices=(declaration.FROM_PUBLIC,),
        group=declaration.RECORDS,
    )
    public: Any = setting(
        None,
        "At least 10 rows like the records that are public, without targets: an array or a frame. They "
        "decide the parameters that are 'public'. What they decide is stored with the model, and the claim "
        "states that they were assumed to be public; they are not stored. A held-out part of the private "
        "records is not public.",
        optional=True,
        group=declaration.OWNER,
    )
    max_per_unit: int | None = setting(
        None,
        "Makes the person the unit of privacy: at most this many records of a person are counted, the first "
        "ones, and the noise is large enough for all of them. fit and partial_fit then take units, whose "
        "record each is.",
        at_least=1,
        at_most=1 << 20,
        group=declaration.RECORDS,
    )
    random_state: Any = setting(
        None,
        "An integer, a RandomState or None: seeds hash functions and features, never the noise.",
        optional=True,
        group=declaration.OWNER,
    )
    budget: Any = setting(
        None, "The account of the dataset that pays for the release.", optional=True, group=declaration.OWNER
    )
    idempotency_key: str | None = setting(
        None, "Names this release, so that a retry is free.", group=declaration.OWNER, type=declaration.ANY
    )

    _public_assumed = False
    # Whether parameters of a model that was loaded were derived from public rows.

    @classmethod
    def not_stored(cls) -> frozenset[str]:
        """Parameters that are not written into a file: the owner's budget, public rows, and a generator,
        whose seed is.
        """
        return frozenset(each.name for each in cls.PARAMETERS if each.group == declaration.OWNER)

    # -- what a subclass says ---------------------------------------------------------------------------

    def _start(self, seed: int) -> Any:
        """Something empty and secret to count into; ``n_features_in_`` is known."""
        raise NotImplementedError

    def _count(self, secret: Any, X: Floats, y: Any) -> None:
        """Add checked records to the secret, and their targets where the model has one."""
        raise NotImplementedError

    def _ready(self, secret: Any) -> Any:
        """What `_draw` takes: the work on the secret that may be refused, done before a budget is debited."""
        return secret

    def _draw(self, secret: Any, promise: Promise) -> Drawn:
        """Draw the noise for the promise of one record."""
        raise NotImplementedError

    def _open(self, bundle: Bundle) -> Any:
        """The object from which predictions are computed.

        The method is called on a model whose parameters are those with which the records were counted, also
        when the model was loaded.
        """
        return bundle

    def _part_columns(self) -> Mapping[str, int | None]:
        """The released parts that the bundle may hold, and how many columns each compares: a file with others
        is refused. None leaves the number to :meth:`_open`.
        """
        return {}

    def _facts(self) -> dict[str, Any]:
        """Further public facts for the bundle, such as the classes; known when counting starts."""
        return {name.strip("_"): getattr(self, name) for name in self.CHOSEN}

    def _restore(self, facts: dict[str, Any]) -> None:
        """Set the fitted attributes that :meth:`_facts` described."""
        for name, allowed in self.CHOSEN.items():
            require(facts[name.strip("_")] in allowed, name)
            setattr(self, name, facts[name.strip("_")])

    def _check_together(self, promise: Promise) -> None:
        """Refuse parameters that are each allowed, but not together."""

    def _assumptions(self) -> list[str]:
        """What must be public knowledge for the claim to hold, in words that follow "assumes that"."""
        return [PUBLIC_PARAMETERS] if self._public_assumed or self.decided_by_public() else []

    def _public_bandwidth(self, rows: Floats, promise: Promise) -> float:
        """The bandwidth that public rows suggest, for a model whose parameter may be left to them."""
        raise NotImplementedError

    def _uses_public(self) -> bool:
        """Whether public rows are used for anything: by default, where a parameter is left to them."""
        return bool(self.decided_by_public())

    def _relation(self) -> Relation:
        """Which neighbours the claim is about."""
        return Relation.ADD_REMOVE

    def _steps(self) -> int:
        """How many records may change with one unit; see *Persons* of the class."""
        return self.max_per_unit or 1

    def _mechanism(self, promise: Promise, n_features: int | None) -> Mechanism:
        """The mechanism of the release, or the possible mechanisms if the choice depends on more than is
        known here. It depends on the parameters and on the number of columns alone.
        """
        return privacy.table_noise(promise)

    def _claim(self, n_features: int | None) -> Claim:
        """What the release will claim; a function of the parameters and of the number of columns alone."""
        return Claim(
            promise=Promise.of(epsilon=self.epsilon, delta=self.delta),
            unit=privacy.RECORD if self.max_per_unit is None else privacy.PERSON,
            records_per_unit=self.max_per_unit or 1,
            relation=self._relation(),
            mechanism=self._mechanism(self._promise(), n_features),
            arithmetic="exact integers",
            secure=True,
            assumptions=tuple(self._assumptions()),
        )

    def compared_by(self, n_features: int) -> list[Kernel]:
        """The kernels that records are compared by, whose bandwidths should suit the bounds."""
        return []

    def kept_per_record(self, n_features: int) -> int:
        """How many numbers are kept of each record until the release; 0 where only sums are.

        >>> from hushsum.models import PrivateKernelSVC, PrivateModes
        >>> PrivateKernelSVC(features=10).kept_per_record(2), PrivateModes().kept_per_record(2)
        (20, 0)
        """
        return 0

    def _predicted_error(self, records: int, n_features: int, promise: Promise) -> PredictedError | None:
        return None

    def _advice(self, n_features: int, promise: Promise) -> list[str]:
        return []

    def check_records(self, X: object, y: object = None, *, reset: bool = True) -> tuple[Floats, Any]:
        """Records and targets as the model counts them, checked.

        Raises
        ------
        DataRefused
            if they break a rule; no message shows a value or the number of records.
        """
        return self._checked(X, reset=reset), None

    # -- before any record is seen ----------------------------------------------------------------------

    def check_parameters(self) -> Promise:
        """Check every parameter by its declaration; the promise for one record.

        Raises
        ------
        UsageError
            if a parameter is not what its declaration allows.
        ClaimError
            if ε and δ cannot be claimed.
        """
        for each in self.PARAMETERS:
            if each.group != declaration.RELEASE:
                each.check(getattr(self, each.name))
        privacy.check_declared_delta(Promise.of(epsilon=self.epsilon, delta=self.delta), None)
        promise = self._promise()
        self._check_public()
        self._check_together(promise)
        return promise

    def _promise(self) -> Promise:
        """The promise for one record, which keeps that of the claim for a unit."""
        return promise_of_one(Promise.of(epsilon=self.epsilon, delta=self.delta), self._steps())

    def _check_public(self) -> None:
        decided = self.decided_by_public()
        if decided and self.public is None:
            rule = "is left to public rows, which must be given"
            raise errors.UsageError(decided[0], rule, got="none", remedy="give them, or declare it")
        if "bandwidth" in decided and isinstance(getattr(self, "kernel", None), Kernel):
            raise errors.UsageError("bandwidth", "must be left out for a kernel, which has its own")
        if self.public is not None and not self._uses_public():
            may = [each.name for each in self.PARAMETERS if each.from_public]
            remedy = ("give ", errors.Argument(may[-1], declaration.FROM_PUBLIC), ", or leave them out")
            got = "rows that nothing is left to"
            raise errors.UsageError("public", "must decide a parameter", got=got, remedy=remedy)

    def decided_by_public(self) -> list[str]:
        """The parameters that are left to the public rows."""
        return [each.name for each in self.PARAMETERS if each.left_to_public(getattr(self, each.name))]

    def _public_rows(self, n_features: int | None = None) -> Floats:
        """The public rows, with the columns of the records in their order."""
        named = getattr(self, "feature_names_in_", None) if column_names_of(self.public) else None
        columns = None if named is None else [str(each) for each in named]
        return public_table(self.public, self._width(n_features), columns)

    def effective(self, name: str, n_features: int | None = None) -> Any:
        """The value of a parameter that the model uses: the declared value, a default, or what public rows
        decide.

        Parameters
        ----------
        name : str
        n_features : int, optional
            How many columns the records will have; needed before any are counted.
        """
        value = getattr(self, name)
        if name in ("bandwidth", "scale") and self._has_default_bandwidth():
            part = self._default_bandwidth(self._width(n_features))
            box, declared_scale = self.bounds_of_columns(n_features), getattr(self, "scale", None)
            bandwidth, scale = default_bandwidth(part, box, declared_scale)
            return bandwidth if name == "bandwidth" else scale
        if name not in self.decided_by_public():
            return value
        rows = self._public_rows(n_features)
        if name == "bounds":
            return bounds_of_rows(rows)
        decided = self._public_bandwidth(rows, self._promise())
        if isinstance(value, list | tuple):
            return [decided if each == declaration.FROM_PUBLIC else each for each in value]
        return decided

    def _default_bandwidth(self, n_features: int) -> float:
        """The default bandwidth for that number of columns, as a part of the declared range of a column."""
        return self.DEFAULT_BANDWIDTH

    def _has_default_bandwidth(self) -> bool:
        """Whether the bandwidth follows from the bounds; a kernel that was given has its own."""
        own = isinstance(getattr(self, "kernel", None), Kernel)
        return self.DEFAULT_BANDWIDTH > 0.0 and not own and getattr(self, "bandwidth", 0.0) is None

    def claim(self, n_features: int | None = None) -> Claim:
        """What the release will claim. Known before any record is seen, and spends nothing.

        Parameters
        ----------
        n_features : int, optional
            How many columns the records will have. Without it the claim of a model whose mechanism depends on
            them names all that it may be.
        """
        self.check_parameters()
        return self._claim(getattr(self, "n_features_in_", None) if n_features is None else n_features)

    def predicted_error(self, records: int, n_features: int | None = None) -> PredictedError | None:
        """How far a prediction will be off at one point; None where that depends on more than is declared.

        Parameters
        ----------
        records : int
            A declared or guessed number, not the length of private data.
        n_features : int, optional
            How many columns the records will have; needed before any are counted.
        """
        promise = self.check_parameters()
        try:
            return self._predicted_error(records, self._width(n_features), promise)
        except NoPlanWithinLimits:
            return None

    def advice(self, n_features: int | None = None) -> list[str]:
        """What to consider before spending, from declared quantities alone: sentences, empty where there is
        nothing to say. The command line and the service show them with the claim.

        Parameters
        ----------
        n_features : int, optional
            How many columns the records will have; needed before any are counted.
        """
        promise = self.check_parameters()
        return self._advice(self._width(n_features), promise)

    def _width(self, n_features: int | None) -> int:
        width = getattr(self, "n_features_in_", None) if n_features is None else n_features
        if width is None:
            raise errors.UsageError("n_features", "must be given before records are counted", got="None")
        return int(width)

    @property
    def keeps_records(self) -> bool:
        """Whether clipped records are kept, in secret, until the release; otherwise only sums are."""
        return self.kept_per_record(1) > 0

    def bounds_of_columns(self, n_features: int | None = None) -> Bounds:
        """The declared bounds."""
        bounds = self.effective("bounds", n_features)
        box = Bounds.of(bounds, self._width(n_features), self._column_names())
        if box is None:
            rule = "must be declared"
            raise errors.UsageError("bounds", rule, remedy="give (low, high), or one pair for each column")
        return box

    def column_bounds(self, n_features: int | None = None) -> list[tuple[float, float]]:
        """The declared bounds, one (low, high) for each column."""
        box = self.bounds_of_columns(n_features)
        return list(zip(box.low, box.high, strict=True))

    def _example(self) -> Any:
        """A query that the model answers, for the check of a file."""
        point = np.zeros((1, self.n_features_in_))
        if self.bounds is not None:
            point[0] = [low for low, _ in self.column_bounds()]
        return point

    def _given_names(self) -> list[str] | None:
        """The names of the columns of the records that were checked last, if they have names."""
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    def _column_names(self) -> list[str] | None:
        """As of the records that were counted, also where queries come without names."""
        state: ModelState | None = getattr(self, "_state", None)
        known: list[str] | None = None if state is None else state.facts.get("feature_names")
        return self._given_names() if known is None else known

    def _table_columns(self) -> tuple[str, ...] | None:
        """The names for the tables of the model; none if one of them is empty, which a table refuses."""
        names = self._column_names()
        return None if names is None or "" in names else tuple(names)

    # -- counting and releasing -------------------------------------------------------------------------

    def fit(
        self,
        X: object,
        y: object = None,
        *,
        units: object = None,
        allow_clipping: bool = False,
        **refused: object,
    ) -> Self:
        """Count these records and release the model. Spends the budget at every call.

        A fit that failed while it released is resumed by :meth:`release`, without spending again.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Private records; arrays or frames of finite numbers, clipped to ``bounds``.
        y : array-like of shape (n_samples,), optional
            The target, where the model has one.
        units : array-like of shape (n_samples,), optional
            Whose record it is, an integer or a text for each; needed if, and only if, ``max_per_unit`` is
            given.
        allow_clipping : bool
            Fit records that mostly lie outside declared ``bounds``, with a warning in place of the refusal.
            Of the default bounds, which nobody declared, it is a warning anyway.

        Raises
        ------
        UsageError
            if a parameter breaks a rule.
        DataRefused
            if the records do, or most of them lie outside declared ``bounds``; nothing is spent.
        BudgetExhausted
            if the budget does not suffice; nothing is released.

        Warns
        -----
        RepeatedSpending
            if this estimator or a clone of it has released before.
        """
        refuse_fit_arguments(refused)
        self._add(None, X, y, units, allow_clipping)
        return self.release()

    @until_released
    def partial_fit(
        self,
        X: object,
        y: object = None,
        *,
        units: object = None,
        allow_clipping: bool = False,
        **refused: object,
    ) -> Self:
        """Count further records. Spends nothing; :meth:`release` does.

        Parameters
        ----------
        X, y, units, allow_clipping
            As for :meth:`fit`. ``max_per_unit`` counts over all batches.

        Raises
        ------
        AlreadyReleased
            after the release: what was paid for is the model as it was then.
        """
        refuse_fit_arguments(refused)
        self._add(getattr(self, "_state", None), X, y, units, allow_clipping, whole=False)
        return self

    def _add(
        self,
        state: ModelState | None,
        X: object,
        y: object,
        units: object,
        clipping: bool,
        whole: bool = True,
    ) -> None:
        """Count a batch into the state, or into a new one."""
        self.check_parameters()
        check_cap(units, self.max_per_unit)
        records, target = self.check_records(X, y, reset=state is None)
        if self.public is not None:
            refuse_repeated_rows(self.public, X, records, self._given_names())
        state = self._begin() if state is None else state
        with clipping_allowed(clipping):
            # One warning of a scaler suffices.
            whole = whole and not warn_of_fitted_steps(self)
            state.checks = state.checks or self._parameter_checks()
            for check, values in zip(state.checks, self._compared(X, records, target), strict=True):
                check.warn(values, whole=whole)
        keep, pending = (None, None) if state.cap is None else state.cap.plan(units, len(records))
        # A batch may go into several tables: one that is interrupted between them must not be counted again.
        with state.changing(), clipping_allowed(quiet=True):
            if state.cap is not None and pending is not None:
                state.cap.commit(pending)
                records, target = records[keep], None if target is None else target[keep]
            if len(records):
                self._count(state.secret, records, target)
        self._state = state

    def _begin(self) -> ModelState:
        self.__dict__.setdefault("_lineage", secrets.token_hex(8))
        for kernel in self.compared_by(self.n_features_in_):
            warn_of_bandwidth(kernel, self.column_bounds(), level=5)
        booking = Booking.of(self.budget, self.idempotency_key)
        if booking is not None:
            # A dataset may refuse the unit or the relation of the claim: before anything is counted.
            booking.budget.cost(self.claim(self.n_features_in_))
        seed = seed_of(self.random_state)
        secret = self._start(seed)
        state = ModelState(self._described(), seed, secret=secret)
        state.key = state.key if self.idempotency_key is None else self.idempotency_key
        state.cap = None if self.max_per_unit is None else UnitCap(self.max_per_unit)
        return state

    def _checked(self, X: object, y: object = "no_validation", *, reset: bool) -> Any:
        """Columns of finite numbers, for records and for queries; with ``y`` both."""
        return checked_records(self, X, y, reset=reset)

    def _parameter_checks(self) -> list[ParameterCheck]:
        """The checks of the records, and of whatever else :meth:`_compared` returns, in the same order."""
        kernels = self.compared_by(self.n_features_in_)
        widths = [each.bandwidth for each in kernels if isinstance(each, ColumnKernel)]
        # Kernels of codes or directions take no bounds, and their records are not clipped.
        clipped = bool(widths) or not kernels
        box = self.bounds_of_columns() if clipped else None
        default = self._undeclared("bounds")
        return [ParameterCheck(box, bandwidths=widths, columns=self._column_names(), default=default)]

    def _undeclared(self, name: str) -> bool:
        """Whether a pair of bounds is the default."""
        value, (stated,) = getattr(self, name), (each for each in self.PARAMETERS if each.name == name)
        return isinstance(value, tuple) and value == stated.default

    def _compared(self, X: object, records: Floats, target: Any) -> list[Floats]:
        """The records as they came, before clipping."""
        return [records]

    def release(self) -> Self:
        """Draw the noise and make the model public. Spends the budget, once; does nothing when repeated.

        For a model that counted with :meth:`partial_fit`, and to resume a release that failed; :meth:`fit`
        calls it itself.

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
                state.settle(bundle, self._as_counted()._open(bundle))
        return self

    def _spend(self, state: ModelState) -> Bundle:
        state.check_whole()
        if state.facts != self._described():
            rule, got = (
                "parameters were changed between fit and the release",
                "others than what was counted for",
            )
            raise errors.UsageError(rule, got=got, remedy="set them back, or fit again")
        promise = self._promise()
        booking = Booking.of(self.budget, self.idempotency_key)
        if booking is not None:
            # The state's key, which a retry of this release repeats where the owner gave none.
            booking = replace(booking, idempotency_key=state.key)
        begun = self._check_first(state.key)
        ready = self._ready(state.secret)
        fingerprint = hashlib.sha256(canonical_json(state.facts)).hexdigest()
        begun.setdefault(state.key, False)
        try:
            bundle = Prepared(
                self._claim(self.n_features_in_),
                {"model": type(self).__name__, "fingerprint": fingerprint},
                lambda: self._bundle(self._draw(ready, promise)),
            ).spend(booking)
        except errors.HushsumError:
            begun.pop(state.key)  # Refused, and nothing was spent.
            raise
        begun[state.key] = True
        return bundle

    def _check_first(self, key: str) -> dict[str, bool]:
        """Warn before this estimator or a clone of it releases again.

        Refuse a used key, for which a ledger would return the first model's answers. Returns the keys of all
        releases.
        """
        with _SPENT_LOCK:
            begun = _SPENT.setdefault(self._lineage, {})
        if begun.get(key):
            got = "it for a second model, which would be given the answers of the first"
            raise errors.UsageError(
                "idempotency_key", "names one release", got=got, remedy="give each model its own"
            )
        if set(begun) - {key}:
            warnings.warn(
                "this model, or a clone of it, has released before: if they saw the same records, what each "
                "spent adds up. A search or a cross-validation spends at every fit; choose parameters on "
                "public data, or pay for the choice with hushsum.methods.choose",
                errors.RepeatedSpending,
                stacklevel=level_outside(),
            )
        return begun

    def _bundle(self, drawn: Drawn) -> Bundle:
        """A bundle of this model's facts and what was drawn."""
        about = {**self._described(), "seed": self._state.seed}
        return Bundle(PublicFacts(self._claim(self.n_features_in_)), about, drawn.parts, drawn.arrays)

    def _made_of(self, function: ReleasedFunction, seed: int, drawn: Drawn, **parameters: Any) -> Self:
        """The model of what was computed from a released function: it carries that claim and spends nothing.

        ``parameters`` are stored in place of the estimator's.
        """
        claim, facts = function.claim, self._described()
        stored: dict[str, Any] = {
            "max_per_unit": claim.records_per_unit if claim.unit == privacy.PERSON else None
        }
        if (promise := claim.promise).epsilon is not None:
            delta = float(promise.delta) if promise.delta else None
            stored |= {"epsilon": float(promise.epsilon), "delta": delta}
        facts["parameters"] |= stored | {name: to_json(name, each) for name, each in parameters.items()}
        public = PublicFacts(claim, statement=function.statement)
        bundle = Bundle(public, {**facts, "seed": seed}, drawn.parts, drawn.arrays)
        self._state = ModelState(facts, seed, bundle)
        self._state.reading = self._as_counted()._open(bundle)
        return self

    def _set_columns(self, number: int, names: Sequence[str] | None) -> None:
        """Set the number of columns and their names; names of former columns are removed."""
        self.n_features_in_ = number
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

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

    # -- after the release ------------------------------------------------------------------------------

    def _queries(self, X: object) -> Floats:
        """Checked queries. A file whose model makes no sense is refused before they are looked at."""
        self._reading()
        return np.asarray(self._checked(X, reset=False))

    def _within_bounds(self, queries: Floats) -> Floats:
        """Queries moved to the nearest point of the box, beyond which there are no records."""
        return np.asarray(np.clip(queries, *self._fitted_box()))

    def _fitted_box(self) -> Floats:
        """The low and the high ends of the bounds that records were clipped to, shape (2, n_features)."""
        return np.array(self._as_counted().column_bounds()).T

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
        state: ModelState = self._state
        if state.reading is None and state.bundle is not None:
            with sensible_file():
                state.reading = self._as_counted()._open(state.bundle)
                try:
                    self._probe()
                    described = canonical_json(self._described()) == canonical_json(state.facts)
                    require(described or not state.from_file, "a model has one description")
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

    def _as_counted(self) -> Self:
        """A copy of the model with the parameter values with which its records were counted."""
        stored = {name: from_json(value) for name, value in self._state.facts["parameters"].items()}
        return self._twin(**stored, public=None)

    def _twin(self, **attributes: Any) -> Self:
        """A shallow copy with other attributes."""
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__ | attributes)
        return twin

    def _not_fitted(self) -> NotFittedError:
        return NotFittedError(
            f"this {type(self).__name__} has released nothing yet, so nothing has been spent or claimed; "
            "call fit, or release() after partial_fit"
        )

    @property
    def released_(self) -> Bundle:
        """Everything public that the model consists of; only after the release."""
        bundle: Bundle | None = self._state.bundle if hasattr(self, "_state") else None
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
        """An unfitted model with the same parameters and the same budget, known as a clone of this one."""
        given = self.get_params(deep=False)
        copied = {name: clone(value, safe=False) for name, value in given.items() if name != "budget"}
        twin = type(self)(**copied, budget=self.budget)
        twin._lineage = self.__dict__.setdefault("_lineage", secrets.token_hex(8))
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
        if hasattr(self, "_state"):
            self._state.refuse_to_leave()
        return self._twin()


MOST_FOUND = 100
"""More labels than this are not taken for a public list: to publish them would be to publish the target."""
_PUBLIC_CLASSES = "the list of classes is public"


@declared
class ClassificationModel(ClassifierMixin, PrivateModel):  # type: ignore[misc]
    """A model with a list of every class there is, which counts a record by its label's place in that list.

    A subclass has the parameter ``classes`` besides those of every model. Its :meth:`_count` gets whole
    numbers, places in ``classes_``, for ``y``; it says with ``_fewest`` and ``_most`` how many classes it can
    tell apart.

    Privacy
    -------
    Which labels occur is private. With a declared list a label outside of it is refused and the list stays as
    it was; without one the labels found are published as they are, which the claim states as an assumption.
    """

    _fewest: ClassVar[int] = 1
    _most: ClassVar[int | None] = None

    classes: Sequence[Any] | None = setting(
        None,
        "All possible labels, declared; other labels are refused. Without a list the labels found in y are "
        "taken as public knowledge, with a warning, and the claim states this.",
        group=declaration.RECORDS,
        type=declaration.LABELS,
    )

    @until_released
    def partial_fit(
        self,
        X: object,
        y: object = None,
        classes: object = None,
        *,
        allow_clipping: bool = False,
        **refused: object,
    ) -> Self:
        """Count further records. Spends nothing.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like, optional
            Every label there is, on the first call, in place of the parameter ``classes``. Without either,
            the labels of the first batch are taken as public, and later batches may have no others.
        allow_clipping : bool
            As for :meth:`fit`.
        """
        self._given_classes = None if classes is None else _distinct(classes)
        try:
            return super().partial_fit(X, y, allow_clipping=allow_clipping, **refused)
        finally:
            del self._given_classes

    def declared_classes(self) -> NDArray[Any]:
        """The declared labels or, after counting, the labels of the model.

        Raises
        ------
        UsageError
            if none are declared and nothing has been counted.
        """
        if self.classes is not None:
            return _distinct(self.classes)
        if not hasattr(self, "classes_"):
            rule = "must be declared before records are counted"
            raise errors.UsageError("classes", rule, got="none", remedy="list every label")
        return self.classes_

    def check_records(self, X: object, y: object = None, *, reset: bool = True) -> tuple[Floats, Any]:
        """Records, and for each label its place in ``classes_``; checked."""
        records, labels = self._checked(X, y, reset=reset)
        showing_nothing(lambda: check_classification_targets(column_or_1d(labels)), y=labels)
        given = getattr(self, "_given_classes", None)
        if reset:
            self._settle_classes(labels, given)
        elif given is not None and not np.array_equal(given, self.classes_):
            raise errors.UsageError("classes", "must be those of the first partial_fit", got="others")
        return records, self._codes(labels)

    def _settle_classes(self, labels: NDArray[Any], given: NDArray[Any] | None) -> None:
        declared = given if self.classes is None else _distinct(self.classes)
        classes = showing_nothing(lambda: np.unique(labels), y=labels) if declared is None else declared
        if declared is None and len(classes) > MOST_FOUND:
            rule = f"must be declared where there are more than {MOST_FOUND}"
            got = "a target with more: its values, which look like numbers or names, would be published"
            raise errors.UsageError("classes", rule, got=got, remedy="declare them, or use a regressor")
        if self._most is not None and len(classes) > self._most:
            # scikit-learn's checks look for these words.
            kind = type_of_target(classes)
            raise errors.UsageError(
                f"Only binary classification is supported. The type of the target is {kind}."
            )
        if len(classes) < self._fewest:
            rule = "must name at least one class" if self._fewest == 1 else "must name two classes or more"
            got = "one class" if len(classes) else "none"
            raise errors.UsageError("classes", rule, got=got, remedy="declare every label there is")
        self._classes_from_labels, self.classes_ = declared is None, classes
        if declared is None:
            warnings.warn(
                "the labels of y are taken as the list of classes, as if everybody knew it, and the claim "
                "states this; declare the classes and nothing is assumed",
                errors.PublicAssumption,
                stacklevel=level_outside(),
            )

    def _codes(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Each label's place in ``classes_``."""
        try:
            codes = np.minimum(np.searchsorted(self.classes_, labels), len(self.classes_) - 1)
            known = np.array_equal(self.classes_[codes], labels)
        except TypeError:
            known = False
        if not known:
            remedy = ("declare it in ", errors.Parameter("classes"), " too")
            rule = "the target must hold declared classes only"
            raise errors.DataRefused(rule, got="another label", remedy=remedy)
        return codes

    def score(self, X: object, y: object, sample_weight: object = None) -> float:
        """The share of the points whose class is predicted; as private as the points and labels are."""
        score = super().score
        return float(showing_nothing(lambda: score(X, y, sample_weight), X=X, y=y))

    def _facts(self) -> dict[str, Any]:
        return {**super()._facts(), "classes": labels_to_json(self.classes_)}

    def _assumptions(self) -> list[str]:
        from_labels = getattr(self, "_classes_from_labels", self.classes is None)
        return [*super()._assumptions(), *([_PUBLIC_CLASSES] if from_labels else [])]

    def _restore(self, facts: dict[str, Any]) -> None:
        super()._restore(facts)
        self.classes_ = labels_from_json(facts["classes"])
        require(self._fewest <= len(self.classes_) <= (self._most or len(self.classes_)), "classes")
        self._classes_from_labels = _PUBLIC_CLASSES in facts["assumptions"]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._most is None
        # At ε = 1 the few hundred records of scikit-learn's checks are fewer than privacy can show.
        tags.classifier_tags.poor_score = True
        return tags


def _distinct(classes: object) -> NDArray[Any]:
    """Declared labels, each once and in order."""
    try:
        labels = np.asarray(classes)
        if labels.ndim == 1:
            return np.unique(labels)
    except (ValueError, TypeError):
        pass
    rule = "must be a list of labels of one kind"
    raise errors.UsageError("classes", rule, got="something else", remedy="declare every label there is")


@declared
class RegressionModel(RegressorMixin, PrivateModel):  # type: ignore[misc]
    """A model that learns a number. A subclass has the parameter ``target_bounds`` besides those of every
    model.
    """

    target_bounds: tuple[float, float] = setting(
        (-1, 1),
        "The range of the target: declared, never computed from the records; targets are clipped to it.",
        type=declaration.PAIR,
    )

    def check_records(self, X: object, y: object = None, *, reset: bool = True) -> tuple[Floats, Any]:
        """Records and targets as the model counts them, checked."""
        records, target = self._checked(X, y, reset=reset)
        return records, showing_nothing(lambda: np.asarray(target, np.float64), y=target)

    def _target(self) -> tuple[float, float]:
        """The declared range of the target."""
        low, high = self.target_bounds
        return float(low), float(high)

    def _parameter_checks(self) -> list[ParameterCheck]:
        box, default = Bounds.of(self.target_bounds, 1), self._undeclared("target_bounds")
        return [*super()._parameter_checks(), ParameterCheck(box, what=TARGETS, default=default)]

    def _compared(self, X: object, records: Floats, target: Any) -> list[Floats]:
        return [records, target.reshape(len(records), -1)]

    def score(self, X: object, y: object, sample_weight: object = None) -> float:
        """R² of the predictions; as private as the points and targets are."""
        score = super().score
        return float(showing_nothing(lambda: score(X, y, sample_weight), X=X, y=y))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # The few hundred records of scikit-learn's checks lie far outside the default bounds.
        tags.regressor_tags.poor_score = True
        return tags


# -- files --------------------------------------------------------------------------------------------------


def refuse_pure(promise: Promise, *where: errors.Part) -> None:
    """Refuse pure ε where only a promise with δ can be kept.

    Raises
    ------
    ClaimError
        "delta must be above 0", with the words that follow.
    """
    if promise.pure:
        remedy = ("give ", errors.Argument("delta", 1e-6))
        raise errors.ClaimError("delta", ("must be above 0 ", *where), got="none", remedy=remedy)


def require(condition: object, what: str) -> None:
    """Refuse parts of a model that do not fit together; `sensible_file` says so of a file."""
    if not condition:
        raise ValueError(what)


@contextmanager
def sensible_file() -> Iterator[None]:
    """What goes wrong inside is the fault of the file that the model was read from."""
    try:
        yield
    except errors.FileRefused:
        raise
    except errors.HushsumError as error:
        raise errors.FileRefused(("the file's model makes no sense: ", *error.parts())) from None
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, IndexError):
        rule = "the file's model makes no sense, though its checksum holds"
        raise errors.FileRefused(rule, remedy="ask who wrote it") from None


def load_model(source: PathOrFile) -> PrivateModel:
    """The released model in a ``.hush`` file: an estimator that answers as the one that was saved.

    Reading takes time in proportion to the file. What it requires to be computed is computed, and whether
    its parts fit together is checked, by the first query, which may refuse the file too.

    Raises
    ------
    FileRefused
        if the file is damaged, or holds something else than a model that this Hushsum knows.
    UsageError
        if there is no such file.

    Examples
    --------
    >>> import io
    >>> from hushsum.models import PrivateModes
    >>> model = PrivateModes(epsilon=1.0, random_state=0).fit(np.zeros((500, 1)))
    >>> file = io.BytesIO()
    >>> model.save(file)
    >>> _ = file.seek(0)
    >>> load_model(file).claim_ == model.claim_
    True
    """
    bundle = load_released(source)
    if not isinstance(bundle, Bundle):
        raise errors.FileRefused(
            "the file holds one released function, not a model",
            remedy=errors.PerSurface("read it with hushsum.load", "query it with: hushsum query", "query it"),
        )
    return model_of(bundle)


def model_of(bundle: Bundle) -> PrivateModel:
    """The estimator that a bundle describes."""
    name = bundle.about.get("model")
    if not isinstance(name, str) or name not in MODELS:
        raise errors.FileRefused(
            f"the file holds a model {name!r}, which this version of Hushsum does not have",
            remedy="upgrade it",
        )
    with sensible_file():
        return _restored(MODELS[name], bundle)


def _restored(kind: type[PrivateModel], bundle: Bundle) -> PrivateModel:
    about: dict[str, Any] = dict(bundle.about)
    given = {name: from_json(value) for name, value in about["parameters"].items()}
    require(not kind.not_stored() & set(given), "parameters")
    features, seed, names = about["features"], about["seed"], about["feature_names"]
    require(type(features) is type(seed) is int and 1 <= features <= _MOST_FEATURES, "features")
    model = kind(**given)
    if names is not None:
        require(len(names) == features and all(isinstance(name, str) for name in names), "feature names")
    model._set_columns(features, names)
    model.check_parameters()
    facts = {name: value for name, value in about.items() if name != "seed"}
    model._public_assumed = PUBLIC_PARAMETERS in about["assumptions"]
    model._restore(facts)
    model._state = ModelState(facts, seed, bundle, from_file=True)
    known = model._part_columns()
    require(set(bundle.parts) <= set(known), "parts")
    for name, part in bundle.parts.items():
        require(None in (part.kernel.dim, known[name]) or part.kernel.dim == known[name], "columns of a part")
    return model
