"""The pages: one file each, with its template ``templates/pages/<name>.html``.

A module of this folder that defines ``urlpatterns`` is a page; its ``entries``, if it has any, put it into
the navigation. ``monitor.web.pages.http`` holds what the pages share: access, error pages, middleware,
navigation and template context.
"""

from __future__ import annotations

import functools
from importlib import import_module

from django.urls import URLPattern

from monitor.web.pages.http.navigation import NavigationEntry
from reporters.registry import PluginRegistry

_registry = PluginRegistry[list[URLPattern]](__name__, __path__, "urlpatterns", noun="page", shared=("http",))
load_all = _registry.load_all


@functools.cache
def entries() -> tuple[NavigationEntry, ...]:
    """Return the entries of the navigation that the pages declare."""
    modules = [import_module(f"{__name__}.{name}") for name in _registry.names()]
    return tuple(entry for module in modules for entry in getattr(module, "entries", ()))
