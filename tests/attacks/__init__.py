"""Attacks, one file for each, kept so that none of them works again."""
