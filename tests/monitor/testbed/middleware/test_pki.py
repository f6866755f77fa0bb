"""The throwaway certificate authority of the test-beds."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from monitor.testbed.middleware.pki import Authority
from tests.reporters.needs import needs


def test_certificates_issued_concurrently_have_different_serial_numbers(tmp_path: Path) -> None:
    needs("openssl")
    authority = Authority.create(tmp_path / "authority")
    names = [f"host{number}" for number in range(6)]
    with ThreadPoolExecutor(len(names)) as pool:
        issued = list(pool.map(lambda name: authority.host(name, [name]), names))
    numbers = {
        subprocess.run(
            ["openssl", "x509", "-in", identity.certificate, "-noout", "-serial"],
            capture_output=True,
            check=True,
        ).stdout
        for identity in issued
    }
    assert len(numbers) == len(names)
