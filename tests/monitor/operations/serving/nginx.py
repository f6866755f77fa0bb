"""A real nginx of a test."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from monitor.testbed.middleware.programs import locate
from tests.monitor.operations.web_server.clients import Server
from tests.waiting import eventually

_KINDS = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def free_address() -> Server:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return Server(free.getsockname())


def private_files(directory: Path) -> str:
    """Return directives of the block ``http`` that keep all files of nginx in *directory*."""
    places = "".join(f"{kind}_temp_path {directory / kind};" for kind in _KINDS)
    return f"access_log off; {places}"


@contextmanager
def running(directory: Path, configuration: str, server: Server) -> Iterator[Server]:
    """Run nginx with *configuration*, which listens at *server*, during the block."""
    file, log = directory / "nginx.conf", directory / "error.log"
    file.write_text(configuration, encoding="utf-8")
    argv = [locate("nginx"), "-p", str(directory), "-e", str(log), "-c", str(file), "-g", "daemon off;"]
    with subprocess.Popen(argv) as process:
        try:
            assert eventually(lambda: _accepts(server) or process.poll() is not None)
            assert process.poll() is None, log.read_text(encoding="utf-8")
            yield server
        finally:
            process.terminate()


def _accepts(server: Server) -> bool:
    try:
        server.connect().close()
    except ConnectionRefusedError:
        return False
    return True
