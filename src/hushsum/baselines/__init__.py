"""Published methods to compare with. They release, book, audit and read files as the others do.

Nothing else in the library names them: importing this package registers their methods, tables, files and
audits, and the registries import it where a name is looked up that is not in the core.
"""

from ._linear_tables import *
from ._real_functions import *
