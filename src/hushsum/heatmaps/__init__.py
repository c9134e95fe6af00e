"""Private heat maps of points: counted on a grid, released once, drawn and exported any number of times."""

from hushsum.heatmaps.geography import LocalScale
from hushsum.heatmaps.heat_map import HeatMap, heatmap
from hushsum.heatmaps.raster import Raster

__all__ = ["HeatMap", "LocalScale", "Raster", "heatmap"]
