"""Functions served for ever."""
