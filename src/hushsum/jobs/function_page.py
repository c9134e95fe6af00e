"""Write the web page of a released function or model. Spends nothing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hushsum.bases.adjacency_rows import AdjacencyRows
from hushsum.bases.bins import Bins
from hushsum.bases.cosine_features import CosineFeatures
from hushsum.bases.fourier_features import FourierFeatures
from hushsum.bases.fourier_series import FourierSeries
from hushsum.bases.grid_weights import GridWeights
from hushsum.bases.hash_rows import HashRows
from hushsum.bases.hash_rows_of_combination import DividedRows
from hushsum.bases.monomials import Monomials
from hushsum.bases.trigonometric import TrigonometricPolynomials
from hushsum.errors import FilePath, UsageError
from hushsum.files.durable_files import atomic_file
from hushsum.jobs.output_files import STANDARD, check_answers_output
from hushsum.plotting.web_page import web_page
from hushsum.releases.base import Released, ReleasedFunction
from hushsum.releases.bundle import Bundle
from hushsum.releases.load import load_released
from hushsum.releases.noisy_table import NoisyTable
from hushsum.releases.plot import Range, View
from hushsum.releases.public_combination import CombinedFunction
from hushsum.releases.real_function import RealFunction

READABLE: Final = (
    HashRows,
    AdjacencyRows,
    DividedRows,
    GridWeights,
    Bins,
    FourierFeatures,
    Monomials,
    CosineFeatures,
    FourierSeries,
    TrigonometricPolynomials,
)
"""The tables that the reader for web pages answers; ``src/browser/released_function.js`` has the same."""

MOST_BYTES = 1 << 25
"""Of a function that a page holds: 32 MB."""


@dataclass(frozen=True, slots=True)
class PageWritten:
    """Where the page is, and how large."""

    output: str
    size: int

    def as_json(self) -> dict[str, Any]:
        """For a machine."""
        return {"output": self.output, "bytes": self.size}


def write_page(
    source: str,
    output: str,
    *,
    title: str | None = None,
    range: Sequence[Range] | None = None,
    labels: Sequence[str] | None = None,
    of: str = "sum",
) -> PageWritten:
    """Write one self-contained HTML file with a released function, or a model, that answers in the browser.

    Parameters
    ----------
    source : str
        A ``.hush`` file.
    output : str
        The page, ``.html``.
    title : str, optional
        Default: the name of the file.
    range : sequence of (low, high), optional
        What to draw of each column, or one for all; default: the declared bounds.
    labels : sequence of str, optional
        Names of the columns; default: as in the file.
    of : {"sum", "mean"}
        What is shown first.

    Raises
    ------
    UsageError
        if the output does not end in ``.html``, or the function is of a kind that a page does not answer.
    """
    path = check_answers_output(output, inputs=[] if source == STANDARD else [source])
    if path.suffix.lower() not in (".html", ".htm"):
        raise UsageError(
            parameter="output", rule="must end in .html", got=repr(path.name), remedy="rename it"
        )
    if not os.path.isfile(source):
        raise UsageError(rule=("no file ", FilePath(source, quoted=True)), remedy="check the path")
    with open(source, "rb") as stream:
        released = load_released(stream)
        stream.seek(0)
        data = stream.read()
    check_readable(released, len(data))
    options: dict[str, Any] = {"quantity": of}
    if isinstance(released, ReleasedFunction) and released.dim is not None:
        options |= _options(released, range, labels)
    text = web_page(
        data,
        title=Path(source).stem if title is None else title,
        claim=released.claim.sentence(),
        options=options,
    ).encode()
    with atomic_file(path, mode=0o644) as stream:
        stream.write(text)
    return PageWritten(output, len(text))


def check_readable(released: Released, size: int) -> None:
    """Refuse what a page cannot answer, with what can."""
    if size > MOST_BYTES:
        raise UsageError(
            rule=f"a page holds a function of at most {MOST_BYTES >> 20} MB",
            got=f"{size >> 20} MB",
            remedy="release fewer rows or rounded cells, or query the file with hushsum query",
        )
    parts = list(released.parts.values()) if isinstance(released, Bundle) else [released]
    for part in parts:
        if isinstance(part, NoisyTable):
            structured = isinstance(part.basis, FourierFeatures) and part.basis.structured
            if type(part.basis) in READABLE and not structured:
                continue
            what = f"{part.basis.name} tables"
        elif isinstance(part, RealFunction | CombinedFunction):
            continue
        else:
            what = f"{type(part).__name__} objects"
        raise UsageError(
            rule=f"a page does not answer {what}",
            remedy="query the file with hushsum query, or predict with hushsum predict",
        )
    if isinstance(released, Bundle) and not parts:
        raise UsageError(
            rule="this model holds no released function that a page could answer",
            remedy="predict with hushsum predict",
        )


def _options(
    function: ReleasedFunction, range: Sequence[Range] | None, labels: Sequence[str] | None
) -> dict[str, Any]:
    dim = function.dim
    assert dim is not None
    found: dict[str, Any] = {}
    if labels is not None:
        if len(labels) != dim:
            raise UsageError(
                parameter="labels",
                rule=f"must name each of {dim} columns",
                got=len(labels),
                remedy="give all",
            )
        found["labels"] = list(labels)
    if range is not None:
        pairs = list(range) * (dim if len(range) == 1 else 1)
        if len(pairs) != dim:
            raise UsageError(
                parameter="range",
                rule=f"must be one low:high, or one for each of {dim} columns",
                got=len(pairs),
                remedy="give all",
            )
        found["ranges"] = [[float(low), float(high)] for low, high in pairs]
    elif function.bounds is None:
        # The same refusal as for a picture: without bounds nothing says where to look.
        View.of(function)
    return found
