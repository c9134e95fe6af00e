"""Predicted errors before any budget is spent (``plan``); release of the best option (``release``)."""

from ._pipeline import *
from ._plan import *
