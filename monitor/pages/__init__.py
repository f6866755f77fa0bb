"""The pages: one file each, with its template ``templates/pages/<name>.html``.

A module of this folder that defines ``urlpatterns`` is a page. ``monitor.pages.http`` holds what the pages
share: access, error pages, middleware and template context.
"""

from __future__ import annotations

from django.urls import URLPattern

from reporters.registry import PluginRegistry

_registry = PluginRegistry[list[URLPattern]](__name__, __path__, "urlpatterns", noun="page", shared=("http",))
load_all = _registry.load_all
