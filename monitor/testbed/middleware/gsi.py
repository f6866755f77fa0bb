"""Grid security of a test-bed: an authority, a user mapped to the current account, and proxies."""

from __future__ import annotations

import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path

from monitor.testbed.errors import TestbedError
from monitor.testbed.middleware.pki import Authority, Certificate
from monitor.testbed.middleware.programs import locate

_USER = "Prober"


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
        """Create a proxy of the user that expires in *minutes*, with a key of *bits*."""
        return self._proxy(name, minutes, [], bits)

    def expired_proxy(self, name: str = "expired", *, hours: int = 47) -> Path:
        """Create a proxy of the user that expired *hours* ago."""
        return self._proxy(name, 60, [locate("faketime"), "-f", f"-{hours + 1}h"])

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

    def _proxy(self, name: str, minutes: int, launcher: list[str], bits: int = 2048) -> Path:
        file = self.directory / name
        valid = f"{minutes // 60}:{minutes % 60:02}"
        credential = ["-cert", str(self.user.certificate), "-key", str(self.user.key)]
        trusting = ["-certdir", str(self.authority.trust)]
        argv = [
            *launcher,
            locate("grid-proxy-init"),
            "-q",
            *credential,
            *trusting,
            "-valid",
            valid,
            "-bits",
            str(bits),
            "-out",
            str(file),
        ]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise TestbedError(
                f"grid-proxy-init failed to create {file}: {(done.stderr or done.stdout).strip()}"
            )
        return file


def _account() -> str:
    return pwd.getpwuid(os.geteuid()).pw_name
