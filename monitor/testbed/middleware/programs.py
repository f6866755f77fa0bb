"""Find programs of the distribution, and the packages that contain them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from importlib import resources

from monitor.testbed.errors import MissingProgram

# Directories of servers, which are not on an ordinary user's PATH.
_SERVERS = "/usr/local/sbin:/usr/sbin:/sbin"


def locate(program: str) -> str:
    """Return the path of *program*. Raises MissingProgram with the name of its package."""
    path = shutil.which(program, path=f"{os.environ.get('PATH', os.defpath)}:{_SERVERS}")
    if path is None:
        package = packages().get(program, program)
        raise MissingProgram(f"{program} is not installed (Debian's package {package})")
    return path


def missing(programs: Iterable[str]) -> list[str]:
    """Return a message for each of *programs* that is not installed."""
    messages = []
    for program in programs:
        try:
            locate(program)
        except MissingProgram as error:
            messages.append(str(error))
    return messages


def packages() -> dict[str, str]:
    """Return the name of the Debian package of each program."""
    text = resources.files(__package__).joinpath("packages.txt").read_text(encoding="utf-8")
    rows = [line.split() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return {row[0]: row[1] for row in rows}
