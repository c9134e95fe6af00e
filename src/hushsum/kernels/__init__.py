"""Kernels: similarities between records and queries, and the roles that methods require of them.

Importing this package registers every kernel.
"""

from ._expressions import *
from ._kernels import *
from ._public_randomness import *
