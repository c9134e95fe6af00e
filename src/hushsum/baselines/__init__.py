"""Published methods to compare with. They release, book, audit and read files as the others do.

Nothing else in the library names them: importing this package registers their methods, tables, files and
audits, and the registries import it where a name is looked up that is not in the core.
"""

from ._linear_tables import bernstein, fourier_series, hermite, lsq_fgt, lsq_rff, trigonometric
from ._real_functions import (
    CurveFunction,
    CurveSpace,
    histogram,
    histogram_tally,
    kme,
    largest_distance,
    mwem,
    pfda,
    privbayes,
)

__all__ = [
    "CurveFunction", "CurveSpace", "bernstein", "fourier_series", "hermite", "histogram", "histogram_tally",
    "kme", "largest_distance", "lsq_fgt", "lsq_rff", "mwem", "pfda", "privbayes", "trigonometric",
]  # fmt: skip
