"""A throwaway certificate authority for Globus, XRootD and HTTPS servers and their users.

Certificates are X.509 as in the Grid Security Infrastructure (RFC 3820 for proxies), made by ``openssl``.
A trust directory holds the authority's certificate under its hash, with a signing policy beside it.
"""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from monitor.testbed.errors import TestbedError
from monitor.testbed.middleware.programs import locate

ORGANISATION = "/O=Grid/OU=gridcast"
_VALID_DAYS = "30"  # test-beds may run for days
_SERIAL_BITS = 120  # at most 159
_SIGNING_POLICY = """\
access_id_CA X509 '{subject}'
pos_rights globus CA:sign
cond_subjects globus '"{organisation}/*"'
"""


@dataclass(frozen=True)
class Certificate:
    """A certificate with its key. *subject* is its distinguished name, e.g. "/O=Grid/CN=localhost"."""

    subject: str
    certificate: Path
    key: Path


@dataclass(frozen=True)
class Authority:
    """A certificate authority in its own directory; *trust* is the X509_CERT_DIR of programs that trust it.

    All hosts share one key: generating a key takes a tenth of a second of CPU time.
    """

    directory: Path

    @property
    def identity(self) -> Certificate:
        subject = f"{ORGANISATION}/CN=throw-away CA"
        return Certificate(subject, self.directory / "ca.pem", self.directory / "ca.key")

    @property
    def host_key(self) -> Path:
        return self.directory / "hosts.key"

    @property
    def trust(self) -> Path:
        return self.directory / "trust"

    @classmethod
    def create(cls, directory: Path) -> Authority:
        """Create an authority, valid as long as its certificates.

        Raises:
            TestbedError, MissingProgram: openssl fails or is missing.
        """
        directory.mkdir(parents=True)
        authority = cls(directory)
        identity = authority.identity
        _generate_key(identity.key)
        argv = ["req", "-x509", "-new", "-key", str(identity.key), "-out", str(identity.certificate)]
        _openssl(*argv, "-days", _VALID_DAYS, "-subj", identity.subject)
        _generate_key(authority.host_key)
        authority._create_trust_directory()
        return authority

    def host(self, name: str, names: Sequence[str]) -> Certificate:
        """Issue a certificate to the host *name*, with the alternative *names* (DNS names, IP addresses)."""
        kinds = ("IP" if each.replace(".", "").isdigit() or ":" in each else "DNS" for each in names)
        alternatives = ",".join(f"{kind}:{each}" for kind, each in zip(kinds, names, strict=True))
        certificate = self.directory / f"{_file_name(name)}.pem"
        identity = Certificate(f"{ORGANISATION}/CN={name}", certificate, self.host_key)
        return self._issue(identity, f"subjectAltName={alternatives}\n")

    def user(self, name: str) -> Certificate:
        """Issue a certificate, with its own key, to the person *name*."""
        identity = self.certificate_of(name)
        _generate_key(identity.key)
        return self._issue(identity, "keyUsage=critical,digitalSignature,keyEncipherment\n")

    def certificate_of(self, name: str) -> Certificate:
        """Return the certificate that has been issued to the person *name*."""
        key = self.directory / f"{_file_name(name)}.key"
        return Certificate(f"{ORGANISATION}/CN={name}", key.with_suffix(".pem"), key)

    def _issue(self, identity: Certificate, extensions: str) -> Certificate:
        request, extended = (Path(f"{identity.certificate}.{suffix}") for suffix in ("csr", "ext"))
        extended.write_text(extensions, encoding="utf-8")
        _openssl("req", "-new", "-key", str(identity.key), "-subj", identity.subject, "-out", str(request))
        signing = ["-CA", str(self.identity.certificate), "-CAkey", str(self.identity.key)]
        # A random serial number: concurrent requests would corrupt a file with the next number.
        signing += ["-set_serial", str(secrets.randbits(_SERIAL_BITS) + 1)]
        issued = ["-in", str(request), "-out", str(identity.certificate), "-extfile", str(extended)]
        _openssl("x509", "-req", *signing, *issued, "-days", _VALID_DAYS)
        return identity

    def _create_trust_directory(self) -> None:
        self.trust.mkdir()
        certificate = self.identity.certificate
        digest = _openssl("x509", "-in", str(certificate), "-noout", "-hash").strip()
        (self.trust / f"{digest}.0").write_bytes(certificate.read_bytes())
        policy = _SIGNING_POLICY.format(subject=self.identity.subject, organisation=ORGANISATION)
        (self.trust / f"{digest}.signing_policy").write_text(policy, encoding="utf-8")


def _file_name(name: str) -> str:
    return name.replace(" ", "-")


def _generate_key(file: Path) -> None:
    _openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", str(file))
    file.chmod(0o600)


def _openssl(*arguments: str) -> str:
    done = subprocess.run([locate("openssl"), *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise TestbedError(f"openssl {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout
