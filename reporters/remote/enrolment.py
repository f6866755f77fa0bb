"""Enrol this reporter: a key pair that is made here, and a code that proves the server to the agent."""

from __future__ import annotations

import base64
import hashlib
import json
import platform
from dataclasses import dataclass
from pathlib import Path

from reporters.fields import Fields, Unfit, shown
from reporters.remote import identity, signing, this_archive
from reporters.remote.errors import UsageFault
from reporters.remote.identity import ReporterIdentity
from reporters.remote.policy.file import read_policy
from reporters.remote.policy.pseudonyms import told_hostname
from reporters.remote.server import ServerClient, ServerRefused
from reporters.remote.signing.base import MalformedKey, SigningError, SigningMethod
from reporters.remote.state_directory import (
    ASSIGNMENT,
    HIGHEST_ASSIGNMENT,
    IDENTITY,
    PENDING_ASSIGNMENT,
    SITE_POLICY,
    StateDirectory,
    StateError,
)

CODE_CHARACTERS = 20
FINGERPRINT_CHARACTERS = 8  # of the code, at its end
_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
_MAX_CHARACTERS = 4096


@dataclass(frozen=True)
class EnrolmentOptions:
    """*method* is the signing method; empty: the first that works. *is_forced* replaces an enrolment.

    *ca_file* and *proxy* are those of ``ReporterIdentity``.
    """

    method: str = ""
    is_forced: bool = False
    ca_file: str = ""
    proxy: str = ""


def normalise_code(text: str) -> str:
    """Return the code in upper case, without hyphens and spaces.

    Raises:
        UsageFault: *text* is no code: a character is wrong or missing.
    """
    code = "".join(text.upper().replace("-", "").split())
    if len(code) != CODE_CHARACTERS or not set(code) <= _ALPHABET:
        expected = f"a code of {CODE_CHARACTERS} letters and digits from 2 to 7"
        raise UsageFault(f"expected {expected}, got {shown(text)}: copy it again")
    return code


def enrol(
    client: ServerClient, state: StateDirectory, code: str, options: EnrolmentOptions
) -> ReporterIdentity:
    """Make a key, have the server bind it to the reporter of *code*, and keep the result in *state*.

    The key is kept until the code succeeds: a repetition sends the same key, so that a lost answer does no
    harm.

    Raises:
        UsageFault: the code is malformed or refused, or the reporter is enrolled already.
        ServerError: the server gives no answer.
        SigningError: no program of this host can sign.
        StateError: a file cannot be written.
    """
    code = normalise_code(code)
    before = None if state.read(IDENTITY) is None else identity.load(state)
    if before is not None and not options.is_forced:
        raise UsageFault(f"{state.path} is enrolled as {before.reporter} at {before.url}; see --force")
    name, method = (options.method, signing.load(options.method)) if options.method else signing.choose()
    key_file = f"key-{hashlib.sha256(code.encode()).hexdigest()[:16]}-{name}"
    public_key = _public_key(method, state.path / key_file)
    answer = _ask(
        client,
        told_hostname(read_policy(state.path / SITE_POLICY).disclosure, state),
        {
            "code": code,
            "method": name,
            "public_key": public_key,
            "signature": method.sign(state.path / key_file, signing.ENROLMENT, code),
        },
    )
    reporter, server_key, seconds = _read(answer)
    enrolled = ReporterIdentity(
        url=str(client.url),
        reporter=reporter,
        method=name,
        key_file=key_file,
        key_fingerprint=method.fingerprint(public_key),
        server_key=server_key,
        server_fingerprint=_checked_fingerprint(method, server_key, code),
        exchange_seconds=seconds,
        ca_file=options.ca_file,
        proxy=options.proxy,
    )
    _keep(state, before, enrolled)
    return enrolled


def _public_key(method: SigningMethod, key_file: Path) -> str:
    """Return the public key of *key_file*, which is made unless an earlier attempt with the code has."""
    if not key_file.exists():
        method.make_key(key_file)
    try:
        return method.public_key(key_file)
    except SigningError:  # the earlier attempt was killed while it wrote the file
        key_file.unlink()
    method.make_key(key_file)
    return method.public_key(key_file)


def _ask(client: ServerClient, hostname: str, proof: dict[str, str]) -> Fields:
    about = {
        "hostname": hostname,
        "archive_sha256": this_archive.sha256(),
        "python": platform.python_version(),
    }
    body = json.dumps({**proof, **about}).encode()
    try:
        return Fields(client.post("enrol", body, {"Content-Type": "application/json"}).document())
    except ServerRefused as error:
        raise UsageFault(str(error)) from None


def _read(answer: Fields) -> tuple[str, str, float]:
    try:
        return (
            answer.text("reporter", maximum=_MAX_CHARACTERS, empty=False),
            answer.text("server_key", maximum=_MAX_CHARACTERS),
            answer.number("exchange_seconds", minimum=1),
        )
    except Unfit as error:
        raise UsageFault(f"the server's answer is malformed: {error}") from None


def _checked_fingerprint(method: SigningMethod, server_key: str, code: str) -> str:
    """Return the fingerprint of *server_key*. Raises UsageFault unless *code* names this key."""
    try:
        fingerprint = method.fingerprint(server_key)
    except MalformedKey as error:
        raise UsageFault(f"the server sent no key of its own: {error}") from None
    mark = base64.b32encode(bytes.fromhex(fingerprint)).decode()[:FINGERPRINT_CHARACTERS]
    if code[-FINGERPRINT_CHARACTERS:] != mark:
        raise UsageFault(
            "the server's key is not the one that the code names: another server answered, such as a proxy"
            " that opens TLS. Nothing was kept; tell the admin of the server, who revokes the reporter"
        )
    return fingerprint


def _keep(state: StateDirectory, before: ReporterIdentity | None, enrolled: ReporterIdentity) -> None:
    if before is not None and before.server_fingerprint != enrolled.server_fingerprint:
        for name in (ASSIGNMENT, PENDING_ASSIGNMENT, HIGHEST_ASSIGNMENT):  # of the other server
            state.remove(name)
    identity.save(state, enrolled)
    for file in state.path.glob("key-*"):
        if file.name != enrolled.key_file:
            try:
                file.unlink()
            except OSError as error:
                raise StateError(f"cannot remove the former key {file}: {error.strerror}") from None
