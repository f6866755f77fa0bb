"""A TLS proxy in front of a plain HTTP server, as operators put one before the web server."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator

from monitor.testbed.middleware.pki import Authority


@contextlib.contextmanager
def tls_terminator(authority: Authority, target_port: int) -> Iterator[int]:
    """Serve TLS for ``localhost``, certified by *authority*, before *target_port*; yield the port."""
    identity = authority.host("localhost", ["localhost"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.certificate, identity.key)

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with (
                contextlib.suppress(OSError),  # a client that does not trust the certificate disconnects
                context.wrap_socket(self.request, server_side=True) as client,
                socket.create_connection(("127.0.0.1", target_port)) as server,
            ):
                answers = threading.Thread(target=_copy, args=(server, client), daemon=True)
                answers.start()
                _copy(client, server)
                answers.join()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as terminator:
        terminator.daemon_threads = True
        terminator.block_on_close = False
        thread = threading.Thread(target=terminator.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield int(terminator.server_address[1])
        finally:
            terminator.shutdown()
            thread.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Copy *source* to *target* until it ends, then end both."""
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
