"""A template loader whose templates are all empty: tests of access need no rendered pages."""

from __future__ import annotations

from collections.abc import Iterator

from django.template import Origin
from django.template.loaders.base import Loader as BaseLoader


class Loader(BaseLoader):
    def get_template_sources(self, template_name: str) -> Iterator[Origin]:
        yield Origin(name=template_name, template_name=template_name, loader=self)

    def get_contents(self, origin: Origin) -> str:
        return ""
