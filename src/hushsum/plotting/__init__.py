"""Curves and heat maps of released functions; everything plotted is public."""
