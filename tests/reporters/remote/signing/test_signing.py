"""The contract of every signing method, over the real programs."""

from __future__ import annotations

import hashlib
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from reporters.remote import signing
from reporters.remote.errors import UsageFault
from reporters.remote.signing import base
from reporters.remote.signing.base import InvalidSignature, MalformedKey, SigningMethod, SigningUnavailable
from tests.reporters.needs import needs

ROOT = Path(__file__).resolve().parents[4]
PROGRAMS = {"openssl": "openssl", "ssh": "ssh-keygen"}
TEXT = '{"naïve": "Ω",\n "n": 1}'


@pytest.fixture(params=signing.names())
def method(request: pytest.FixtureRequest) -> SigningMethod:
    needs(PROGRAMS[request.param])
    return signing.load(request.param)


@pytest.fixture
def key(method: SigningMethod, tmp_path: Path) -> Path:
    method.make_key(tmp_path / "key")
    return tmp_path / "key"


def server_key(method: SigningMethod) -> tuple[str, str]:
    """Return a P-256 key as a server sends it to a reporter of *method*, and its fingerprint."""
    key = ec.generate_private_key(ec.SECP256R1()).public_key()
    spki = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    formats = {
        "openssl": (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo),
        "ssh": (serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH),
    }
    text = key.public_bytes(*formats[type(method).__module__.rpartition(".")[2]])
    return text.decode(), hashlib.sha256(spki).hexdigest()


def test_a_signature_is_valid_for_its_key_purpose_and_document_only(
    method: SigningMethod, key: Path, tmp_path: Path
) -> None:
    method.make_key(tmp_path / "other")
    public = method.public_key(key)
    signature = method.sign(key, signing.TOKEN, TEXT)
    method.verify(public, signing.TOKEN, TEXT, signature)
    for public_key, purpose, document in (
        (method.public_key(tmp_path / "other"), signing.TOKEN, TEXT),
        (public, signing.RECEIPT, TEXT),
        (public, signing.TOKEN, f"{TEXT} "),
        (public, signing.TOKEN, TEXT.removeprefix("{")),
    ):
        with pytest.raises(InvalidSignature):
            method.verify(public_key, purpose, document, signature)


@pytest.mark.parametrize("signature", ["", "x", "AAAA", "-----BEGIN SSH SIGNATURE-----\n", "\ud800", "é" * 9])
def test_garbage_is_no_signature(method: SigningMethod, key: Path, signature: str) -> None:
    with pytest.raises(InvalidSignature):
        method.verify(method.public_key(key), signing.TOKEN, TEXT, signature)


def test_a_document_without_a_form_in_utf_8_is_never_valid(method: SigningMethod, key: Path) -> None:
    signature = method.sign(key, signing.TOKEN, "?")
    with pytest.raises(InvalidSignature, match="not UTF-8"):
        method.verify(method.public_key(key), signing.TOKEN, "\ud800", signature)


def test_only_the_owner_can_read_the_private_key(method: SigningMethod, key: Path, tmp_path: Path) -> None:
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["key"]


def test_a_key_is_never_overwritten(method: SigningMethod, key: Path) -> None:
    before = key.read_bytes()
    with pytest.raises(SigningUnavailable, match=f"cannot write the private key to {key}"):
        method.make_key(key)
    assert key.read_bytes() == before


def test_the_fingerprint_is_that_of_the_key_in_der(method: SigningMethod, key: Path) -> None:
    text = method.public_key(key)
    load = serialization.load_pem_public_key if "BEGIN" in text else serialization.load_ssh_public_key
    public = load(text.encode())
    assert isinstance(public, (ec.EllipticCurvePublicKey, ed25519.Ed25519PublicKey))
    spki = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    assert method.fingerprint(text) == hashlib.sha256(spki).hexdigest()


def test_the_server_s_key_has_the_same_fingerprint_in_every_method(method: SigningMethod) -> None:
    text, fingerprint = server_key(method)
    assert method.fingerprint(text) == fingerprint
    assert method.fingerprint(f"{text.strip()}\n") == fingerprint


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ssh-ed25519 AAAA",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5",
        "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQ==",
        'x cert-authority ssh-ed25519 "',
        "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
        "-----BEGIN PUBLIC KEY-----\n????\n-----END PUBLIC KEY-----\n",
    ],
)
def test_a_malformed_key_is_refused(method: SigningMethod, text: str) -> None:
    with pytest.raises(MalformedKey):
        method.fingerprint(text)


def test_two_keys_in_one_text_are_no_key(method: SigningMethod) -> None:
    text, _ = server_key(method)
    with pytest.raises(MalformedKey):
        method.fingerprint(f"{text.strip()}\n{text.strip()}\n")


def test_openssl_is_chosen_where_it_works() -> None:
    needs("openssl")
    name, method = signing.choose()
    assert name == "openssl"
    signing.try_out(method)


def test_ssh_keygen_is_chosen_where_openssl_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("ssh-keygen")
    (tmp_path / "openssl").symlink_to("/bin/false")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert signing.choose()[0] == "ssh"


def test_a_program_that_accepts_everything_is_not_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "openssl"
    answers = 'case "$*" in *-genkey*) echo \'-----BEGIN EC PRIVATE KEY-----\' ;; *-sign*) : > "${6}" ;; esac'
    program.write_text(f"#!/bin/sh\n{answers}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    with pytest.raises(SigningUnavailable, match="it accepts a signature of another text"):
        signing.try_out(signing.load("openssl"))


def test_a_host_without_programs_is_told_both_reasons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        SigningUnavailable, match=r"openssl: cannot run openssl.*; ssh: cannot run ssh-keygen"
    ):
        signing.choose()


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(UsageFault, match="no signing method 'gpg'; known are openssl, ssh"):
        signing.load("gpg")


def test_the_complaint_is_the_last_line_of_a_program() -> None:
    with pytest.raises(SigningUnavailable, match="sh -c echo a; echo b >&2; exit 3 failed with status 3: b"):
        base.check(["sh", "-c", "echo a; echo b >&2; exit 3"])


# A limit of the size of files has the effect of a full disk, also for root.
_ON_A_FULL_DISK = """
import resource, sys
from pathlib import Path
from reporters.remote import signing
from reporters.remote.signing.base import SigningUnavailable
name, key = sys.argv[1], Path(sys.argv[2])
method = signing.load(name)
public = method.public_key(key)
signature = method.sign(key, signing.TOKEN, "text")
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
try:
    method.verify(public, signing.TOKEN, "text", signature)
except SigningUnavailable as error:
    sys.stdout.close()
    sys.exit(7 if "TMPDIR" in str(error) else 8)
"""


@pytest.mark.parametrize("name", signing.names())
def test_a_full_disk_makes_signing_unavailable(name: str, tmp_path: Path) -> None:
    needs(PROGRAMS[name])
    signing.load(name).make_key(tmp_path / "key")
    argv = [sys.executable, "-c", _ON_A_FULL_DISK, name, str(tmp_path / "key")]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 7, done.stderr
