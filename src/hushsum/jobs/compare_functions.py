"""Compare two released functions in files, and draw their difference. Spends nothing."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hushsum.errors import Parameter, UsageError
from hushsum.jobs.output_files import STANDARD, check_output
from hushsum.plotting.figure import check_format, save_figure
from hushsum.releases.load import load_function
from hushsum.releases.plot import View
from hushsum.tasks.compare import compare
from hushsum.tasks.comparison_picture import comparison_figure
from hushsum.tasks.comparison_result import Comparison


@dataclass(frozen=True, slots=True, eq=False)
class FunctionsCompared:
    """The comparison, and where its picture is."""

    comparison: Comparison
    output: str | None

    def as_json(self) -> dict[str, Any]:
        """The comparison for a machine."""
        return {**self.comparison.as_json(), "output": self.output}


def compare_functions(
    first: str,
    second: str,
    *,
    at: Sequence[Sequence[float]] | None = None,
    significance: float = 0.05,
    cluster_size: float = 1.0,
    output: str | None = None,
    of: str = "mean",
) -> FunctionsCompared:
    """Compare the functions of two files; the parameters are those of ``hushsum.compare``.

    Raises
    ------
    UsageError
        if the two cannot be compared, or the difference cannot be drawn.
    FileRefused
        if a file does not hold a released function.
    """
    if first == second == STANDARD:
        raise UsageError(
            parameter="second",
            rule=("and ", Parameter("first"), " cannot both be standard input"),
            got=STANDARD,
        )
    if output is not None:
        check_format(check_output(output, inputs=[first, second]))
    f, g = (load_function(sys.stdin.buffer if each == STANDARD else each) for each in (first, second))
    names = tuple(Path(each).stem or each for each in (first, second))
    if names[0] == names[1]:
        names = (first, second)
    found = compare(f, g, at=at, significance=significance, cluster_size=cluster_size, names=names)
    if output is not None:
        view = View.of(f, of=of, level=1.0 - significance)
        save_figure(comparison_figure(found, view), output)
    return FunctionsCompared(found, output)
