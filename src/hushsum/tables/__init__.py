"""Tables that tallies count: what a record adds (a `Basis`), and how a noisy table is queried (a `Reading`).

Importing this package registers every basis of the core.
"""

from ._base import *
from ._declared_box import *
from ._fourier_features import *
from ._grid import *
from ._hash_rows import *
from ._marginals import *
from ._moments import *
