"""Public, frozen answer machines: the only thing that leaves. Importing this package registers every kind."""

from hushsum.releases.answers import Answers
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.coefficients import CoefficientFunction
from hushsum.releases.load import load
from hushsum.releases.noisy_table import NoisyTable
from hushsum.releases.table import TableFunction
from hushsum.releases.table_file import save_table

__all__ = [
    "Answers",
    "CoefficientFunction",
    "NoisyTable",
    "ReleasedFunction",
    "TableFunction",
    "load",
    "save_table",
]
