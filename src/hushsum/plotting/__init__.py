"""Pictures, heat maps and web pages of released functions; everything drawn is public."""

from ._drawing import (
    BLUE,
    FAINT,
    GRID,
    INK,
    VERMILION,
    ClassCurves,
    ClassMap,
    Curve,
    Picture,
    PixelMap,
    TwoColumnMap,
    View,
    check_format,
    function_picture,
    label_dates,
    new_figure,
    save_figure,
    shown_answers,
)
from ._heat_map import (
    MAP_FORMATS,
    MAP_METHOD,
    MAP_SIZE,
    HeatMap,
    LocalScale,
    Raster,
    geojson,
    geotiff,
    heatmap,
    map_kernel,
)
from ._web_page import reader_folder, reader_module, reader_script, web_page, write_page

__all__ = [
    "BLUE", "FAINT", "GRID", "INK", "MAP_FORMATS", "MAP_METHOD", "MAP_SIZE", "VERMILION", "ClassCurves",
    "ClassMap", "Curve", "HeatMap", "LocalScale", "Picture", "PixelMap", "Raster", "TwoColumnMap", "View",
    "check_format", "function_picture", "geojson", "geotiff", "heatmap", "label_dates", "map_kernel",
    "new_figure", "reader_folder", "reader_module", "reader_script", "save_figure", "shown_answers",
    "web_page", "write_page",
]  # fmt: skip
