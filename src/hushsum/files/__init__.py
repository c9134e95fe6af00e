"""The byte format that released functions and tallies share."""
