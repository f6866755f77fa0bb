"""The command that a state directory belongs to: the series of a demo must not get into a real grid."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from monitor.core import env

from . import EmbeddedError

SERVE, DEMO = "serve", "demo"


class OtherPurpose(EmbeddedError):
    """The directory holds the state of another command; the message says what to do."""


def claim(var: Path, purpose: str) -> None:
    """Record in *var* that the directory is used for *purpose* (SERVE or DEMO).

    Raises:
        OtherPurpose: *var* already has another purpose.
    """
    file = env.make_var_directory(var) / "purpose"
    with tempfile.NamedTemporaryFile("w", dir=var, encoding="ascii") as draft:
        draft.write(purpose)
        draft.flush()
        with contextlib.suppress(FileExistsError):
            os.link(draft.name, file)  # atomic: the file exists only with its content
    if current(var) != purpose:
        raise OtherPurpose(
            f"{var} holds the state of `make {current(var)}`: choose another directory with GRIDCAST_VAR"
        )


def current(var: Path) -> str:
    """Return the purpose of *var*; empty if no purpose has been recorded yet."""
    try:
        return (var / "purpose").read_text(encoding="ascii")
    except FileNotFoundError:
        return ""
