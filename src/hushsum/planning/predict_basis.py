"""The predicted error of a tally that exists: its shape is settled, only the promise is open."""

from __future__ import annotations

from collections.abc import Callable

from hushsum.bases.base import Basis
from hushsum.bases.fourier_features import FourierFeatures
from hushsum.bases.grid_weights import GridWeights
from hushsum.bases.hash_rows import HashRows
from hushsum.planning.plan import Option
from hushsum.planning.predict_features import features_option
from hushsum.planning.predict_grid import grid_option
from hushsum.planning.predict_race import race_options
from hushsum.planning.question import Question
from hushsum.planning.spread import Spread


def basis_options(question: Question, basis: Basis, spread: Callable[[int], Spread]) -> list[Option]:
    """The option that releases this very basis; none for a basis whose error is not predicted."""
    if isinstance(basis, HashRows):
        return race_options(question, spread, rows=basis.rows, width=basis.width)
    if isinstance(basis, GridWeights):
        return [grid_option(question, basis)]
    if isinstance(basis, FourierFeatures):
        return [features_option(question, basis.features)]
    return []
