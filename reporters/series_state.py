"""What a series keeps between its runs: one small text, in a file of the reporter."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

MAX_BYTES = 1 << 20


class StateNotKept(Exception):
    """The file cannot be read or written; the message names it and the reason."""


class SeriesState:
    """The text that *series* keeps in *directory*, which is made when the first text is kept."""

    def __init__(self, directory: Path, series: str) -> None:
        self._file = directory / f"{series}.state"

    def read(self) -> str | None:
        """Return the text, or None if none was kept.

        Raises:
            StateNotKept: the file cannot be read, or is none of ours.
        """
        try:
            with self._file.open("rb") as stream:
                data = stream.read(MAX_BYTES + 1)
            if len(data) > MAX_BYTES:
                raise StateNotKept(f"{self._file} has more than {MAX_BYTES} bytes: remove it")
            return data.decode()
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
            raise StateNotKept(f"cannot read {self._file}: {reason}") from None

    def write(self, text: str) -> None:
        """Replace the text. Whatever ends this process, the old text is there or the new one.

        Raises:
            StateNotKept: the text is too long, or cannot be written; the old one stays.
        """
        data = text.encode()
        if len(data) > MAX_BYTES:
            raise StateNotKept(f"cannot write {self._file}: {len(data)} bytes are more than {MAX_BYTES}")
        draft = self._file.with_suffix(".draft")
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with draft.open("wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            draft.replace(self._file)
        except OSError as error:
            with contextlib.suppress(OSError):
                draft.unlink()
            raise StateNotKept(f"cannot write {self._file}: {error.strerror}") from None
