"""What one record adds to a tally, and how the table is read. Importing it registers every basis."""

from hushsum.bases.base import Basis, Readings, basis_as_json, basis_from_json
from hushsum.bases.hash_rows import HashRows
from hushsum.bases.moments import Moments

__all__ = ["Basis", "HashRows", "Moments", "Readings", "basis_as_json", "basis_from_json"]
