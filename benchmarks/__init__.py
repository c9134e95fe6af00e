"""Measurements of accuracy, coverage, plans, speed and the service; ``python -m benchmarks`` lists them."""
