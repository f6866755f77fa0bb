"""Proxy certificates are checked before they are needed: real ones, by openssl."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from monitor.testbed.middleware.gsi import Security
from reporters.base import CredentialUnfit
from reporters.credentials.lifetime import Lifetime
from reporters.credentials.proxy import ProxyCertificate, parse_lifetime, parse_refusal
from tests.reporters.needs import needs
from tests.reporters.run_security import copied_proxy, copied_security


@pytest.fixture(scope="module")
def security() -> Iterator[Security]:
    needs("grid-proxy-init", "openssl")
    with TemporaryDirectory() as directory:
        yield copied_security(Path(directory))


@pytest.fixture
def proxy(security: Security, tmp_path: Path) -> Path:
    """A valid proxy, not shared with other tests."""
    return Path(shutil.copy2(copied_proxy(security), tmp_path))


def refused(file: Path, security: Security, *, trusted: Path | None = None, needed: float = 0) -> str:
    with pytest.raises(CredentialUnfit) as raised:
        checked(file, security, trusted).check(needed_seconds=needed)
    return raised.value.message


def checked(file: Path, security: Security, trusted: Path | None = None) -> ProxyCertificate:
    return ProxyCertificate(str(file), str(trusted or security.authority.trust))


def test_a_valid_proxy_is_accepted_for_its_lifetime(proxy: Path, security: Security) -> None:
    checked(proxy, security).check(needed_seconds=11 * 3600)


def test_a_proxy_that_expires_too_soon_is_refused_with_the_time_left(security: Security) -> None:
    short = security.proxy("short", minutes=4)
    assert refused(short, security, needed=540) == (
        f"proxy {short} expires in 4 min, the run needs about 9 min"
    )


def test_an_expired_proxy_is_refused_with_its_age(security: Security) -> None:
    expired = security.expired_proxy(hours=47)
    assert refused(expired, security) == f"proxy {expired} expired 47 h ago"


def test_a_proxy_from_the_future_is_not_valid_yet(proxy: Path, security: Security) -> None:
    early = ProxyCertificate(str(proxy), str(security.authority.trust), now=lambda: time.time() - 7200)
    with pytest.raises(CredentialUnfit, match=f"proxy {proxy} is not valid yet: valid in"):
        early.check(needed_seconds=0)


def test_a_proxy_that_is_missing_is_named(security: Security) -> None:
    assert refused(Path("/no/such"), security) == "no valid proxy: /no/such: No such file or directory"


def test_a_proxy_that_others_can_read_is_refused(proxy: Path, security: Security) -> None:
    proxy.chmod(0o640)
    assert refused(proxy, security) == (
        f"no valid proxy: {proxy}: accessible to others (mode 640, must be 600)"
    )


def test_a_proxy_of_another_user_is_refused(proxy: Path, security: Security) -> None:
    if os.geteuid() != 0:
        pytest.skip("giving a file away needs root")
    os.chown(proxy, 65534, -1)
    message = refused(proxy, security)
    assert message.startswith(f"no valid proxy: {proxy}: {proxy} has mode -rw-------, owner 65534")


def test_an_unreadable_proxy_is_refused(proxy: Path, security: Security) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    proxy.chmod(0)
    assert refused(proxy, security) == f"no valid proxy: {proxy}: Permission denied"


def test_a_proxy_without_a_key_is_refused(proxy: Path, security: Security) -> None:
    text = proxy.read_text()
    proxy.write_text(re.sub(r"-----BEGIN.*?PRIVATE KEY-----.*?END.*?KEY-----\n", "", text, flags=re.DOTALL))
    assert refused(proxy, security) == f"no valid proxy: {proxy}: holds no private key"


def test_a_proxy_without_a_certificate_is_refused(proxy: Path, security: Security) -> None:
    proxy.write_bytes(security.user.key.read_bytes())
    assert refused(proxy, security) == f"no valid proxy: {proxy}: holds no certificate"


def test_a_proxy_with_an_incomplete_chain_is_refused(proxy: Path, security: Security) -> None:
    user = security.user.certificate.read_text().strip()
    proxy.write_text(proxy.read_text().replace(user, ""))
    assert refused(proxy, security).endswith(": unable to get local issuer certificate")


def test_a_proxy_of_an_unknown_authority_is_refused(proxy: Path, security: Security, tmp_path: Path) -> None:
    assert refused(proxy, security, trusted=tmp_path) == (
        f"no valid proxy: {proxy}: not trusted with the authorities in {tmp_path}: "
        "unable to get local issuer certificate"
    )


def test_a_missing_directory_of_authorities_is_an_error(proxy: Path, security: Security) -> None:
    assert refused(proxy, security, trusted=Path("/no/such")) == (
        "no trusted authorities: /no/such is not a directory"
    )


def test_the_default_paths_are_those_of_globus() -> None:
    usual = ProxyCertificate.of({}, {})
    assert usual.file == f"/tmp/x509up_u{os.getuid()}"
    assert usual.ca_directory in (
        str(Path.home() / ".globus" / "certificates"),
        "/etc/grid-security/certificates",
    )
    environment = {"X509_USER_PROXY": "/a", "X509_CERT_DIR": "/b"}
    assert ProxyCertificate.of({}, environment).environment == environment
    options = {"proxy_file": "/c", "ca_directory": "/d"}
    named = {"X509_USER_PROXY": "/c", "X509_CERT_DIR": "/d"}
    assert ProxyCertificate.of(options, environment).environment == named


def test_a_chain_expires_with_its_first_certificate() -> None:
    text = """\
            Not Before: Nov 21 13:06:45 2026 GMT
            Not After : Nov 22 01:11:45 2026 GMT
            Not Before: Nov 21 13:11:44 2026 GMT
            Not After : Nov 23 13:11:44 2026 GMT
"""
    assert parse_lifetime(text) == Lifetime(begins=1795266704.0, ends=1795309905.0)
    assert parse_lifetime("Total found: 0\n") is None


def test_the_reason_of_openssl_is_that_of_the_certificate_next_to_the_root() -> None:
    text = (
        "O = Grid\nerror 79 at 1 depth lookup: invalid CA certificate\nO = G\nerror 26 at 0 depth lookup: x\n"
    )
    assert parse_refusal(text) == "invalid CA certificate"
    assert parse_refusal("") == ""
