"""A released model that lives in a service."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats, PathOrFile
from hushsum.client.function_file import fetch_file, save_file
from hushsum.client.http_client import Connection
from hushsum.client.query_function import FunctionAddress, query_function, table_of, values_of
from hushsum.errors import DataRefused, SecretRefused, UsageError
from hushsum.privacy.claim import Claim
from hushsum.releases.answers import Answers

if TYPE_CHECKING:
    from hushsum.models.base import PrivateModel


class RemoteModel:
    """A released model that the service evaluates; it predicts as the local one does.

    A query spends nothing. A method that the model does not have raises :class:`UsageError`.

    Attributes
    ----------
    id, name, sha256 : str
    kind : str
        What ``hushsum fit`` calls it.
    claim_ : Claim
        What its release promises.
    facts : dict
        Everything public about it: columns, bounds, parameters, which answers it gives.
    feature_names_in_ : array of str
    n_features_in_ : int
    classes_ : array, or None for a model without classes
    """

    def __init__(
        self, connection: Connection, response: Mapping[str, Any], where: FunctionAddress | None = None
    ) -> None:
        self._connection = connection
        self.id: str = response["id"]
        self._where = where or FunctionAddress(f"/functions/{self.id}")
        self.name: str = response["name"]
        self.sha256: str = response["sha256"]
        self.facts: dict[str, Any] = dict(response["facts"]["model"])
        self.kind: str = self.facts["kind"]
        claim = response["facts"]["claim"]
        self.claim_: Claim = Claim.from_json({**claim, **claim["exact"]})
        self.feature_names_in_: NDArray[Any] = np.array(self.facts["features"], dtype=object)
        self.n_features_in_: int = len(self.facts["features"])
        classes = self.facts["classes"]
        self.classes_: NDArray[Any] | None = None if classes is None else np.array(classes)

    def __repr__(self) -> str:
        return (
            f"RemoteModel({self.name!r}, {self.kind!r}, at={self._connection.url!r}, claim={self.claim_!r})"
        )

    def __reduce__(self) -> NoReturn:
        raise SecretRefused(
            rule="a remote model holds a token and must not be pickled, because pickles travel",
            remedy="take model.local(), or connect again",
        )

    def predict(self, X: object) -> NDArray[Any]:
        """The prediction at each point: a class, a number, or what the kind of model says."""
        return self._part(X, "prediction")

    def predict_proba(self, X: object) -> Floats:
        """The probability of each class at each point, shape (n_queries, n_classes)."""
        return self._part(X, "probability")

    def decision_function(self, X: object) -> Floats:
        """Decision values, shape (n_queries,), or (n_queries, n_classes) for more than two classes."""
        values = self._part(X, "decision")
        return values[:, 1] if values.ndim == 2 and values.shape[1] == 2 else values

    def score_samples(self, X: object) -> Floats:
        """The logarithm of a density, or the score of an outlier detector, shape (n_queries,)."""
        return self._part(X, "score")

    def query(self, X: object, *, level: float = 0.95) -> Answers:
        """Values with standard errors and intervals, for a model that knows them."""
        self._check("value")
        points = self._points(X)
        parts = self._query(points, level)
        bound = np.full(len(parts["value"]), np.nan)
        return Answers(parts["value"], parts["stderr"], parts["lower"], parts["upper"], bound, level, points)

    def save(self, target: PathOrFile) -> None:
        """Write the model to a ``.hush`` file, for those whom its owner allows it.

        Raises
        ------
        ServiceRefused
            if the owner did not, or the model is not a file.
        """
        save_file(fetch_file(self._connection, self._where.path, self.sha256), target)

    def local(self) -> PrivateModel:
        """The model itself, which needs the service no more; for those whom its owner allows it."""
        import hushsum.models  # noqa: F401  # the models make themselves known
        from hushsum.models.load import load_model

        return load_model(io.BytesIO(fetch_file(self._connection, self._where.path, self.sha256)))

    def _part(self, X: object, name: str) -> NDArray[Any]:
        self._check(name)
        return self._query(X, 0.95)[name]

    def _check(self, name: str) -> None:
        if name not in self.facts["answers"]:
            raise UsageError(
                rule=f"a {self.kind} model gives no {name}",
                remedy=f"it gives {', '.join(self.facts['answers'])}",
            )

    def _points(self, X: object) -> Floats:
        return values_of(X, self.n_features_in_, [str(name) for name in self.feature_names_in_])

    def _query(self, X: object, level: float) -> dict[str, NDArray[Any]]:
        names = [str(name) for name in self.feature_names_in_]
        values = self._points(X)
        if not np.isfinite(values).all():
            raise DataRefused(rule="X must be finite", got="NaN or infinity", remedy="leave those points out")
        return query_function(
            self._connection, self._where, table_of(values, names), {"of": "predict", "level": level}
        )
