"""Run from unpacked sources: Python keeps their byte code, so later starts take a quarter of the time.

Modules of an archive are compiled at every start, which also costs memory for as long as the agent runs. And
an archive that an upgrade replaces cannot be read on by a process that runs from it.
"""

from __future__ import annotations

import os
import shutil
import sys
import uuid
from pathlib import Path

from reporters.remote import this_archive
from reporters.remote.state_directory import StateDirectory, StateError

DIRECTORY = "code"
_PACKAGES = ("probes", "reporters")
_DIGITS = 16


def use(state: StateDirectory) -> Path | None:
    """Load further modules from *state*, where the archive is unpacked; return the directory with them.

    Without an archive nothing changes, and the result is None.

    Raises:
        StateError: the archive cannot be unpacked.
    """
    archive, digest = this_archive.path(), this_archive.sha256()
    if archive is None or not digest:
        return None
    directory = state.path / DIRECTORY / digest[:_DIGITS]
    if not directory.exists():
        try:
            _unpack(archive, directory)
        except (OSError, ValueError) as error:
            raise StateError(f"cannot unpack {archive} to {directory}: {error}") from None
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in _PACKAGES and hasattr(module, "__path__"):
            module.__path__[:] = [str(directory.joinpath(*name.split(".")))]
    sys.path.insert(0, str(directory))
    return directory


def remove_others(directory: Path) -> None:
    """Remove the other versions beside *directory*; no agent may be running from them."""
    for other in directory.parent.iterdir():
        if other != directory:
            shutil.rmtree(other, ignore_errors=True)


def _unpack(archive: Path, directory: Path) -> None:
    """Unpack *archive* to the new *directory*."""
    import zipfile  # noqa: PLC0415  # for the first start only, and half a megabyte of memory

    parent = directory.parent
    parent.mkdir(mode=0o700, exist_ok=True)
    draft = parent / f".{uuid.uuid4()}"
    try:
        with zipfile.ZipFile(archive) as zipped:
            zipped.extractall(draft, [name for name in zipped.namelist() if name.startswith(_PACKAGES)])
        os.sync()  # a power failure must not leave empty modules behind
        draft.rename(directory)
    except zipfile.BadZipFile as error:
        raise ValueError(str(error)) from None
    except OSError:
        if not directory.exists():  # unpacked by another process meanwhile
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
