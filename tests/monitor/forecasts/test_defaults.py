"""Importing the overview loads no forecasting code."""

from __future__ import annotations

import subprocess
import sys

import pytest

_LOADED = """
import importlib, sys
import django
django.setup()
importlib.import_module(sys.argv[1])
print(sorted({name.partition(".")[0] for name in sys.modules} & {"forecasting", "scipy", "statsmodels"}))
"""


@pytest.mark.parametrize("page", ["grid", "site_matrix", "series_list"])
def test_the_overview_loads_no_forecasting_code(page: str) -> None:
    command = [sys.executable, "-W", "ignore", "-c", _LOADED, f"monitor.overview.{page}"]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "[]\n"
