"""Commands that fail here and now, each with the name of the signature that its failure must have.

A file ``*.yaml`` of this folder has the commands of one tool, by signature. ``bash`` runs each in an empty
directory. What a command needs of servers, it finds in variables.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from monitor.analysis.signatures.classifier import Classifier, FailureText
from monitor.analysis.signatures.shipped import shipped
from monitor.models.failure_signature import UNKNOWN
from reporters import process
from reporters.base import command_failed
from tests.reporters.needs import needs

FOLDER = Path(__file__).parent
LIMIT_SECONDS = 120.0
CONCURRENT = 4
# Programs that a machine may lack; a command that names one needs it. All have bash, coreutils and Python.
OPTIONAL = frozenset((FOLDER / "optional-programs.txt").read_text(encoding="utf-8").split())
_WORD = re.compile(r"[\w.+-]+")
# Puts an ordinary user in the place of root, whom permissions do not stop.
_AS_USER = "setpriv --reuid=65534 --regid=65534 --clear-groups"


class Case(NamedTuple):
    signature: str
    command: str

    @property
    def programs(self) -> tuple[str, ...]:
        return tuple(sorted(OPTIONAL.intersection(_WORD.findall(self.command))))


class Group(NamedTuple):
    """The cases of a table that need the same programs: they are provoked, or skipped, together."""

    programs: tuple[str, ...]
    cases: tuple[Case, ...]

    def __str__(self) -> str:
        return "-".join(self.programs) or "base"


@cache
def cases_of(table: str) -> tuple[Case, ...]:
    document = yaml.load((FOLDER / f"{table}.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    return tuple(Case(signature, command) for signature, commands in document.items() for command in commands)


def tables() -> list[str]:
    return sorted(file.stem for file in FOLDER.glob("*.yaml"))


def groups(*names: str) -> list[Group]:
    by_programs: dict[tuple[str, ...], list[Case]] = defaultdict(list)
    for name in names:
        for case in cases_of(name):
            by_programs[case.programs].append(case)
    return [Group(programs, tuple(cases)) for programs, cases in sorted(by_programs.items())]


def check(group: Group, variables: Mapping[str, str] | None = None) -> None:
    """Provoke the failures of *group*, some at once; fail with all that are not named as they should be."""
    needs(*group.programs)
    if "unshare" in group.programs and not has_namespaces():
        pytest.skip("this machine allows no namespaces")
    wrong = misnamed(group.cases, variables or {})
    assert not wrong, "\n\n".join(wrong)


def misnamed(cases: Sequence[Case], variables: Mapping[str, str]) -> list[str]:
    """Provoke *cases*; return a message for each that has another signature than it should."""
    with ThreadPoolExecutor(CONCURRENT) as pool:
        texts = list(pool.map(lambda case: provoke(case.command, variables), cases))
    messages = []
    for case, failure in zip(cases, texts, strict=True):
        signature = classifier().classify(failure)
        name = signature.name if signature else UNKNOWN
        if name != case.signature:
            messages.append(f"{name}, expected {case.signature}: {case.command}\n{failure.text}")
    return messages


def provoke(command: str, variables: Mapping[str, str]) -> FailureText:
    """Return the failure of *command* as a report has it. Fails if the command succeeds, or does not end."""
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        Path(place).chmod(0o777)
        argv = ["bash", "-c", command]
        env = {**os.environ, "LC_ALL": "C", "AS_USER": _AS_USER if os.geteuid() == 0 else "", **variables}
        done = process.run(argv, timeout_seconds=LIMIT_SECONDS, env=env, cwd=place)
        _remove(Path(place))
    assert done.returncode != 0, f"it succeeded: {command}"
    error = command_failed("the program failed", done, "here")
    return FailureText(str(error), exit_status=error.exit_status, stderr_tail=error.stderr_tail)


def _remove(place: Path) -> None:
    """Remove what commands made unreadable even to their own user."""
    subprocess.run(["chmod", "-R", "u+rwX", str(place)], check=False, capture_output=True)
    for entry in place.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink()


@cache
def classifier() -> Classifier:
    return Classifier(shipped())


@cache
def has_namespaces() -> bool:
    done = subprocess.run(["unshare", "-rmn", "true"], check=False, capture_output=True)
    return done.returncode == 0
