"""Durable state: the container of files and messages, encryption, atomic writes, the rollback guard."""

from ._container import *
from ._durable import *
from ._encoding import *
from ._encryption import *
from ._rollback_guard import *
