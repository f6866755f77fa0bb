"""The agent's log: stderr and a bounded file, without the memory of the logging package."""

from __future__ import annotations

import contextlib
import os
import threading
from datetime import datetime, timezone
from pathlib import Path
from typing import TextIO

MAX_FILE_BYTES = 1_000_000  # and as much again in the file before


class AgentLog:
    """Writes lines to *file*, of which one predecessor is kept, and to *stream*, if any. Thread-safe."""

    def __init__(self, file: Path, stream: TextIO | None = None) -> None:
        self._file, self._stream = file, stream
        self._writing = threading.Lock()

    def write(self, level: str, text: str) -> None:
        """Write a line with the time. A log that cannot be written never disturbs the agent."""
        time = datetime.now(timezone.utc).isoformat(timespec="seconds")
        line = f"{time} {level} {' '.join(text.splitlines())}\n"
        with self._writing:
            if self._stream is not None:
                with contextlib.suppress(OSError, ValueError):
                    self._stream.write(line)
                    self._stream.flush()
            with contextlib.suppress(OSError):
                self._append(line.encode("utf-8", "replace"))

    def _append(self, line: bytes) -> None:
        descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, line)
            size_bytes = os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)
        if size_bytes > MAX_FILE_BYTES:
            self._file.replace(self._file.with_name(f"{self._file.name}.1"))
