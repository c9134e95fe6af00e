"""Worst cases, one file for each basis and one for the samplers; importing the package registers all."""

import importlib
import pkgutil

for module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{module.name}")
