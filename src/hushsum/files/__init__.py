"""The file container that released functions and tallies share; atomic writes; encryption."""
