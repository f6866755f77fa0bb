"""Real crontab, at and cron of the machine, with tables of their own: in a mount namespace of each call."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from monitor.testbed.middleware.programs import locate
from tests.reporters.needs import needs

SPOOL = Path("/var/spool/cron")
_WRAPPER = """\
#!/bin/sh
exec unshare {options} -- sh -c '
mount --bind {spool} /var/spool/cron && mount --bind {run} /run && exec {program} "$@"' sh "$@"
"""


def install_cron_programs(directory: Path, *programs: str) -> Path:
    """Install *programs*, which use tables in *directory*; return the directory to be put on the PATH.

    Skips the test if a program is missing or cannot be run so.
    """
    needs("unshare", *programs)
    is_root = os.geteuid() == 0
    if not is_root and set(programs) - {"crontab"}:
        pytest.skip(f"{', '.join(programs)}: only root can run them with tables of their own")
    options = "--mount" if is_root else "--mount --map-root-user"
    if subprocess.run(["unshare", *options.split(), "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine allows no mount namespaces")
    spool, run, path = directory / "spool", directory / "run", directory / "path"
    for made in (spool, run, path):
        made.mkdir(parents=True)
    _copy_empty_tables(spool)
    for program in programs:
        wrapper = path / program
        wrapper.write_text(_WRAPPER.format(options=options, spool=spool, run=run, program=locate(program)))
        wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    return path


def _copy_empty_tables(spool: Path) -> None:
    for original in SPOOL.iterdir():
        made = spool / original.name
        made.mkdir()
        status = original.stat()
        if os.geteuid() == 0:
            os.chown(made, status.st_uid, status.st_gid)
            made.chmod(stat.S_IMODE(status.st_mode))
    sequence = SPOOL / "atjobs" / ".SEQ"
    if os.geteuid() == 0 and sequence.exists():
        shutil.copy2(sequence, spool / "atjobs" / ".SEQ")
        shutil.chown(spool / "atjobs" / ".SEQ", "daemon", "daemon")
