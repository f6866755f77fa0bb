"""Web servers: one answers with the status in the path, others have faulty certificates."""

from __future__ import annotations

import contextlib
import http.server
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

ADDRESS = "127.0.0.1"
_NOW = datetime.now(UTC).replace(microsecond=0)
_DAY = timedelta(days=1)


class _Answers(http.server.BaseHTTPRequestHandler):
    """The path ``/404`` is answered with 404; ``/loop`` leads to itself, ``/short`` breaks off."""

    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        word = self.path.strip("/").partition("/")[0]
        self.close_connection = True
        if word == "short":
            self.send_response(200)
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            self.wfile.write(b"x" * 1000)
        elif word == "loop":
            self._answer(302, {"Location": self.path})
        elif word.isdigit():
            self._answer(int(word), {"WWW-Authenticate": 'Bearer realm="grid"'} if word == "401" else {})
        else:
            self._answer(200, {})

    def _answer(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": "0", "Connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """The server's log is not read."""


for _method in ("GET", "HEAD", "PUT", "POST", "DELETE", "MKCOL", "PROPFIND", "OPTIONS"):
    setattr(_Answers, f"do_{_method}", _Answers.answer)


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 100
    context: ssl.SSLContext | None = None

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Shake hands in the thread of the request: a client that hangs up must not stop the server."""
        with contextlib.suppress(OSError), _secured(request, self.context) as secured:
            super().finish_request(secured, client_address)


@contextlib.contextmanager
def _secured(request: socket.socket, context: ssl.SSLContext | None) -> Iterator[socket.socket]:
    if context is None:
        yield request
        return
    with context.wrap_socket(request.dup(), server_side=True, do_handshake_on_connect=False) as secured:
        try:
            secured.do_handshake()
        except ssl.SSLError:  # read what the client sends: unread data would turn the alert into a reset
            request.shutdown(socket.SHUT_WR)
            request.settimeout(5)
            while request.recv(65536):
                pass
            raise
        yield secured


@dataclass(frozen=True)
class Identity:
    """A certificate with its key, in one file."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    file: Path


def issue(
    file: Path,
    issuer: Identity | None = None,
    *,
    name: str = "localhost",
    begins: datetime = _NOW - _DAY,
    ends: datetime = _NOW + 30 * _DAY,
) -> Identity:
    """Issue a certificate; without *issuer* it is self-signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .serial_number(x509.random_serial_number())
        .public_key(key.public_key())
        .not_valid_before(begins)
        .not_valid_after(ends)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    )
    certificate = builder.sign(issuer.key if issuer else key, hashes.SHA256())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    return Identity(certificate, key, file)


def revocation_list(file: Path, authority: Identity, revoked: Identity, *, ends: datetime) -> None:
    entry = x509.RevokedCertificateBuilder(revoked.certificate.serial_number, _NOW - _DAY).build()
    builder = x509.CertificateRevocationListBuilder(
        authority.certificate.subject, _NOW - 2 * _DAY, ends, revoked_certificates=[entry]
    )
    crl = builder.sign(authority.key, hashes.SHA256())
    file.write_bytes(
        crl.public_bytes(serialization.Encoding.PEM)
        + authority.certificate.public_bytes(serialization.Encoding.PEM)
    )


@contextlib.contextmanager
def web_servers(directory: Path) -> Iterator[dict[str, str]]:
    """Yield variables: HTTP is an URL, further names in capitals are ports of HTTPS servers, or files."""
    authority = issue(directory / "ca.pem", name="Test CA")
    other = issue(directory / "other-ca.pem", name="Other CA")
    identities = {
        "GOOD": issue(directory / "good.pem", authority),
        "EXPIRED": issue(directory / "expired.pem", authority, begins=_NOW - 9 * _DAY, ends=_NOW - _DAY),
        "FUTURE": issue(directory / "future.pem", authority, begins=_NOW + _DAY),
        "WRONG_NAME": issue(directory / "wrong-name.pem", authority, name="se.example.org"),
        "UNKNOWN_CA": issue(directory / "unknown-ca.pem", other),
        "SELF_SIGNED": issue(directory / "self-signed.pem"),
    }
    contexts = {name: _context(identity) for name, identity in identities.items()}
    contexts["CLIENT_CERTIFICATE"] = _context(identities["GOOD"])
    contexts["CLIENT_CERTIFICATE"].load_verify_locations(authority.file)
    contexts["CLIENT_CERTIFICATE"].verify_mode = ssl.CERT_REQUIRED
    contexts["OLD"] = _context(identities["GOOD"])
    contexts["OLD"].maximum_version = ssl.TLSVersion.TLSv1_2
    contexts["OLD"].set_ciphers("ECDHE-ECDSA-AES256-GCM-SHA384")
    contexts["NEW"] = _context(identities["GOOD"])
    contexts["NEW"].minimum_version = ssl.TLSVersion.TLSv1_3
    revoked = issue(directory / "revoked.pem", authority)
    revocation_list(directory / "crl.pem", authority, revoked, ends=_NOW + _DAY)
    revocation_list(directory / "old-crl.pem", authority, revoked, ends=_NOW - _DAY)
    with contextlib.ExitStack() as stack:
        ports = {name: str(stack.enter_context(_serving(context))) for name, context in contexts.items()}
        plain = stack.enter_context(_serving(None))
        files = {"PKI": str(directory), "TRUST": str(authority.file), "SSL_CERT_FILE": str(authority.file)}
        yield {**ports, **files, "PLAIN": str(plain), "HTTP": f"http://localhost:{plain}"}


def _context(identity: Identity) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.file)
    return context


@contextlib.contextmanager
def _serving(context: ssl.SSLContext | None) -> Iterator[int]:
    with _Server((ADDRESS, 0), _Answers) as server:
        server.context = context
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
