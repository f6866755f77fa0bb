"""Absolute paths, compared as text: the file system they are in may be that of another host."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable

from reporters.account import own_home
from reporters.remote.policy.shapes import TextShape


def is_plain(path: object) -> bool:
    """Return whether *path* is absolute and has no ``..``, ``.``, empty part or control character.

    Only of such a path does the text tell which directory it is in.
    """
    return (
        isinstance(path, str)
        and path.startswith("/")
        and not path.startswith("//")
        and path.isprintable()
        and posixpath.normpath(path) == (path.rstrip("/") or "/")
    )


def _problem(path: str) -> str:
    return "" if is_plain(_expanded(path)) else "it has '..', '.', '//' or a control character"


def _expanded(path: str) -> str:
    return str(own_home()).rstrip("/") + path[1:] if path.startswith("~/") else path


PATH = TextShape("(/|~/)(.|\n)*", 'an absolute path, or one that begins with "~/"', problem=_problem)


class DirectoryList:
    """The *paths* of a rule, each a ``PATH``."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.paths = tuple(paths)
        self._roots = [posixpath.normpath(_expanded(path)) for path in self.paths]

    def contains(self, path: object) -> bool:
        """Return whether *path* is one of the paths or below one of them; False if it is not plain."""
        if not isinstance(path, str) or not is_plain(_expanded(path)):
            return False
        plain = posixpath.normpath(_expanded(path))
        return any(posixpath.commonpath([root, plain]) == root for root in self._roots)
