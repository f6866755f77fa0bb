"""The recipes of CONTRIBUTING.md, and what applying one to a copy of the source changes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from tests.contracts.source_copy import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
_SECTION = re.compile(r"^## (Add .+?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_FILES = re.compile(r"\AFiles: (.+?)\.\n\n", re.MULTILINE | re.DOTALL)
_NEW = re.compile(
    r"^```(?:python|yaml|html)\n(?:# |\{# )(?P<path>[\w./-]+)(?: #\})?\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_DIFF = re.compile(r"^```diff\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE_OF_DIFF = re.compile(
    r"^--- a/\S+\n\+\+\+ b/(?P<path>\S+)\n(?P<hunks>(?:(?!--- a/).*\n)*)", re.MULTILINE
)
_HUNK = re.compile(r"^@@ (?P<heading>.+)\n(?P<lines>(?:[ +-].*\n|\n)+)", re.MULTILINE)


@dataclass(frozen=True)
class Edit:
    """Lines of the file *path*, below the text *heading*, that are replaced."""

    path: str
    heading: str
    old: str
    new: str

    def apply(self, directory: Path) -> None:
        file = directory / self.path
        source = file.read_text(encoding="utf-8")
        heading = source.find(self.heading)
        assert heading >= 0, f"{self.path} has no {self.heading!r}"
        at = source.find(self.old, heading)
        assert at >= 0, f"{self.path} has not, below {self.heading!r}:\n{self.old}"
        file.write_text(source[:at] + self.new + source[at + len(self.old) :], encoding="utf-8")


@dataclass(frozen=True)
class Recipe:
    """*files*: paths, with patterns, of all files that the recipe says it adds or changes."""

    title: str
    files: tuple[str, ...]
    new: dict[str, str]
    edits: tuple[Edit, ...]
    commands: tuple[str, ...]

    def write(self, directory: Path) -> None:
        """Add the new files, and apply the edits."""
        for path, text in self.new.items():
            file = directory / path
            assert not file.exists(), f"{path} exists: the recipe adds nothing"
            file.write_text(text, encoding="utf-8")
        for edit in self.edits:
            edit.apply(directory)

    def unlisted(self, changed: set[str]) -> set[str]:
        return {path for path in changed if not any(fnmatch(path, listed) for listed in self.files)}

    def untouched(self, changed: set[str]) -> set[str]:
        return {listed for listed in self.files if not any(fnmatch(path, listed) for path in changed)}


def recipes() -> Iterator[Recipe]:
    """Yield the recipes with an example."""
    for title, body in _SECTION.findall(TEXT):
        listed = _FILES.match(body.lstrip("\n"))
        if listed:
            commands = tuple(line for block in _SHELL.findall(body) for line in block.splitlines())
            new = {found["path"]: found["text"] for found in _NEW.finditer(body)}
            files = tuple(re.findall(r"`([^`]+)`", listed[1]))
            yield Recipe(title, files, new, tuple(_edits(body)), commands)
        else:
            assert not _NEW.search(body), f"{title}: an example, and no list of files"


def _edits(body: str) -> Iterator[Edit]:
    for block in _DIFF.findall(body):
        for file in _FILE_OF_DIFF.finditer(block):
            for hunk in _HUNK.finditer(file["hunks"]):
                lines = hunk["lines"].splitlines(keepends=True)
                old, new = (
                    "".join(line[1:] for line in lines if line[0] in f" {sign}") for sign in ("-", "+")
                )
                yield Edit(file["path"], hunk["heading"], old, new)


def snapshot(directory: Path) -> dict[str, tuple[int, int]]:
    """Return size and time of change of every file of the source in *directory*."""
    found = {}
    for folder, folders, names in os.walk(directory):
        folders[:] = [
            name for name in folders if name not in {"__pycache__", "var"} and not name.startswith(".")
        ]
        for name in names:
            file = Path(folder, name)
            status = file.stat()
            found[str(file.relative_to(directory))] = (status.st_size, status.st_mtime_ns)
    return found


def changed(before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]]) -> set[str]:
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


def run_command(command: str, directory: Path, environment: dict[str, str]) -> None:
    """Run the shell *command* of a recipe in *directory*."""
    with_python = command.replace("python ", f"{sys.executable} -W ignore ", 1)
    done = subprocess.run(
        ["sh", "-c", with_python], cwd=directory, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
