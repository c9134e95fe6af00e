"""Released functions: public and immutable, the only objects that are published, queried and downloaded.

Importing this package registers every kind.
"""

from ._base import *
from ._public_points import *
from ._tables import *
