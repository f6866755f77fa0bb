"""Static files with a digest of their content in their names, which browsers keep for a year.

No step of an installation collects files: names are computed when they are first used, and the web server
writes compressed copies when it starts. Several processes and hosts may start at once on one directory.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import brotli
from django.conf import settings
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.finders import BaseFinder
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.core.files.storage import FileSystemStorage
from whitenoise.compress import Compressor

from monitor.core import env

_DIGEST_CHARACTERS = 12  # whitenoise recognises names with this many as immutable
_HASHED = re.compile(r"(?P<stem>.+)\.[0-9a-f]{12}(?P<suffix>\.[^./]+)")
_NEVER_COMPRESSED = (*Compressor.SKIP_COMPRESS_EXTENSIONS, "map")
_BROTLI_QUALITY = 8  # 9 takes four times as long and saves less than half a per cent; 11, a tenth


class HashedNameStorage(StaticFilesStorage):
    """Returns URLs with the digest of the file's content; the URL of an unknown file is that of its name."""

    def url(self, name: str | None, *arguments: Any, **options: Any) -> str:
        return str(super().url(hashed_name(name or ""), *arguments, **options))


class HashedNameFinder(BaseFinder):
    """Finds files by names with a digest, if it is the digest of the content."""

    def check(self, **_options: Any) -> list[Any]:
        return []

    def find(self, path: str, find_all: bool = False, **_options: Any) -> Any:
        found = [str(each) for each in [_hashed_file(path)] if each]
        return found if find_all else next(iter(found), [])

    def list(self, _ignore_patterns: Any) -> Iterator[tuple[str, FileSystemStorage]]:
        """Yield the names of the copies, compressed ones too: whitenoise sends these instead."""
        directory = _copies()
        for path in sorted(directory.rglob("*")) if directory.is_dir() else ():
            if path.is_file():
                yield str(path.relative_to(directory)), FileSystemStorage(directory)


@functools.lru_cache(maxsize=4096)
def hashed_name(name: str) -> str:
    """Return *name* with the digest of its content before its suffix; *name* if there is no such file."""
    path = finders.find(name)
    if not isinstance(path, str) or settings.DEBUG:  # DEBUG: files change while the server runs
        return name
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()[:_DIGEST_CHARACTERS]
    stem, dot, suffix = name.rpartition(".")
    return f"{stem}.{digest}{dot}{suffix}" if dot else name


def write_copies() -> None:
    """Write a copy of each static file and its compressed forms; the web server sends these.

    Copies that exist are kept, because their names say what they contain. Each process writes in a directory
    of its own and renames: processes that start together may both write a file, and never an incomplete one.
    """
    env.make_var_directory(settings.VAR_DIR)
    compressor = _Compressor(extensions=_NEVER_COMPRESSED, quiet=True)
    with tempfile.TemporaryDirectory(prefix="static-draft-", dir=settings.VAR_DIR) as drafts:
        for finder in finders.get_finders():
            if isinstance(finder, HashedNameFinder):
                continue
            for name, storage in finder.list([]):
                copy = _copies() / hashed_name(name)
                if hashed_name(name) != name and not copy.exists():
                    _write_copy(Path(storage.path(name)), copy, Path(drafts), compressor)


def _write_copy(file: Path, copy: Path, drafts: Path, compressor: Compressor) -> None:
    copy.parent.mkdir(parents=True, exist_ok=True)
    draft = drafts / copy.name
    shutil.copyfile(file, draft)
    compressed = compressor.compress(str(draft)) if compressor.should_compress(copy.name) else []
    for written in [*map(Path, compressed), draft]:  # the copy last: if it exists, so do its compressed forms
        with written.open("rb") as content:
            os.fsync(content.fileno())  # a power failure must not leave an empty file, which would be kept
        written.rename(copy.with_name(copy.name + written.name.removeprefix(copy.name)))


class _Compressor(Compressor):  # type: ignore[misc]  # untyped
    @staticmethod
    def compress_brotli(data: bytes) -> bytes:
        return bytes(brotli.compress(data, quality=_BROTLI_QUALITY))


def _copies() -> Path:
    return Path(settings.VAR_DIR) / "static"


def _hashed_file(path: str) -> str | None:
    parts = _HASHED.fullmatch(path)
    if parts is None:
        return None
    name = parts["stem"] + parts["suffix"]
    found = finders.find(name) if hashed_name(name) == path else None
    return found if isinstance(found, str) else None
