"""Start programs under a guardian (``guardian.py``) or under a watching thread (``watcher.py``).

Two pipes connect the reporter with a guardian or watcher: one for commands, one for the status. The functions
raise the OSError and ValueError of ``subprocess.Popen``.
"""

from __future__ import annotations

import functools
import marshal
import os
import pkgutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

from reporters.watcher import watch

# The process, the pipe end for the byte that stops it, the pipe end with its status.
Spawned = tuple["subprocess.Popen[bytes]", int, int]


# The guardian waits for its code. At the end of the file the reporter is gone.
_READ_CODE = """\
import marshal, os
code = b""
while len(code) < {size}: code += os.read({end}, {size} - len(code)) or os._exit(1)
exec(marshal.loads(code))
"""


def guarded(
    argv: Sequence[str],
    env: Mapping[str, str] | None,
    cwd: str | None,
    grace_seconds: float,
    adopt: Callable[[int], None] | None = None,
) -> Spawned:
    """Start a guardian that runs *argv*; *grace_seconds* pass between SIGTERM and SIGKILL.

    *adopt* is called with the process id of the guardian, which starts *argv* afterwards.
    """
    command_end, control = os.pipe()
    status_end, status = os.pipe()
    code = _guardian_code()
    read_code = _READ_CODE.format(end=command_end, size=len(code))
    numbers = (str(command_end), str(status), str(os.getpid()), str(grace_seconds))
    try:
        guardian = _popen(
            [sys.executable, "-I", "-S", "-c", read_code, *numbers, *argv], env, cwd, (command_end, status)
        )
        if adopt is not None:
            adopt(guardian.pid)
        os.write(control, code)  # fits into any pipe
    except BaseException:
        _close(control, status_end)
        raise
    finally:
        _close(command_end, status)
    return guardian, control, status_end


def watched(
    argv: Sequence[str], env: Mapping[str, str] | None, cwd: str | None, grace_seconds: float
) -> Spawned:
    """Start *argv* without a guardian; a thread watches the program. *grace_seconds* is as in ``guarded``."""
    command_end, control = os.pipe()
    status_end, status = os.pipe()
    try:
        program = _popen(argv, env, cwd, ())
        try:
            watch(program, command_end, status, grace_seconds)
        except OSError:
            program.kill()
            program.communicate()  # closes its pipes
            raise
    except BaseException:
        _close(command_end, control, status_end, status)
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
    # The code, not the path: the file may lie inside a zip archive. Compiled once, by the same Python.
    text = pkgutil.get_data("reporters", "guardian.py")
    if text is None:
        raise AssertionError("the loader of this package reads no files")
    return marshal.dumps(compile(text, "guardian.py", "exec"))
