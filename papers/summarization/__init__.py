"""Reproduction of *Private summarization* figures: MNIST and a census covariate shift."""
