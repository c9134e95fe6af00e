"""Queries of released functions and models: parsing points, computing answers, encoding them."""
