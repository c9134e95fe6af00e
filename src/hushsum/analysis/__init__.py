"""Analysis of released functions, which spends nothing: comparisons, drift over steps, and clusters."""

from ._cells import *
from ._compare import *
from ._difference import *
from ._drift import *
from ._two_sample_test import *
