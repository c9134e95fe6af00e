"""Tests of privacy claims: neighbours whose tables differ too much, and noise that is too small."""

from ._audit import *
from ._statistics import *
