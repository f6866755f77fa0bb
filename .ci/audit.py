#!/usr/bin/env python3
"""Compare the locked dependencies with a copy of an advisory database, without a network.

    .ci/audit.py ADVISORIES [REQUIREMENTS]

ADVISORIES is a directory or ZIP file of advisories in the OSV format, as YAML or JSON: a copy of the PyPA's
advisory database, or OSV's archive of PyPI. Prints each advisory that concerns a pinned version and exits
with 1, unless ``.ci/accepted-advisories.txt`` accepts it: lines of an identifier, the last day on which the
decision is valid, and its reason.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).resolve().parent.parent
ACCEPTED = Path(__file__).with_name("accepted-advisories.txt")
SUFFIXES = {".yaml", ".yml", ".json"}


@dataclass(frozen=True)
class Finding:
    """An advisory that concerns a pinned version."""

    package: str
    version: str
    advisory: str
    aliases: tuple[str, ...]
    summary: str

    def __str__(self) -> str:
        names = ", ".join((self.advisory, *self.aliases))
        return f"{self.package} {self.version}: {names}: {self.summary}"


def pinned(requirements: str) -> dict[str, Version]:
    """Return the version of each package that *requirements*, a lock file, pins."""
    lines = (line.split(" \\")[0] for line in requirements.splitlines())
    wanted = [Requirement(line) for line in lines if line and not line.startswith((" ", "#"))]
    return {canonicalize_name(each.name): Version(next(iter(each.specifier)).version) for each in wanted}


def advisories(source: Path) -> Iterator[dict[str, Any]]:
    """Yield the advisories in the directory or ZIP file *source*."""
    for name, content in _files(source):
        loaded = json.loads(content) if name.endswith(".json") else yaml.load(content, yaml.CSafeLoader)
        if isinstance(loaded, dict) and "affected" in loaded and not loaded.get("withdrawn"):
            yield loaded


def _files(source: Path) -> Iterator[tuple[str, bytes]]:
    if source.is_dir():
        for path in sorted(source.rglob("*")):
            if path.suffix in SUFFIXES:
                yield path.name, path.read_bytes()
        return
    with zipfile.ZipFile(source) as archive:
        for name in archive.namelist():
            if Path(name).suffix in SUFFIXES:
                yield name, archive.read(name)


def findings(versions: dict[str, Version], known: Iterator[dict[str, Any]]) -> list[Finding]:
    """Return the advisories of *known* that concern one of *versions*."""
    found = []
    for advisory in known:
        for affected in advisory["affected"]:
            package = affected.get("package", {})
            name = canonicalize_name(package.get("name", ""))
            version = versions.get(name) if package.get("ecosystem") == "PyPI" else None
            if version is not None and _concerns(affected, version):
                summary = advisory.get("summary") or advisory.get("details", "").split("\n")[0]
                aliases = tuple(advisory.get("aliases", ()))
                found.append(Finding(name, str(version), advisory["id"], aliases, summary))
    return found


def _concerns(affected: dict[str, Any], version: Version) -> bool:
    if str(version) in map(str, affected.get("versions", ())):
        return True
    ranges = [each["events"] for each in affected.get("ranges", ()) if each["type"] == "ECOSYSTEM"]
    return any(_is_within(events, version) for events in ranges)


def _is_within(events: list[dict[str, str]], version: Version) -> bool:
    """Tell whether the last event up to *version*, in the order of versions, introduced the fault."""
    is_affected = False
    for kind, at in sorted(_in_order(events), key=lambda event: event[1]):
        if kind == "last_affected":
            is_affected = is_affected and version <= at
        elif at <= version:
            is_affected = kind == "introduced"
    return is_affected


def _in_order(events: list[dict[str, str]]) -> Iterator[tuple[str, Version]]:
    for event in events:
        for kind, text in event.items():
            try:
                yield kind, Version(text)
            except InvalidVersion:  # not a version of PyPI
                continue


def accepted(text: str, today: date) -> set[str]:
    """Return the identifiers in *text* whose decision is valid *today*."""
    lines = [line.split(maxsplit=2) for line in text.splitlines() if line and not line.startswith("#")]
    return {identifier for identifier, until, _reason in lines if date.fromisoformat(until) >= today}


def main(argv: list[str]) -> int:
    if not 2 <= len(argv) <= 3 or not Path(argv[1]).exists():
        print(__doc__, file=sys.stderr)
        return 2
    requirements = Path(argv[2]) if len(argv) > 2 else ROOT / "requirements.txt"
    versions = pinned(requirements.read_text(encoding="utf-8"))
    known = list(advisories(Path(argv[1])))
    if not known:
        print(f"{argv[1]} has no advisories in the OSV format", file=sys.stderr)
        return 2
    decided = accepted(ACCEPTED.read_text(encoding="utf-8"), datetime.now(UTC).date())
    open_ones = [
        each for each in findings(versions, iter(known)) if not decided & {each.advisory, *each.aliases}
    ]
    for finding in open_ones:
        print(finding)
    print(f"{len(versions)} packages, {len(known)} advisories, {len(open_ones)} open")
    return 1 if open_ones else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
