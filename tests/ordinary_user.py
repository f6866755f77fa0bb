"""Start programs as the user ``nobody``, in tests that root runs."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

NOBODY = 65534
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="requires root")


def python_for_nobody() -> str:
    """Return an interpreter of this version that ``NOBODY`` can run, or skip: homes may be closed."""
    for candidate in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        argv = [candidate, "-c", "import json"]
        with contextlib.suppress(OSError):
            if subprocess.run(argv, user=NOBODY, cwd="/", capture_output=True, check=False).returncode == 0:
                return candidate
    pytest.skip("no Python that an ordinary user can execute")


def environment_for_nobody(home: Path = Path("/nonexistent")) -> dict[str, str]:
    """Return the environment in which that interpreter has our packages."""
    return {"HOME": str(home), "PATH": os.defpath, "PYTHONPATH": sysconfig.get_path("purelib")}
