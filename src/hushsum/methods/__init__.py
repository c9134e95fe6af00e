"""Methods that turn records into a released function, their registry, and private choice of parameters."""

from ._adaptive_grid import *
from ._comparison import *
from ._feature_functions import *
from ._fourier_features import *
from ._graphs import *
from ._grid import *
from ._hash_rows import *
from ._landmarks import *
from ._linear_models import *
from ._marginals import *
from ._method import *
from ._monomials import *
from ._prediction import *
from ._private_choice import *
from ._quantiles import *
