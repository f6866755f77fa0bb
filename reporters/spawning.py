"""Starting programs: behind a guardian (``guardian.py``), or watched by a thread of ours (``watcher.py``).

Either way what is told and said about a program goes over two pipes of ours. Raises OSError and ValueError as
``subprocess.Popen`` does.
"""

from __future__ import annotations

import functools
import marshal
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import resources

from reporters.watcher import watch

# What was started, the end to tell it to stop by a byte, the end to read what became of it from.
Spawned = tuple["subprocess.Popen[bytes]", int, int]


def guarded(
    argv: Sequence[str], env: Mapping[str, str] | None, cwd: str | None, grace_seconds: float
) -> Spawned:
    """Start a guardian for *argv*."""
    told, control = os.pipe()
    status_end, status = os.pipe()
    code = _guardian_code()
    read_code = f"import marshal, os; exec(marshal.loads(os.read({told}, {len(code)})))"
    numbers = (str(told), str(status), str(os.getpid()), str(grace_seconds))
    try:
        os.write(control, code)  # less than any pipe holds
        guardian = _popen(
            [sys.executable, "-I", "-S", "-c", read_code, *numbers, *argv], env, cwd, (told, status)
        )
    except BaseException:
        _close(control, status_end)
        raise
    finally:
        _close(told, status)
    return guardian, control, status_end


def watched(
    argv: Sequence[str], env: Mapping[str, str] | None, cwd: str | None, grace_seconds: float
) -> Spawned:
    """Start *argv* itself."""
    told, control = os.pipe()
    status_end, status = os.pipe()
    try:
        program = _popen(argv, env, cwd, ())
        try:
            watch(program, told, status, grace_seconds)
        except OSError:
            program.kill()
            program.communicate()  # what it has said is of no use, but its pipes are to be closed
            raise
    except BaseException:
        _close(told, control, status_end, status)
        raise
    return program, control, status_end


def _popen(
    argv: Sequence[str], env: Mapping[str, str] | None, cwd: str | None, passed_on: tuple[int, ...]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        env=env,
        cwd=cwd,
        pass_fds=passed_on,
        start_new_session=True,
    )


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


@functools.lru_cache(maxsize=1)
def _guardian_code() -> bytes:
    # Its code, not its path: this file may lie inside a zip archive. Compiled once, by the same Python.
    text = resources.files("reporters").joinpath("guardian.py").read_bytes()
    return marshal.dumps(compile(text, "guardian.py", "exec"))
