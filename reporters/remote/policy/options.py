"""Read the options of a run's resources by their meaning: which name hosts, files or programs.

A rule refuses an option that is not listed here: it cannot tell what the option means.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reporters import batch, shells, transfers
from reporters.config import Assignment, ResourceConfig

HOST, HOPS, CONTACT = "host", "jump hosts", "contact"
FILE, SEARCH_PATH = "file", "search path"
PROGRAM = "program"
PLAIN = "plain"  # neither host nor file nor program

ADDRESSES = (HOST, HOPS, CONTACT)
FILES = (FILE, SEARCH_PATH)

# An option has the same meaning in every shell, transfer and batch system.
MEANINGS: Mapping[str, str] = {
    "host": HOST,
    "callback_host": HOST,
    "jump": HOPS,
    "contact": CONTACT,
    "config_file": FILE,
    "identity_file": FILE,
    "proxy_file": FILE,
    "token_file": FILE,
    "ca_file": FILE,
    "ca_directory": FILE,
    "path": SEARCH_PATH,
    "launcher": PROGRAM,
    "extra": PROGRAM,
    **dict.fromkeys(
        (
            "account",
            "connect_timeout_seconds",
            "delegate",
            "directory",
            "forward_agent",
            "keep_alive_seconds",
            "login_timeout_seconds",
            "mode",
            "parallel_environment",
            "retries",
            "select",
            "port",
            "program",
            "queue",
            "sessions",
            "stall_seconds",
            "subject",
            "user",
        ),
        PLAIN,
    ),
}
_KINDS = {"shell": shells.names, "transfer": transfers.names, "batch": batch.names}


@dataclass(frozen=True)
class NamedOption:
    """An option of a resource. *where* names it in messages: "shell host of ncsa-login"."""

    where: str
    meaning: str
    value: Any


def bound_resources(assignment: Assignment) -> list[ResourceConfig]:
    """Return the resources that the run uses, each once."""
    names = dict.fromkeys(name for bound in assignment.bindings.values() for name in bound)
    return [assignment.resources[name] for name in names if name in assignment.resources]


def unrecognised(resource: ResourceConfig) -> str:
    """Return which part of *resource* the reporter does not recognise; empty if it recognises all."""
    for method, known in _KINDS.items():
        options = getattr(resource, method)
        if options.get("kind") not in known():
            return f"the {method} {options.get('kind')!r} of {resource.name} is not recognised"
        for name in options:
            if name != "kind" and name not in MEANINGS:
                return f"the {method} option {name!r} of {resource.name} is not recognised"
    return ""


def options(resource: ResourceConfig, meanings: tuple[str, ...]) -> Iterator[NamedOption]:
    """Yield the options of *resource* that have one of *meanings* and a value."""
    for method in _KINDS:
        for name, value in getattr(resource, method).items():
            meaning = MEANINGS.get(name, "")
            if meaning in meanings and value is not None and value != "":
                yield NamedOption(f"{method} {name} of {resource.name}", meaning, value)
