"""Run from unpacked sources: Python keeps their byte code, so later starts take a third of the time.

Modules of an archive are compiled at every start. And an archive that an upgrade replaces cannot be read on
by a process that runs from it. ``run`` unpacks; every command uses what it finds.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from pathlib import Path

from reporters.path_chain import unsafe_reason
from reporters.remote import this_archive
from reporters.trees import remove_tree

DIRECTORY = "code"
_PACKAGES = ("probes", "reporters")
_DIGITS = 16


class NotUnpacked(Exception):
    """The archive cannot be unpacked, or not so that only this user can write to its modules."""


def use(state: Path) -> Path | None:
    """Load further modules from the directory below *state* where this archive is unpacked; return it.

    The result is None, and nothing changes, without an archive or if other users could have changed its copy.
    """
    archive = this_archive.path()
    if archive is None or not (state / DIRECTORY).is_dir():
        return None
    directory = _directory(state)
    if not all(_is_private(each) for each in (state, directory.parent, directory)) or unsafe_reason(state):
        return None
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in _PACKAGES and hasattr(module, "__path__"):
            module.__path__[:] = [str(directory.joinpath(*name.split(".")))]
    if str(directory) not in sys.path:
        sys.path.insert(0, str(directory))
    return directory


def make(state: Path) -> Path | None:
    """Unpack this archive below *state* if it is not, and ``use`` it; None without an archive.

    Raises:
        NotUnpacked: that is impossible.
    """
    archive = this_archive.path()
    if archive is None:
        return None
    directory = _directory(state)
    try:
        if not directory.exists():
            _unpack(archive, directory)
    except (OSError, ValueError) as error:
        raise NotUnpacked(f"cannot unpack {archive} to {directory}: {error}") from None
    used = use(state)
    if used is None:
        raise NotUnpacked(f"other users can write to {directory.parent}: remove it, the agent makes it again")
    return used


def remove_others(directory: Path) -> None:
    """Remove the other versions beside *directory*; no agent may be running from them."""
    for other in directory.parent.iterdir():
        if other != directory:
            remove_tree(other)


def _directory(state: Path) -> Path:
    return state / DIRECTORY / this_archive.sha256()[:_DIGITS]


def _is_private(directory: Path) -> bool:
    """Return whether *directory* is one, of this user, to which no other user can write."""
    try:
        status = directory.stat()
    except OSError:
        return False
    is_shared = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not is_shared


def _unpack(archive: Path, directory: Path) -> None:
    """Unpack *archive* to the new *directory*. Raises OSError or ValueError."""
    # For the first start only.
    import io  # noqa: PLC0415
    import uuid  # noqa: PLC0415
    import zipfile  # noqa: PLC0415

    content = archive.read_bytes()
    if hashlib.sha256(content).hexdigest() != this_archive.sha256():
        raise ValueError("the file was replaced since this process started; start it again")
    parent = directory.parent
    parent.mkdir(mode=0o700, exist_ok=True)
    draft = parent / f".{uuid.uuid4()}"
    draft.mkdir(mode=0o700)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as zipped:
            for name in zipped.namelist():
                if name.startswith(_PACKAGES):
                    _write(draft / name, zipped.read(name))
        _write(draft / this_archive.COPY_DIGEST, this_archive.sha256().encode())
        draft.rename(directory)
    except zipfile.BadZipFile as error:
        raise ValueError(str(error)) from None
    except OSError:
        if not directory.exists():  # unpacked by another process meanwhile
            raise
    finally:
        remove_tree(draft)


def _write(file: Path, data: bytes) -> None:
    """Write and flush *file*: a power failure must not leave an empty module behind."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with file.open("xb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
