"""Pack the reporter into one file that CPython runs: the same sources always give the same bytes.

python -m reporters.remote.archive gridcast-reporter.pyz
"""

from __future__ import annotations

import ast
import hashlib
import io
import re
import sys
import zipfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from reporters.remote.files import write_atomically

PACKAGES = ("probes", "reporters")
_ROOT = Path(__file__).resolve().parents[2]
_SUFFIXES = {".py", ".c", ".h"}  # .c and .h: kernels, which sites compile
_FIRST_LINE = b"#!/usr/bin/env python3\n"
_OLDEST_DATE = (1980, 1, 1, 0, 0, 0)  # a ZIP archive knows no earlier one
_MODE = 0o644
_C_TOKEN = re.compile(
    rb"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'""", re.DOTALL
)  # comments, and the strings and characters in which they are none
# Runs in any Python since 2.7, so that an old one gets a sentence instead of a SyntaxError.
_MAIN = """\
import sys
if sys.version_info < (3, 9):
    found = (sys.executable, sys.version.split()[0])
    sys.exit("gridcast-reporter needs Python 3.9 or newer; %s is %s" % found)
from reporters.remote.main import main
sys.exit(main())
"""


def build(root: Path = _ROOT) -> bytes:
    """Return the archive of the packages in *root*. Entries are sorted, without dates and not compressed.

    Compressed entries would depend on the version of the compression library.
    """
    content = io.BytesIO()
    content.write(_FIRST_LINE)
    with zipfile.ZipFile(content, "a", zipfile.ZIP_STORED) as archive:
        for name, data in sorted([("__main__.py", _MAIN.encode()), *_sources(root)]):
            entry = zipfile.ZipInfo(name, _OLDEST_DATE)
            entry.create_system = 3  # Unix, whatever the system is
            entry.external_attr = _MODE << 16
            archive.writestr(entry, data)
    return content.getvalue()


def digest(archive: bytes) -> str:
    """Return the SHA-256 of *archive* in hexadecimal digits; this digest identifies a reporter's version."""
    return hashlib.sha256(archive).hexdigest()


def write(file: Path, archive: bytes) -> None:
    """Replace *file* by the executable *archive*; *file* is never half written.

    Raises:
        OSError: *file* cannot be written.
    """
    write_atomically(file, archive, mode=0o755)


def _sources(root: Path) -> Iterator[tuple[str, bytes]]:
    for package in PACKAGES:
        for path in (root / package).rglob("*"):
            if path.suffix in _SUFFIXES and path.is_file():
                name = path.relative_to(root).as_posix()
                yield name, _bare(name, path.read_bytes())


def _bare(name: str, source: bytes) -> bytes:
    """Return the source of the file *name* without what only readers need."""
    if not name.endswith(".py"):
        return without_comments(source)
    # Sources of probes stay as they are: site policies allow probes by their digest.
    is_probe = name.startswith("probes/") and not name.startswith("probes/common/")
    return source if is_probe else without_docstrings(source)


def without_comments(source: bytes) -> bytes:
    """Return C source with blanks for its comments, which are a fifth of it. Lines keep their numbers."""
    return _C_TOKEN.sub(
        lambda token: b" " + b"\n" * token[0].count(b"\n") if token[0].startswith(b"/") else token[0], source
    )


@cache  # a process that installs at many sites builds the archive for each
def without_docstrings(source: bytes) -> bytes:
    """Return Python source with blank lines for its docstrings, which are a fifth of it.

    Lines keep their numbers, so that tracebacks fit the source. Classes have a docstring of one character:
    for a dataclass without any, Python makes one, which takes time and loads ``inspect``.
    """
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        first = node.body[0] if node.body else None
        if first is None or first.end_lineno is None:
            continue
        line = lines[first.lineno - 1]
        indentation = line[: first.col_offset]
        if ast.get_docstring(node, clean=False) is None:
            if isinstance(node, ast.ClassDef) and isinstance(first, ast.AnnAssign):
                lines[first.lineno - 1] = indentation + b"'-'; " + line[first.col_offset :]
            continue
        blank = [b"\n"] * (first.end_lineno - first.lineno + 1)
        if isinstance(node, ast.ClassDef):
            blank[0] = indentation + b"'-'\n"
        elif len(node.body) == 1 and not isinstance(node, ast.Module):
            blank[0] = indentation + b"pass\n"
        lines[first.lineno - 1 : first.end_lineno] = blank
    return b"".join(lines)


def main(argv: Sequence[str]) -> int:
    """Write the archive to the file that *argv* names; print its size and its digest."""
    if len(argv) != 1:
        sys.stderr.write("usage: python -m reporters.remote.archive FILE\n")
        return 2
    archive = build()
    try:
        write(Path(argv[0]), archive)
    except OSError as error:
        sys.stderr.write(f"cannot write {argv[0]}: {error.strerror}\n")
        return 1
    sys.stdout.write(f"{argv[0]}: {len(archive)} bytes, sha256 {digest(archive)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
