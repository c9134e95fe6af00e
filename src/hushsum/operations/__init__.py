"""Operations on files, which the command line and the service run: count, release, fit, query, plot."""

from ._answers import *
from ._benchmark import *
from ._deliver import *
from ._files import *
from ._pictures import *
from ._watch import *
