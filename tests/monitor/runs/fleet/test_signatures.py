"""Signatures between server and reporters, against the programs ``openssl`` and ``ssh-keygen``."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import pytest
from django.conf import LazySettings
from hypothesis import example, given
from hypothesis import strategies as st

from monitor.runs.fleet import signatures
from monitor.runs.fleet.signatures import (
    METHODS,
    OPENSSL,
    SSH,
    InvalidReporterKey,
    InvalidReporterSignature,
    Purpose,
    parse_key,
    server_fingerprint,
    server_public_key,
    sign,
    verify,
)
from tests.monitor.runs.fleet.site_keys import SiteKey, is_verified, program, site_key, url64

DOCUMENT = '{"a": "é"}\n'.encode()


@pytest.fixture(params=METHODS)
def key(request: pytest.FixtureRequest, tmp_path: Path) -> SiteKey:
    return site_key(tmp_path, request.param)


def test_a_signature_of_the_site_is_verified(key: SiteKey) -> None:
    verify(key.method, key.public, Purpose.TOKEN, DOCUMENT, key.sign(Purpose.TOKEN, DOCUMENT))


def test_a_signature_for_another_purpose_document_or_key_is_refused(key: SiteKey, tmp_path: Path) -> None:
    signature = key.sign(Purpose.TOKEN, DOCUMENT)
    other = site_key(tmp_path, key.method, "other")
    for public, purpose, document in (
        (key.public, Purpose.ENROLMENT, DOCUMENT),
        (key.public, Purpose.TOKEN, DOCUMENT + b" "),
        (other.public, Purpose.TOKEN, DOCUMENT),
    ):
        with pytest.raises(InvalidReporterSignature):
            verify(key.method, public, purpose, document, signature)


def test_a_signature_for_another_program_of_ssh_is_refused(tmp_path: Path) -> None:
    key, message = site_key(tmp_path, SSH), tmp_path / "message"
    message.write_bytes(b"gridcast token 1\n" + DOCUMENT)
    program(["ssh-keygen", "-q", "-Y", "sign", "-f", str(key.file), "-n", "git", str(message)])
    with pytest.raises(InvalidReporterSignature, match="namespace"):
        verify(SSH, key.public, Purpose.TOKEN, DOCUMENT, (tmp_path / "message.sig").read_text())


@pytest.mark.parametrize("method", METHODS)
def test_the_programs_at_the_site_verify_what_the_server_signs(method: str, tmp_path: Path) -> None:
    key = server_public_key(method)
    for _ in range(4):  # the numbers of a signature have leading zeros, or not
        signature = sign(method, Purpose.RECEIPT, DOCUMENT)
        assert is_verified(method, key, Purpose.RECEIPT, DOCUMENT, signature, tmp_path)
    assert not is_verified(method, key, Purpose.ASSIGNMENT, DOCUMENT, signature, tmp_path)
    assert not is_verified(method, key, Purpose.RECEIPT, DOCUMENT + b" ", signature, tmp_path)


def test_the_fingerprint_is_the_hash_of_the_key_in_der(tmp_path: Path) -> None:
    key = site_key(tmp_path, OPENSSL)
    der = program(["openssl", "pkey", "-pubin", "-outform", "DER"], key.public.encode())
    assert parse_key(OPENSSL, key.public).fingerprint == hashlib.sha256(der).hexdigest()


def test_the_server_has_one_key_in_both_methods_which_its_secret_determines(settings: LazySettings) -> None:
    before = server_fingerprint()
    blob = base64.b64decode(server_public_key(SSH).split()[1])
    pem = server_public_key(OPENSSL)
    der = base64.b64decode("".join(pem.splitlines()[1:-1]))
    assert (blob[-65:], hashlib.sha256(der).hexdigest()) == (der[-65:], before)
    settings.SECRET_KEY = "another secret"
    assert server_fingerprint() != before


def test_a_key_is_kept_without_its_comment(tmp_path: Path) -> None:
    key = site_key(tmp_path, SSH)
    assert "<script>" in key.public
    assert "<script>" not in parse_key(SSH, key.public).text


@pytest.mark.parametrize(
    ("method", "make"),
    [
        (OPENSSL, ["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"]),
        (OPENSSL, ["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"]),
        (OPENSSL, ["openssl", "genpkey", "-algorithm", "ED25519"]),
    ],
)
def test_a_key_of_another_kind_is_refused(method: str, make: list[str]) -> None:
    public = program(["openssl", "pkey", "-pubout"], program(make)).decode()
    with pytest.raises(InvalidReporterKey, match="expected a P-256 key in PEM, got a key of another kind"):
        parse_key(method, public)


@pytest.mark.parametrize("text", ["", "x" * 2_000, "ssh-ed25519 AAAA", "-----BEGIN PUBLIC KEY-----", "é\x00"])
@pytest.mark.parametrize("method", METHODS)
def test_text_that_is_no_key_is_refused(method: str, text: str) -> None:
    with pytest.raises(InvalidReporterKey, match="public_key: expected"):
        parse_key(method, text)


def test_an_unknown_method_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidReporterKey, match="expected one of openssl, ssh"):
        parse_key("none", site_key(tmp_path, SSH).public)


@pytest.fixture(scope="module")
def module_keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[SiteKey, str]]:
    directory = tmp_path_factory.mktemp("keys")
    keys = [site_key(directory, method) for method in METHODS]
    return {key.method: (key, key.sign(Purpose.TOKEN, DOCUMENT)) for key in keys}


@given(method=st.sampled_from(METHODS), text=st.text() | st.binary(max_size=200).map(url64))
@example(SSH, "-----BEGIN SSH SIGNATURE-----\n\n-----END SSH SIGNATURE-----")
@example(SSH, "-----BEGIN SSH SIGNATURE-----\nU1NIU0lHAAAAAf////8=\n-----END SSH SIGNATURE-----")
@example(OPENSSL, "MA==")
def test_no_text_is_a_signature(module_keys: dict[str, tuple[SiteKey, str]], method: str, text: str) -> None:
    key, _ = module_keys[method]
    with pytest.raises(InvalidReporterSignature):
        verify(method, key.public, Purpose.TOKEN, DOCUMENT, text)


@given(method=st.sampled_from(METHODS), place=st.integers(0, 60), flip=st.integers(1, 255))
def test_a_changed_signature_is_refused(
    module_keys: dict[str, tuple[SiteKey, str]], method: str, place: int, flip: int
) -> None:
    key, signature = module_keys[method]
    lines = signature.splitlines() if method == SSH else ["", signature, ""]
    raw = bytearray(base64.b64decode("".join(lines[1:-1])))
    raw[-1 - place] ^= flip
    changed = "\n".join([lines[0], base64.b64encode(raw).decode(), lines[-1]]).strip()
    with pytest.raises(InvalidReporterSignature):
        signatures.verify(method, key.public, Purpose.TOKEN, DOCUMENT, changed)
