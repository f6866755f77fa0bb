"""The REST API, version 1: one resource per file.

A module of this folder that defines a ``router`` is a resource; its operations give their paths in full.
``monitor.web.api.http`` holds what the resources share.
"""

from __future__ import annotations

from ninja import Router

from monitor.web.api.http import problems
from monitor.web.api.http.auth import PersonAuth, TokenAuth
from monitor.web.api.http.ninja_api import Api
from monitor.web.api.http.rate_limit import CallerThrottle
from monitor.web.api.http.rendering import JsonRenderer
from monitor.web.api.http.strict import StrictParser, refuse_undeclared
from reporters.registry import PluginRegistry

_registry = PluginRegistry[Router](__name__, __path__, "router", noun="API resource", shared=("http",))

api = Api(
    title="gridcast",
    version="1",
    description="Predicted runtimes of grid applications with intervals, and the measurements behind them.",
    urls_namespace="api-1",
    auth=[TokenAuth(), PersonAuth()],
    parser=StrictParser(),
    throttle=[CallerThrottle()],
    renderer=JsonRenderer(),
)
api.add_decorator(refuse_undeclared)
problems.register(api)
for _router in _registry.load_all().values():
    api.add_router("", _router)
api.check_permissions_first()
