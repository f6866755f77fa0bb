"""The OpenAPI document of the API as JSON, generated once per process: it takes a fifth of a second."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from monitor.web.api import api


@cache
def openapi_document() -> Any:
    return json.loads(json.dumps(api.get_openapi_schema(path_prefix="/api/v1/"), default=str))
