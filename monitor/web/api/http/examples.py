"""Examples of parameters, by name: those of the grid in ``tests/monitor/web/api/example_grid.py``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

EXAMPLES: Mapping[str, Any] = {
    "by": "site",
    "kind": "site",
    "method": "auto",
    "name": "ncsa",
    "part": "methods",
    "predictor_series": "circle-main",
    "probe": "circle",
    "resource": "ncsa-login",
    "series": "circle-main",
    "metric": "total.seconds",
    "site": "ncsa",
    "reporter": "sdsc-agent",
}
