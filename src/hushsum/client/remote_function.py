"""A released function that lives in a service."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any, NoReturn

from hushsum import _html
from hushsum._types import Floats, PathOrFile
from hushsum.client.function_file import fetch_file, save_file
from hushsum.client.http_client import Connection
from hushsum.client.query_function import AT_A_TIME, FunctionAddress, query_function, table_of, values_of
from hushsum.errors import SecretRefused, UsageError
from hushsum.kernels.base import Kernel
from hushsum.kernels.registry import kernel_from_json
from hushsum.privacy.claim import Claim
from hushsum.records.arrow import pyarrow
from hushsum.records.bounds import Bounds
from hushsum.records.sets import as_sets
from hushsum.releases.answers import Answers, check_question, query_points
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.load import load_function
from hushsum.releases.presentation import COMMON, Detail, Presented


class RemoteFunction(Presented):
    """A released function of a service: a :class:`hushsum.ReleasedFunction` that the service
    evaluates.

    A query spends nothing. Answers equal those of the local function bit for bit, since points are sent in
    double precision.
    """

    def __init__(
        self, connection: Connection, response: Mapping[str, Any], where: FunctionAddress | None = None
    ) -> None:
        self._connection = connection
        self.id: str = response["id"]
        self._where = where or FunctionAddress(f"/functions/{self.id}")
        self.name: str = response["name"]
        self.sha256: str = response["sha256"]
        facts = response["facts"]
        self.claim: Claim = Claim.from_json({**facts["claim"], **facts["claim"]["exact"]})
        """What the release promises."""
        self.kernel: Kernel = kernel_from_json(facts["kernel"])
        """The similarity whose sums it answers."""
        self.count: float = facts["estimated_count"]["value"]
        """The estimated number of records."""
        self.count_stderr: float = facts["estimated_count"]["stderr"]
        """The standard error of :attr:`count`."""
        self.dim: int | None = self.kernel.dim
        """The number of columns of a query; None where records are sets."""
        self.bounds: Bounds | None = None if facts["bounds"] is None else Bounds.from_json(facts["bounds"])
        """The declared box that records were clipped to; None if not declared."""
        self.producer: str = facts["producer"]
        """Which version of Hushsum made it."""
        self._details = [
            (name, value) for name, value in facts.items() if name not in (*COMMON, "source", "size")
        ]
        self.columns: tuple[str, ...] | None = None if facts["columns"] is None else tuple(facts["columns"])
        """What the columns are called, if that was declared."""

    def __repr__(self) -> str:
        url = self._connection.url
        return f"RemoteFunction({self.name!r}, {self.kernel!r}, at={url!r}, claim={self.claim!r})"

    def __reduce__(self) -> NoReturn:
        raise SecretRefused(
            rule=("a remote function holds a token and must not be pickled, because pickles travel"),
            remedy="take f.local(), or connect again",
        )

    def __call__(self, Q: object) -> Floats:
        """Mean kernel values f(q)/N, shape (n_queries,)."""
        return self._query(Q, of="mean", only="value")["value"]

    def sum(self, Q: object) -> Floats:
        """Kernel sums f(q) = Σ k(x, q), shape (n_queries,)."""
        return self._query(Q, of="sum", only="value")["value"]

    def query(
        self,
        Q: object,
        *,
        of: str = "mean",
        level: float = 0.95,
        simultaneous: bool = False,
        threads: int = 1,
    ) -> Answers:
        """Values with standard errors and intervals; ``of`` is ``"mean"`` or ``"sum"``."""
        check_question(of, level)
        points = query_points(Q, dim=self.dim, columns=self.columns)
        if simultaneous and len(points) > AT_A_TIME:
            raise UsageError(
                parameter="simultaneous",
                rule=f"is for at most {AT_A_TIME} queries of a remote function",
                got=f"{len(points)}",
                remedy="take f.local()",
            )
        together = {"simultaneous": "true"} if simultaneous else {}
        parts = self._query(points, of=of, level=level, **together)
        value, stderr, bound = parts["value"], parts["stderr"], parts["bound"]
        return Answers(value, stderr, parts["lower"], parts["upper"], bound, level, points, simultaneous)

    def details(self) -> tuple[Detail, ...]:
        """Where the function is, and what the service says of its kind."""
        return (
            Detail("name", self.name, f"{self.name}, at {self._connection.url}", label="service"),
            *(
                Detail(name, value, None if value is None or isinstance(value, dict) else str(value))
                for name, value in self._details
            ),
        )

    def _repr_html_(self) -> str:
        """The claim in words and the facts; no picture, which would query the service."""
        about = self.describe()
        return _html.block(
            "Remote function",
            _html.paragraph(about.claim.sentence()),
            _html.facts(about.facts()),
        )

    def save(self, target: PathOrFile) -> None:
        """Write the function to a ``.hush`` file, for those whom its owner allows it.

        Raises
        ------
        ServiceRefused
            if the owner did not.
        """
        save_file(fetch_file(self._connection, self._where.path, self.sha256), target)

    def local(self) -> ReleasedFunction:
        """The function itself, which needs the service no more; for those whom its owner allows it."""
        return load_function(io.BytesIO(fetch_file(self._connection, self._where.path, self.sha256)))

    def _query(self, Q: object, **request: Any) -> dict[str, Floats]:
        return query_function(self._connection, self._where, self._points(Q), request)

    def _points(self, Q: object) -> Any:
        """The points as an Arrow table; which values a function takes is checked by the service."""
        pa = pyarrow()
        dim = self.kernel.dim
        if dim is None:
            sets = as_sets(Q)
            listed = pa.LargeListArray.from_arrays(pa.array(sets.indptr), pa.array(sets.values))
            return pa.table({"set": listed})
        return table_of(values_of(Q, dim, self.columns), self.columns)
