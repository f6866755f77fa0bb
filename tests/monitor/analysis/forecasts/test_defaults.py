"""Importing the overview loads no forecasting code."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

from monitor.web import matrix, places, search, status

_LOADED = """
import importlib, sys
import django
django.setup()
for name in sys.argv[1:]:
    importlib.import_module(name)
print(sorted({name.partition(".")[0] for name in sys.modules} & {"forecasting", "scipy", "statsmodels"}))
"""


def test_the_overview_loads_no_forecasting_code() -> None:
    rooms = (matrix, places, search, status)
    modules = [
        f"{room.__name__}.{info.name}" for room in rooms for info in pkgutil.iter_modules(room.__path__)
    ]
    command = [sys.executable, "-W", "ignore", "-c", _LOADED, *modules]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "[]\n"
