"""A released function that lives in a service."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from hushsum.client.wire import Wire
from hushsum.errors import FileRefused, SecretRefused
from hushsum.files.atomic import atomic_file
from hushsum.kernels.base import Kernel, kernel_from_json
from hushsum.privacy.claim import Claim
from hushsum.records.arrow import pyarrow
from hushsum.records.numbers import numbers_of
from hushsum.records.sets import as_sets
from hushsum.releases.answers import Answers
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.load import load_function
from hushsum.releases.noisy_table import check_question

Floats = NDArray[np.float64]
AT_A_TIME: Final = 100_000
"""Points of one request; more are asked in several."""

_ARROW: Final = "application/vnd.apache.arrow.stream"


class RemoteFunction:
    """A released function of a service: a :class:`hushsum.ReleasedFunction` whose answers come over the wire.

    Asking spends nothing. Answers are those of the local function bit for bit, since points travel in double
    precision.
    """

    def __init__(self, wire: Wire, told: Mapping[str, Any]) -> None:
        self._wire = wire
        self.id: str = told["id"]
        self.name: str = told["name"]
        self.sha256: str = told["sha256"]
        facts = told["facts"]
        self.claim: Claim = Claim.from_json({**facts["claim"], **facts["claim"]["exact"]})
        """What the release promises."""
        self.kernel: Kernel = kernel_from_json(facts["kernel"])
        """The similarity whose sums it answers."""
        self.count: float = facts["estimated_count"]["value"]
        """The estimated number of records."""
        self.columns: tuple[str, ...] | None = None if facts["columns"] is None else tuple(facts["columns"])
        """What the columns are called, if that was declared."""

    def __repr__(self) -> str:
        return f"RemoteFunction({self.name!r}, {self.kernel!r}, at={self._wire.url!r}, claim={self.claim!r})"

    def __reduce__(self) -> NoReturn:
        raise SecretRefused(
            "a remote function holds a token and must not be pickled, because pickles travel; "
            "take f.local(), or connect again"
        )

    def __call__(self, Q: object) -> Floats:
        """Mean kernel values f(q)/N, shape (n_queries,)."""
        return self._ask(Q, of="mean", only="value")["value"]

    def sum(self, Q: object) -> Floats:
        """Kernel sums f(q) = Σ k(x, q), shape (n_queries,)."""
        return self._ask(Q, of="sum", only="value")["value"]

    def query(self, Q: object, *, of: str = "mean", level: float = 0.95) -> Answers:
        """Values with standard errors and intervals; ``of`` is ``"mean"`` or ``"sum"``."""
        check_question(of, level)
        parts = self._ask(Q, of=of, level=level)
        return Answers(parts["value"], parts["stderr"], parts["lower"], parts["upper"], parts["bound"], level)

    def save(self, target: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write the function to a ``.hush`` file, for those whom its owner allows it.

        Raises
        ------
        ServiceRefused
            if the owner did not.
        """
        data = self._file()
        if isinstance(target, str | os.PathLike):
            with atomic_file(Path(target)) as stream:
                stream.write(data)
        else:
            target.write(data)

    def local(self) -> ReleasedFunction:
        """The function itself, which needs the service no more; for those whom its owner allows it."""
        return load_function(io.BytesIO(self._file()))

    def _file(self) -> bytes:
        data = self._wire.request("GET", f"/functions/{self.id}/file", again=True).content
        if hashlib.sha256(data).hexdigest() != self.sha256:
            raise FileRefused("the file that came is not the one that was released; ask the service's keeper")
        return data

    def _ask(self, Q: object, **asked: Any) -> dict[str, Floats]:
        points = self._points(Q)
        pieces = [
            self._piece(points.slice(start, AT_A_TIME), asked)
            for start in range(0, points.num_rows, AT_A_TIME)
        ]
        return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}

    def _piece(self, points: Any, asked: dict[str, Any]) -> dict[str, Floats]:
        ipc = pyarrow("ipc")
        sink = io.BytesIO()
        with ipc.new_stream(sink, points.schema) as stream:
            stream.write_table(points)
        answer = self._wire.request(
            "POST",
            f"/functions/{self.id}/query",
            again=True,
            params=asked,
            content=sink.getvalue(),
            headers={"content-type": _ARROW, "accept": _ARROW},
        )
        table = ipc.open_stream(answer.content).read_all()
        return {name: table.column(name).to_numpy() for name in table.column_names}

    def _points(self, Q: object) -> Any:
        """The points as an Arrow table, checked here as a local function checks them."""
        pa = pyarrow()
        dim: int | None = getattr(self.kernel, "dim", None)
        if dim is None:
            sets = as_sets(Q)
            listed = pa.LargeListArray.from_arrays(pa.array(sets.indptr), pa.array(sets.values))
            return pa.table({"set": listed})
        parts = numbers_of(Q, dim=dim, columns=self.columns)
        values = np.empty((len(parts[0].values), dim), np.float64)
        for part in parts:
            values[:, part.start : part.start + part.values.shape[1]] = part.values
        self.kernel.prepare(values, clip=False)
        if self.columns is not None and len(self.columns) == dim:
            return pa.table({name: values[:, i] for i, name in enumerate(self.columns)})
        name = "points" if self.columns is None else self.columns[0]
        return pa.table({name: pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), dim)})
