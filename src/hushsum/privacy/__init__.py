"""Claims, release requests, spending, accounting and noise."""

from ._calibration import *
from ._claim import *
from ._over_time import *
from ._posterior_sample import *
from ._release_request import *
