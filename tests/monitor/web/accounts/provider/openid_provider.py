"""An OpenID provider over HTTP for tests: correct by itself, with faults that are switched on by name."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote_plus, urlencode, urlsplit

import httpx
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import get_default_algorithms

CLIENT_ID, CLIENT_SECRET = "gridcast", "a secret: with %, + and ä"
ACCESS_TOKEN = "access-token"
# Answers of a path: none, and one of a byte now and then, both until the server ends.
HANGS, TRICKLES = "hangs", "trickles"
Json = dict[str, Any]
Change = Callable[[Any], Any]  # returns what is sent instead


@cache
def private_key(algorithm: str, number: int = 0) -> Any:
    """Return a key for *algorithm*; another for each *number*."""
    if algorithm.startswith("ES"):
        return ec.generate_private_key(ec.SECP256R1() if algorithm == "ES256" else ec.SECP384R1())
    if algorithm == "EdDSA":
        return ed25519.Ed25519PrivateKey.generate()
    return rsa.generate_private_key(public_exponent=65537, key_size=1024 if number == SHORT else 2048)


SHORT = 99  # the number of a key of 1,024 bits


def public_jwk(key: Any, algorithm: str, **members: Any) -> Json:
    return {**get_default_algorithms()[algorithm].to_jwk(key.public_key(), as_dict=True), **members}


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def signed(header: Json, payload: bytes, key: Any) -> str:
    """Return a token of *payload*, whatever it is; *key* is of the algorithm of the header."""
    parts = f"{encoded(json.dumps(header).encode())}.{encoded(payload)}"
    signature = get_default_algorithms()[header["alg"]].sign(parts.encode(), key)
    return f"{parts}.{encoded(signature)}"


@dataclass
class OpenIdProvider:
    """A provider with one user.

    Attributes:
        claims: what the ID token says about the user, beside the claims of the protocol.
        userinfo: what the userinfo endpoint says; None: the provider has none.
        changes: by the name of a message (``discovery``, ``keys``, ``id_token``, ``token``, ``userinfo``,
            ``callback``), what is made of it before it is sent.
        answers: by path, a status and a body that are sent instead; or one of ``HANGS`` and ``TRICKLES``.
    """

    origin: str
    slash: str = ""
    algorithm: str = "RS256"
    claims: Json = field(default_factory=dict)
    userinfo: Json | None = None
    changes: dict[str, Change] = field(default_factory=dict)
    answers: dict[str, tuple[int, bytes] | str] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    codes: dict[str, Json] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)  # why the token endpoint did not accept a client
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def issuer(self) -> str:
        return f"{self.origin}/realm{self.slash}"

    def key(self, number: int = 0) -> Any:
        return private_key(self.algorithm, number)

    def discovery(self) -> Json:
        document = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.origin}/authorize?tenant=grid",
            "token_endpoint": f"{self.origin}/token",
            "jwks_uri": f"{self.origin}/keys",
            "id_token_signing_alg_values_supported": [self.algorithm],
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
            "authorization_response_iss_parameter_supported": True,
        }
        if self.userinfo is not None:
            document["userinfo_endpoint"] = f"{self.origin}/userinfo"
        return document

    def keys(self) -> Json:
        return {"keys": [public_jwk(self.key(), self.algorithm, kid="first", use="sig")]}

    def id_token_claims(self, nonce: str) -> Json:
        now = int(time.time())
        protocol = {"iss": self.issuer, "aud": CLIENT_ID, "exp": now + 300, "iat": now, "nonce": nonce}
        return {**protocol, **self.claims}

    def id_token(self, nonce: str) -> str:
        """Return a signed token; a change of ``id_token`` may return changed claims or a whole token."""
        claims = self._changed("id_token", self.id_token_claims(nonce))
        if isinstance(claims, str):
            return claims
        return signed({"alg": self.algorithm, "kid": "first"}, json.dumps(claims).encode(), self.key())

    def authorize(self, url: str) -> str:
        """Log in at *url*, as a browser does; return the path and query to which it is sent back."""
        answer = httpx.get(url, timeout=60)
        parts = urlsplit(answer.headers["Location"])
        return f"{parts.path}?{parts.query}"

    def log_in(self, browser: Any, start: str = "/login/sso/") -> Any:
        """Log *browser* in; return the last answer: that of the start if it leads nowhere."""
        answer = browser.get(start)
        if answer.status_code != 302:
            return answer
        return browser.get(self.authorize(answer["Location"]))

    def respond(
        self, path: str, query: Mapping[str, str], form: Mapping[str, str], basic: str
    ) -> bytes | str:
        """Return the body of the answer, or the URL of a redirect."""
        match path:
            case "/authorize":
                return self._redirect(query)
            case "/token":
                return self._body("token", self._tokens(form, basic))
            case "/keys":
                return self._body("keys", self.keys())
            case "/userinfo":
                return self._body("userinfo", self.userinfo)
            case "/realm/.well-known/openid-configuration":
                return self._body("discovery", self.discovery())
        raise LookupError(path)

    def _redirect(self, query: Mapping[str, str]) -> str:
        assert query["tenant"] == "grid", "the query of the endpoint stays"
        assert query["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(16)
        self.codes[code] = dict(query)
        back = {"code": code, "state": query["state"], "iss": self.issuer}
        return f"{query['redirect_uri']}?{urlencode(self._changed('callback', back), doseq=True)}"

    def _tokens(self, form: Mapping[str, str], basic: str) -> Json:
        login = self.codes.pop(form["code"], None)
        client, _, secret = base64.b64decode(basic.removeprefix("Basic ")).decode().partition(":")
        verifier = encoded(hashlib.sha256(form["code_verifier"].encode()).digest())
        faults = {
            "code": login is None,
            "client": (unquote_plus(client), unquote_plus(secret)) != (CLIENT_ID, CLIENT_SECRET),
            "verifier": login is not None and verifier != login["code_challenge"],
            "redirect_uri": login is not None and form["redirect_uri"] != login["redirect_uri"],
        }
        if login is None or any(faults.values()):
            self.refused += [name for name, is_fault in faults.items() if is_fault]
            raise PermissionError
        return {
            "access_token": ACCESS_TOKEN,
            "token_type": "bearer",
            "expires_in": 300,
            "id_token": self.id_token(login["nonce"]),
        }

    def _changed(self, name: str, value: Any) -> Any:
        return self.changes[name](value) if name in self.changes else value

    def _body(self, name: str, document: Any) -> bytes:
        changed = self._changed(name, document)
        return changed if isinstance(changed, bytes) else json.dumps(changed).encode()


class _Handler(BaseHTTPRequestHandler):
    provider: OpenIdProvider

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        form = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self.provider.asked[parts.path] += 1
        answer = self.provider.answers.get(parts.path)
        if isinstance(answer, tuple):
            return self._send(*answer)
        if answer == HANGS:
            self.provider.over.wait()
            return None
        if answer == TRICKLES:
            return self._trickle()
        try:
            body = self.provider.respond(
                parts.path, _flat(parts.query), _flat(form), self.headers.get("Authorization", "")
            )
        except PermissionError:
            return self._send(400, b'{"error": "invalid_grant"}')
        except LookupError:
            return self._send(404, b"")
        return self._send(200, body) if isinstance(body, bytes) else self._send(302, b"", Location=body)

    def do_POST(self) -> None:
        self.do_GET()

    def _send(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:  # the client reads no more of a body that is too large
            self.close_connection = True

    def _trickle(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        with contextlib.suppress(OSError):  # the client has gone
            while not self.provider.over.wait(0.05):
                self.wfile.write(b" ")

    def log_message(self, *_: Any) -> None:
        pass


def _flat(query: str) -> Mapping[str, str]:
    return {name: values[-1] for name, values in parse_qs(query, keep_blank_values=True).items()}


@contextmanager
def running_provider() -> Iterator[OpenIdProvider]:
    handler = type("Handler", (_Handler,), {})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        provider = handler.provider = OpenIdProvider(f"http://127.0.0.1:{server.server_port}")  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield provider
        finally:
            provider.over.set()
            server.shutdown()
            thread.join()
