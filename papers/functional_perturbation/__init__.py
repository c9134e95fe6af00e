"""Dandekar, Basu and Bressan 2019, run again: non-parametric models as a service."""
