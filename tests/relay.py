"""A TCP relay that a test can close and open again: the network between a client and a server."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from types import TracebackType
from typing import Self


class Relay:
    """Relays connections to *port* of this host, on a port of its own, while it is open."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener: socket.socket | None = None
        self._connections: list[socket.socket] = []
        self.port = 0
        self.open()

    def open(self) -> None:
        """Accept connections, always on the same port."""
        listener = socket.create_server(("127.0.0.1", self.port))
        self.port = listener.getsockname()[1]
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def close(self) -> None:
        """Refuse connections from now on, and break those that are open."""
        if self._listener is not None:
            self._listener.close()
            # A thread in accept() keeps the port until a connection comes.
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._connections.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                if listener.fileno() < 0:  # closed meanwhile
                    client.close()
                    return
                self._connections.append(client)
                threading.Thread(target=self._relay, args=(client,), daemon=True).start()

    def _relay(self, client: socket.socket) -> None:
        target = ("127.0.0.1", self._target)
        with contextlib.suppress(OSError), client, socket.create_connection(target) as server:
            while True:
                for ready in select.select([client, server], [], [])[0]:
                    data = ready.recv(65536)
                    if not data:
                        return
                    (server if ready is client else client).sendall(data)
