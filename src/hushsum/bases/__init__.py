"""What one record adds to a tally, and how the table is read. Importing it registers every basis."""

from hushsum.bases.base import Basis, Readings, basis_as_json, basis_from_json
from hushsum.bases.grid_weights import GridWeights
from hushsum.bases.hash_rows import HashRows

__all__ = ["Basis", "GridWeights", "HashRows", "Readings", "basis_as_json", "basis_from_json"]
