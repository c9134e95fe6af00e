"""What a model says before it sees a record: its parameters, its claim and its predicted error."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from hushsum._types import Floats
from hushsum.errors import Argument, UsageError
from hushsum.kernels.bandwidth_scale import default_bandwidth
from hushsum.kernels.base import Kernel
from hushsum.models.parameters import (
    BOUNDS,
    DELTA,
    EPSILON,
    FROM_PUBLIC,
    OWNER,
    OWNER_PARAMETERS,
    PUBLIC,
    PUBLIC_BOUNDS,
    RELEASE,
    Parameter,
    with_default_bandwidth,
    with_defaults,
    without_public,
)
from hushsum.models.predicted_error import NoPlanWithinLimits, PredictedError
from hushsum.models.public_rows import PUBLIC_PARAMETERS, bounds_of_rows, public_table
from hushsum.privacy.claim import Claim, Promise, Relation
from hushsum.privacy.mechanism import Mechanism
from hushsum.privacy.release_request import check_declared_delta, table_noise
from hushsum.records.bounds import Bounds
from hushsum.records.mixed_columns import column_names_of


class DeclaredModel(BaseEstimator):  # type: ignore[misc]
    """A scikit-learn estimator whose parameters are declared as data, and which answers questions about its
    release from them alone.
    """

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = ()
    """The parameters, declared: from here come checks, forms, command line options and documentation."""
    COMMAND: ClassVar[str] = ""
    """What the command line and the service call the model."""
    NEEDS_DELTA: ClassVar[bool] = False
    """Whether the defaults cannot be released with pure ε."""
    DEFAULT_BANDWIDTH: ClassVar[float] = 0.0
    """Of a model with a bandwidth: its default, as a part of the declared range of a column."""

    epsilon: float
    delta: float | None
    bounds: Any
    random_state: Any
    n_features_in_: int
    public: Any = None
    """Public rows, of a model that takes them."""
    _public_assumed: bool = False
    """Whether parameters of a model that was loaded were derived from public rows."""

    @classmethod
    def not_stored(cls) -> frozenset[str]:
        """Parameters that are not written into a file: the owner's budget, public rows, and a generator,
        whose seed is.
        """
        return frozenset(each.name for each in cls.PARAMETERS if each.group == OWNER)

    # -- what a subclass says ---------------------------------------------------------------------------

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

    def _mechanism(self, promise: Promise, n_features: int | None) -> Mechanism:
        """What makes the release private: one of several where that depends on more than is known. A
        function of the parameters and of the number of columns alone.
        """
        return table_noise(promise)

    def _claim(self, promise: Promise, n_features: int | None) -> Claim:
        """What the release will claim, known before anything is drawn; a function of the parameters and of
        the number of columns alone.
        """
        return Claim(
            promise=promise,
            unit="record",
            records_per_unit=1,
            relation=Relation.ADD_REMOVE,
            mechanism=self._mechanism(promise, n_features),
            arithmetic="exact integers",
            secure=True,
            assumptions=tuple(self._assumptions()),
        )

    def _kept_per_record(self, n_features: int) -> int:
        """How many numbers the model keeps of each record until its release; 0 where it only counts."""
        return 0

    def compared_by(self, n_features: int) -> list[Kernel]:
        """The kernels that records are compared by, whose bandwidths should suit the bounds."""
        return []

    # -- before any record is seen ----------------------------------------------------------------------

    def check_parameters(self) -> Promise:
        """Check every parameter by its declaration; the promise of the release.

        Raises
        ------
        UsageError
            if a parameter is not what its declaration allows.
        ClaimError
            if ε and δ cannot be claimed.
        """
        for each in self.PARAMETERS:
            if each.group != RELEASE:
                each.check(getattr(self, each.name))
        promise = Promise.of(epsilon=self.epsilon, delta=self.delta)
        check_declared_delta(promise, None)
        self._check_public()
        self._check_together(promise)
        return promise

    def _check_public(self) -> None:
        decided = self.decided_by_public()
        if decided and self.public is None:
            raise UsageError(
                parameter=decided[0],
                rule="is left to public rows, which must be given",
                got="none",
                remedy="give them, or declare it",
            )
        if "bandwidth" in decided and isinstance(getattr(self, "kernel", None), Kernel):
            raise UsageError(
                parameter="bandwidth",
                rule="must be left out for a kernel, which has its own",
                remedy="leave it out, or name the kernel",
            )
        if self.public is not None and not self._uses_public():
            may = [each.name for each in self.PARAMETERS if each.from_public]
            raise UsageError(
                parameter="public",
                rule="must decide a parameter",
                got="rows that nothing is left to",
                remedy=("give ", Argument(may[0], FROM_PUBLIC), ", or leave them out"),
            )

    def decided_by_public(self) -> list[str]:
        """The parameters that are left to the public rows."""
        return [each.name for each in self.PARAMETERS if each.left_to_public(getattr(self, each.name))]

    def _public_rows(self, n_features: int | None = None) -> Floats:
        """The public rows, with the columns of the records in their order."""
        named = getattr(self, "feature_names_in_", None) if column_names_of(self.public) else None
        columns = None if named is None else [str(each) for each in named]
        return public_table(self.public, self._width(n_features), columns)

    def effective(self, name: str, n_features: int | None = None) -> Any:
        """A parameter as the model uses it: what public rows decide, where it is left to them.

        Parameters
        ----------
        name : str
        n_features : int, optional
            How many columns the records will have; needed before any are counted.
        """
        value = getattr(self, name)
        if name in ("bandwidth", "scale") and self._has_default_bandwidth():
            box = Bounds.of(self.column_bounds(n_features), self._width(n_features))
            assert box is not None
            part = self._default_bandwidth(len(box.low))
            bandwidth, scale = default_bandwidth(part, box, getattr(self, "scale", None))
            return bandwidth if name == "bandwidth" else scale
        if name not in self.decided_by_public():
            return value
        rows = self._public_rows(n_features)
        if name == "bounds":
            return bounds_of_rows(rows)
        promise = Promise.of(epsilon=self.epsilon, delta=self.delta)
        decided = self._public_bandwidth(rows, promise)
        if isinstance(value, list | tuple):
            return [decided if each == FROM_PUBLIC else each for each in value]
        return decided

    def _default_bandwidth(self, n_features: int) -> float:
        """The default bandwidth for so many columns, as a part of the declared range of a column."""
        return self.DEFAULT_BANDWIDTH

    def _has_default_bandwidth(self) -> bool:
        """Whether the bandwidth follows from the bounds; a kernel that was given has its own."""
        given = self.get_params(deep=False)
        own = isinstance(given.get("kernel"), Kernel)
        return self.DEFAULT_BANDWIDTH > 0.0 and not own and given["bandwidth"] is None

    def claim(self, n_features: int | None = None) -> Claim:
        """What the release will claim. Known before any record is seen, and spends nothing.

        Parameters
        ----------
        n_features : int, optional
            How many columns the records will have. Without it the claim of a model whose mechanism depends on
            them names all that it may be.
        """
        promise = self.check_parameters()
        known = getattr(self, "n_features_in_", None) if n_features is None else n_features
        return self._claim(promise, known)

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

    def _predicted_error(self, records: int, n_features: int, promise: Promise) -> PredictedError | None:
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

    def _advice(self, n_features: int, promise: Promise) -> list[str]:
        return []

    def _width(self, n_features: int | None) -> int:
        width = getattr(self, "n_features_in_", None) if n_features is None else n_features
        if width is None:
            raise UsageError(
                parameter="n_features",
                rule="must be given before records are counted",
                got="None",
                remedy="give a number",
            )
        return int(width)

    @property
    def keeps_records(self) -> bool:
        """Whether clipped records are kept, in secret, until the release; otherwise only sums are."""
        return self.kept_per_record(1) > 0

    def kept_per_record(self, n_features: int) -> int:
        """How many numbers are kept of each record until the release; 0 where only sums are.

        >>> from hushsum.models import PrivateKernelSVC, PrivateModes
        >>> PrivateKernelSVC(features=10).kept_per_record(2), PrivateModes().kept_per_record(2)
        (20, 0)
        """
        return self._kept_per_record(n_features)

    def column_bounds(self, n_features: int | None = None) -> list[tuple[float, float]]:
        """The declared bounds, one (low, high) for each column."""
        return self._box(self.effective("bounds", n_features), n_features)

    def _example(self) -> Any:
        """A query that the model answers, for the check of a file."""
        point = np.zeros((1, self.n_features_in_))
        if self.bounds is not None:
            point[0] = [low for low, _ in self.column_bounds()]
        return point

    def _column_names(self) -> list[str] | None:
        """What the columns are called, if they have names."""
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    def _table_columns(self) -> tuple[str, ...] | None:
        """The names for the tables of the model; none if one of them is empty, which a table refuses."""
        names = self._column_names()
        return None if names is None or "" in names else tuple(names)

    def _box(self, bounds: object, n_features: int | None = None) -> list[tuple[float, float]]:
        box = Bounds.of(bounds, self._width(n_features), self._column_names())
        if box is None:
            raise UsageError(
                parameter="bounds",
                rule="must be declared",
                got="None",
                remedy="give (low, high), or one pair for each column",
            )
        return list(zip(box.low, box.high, strict=True))


def all_parameters(kind: type[DeclaredModel]) -> tuple[Parameter, ...]:
    """What a class declares and what all models have, in the order of its signature, with its defaults."""
    signature = inspect.signature(kind).parameters.values()
    taken = any(each.name == PUBLIC.name for each in signature)
    usual = (EPSILON, DELTA, PUBLIC_BOUNDS, PUBLIC) if taken else (EPSILON, DELTA, BOUNDS)
    given = kind.PARAMETERS if taken else tuple(map(without_public, kind.PARAMETERS))
    own = [with_default_bandwidth(each, kind.DEFAULT_BANDWIDTH) for each in given]
    declared = {each.name: each for each in (*usual, *own, *OWNER_PARAMETERS)}
    return with_defaults(declared.values(), {each.name: each.default for each in signature})
