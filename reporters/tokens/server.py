"""The server of a storage area's tokens: one process, one Unix socket."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from reporters.tokens.bank import ASK, GIVE_BACK, TokenBank
from reporters.tokens.limits import TokenLimits

STATUS = "s"
_STATUS_SECONDS = 5.0
_LONGEST_PATH = 107  # of a socket (sun_path)


class TokensUnavailable(Exception):
    """The server cannot be started or reached; the message has the reason."""


@dataclass(frozen=True)
class Area:
    """A storage area: its *directory*, the *socket* of its server, and its limits."""

    directory: Path
    socket: Path
    limits: TokenLimits


class TokenServer:
    """Grants the tokens of *area* to the processes that are connected."""

    def __init__(self, area: Area) -> None:
        self._area = area
        self._bank: TokenBank[asyncio.StreamWriter] = TokenBank(area.limits.readers, area.limits.writers)

    async def serve_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one process until it closes its connection or ends."""
        try:
            while messages := await reader.read(64):
                for message in messages.decode("ascii", "replace"):
                    if message == STATUS:
                        writer.write(json.dumps(self.status()).encode() + b"\n")
                        return
                    self._handle(writer, message)
        except ConnectionError:
            pass
        finally:
            self._send(self._bank.leave(writer, time.monotonic()))
            writer.close()

    def _handle(self, writer: asyncio.StreamWriter, message: str) -> None:
        now = time.monotonic()
        if message in ASK:
            self._send(self._bank.ask(writer, ASK[message], now))
        elif message in GIVE_BACK:
            self._send(self._bank.give_back(writer, GIVE_BACK[message], now))

    def _send(self, messages: list[tuple[asyncio.StreamWriter, str]]) -> None:
        for writer, message in messages:
            if not writer.is_closing():
                writer.write(message.encode())

    def status(self) -> dict[str, Any]:
        """Return the area, its limits, and what is held and waited for."""
        return {
            "directory": str(self._area.directory),
            **asdict(self._area.limits),
            "tokens": self._bank.figures(time.monotonic()),
        }


@contextlib.asynccontextmanager
async def serving(area: Area, mode: int) -> AsyncIterator[TokenServer]:
    """Serve the tokens of *area* at its socket, which gets the permissions *mode*.

    Raises:
        TokensUnavailable: another server answers there, or the socket cannot be made.
    """
    server = TokenServer(area)
    if len(os.fsencode(area.socket)) > _LONGEST_PATH:
        raise TokensUnavailable(f"{area.socket}: longer than {_LONGEST_PATH} bytes, the limit for sockets")
    try:
        status(area.socket)
    except TokensUnavailable:
        with contextlib.suppress(FileNotFoundError):
            _remove_socket(area.socket)
    else:
        raise TokensUnavailable(f"{area.socket}: a server is running there")
    try:
        listener = await asyncio.start_unix_server(server.serve_client, path=area.socket)
        area.socket.chmod(mode)
    except OSError as error:
        raise TokensUnavailable(f"cannot serve at {area.socket}: {error.strerror}") from None
    async with listener:
        try:
            yield server
        finally:
            with contextlib.suppress(FileNotFoundError):
                area.socket.unlink()


def _remove_socket(path: Path) -> None:
    """Remove the socket of a server that was killed. Raises TokensUnavailable if *path* is something else."""
    if not path.is_socket():
        path.stat()
        raise TokensUnavailable(f"{path}: it exists and is no socket")
    path.unlink()


def status(path: Path) -> Mapping[str, Any]:
    """Ask the server at *path* for its status. Raises TokensUnavailable if none answers."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_STATUS_SECONDS)
            connection.connect(str(path))
            connection.sendall(STATUS.encode())
            with connection.makefile("rb") as stream:
                document = json.loads(stream.readline())
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise TokensUnavailable(f"no server of tokens answers at {path}: {reason}") from None
    if not isinstance(document, dict):
        raise TokensUnavailable(f"{path}: the answer is no status")
    return document
