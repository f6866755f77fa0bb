"""A message goes to a checked address, over TLS by the name of the host, within its time limit."""

from __future__ import annotations

import datetime as dt
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from monitor.analysis.webhooks.destination import parse
from monitor.analysis.webhooks.post import NotAccepted, Poster
from tests.monitor.receivers import HANGS, REFUSES, Hook, hook

NAME = "hooks.example.org"


class CountedDns:
    """Answers each question with the next of *answers*, and the last for ever."""

    def __init__(self, *answers: str) -> None:
        self.answers, self.questions = list(answers), 0

    def __call__(self, _host: str, _port: int) -> Sequence[str]:
        self.questions += 1
        return [self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]]


@pytest.fixture
def receiver() -> Iterator[Hook]:
    with hook() as server:
        yield server


def url_of(receiver: Hook, *, scheme: str = "http", host: str = NAME) -> str:
    return f"{scheme}://{host}:{receiver.server_address[1]}/hook"


def test_the_connection_goes_to_the_address_that_was_checked(receiver: Hook) -> None:
    """The next answer of DNS is another address: the name is resolved once."""
    dns = CountedDns("127.0.0.1", "127.0.0.2")
    Poster(allowed={NAME}, resolve=dns).post(parse(url_of(receiver)), "msg-1", b"{}", [])
    ((headers, body),) = receiver.requests
    assert (dns.questions, body) == (1, b"{}")
    assert headers["Host"] == f"{NAME}:{receiver.server_address[1]}"


def test_a_name_that_is_rebound_to_this_host_is_refused(receiver: Hook) -> None:
    dns = CountedDns("127.0.0.1")
    with pytest.raises(NotAccepted, match=f"{NAME} has the loopback address 127.0.0.1"):
        Poster(allowed=(), resolve=dns).post(parse(url_of(receiver)), "msg-1", b"{}", [])
    assert receiver.requests == []


def test_the_next_address_is_tried_if_one_does_not_answer(receiver: Hook) -> None:
    def dns(_host: str, _port: int) -> Sequence[str]:
        return ["127.0.0.2", "127.0.0.1"]

    Poster(allowed={NAME}, resolve=dns).post(parse(url_of(receiver)), "msg-1", b"{}", [])
    assert len(receiver.requests) == 1


def test_a_receiver_that_does_not_answer_costs_no_more_than_the_limit(receiver: Hook) -> None:
    receiver.mode = HANGS
    poster = Poster(allowed={"127.0.0.1"}, seconds=0.2)
    with pytest.raises(NotAccepted, match=r"no answer within 0\.2 s"):
        poster.post(parse(url_of(receiver, host="127.0.0.1")), "msg-1", b"{}", [])


def test_a_receiver_that_sends_a_byte_now_and_then_costs_no_more_than_the_limit() -> None:
    """Every byte would start the timeout of a socket again."""
    over = threading.Event()

    def drip(listener: socket.socket) -> None:
        channel, _ = listener.accept()
        with channel:
            while not over.wait(0.02):
                try:
                    channel.sendall(b"x")
                except OSError:
                    return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=[listener])
        thread.start()
        try:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
            with pytest.raises(NotAccepted, match=r"no answer within 0.3 s|cannot post"):
                Poster(allowed={"127.0.0.1"}, seconds=0.3).post(parse(url), "msg-1", b"{}", [])
        finally:
            over.set()
            thread.join()


SECRET = "/services/T0/B1/token"


@pytest.mark.parametrize("query", ["", "?thread=1"])
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((404, {}), b"x" * 190 + f"no {SECRET} here".encode()),
        ((308, {"Location": f"https://elsewhere.example.org{SECRET}/"}), b""),
    ],
    ids=["text", "redirect"],
)
def test_a_refusal_that_repeats_the_path_is_told_without_it(
    receiver: Hook, answer: tuple[int, dict[str, str]], reason: bytes, query: str
) -> None:
    receiver.mode, receiver.answer, receiver.reason = REFUSES, answer, reason
    to = parse(f"http://{receiver.address}{SECRET}{query}")
    with pytest.raises(NotAccepted, match=f"answered {answer[0]}") as refused:
        Poster(allowed={"127.0.0.1"}).post(to, "msg-1", b"{}", [])
    assert "/services" not in str(refused.value)


def test_the_certificate_has_to_be_of_the_name_not_of_the_address(tmp_path: Path) -> None:
    with tls_receiver(tmp_path, NAME) as (receiver, context):
        poster = Poster(allowed={NAME, "other.example.org"}, resolve=CountedDns("127.0.0.1"), context=context)
        poster.post(parse(url_of(receiver, scheme="https")), "msg-1", b"{}", [])
        with pytest.raises(NotAccepted, match=r"certificate verify failed.*other.example.org"):
            poster.post(parse(url_of(receiver, scheme="https", host="other.example.org")), "msg-2", b"{}", [])
    assert len(receiver.requests) == 1


def test_an_unknown_authority_is_refused(tmp_path: Path) -> None:
    with tls_receiver(tmp_path, NAME) as (receiver, _):
        poster = Poster(allowed={NAME}, resolve=CountedDns("127.0.0.1"))
        with pytest.raises(NotAccepted, match="certificate verify failed"):
            poster.post(parse(url_of(receiver, scheme="https")), "msg-1", b"{}", [])
    assert receiver.requests == []


@contextmanager
def tls_receiver(directory: Path, name: str) -> Iterator[tuple[Hook, Callable[[], ssl.SSLContext]]]:
    """Run a receiver with a certificate of *name*; yield it with the context that trusts the certificate."""
    file = directory / "receiver.pem"
    file.write_bytes(certificate(name))
    with hook() as receiver:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        receiver.socket = context.wrap_socket(
            receiver.socket, server_side=True, do_handshake_on_connect=False
        )
        yield receiver, lambda: ssl.create_default_context(cafile=str(file))


def certificate(name: str) -> bytes:
    """Return a key and a certificate of *name*, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    names = x509.SubjectAlternativeName([x509.DNSName(name), x509.IPAddress(ip_address("127.0.0.9"))])
    signed = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return private + signed.public_bytes(serialization.Encoding.PEM)
