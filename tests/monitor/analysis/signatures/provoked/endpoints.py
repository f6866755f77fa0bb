"""Ports that do not serve: closed, dropping packets, hanging up, resetting, or saying nothing."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import struct
import threading
from collections.abc import Iterator

ADDRESS = "127.0.0.1"


class _Silent(socketserver.BaseRequestHandler):
    """Reads a request, then closes the connection."""

    def handle(self) -> None:
        self.request.settimeout(1)
        with contextlib.suppress(OSError):
            self.request.recv(65536)


class _Resetting(socketserver.BaseRequestHandler):
    """Reads a request, if one comes at once, then resets the connection."""

    def handle(self) -> None:
        self.request.settimeout(0.3)
        with contextlib.suppress(OSError):
            self.request.recv(65536)
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.request.close()


class _Hanging(socketserver.BaseRequestHandler):
    """Accepts what it is sent, and answers nothing."""

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            while self.request.recv(65536):
                pass


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 100

    def shutdown_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        """Close *request* without a FIN of its own: it would precede a reset."""
        self.close_request(request)


@contextlib.contextmanager
def endpoints() -> Iterator[dict[str, str]]:
    """Yield the variables CLOSED, FILTERED, SILENT, RESETTING and HANGING, each a port of 127.0.0.1."""
    kinds = {"SILENT": _Silent, "RESETTING": _Resetting, "HANGING": _Hanging}
    with contextlib.ExitStack() as stack:
        ports = {"CLOSED": stack.enter_context(_closed()), "FILTERED": stack.enter_context(_filtered())}
        for name, handler in kinds.items():
            server = stack.enter_context(_Server((ADDRESS, 0), handler))
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
            stack.callback(server.shutdown)
            ports[name] = server.server_address[1]
        yield {name: str(port) for name, port in ports.items()}


@contextlib.contextmanager
def _closed() -> Iterator[int]:
    """Yield a port that refuses connections and cannot be taken: it is bound, and does not listen."""
    with socket.socket() as bound:
        bound.bind((ADDRESS, 0))
        yield bound.getsockname()[1]


@contextlib.contextmanager
def _filtered() -> Iterator[int]:
    """Yield a port on which the kernel drops new connections: the queue of its listener is full."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server((ADDRESS, 0), backlog=0))
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]
