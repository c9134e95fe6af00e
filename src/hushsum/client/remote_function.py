"""A released function that lives in a service."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from typing import IO, Any, NoReturn

from hushsum.client.connection import Connection
from hushsum.client.function_file import fetch_file, save_file
from hushsum.client.query_function import Floats, query_function, table_of, values_of
from hushsum.errors import SecretRefused
from hushsum.kernels.base import Kernel, kernel_from_json
from hushsum.privacy.claim import Claim
from hushsum.records.arrow import pyarrow
from hushsum.records.sets import as_sets
from hushsum.releases.answers import Answers
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.load import load_function
from hushsum.releases.noisy_table import check_question


class RemoteFunction:
    """A released function of a service: a :class:`hushsum.ReleasedFunction` that the service
    evaluates.

    A query spends nothing. Answers equal those of the local function bit for bit, since points are sent in
    double precision.
    """

    def __init__(self, connection: Connection, response: Mapping[str, Any]) -> None:
        self._connection = connection
        self.id: str = response["id"]
        self.name: str = response["name"]
        self.sha256: str = response["sha256"]
        facts = response["facts"]
        self.claim: Claim = Claim.from_json({**facts["claim"], **facts["claim"]["exact"]})
        """What the release promises."""
        self.kernel: Kernel = kernel_from_json(facts["kernel"])
        """The similarity whose sums it answers."""
        self.count: float = facts["estimated_count"]["value"]
        """The estimated number of records."""
        self.columns: tuple[str, ...] | None = None if facts["columns"] is None else tuple(facts["columns"])
        """What the columns are called, if that was declared."""

    def __repr__(self) -> str:
        url = self._connection.url
        return f"RemoteFunction({self.name!r}, {self.kernel!r}, at={url!r}, claim={self.claim!r})"

    def __reduce__(self) -> NoReturn:
        raise SecretRefused(
            "a remote function holds a token and must not be pickled, because pickles travel; "
            "take f.local(), or connect again"
        )

    def __call__(self, Q: object) -> Floats:
        """Mean kernel values f(q)/N, shape (n_queries,)."""
        return self._query(Q, of="mean", only="value")["value"]

    def sum(self, Q: object) -> Floats:
        """Kernel sums f(q) = Σ k(x, q), shape (n_queries,)."""
        return self._query(Q, of="sum", only="value")["value"]

    def query(self, Q: object, *, of: str = "mean", level: float = 0.95) -> Answers:
        """Values with standard errors and intervals; ``of`` is ``"mean"`` or ``"sum"``."""
        check_question(of, level)
        parts = self._query(Q, of=of, level=level)
        return Answers(parts["value"], parts["stderr"], parts["lower"], parts["upper"], parts["bound"], level)

    def save(self, target: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write the function to a ``.hush`` file, for those whom its owner allows it.

        Raises
        ------
        ServiceRefused
            if the owner did not.
        """
        save_file(fetch_file(self._connection, self.id, self.sha256), target)

    def local(self) -> ReleasedFunction:
        """The function itself, which needs the service no more; for those whom its owner allows it."""
        return load_function(io.BytesIO(fetch_file(self._connection, self.id, self.sha256)))

    def _query(self, Q: object, **request: Any) -> dict[str, Floats]:
        return query_function(self._connection, self.id, self._points(Q), request)

    def _points(self, Q: object) -> Any:
        """The points as an Arrow table, checked here as a local function checks them."""
        pa = pyarrow()
        dim = self.kernel.dim
        if dim is None:
            sets = as_sets(Q)
            listed = pa.LargeListArray.from_arrays(pa.array(sets.indptr), pa.array(sets.values))
            return pa.table({"set": listed})
        values = values_of(Q, dim, self.columns)
        self.kernel.prepare(values, clip=False)
        return table_of(values, self.columns)
