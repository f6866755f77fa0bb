"""Grid security of a test-bed: an authority, a user mapped to the current account, and proxies."""

from __future__ import annotations

import os
import pwd
import secrets
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from monitor.testbed.errors import TestbedError
from monitor.testbed.middleware.pki import Authority, Certificate
from monitor.testbed.middleware.programs import locate

_USER = "Prober"
_PROXY_CERT_INFO = x509.ObjectIdentifier("1.3.6.1.5.5.7.1.14")
# The DER of a ProxyCertInfo with the policy language id-ppl-inheritAll (1.3.6.1.5.5.7.21.1).
_INHERIT_ALL = bytes.fromhex("300c300a06082b06010505071501")


@dataclass(frozen=True)
class Security:
    """The authority, the user and the grid-mapfile of a test-bed, all in one directory."""

    directory: Path

    @property
    def authority(self) -> Authority:
        return Authority(self.directory / "authority")

    @property
    def user(self) -> Certificate:
        return self.authority.certificate_of(_USER)

    @property
    def gridmap(self) -> Path:
        return self.directory / "grid-mapfile"

    @classmethod
    def create(cls, directory: Path) -> Security:
        """Create an authority and a user who is mapped to the current account.

        Raises:
            TestbedError, MissingProgram: openssl fails or is missing.
        """
        directory.mkdir(parents=True, exist_ok=True)
        user = Authority.create(directory / "authority").user(_USER)
        security = cls(directory)
        security.gridmap.write_text(f'"{user.subject}" {_account()}\n', encoding="utf-8")
        return security

    def proxy(self, name: str = "proxy", *, minutes: int = 12 * 60, bits: int = 2048) -> Path:
        """Create a proxy of the user that expires in *minutes*, with a key of *bits*.

        Raises:
            TestbedError, MissingProgram: grid-proxy-init fails or is missing.
        """
        file = self.directory / name
        argv = [locate("grid-proxy-init"), "-q", "-certdir", str(self.authority.trust)]
        argv += ["-cert", str(self.user.certificate), "-key", str(self.user.key)]
        argv += ["-valid", f"{minutes // 60}:{minutes % 60:02}", "-bits", str(bits), "-out", str(file)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise TestbedError(
                f"grid-proxy-init failed to create {file}: {(done.stderr or done.stdout).strip()}"
            )
        return file

    def expired_proxy(self, name: str = "expired", *, hours: int = 47) -> Path:
        """Create a proxy of the user that was valid for an hour and expired *hours* ago.

        ``grid-proxy-init`` makes only proxies that are valid now.
        """
        file = self.directory / name
        file.touch(mode=0o600)
        ended = datetime.now(UTC) - timedelta(hours=hours)
        file.write_bytes(_proxy_of(self.user, ended - timedelta(hours=1), ended))
        return file

    def environment(self, identity: Certificate) -> dict[str, str]:
        """Return the environment of a server with the certificate *identity*."""
        # Certificate and key in one file as X509_USER_PROXY: it precedes X509_USER_CERT and a proxy in /tmp,
        # which the current user may have.
        both = Path(f"{identity.certificate}.both")
        both.touch(mode=0o600)
        both.write_bytes(identity.certificate.read_bytes() + identity.key.read_bytes())
        return {
            "X509_CERT_DIR": str(self.authority.trust),
            "X509_USER_PROXY": str(both),
            "GRIDMAP": str(self.gridmap),
        }


def _account() -> str:
    return pwd.getpwuid(os.geteuid()).pw_name


def _proxy_of(user: Certificate, begins_at: datetime, ends_at: datetime) -> bytes:
    """Return an RFC 3820 proxy in PEM: its certificate, its key, and the certificate of *user*."""
    certificate = x509.load_pem_x509_certificate(user.certificate.read_bytes())
    user_key = serialization.load_pem_private_key(user.key.read_bytes(), None)
    key = rsa.generate_private_key(65537, 2048)
    serial = secrets.randbits(31)
    common_name = x509.RelativeDistinguishedName([x509.NameAttribute(NameOID.COMMON_NAME, str(serial))])
    proxy = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([*certificate.subject.rdns, common_name]))
        .issuer_name(certificate.subject)
        .serial_number(serial)
        .public_key(key.public_key())
        .not_valid_before(begins_at)
        .not_valid_after(ends_at)
        .add_extension(x509.UnrecognizedExtension(_PROXY_CERT_INFO, _INHERIT_ALL), critical=True)
        .sign(cast("rsa.RSAPrivateKey", user_key), hashes.SHA256())
    )
    key_text = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    return proxy.public_bytes(serialization.Encoding.PEM) + key_text + user.certificate.read_bytes()
