"""The TLS context of requests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from reporters.https import Unreachable, tls_context
from tests.reporters.needs import needs


def test_a_pipe_in_place_of_authorities_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Unreachable, match=r"cannot use .*/pipe: not a regular file"):
        tls_context(ca_file=str(tmp_path / "pipe"), ca_directory="", certificate_file="")


def test_there_is_no_prompt_for_the_passphrase_of_a_key(tmp_path: Path) -> None:
    needs("openssl")
    file = str(tmp_path / "proxy")
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-subj",
        "/CN=x",
    ]
    secret = ["-passout", "pass:secret", "-keyout", f"{file}.key", "-out", file]
    subprocess.run([*command, *secret], check=True, capture_output=True)
    with Path(file).open("a") as both:
        both.write(Path(f"{file}.key").read_text())
    with pytest.raises(Unreachable, match=r"cannot use .*/proxy: "):
        tls_context(ca_file="", ca_directory="", certificate_file=file)
