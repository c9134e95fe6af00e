"""Published methods to compare with. They release, book, audit and read files as the others do.

Nothing else in the library names them: importing this package registers their methods, tables, files and
audits, and the registries import it where a name is looked up that is not in the core.
"""

from ._functional_data_analysis import CurveFunction, CurveSpace, largest_distance, pfda
from ._linear_tables import bernstein, fourier_series, hermite, lsq_fgt, lsq_rff, trigonometric
from ._weighted_points import histogram, histogram_tally, kme, mwem, privbayes

__all__ = [
    "CurveFunction", "CurveSpace", "bernstein", "fourier_series", "hermite", "histogram", "histogram_tally",
    "kme", "largest_distance", "lsq_fgt", "lsq_rff", "mwem", "pfda", "privbayes", "trigonometric",
]  # fmt: skip
