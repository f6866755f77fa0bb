"""Where the distribution has put a server, and which of its packages has it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from importlib import resources

from monitor.testbed.errors import MissingProgram

# Servers lie where an ordinary user's PATH does not lead.
_SERVERS = "/usr/local/sbin:/usr/sbin:/sbin"


def locate(program: str) -> str:
    """The path of *program*. Raises MissingProgram, which names the package that has it."""
    path = shutil.which(program, path=f"{os.environ.get('PATH', os.defpath)}:{_SERVERS}")
    if path is None:
        package = packages().get(program, program)
        raise MissingProgram(f"{program} is not installed (Debian's package {package})")
    return path


def missing(programs: Iterable[str]) -> list[str]:
    """What ``locate`` says of those of *programs* that are not installed."""
    said = []
    for program in programs:
        try:
            locate(program)
        except MissingProgram as error:
            said.append(str(error))
    return said


def packages() -> dict[str, str]:
    """Program -> Debian's package."""
    text = resources.files(__package__).joinpath("packages.txt").read_text(encoding="utf-8")
    rows = [line.split() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return {row[0]: row[1] for row in rows}
