"""Break copies on purpose, in the program or in the server that makes them."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from reporters import resolve
from reporters.base import End, FileTransfer
from tests.reporters.needs import needs
from tests.reporters.places import Place
from tests.reporters.run_security import copied_security
from tests.reporters.scripted_https import Connection, Request, Script, ScriptedServer, scripted_server


class Saboteur(Protocol):
    """Each method returns the transfer that is to be used instead of *transfer*."""

    exit_status: int | None  # with which a tool fails
    stderr: str  # its error output, verbatim

    def fail(self, transfer: FileTransfer) -> FileTransfer:
        """It will fail half way; the last that it says is "tool: Broken pipe"."""
        ...

    def cut(self, transfer: FileTransfer, source: Path, there: Path) -> FileTransfer:
        """400 bytes of *source* will arrive in the directory *there*, and it will say that all is well."""
        ...

    def hang(self, transfer: FileTransfer) -> FileTransfer:
        """It will never end."""
        ...

    def repair(self) -> None:
        """Copies work again."""
        ...


class BrokenProgram:
    """Something else in the place of a program at *place*."""

    exit_status: int | None = 6
    stderr = "Warning: slow\ntool: Broken pipe\n"

    def __init__(self, place: Place, program: str) -> None:
        self._place, self._program = place, program
        self._file = place.programs / program
        self._real = self._file.read_bytes() if self._file.exists() else None

    def fail(self, transfer: FileTransfer) -> FileTransfer:
        self._place.install(self._program, "echo 'Warning: slow' >&2; echo 'tool: Broken pipe' >&2; exit 6")
        return transfer

    def cut(self, transfer: FileTransfer, source: Path, there: Path) -> FileTransfer:
        self._place.install(
            self._program,
            "for last; do :; done; case $0 in *sftp) read -r _ _ last ;; esac; "
            f'head -c 400 "{source}" > "{there}/$(basename "${{last#*:}}")"',
        )
        return transfer

    def hang(self, transfer: FileTransfer) -> FileTransfer:
        self._place.install(self._program, "exec sleep 600")
        return transfer

    def repair(self) -> None:
        if self._real is None:
            self._file.unlink(missing_ok=True)
        else:
            self._file.write_bytes(self._real)


class BrokenServer:
    """Another server in the place of the target's, which is asked to get the file."""

    exit_status: int | None = None
    stderr = "Warning: slow\nfailure: tool: Broken pipe\n"

    def __init__(self, server: ScriptedServer) -> None:
        self._server = server

    def fail(self, transfer: FileTransfer) -> FileTransfer:
        return self._instead(transfer, lambda connection, _: connection.say(*self.stderr.splitlines()))

    def cut(self, transfer: FileTransfer, source: Path, there: Path) -> FileTransfer:
        def get(connection: Connection, request: Request) -> None:
            Path(request.path).write_bytes(source.read_bytes()[:400])
            connection.say("success: Created")

        return self._instead(transfer, get)

    def hang(self, transfer: FileTransfer) -> FileTransfer:
        return self._instead(transfer, lambda connection, _: connection.wait_for_its_end())

    def repair(self) -> None:
        """It was put nowhere."""

    def _instead(self, transfer: FileTransfer, script: Script) -> FileTransfer:
        self._server.script = script
        return resolve.transfer_between(transfer.source, served_by(self._server, transfer.target))


def served_by(server: ScriptedServer, end: End) -> End:
    """*end* with *server* as its server, which exports all."""
    changed = {"port": server.port, "ca_directory": str(server.trust), "directory": "/"}
    resource = dataclasses.replace(end.resource, transfer={**end.resource.transfer, **changed})
    return End(resource, end.shell)


@contextlib.contextmanager
def broken_server() -> Iterator[BrokenServer]:
    needs("openssl")
    with tempfile.TemporaryDirectory() as directory:
        authority = copied_security(Path(directory)).authority
        with scripted_server(authority, lambda connection, _: connection.answer(500)) as server:
            yield BrokenServer(server)
