"""Addresses and forms are UTF-8, whatever charset a request names."""

from __future__ import annotations

from django.core.handlers.wsgi import WSGIHandler, WSGIRequest


class Utf8Request(WSGIRequest):
    """A request whose ``Content-Type`` decides nothing about characters.

    Django decodes the query string and forms by its charset, with any codec of Python: ``rot13`` and
    ``undefined`` raise before the first middleware runs, and ``utf-16`` gives parameters other names.
    """

    @property
    def encoding(self) -> None:
        """None: the default of the settings."""
        return

    @encoding.setter
    def encoding(self, value: str) -> None:
        """Ignore the charset."""


class Utf8Handler(WSGIHandler):
    request_class = Utf8Request
