"""Scratch directories of runs, ``<scratch>/gridcast-<uid>/<series>/<run>/<resource>``, checks of a resource.

Each operation is one command at the site, and begins with the checks of ``scratch_chain.py``: nothing is
made, executed or removed in a directory that another user could replace. Removals work from inside the
checked directory, with relative paths. Two runs of a series never overlap, so any other run below the series'
directory was left behind by a killed reporter: its jobs are killed or cancelled and its files removed. If a
job cannot be cancelled, its run's directory stays for the next attempt. Resources may share a file system:
the path ends with the resource's name, and the directories of the current run are kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from probes.base import ProbeFailed
from probes.grid import Completed
from reporters import process
from reporters.base import ResourceShell, ResourceUnfit, command_failed
from reporters.error_lines import decisive_line, tail
from reporters.scratch_chain import CHECK, FUNCTIONS, UNSAFE_PREFIX, UNSAFE_STATUS
from reporters.usage import format_bytes

_CHECK_SECONDS = 60.0
_REMOVE_SECONDS = 600.0

# kill_session SIGNAL SESSION: signals every process of a session, in whatever process group (timeout and
# job-control shells create some). Fails if there was no process.
KILL_SESSION = """\
kill_session() {
  kill -s "$1" -- "-$2"; found=$?
  for stat in /proc/[0-9]*/stat; do
    read -r line < "$stat" || continue
    set -- "$1" "$2" ${line##*) }
    [ "$6" = "$2" ] || continue
    pid=${stat#/proc/}
    kill -s "$1" "${pid%/stat}" && found=0
  done 2> /dev/null
  return $found
} 2> /dev/null
"""
# kill_job FILE: kills the session whose number is in FILE, unless the number was reused: the first process of
# a job has the directory above the job's as its working directory.
_KILL_JOB = f"""\
{KILL_SESSION}
kill_job() {{
  read -r session < "$1" || return 0
  case $session in '' | 0 | 1 | *[!0-9]*) return 0 ;; esac
  home=$(cd -P "${{1%/*}}/.." && pwd -P) || return 0
  [ ! -e "/proc/$session" ] || [ "$(readlink "/proc/$session/cwd")" = "$home" ] || return 0
  kill_session KILL "$session"
  return 0
}}
"""
KILL_JOB = f'{_KILL_JOB}\nkill_job "$1"\n'

# cancel_jobs DIRECTORY...: runs all scripts job-*/cancel there, which remove themselves when their job is
# gone. Fails if some remain.
_CANCEL_JOBS = """\
uncancelled() {
  for home; do
    for file in "$home"/job-*/cancel; do
      [ ! -f "$file" ] || echo "$file"
    done
  done
}
cancel_jobs() {
  for home; do
    for file in "$home"/job-*/cancel; do
      [ ! -f "$file" ] || sh "$file" < /dev/null > /dev/null &
    done
  done
  wait
  [ -z "$(uncancelled "$@")" ]
}
"""
# ROOT SERIES RUN RESOURCE: prints the name of the account's directory below ROOT.
_MAKE = f"""\
{FUNCTIONS}
{_KILL_JOB}
{_CANCEL_JOBS}
umask 077
root=$1 series=$2 run=$3 resource=$4
enter "$root" make || exit 1
if enter_below "$series"; then
  set -- "./$run/$resource"
  for old in ./*/*; do
    case $old in "./$run"/*) ;; *) set -- "$@" "$old" ;; esac
  done
  for old; do
    for file in "$old"/job-*/pid; do
      [ ! -f "$file" ] || kill_job "$file"
    done
  done
  cancel_jobs "$@"
  for old in ./*; do
    [ "$old" != "./$run" ] && [ -z "$(uncancelled "$old"/*)" ] || continue
    rm -rf -- "$old" || {{ sleep 0.2; rm -rf -- "$old"; }} || exit 1
  done
  cd "$own" 2> /dev/null
fi
# The cleanup of another series may remove a parent that is still empty, even the account's directory.
attempts=0
until mkdir -p "$series/$run/$resource" 2> /dev/null; do
  attempts=$((attempts + 1))
  [ "$attempts" -lt 20 ] || {{ mkdir -p "$series/$run/$resource" && break; exit 1; }}
  enter "$root" make
done
echo "gridcast-$uid"
"""
_REMOVE = f"""\
{FUNCTIONS}
{_CANCEL_JOBS}
series=$2 run=$3 resource=$4
enter "$1" || exit 0
enter_below "$series" && enter_below "$run" || exit 0
cancel_jobs "./$resource" || exit 1
rm -rf -- "./$resource" 2> /dev/null || {{ sleep 0.2; rm -rf -- "./$resource"; }} || exit 1
cd "$own" && rmdir "$series/$run" "$series" 2> /dev/null
cd "$above" && rmdir "gridcast-$uid" 2> /dev/null
exit 0
"""
_PROBE = f"""\
{CHECK}
[ -d "$1" ] || {{ echo "no such directory" >&2; exit 1; }}
check "$1" || exit {UNSAFE_STATUS}
trial=$(mktemp -d "$1/.gridcast-XXXXXX") && rmdir "$trial" || exit 1
df -Pk "$1"
"""
_MISSING = 'for tool; do command -v "$tool" > /dev/null || echo "$tool"; done'


def make(shell: ResourceShell, root: str, series: str, run: str) -> str:
    """Remove the remains of earlier runs of *series*; create the directory of *run* and return its path.

    *root* is the scratch directory of the resource.

    Raises:
        ResourceUnfit: another user could replace a directory of the path.
        CommandFailed: the directory cannot be made, or remains cannot be removed.
    """
    done = _run(shell, _MAKE, root, [root, series, run, shell.resource], _REMOVE_SECONDS)
    if done.returncode != 0:
        doing = f"cannot make a directory in scratch {root} at {shell.resource}"
        raise command_failed(doing, done, shell.resource)
    return f"{root.rstrip('/')}/{done.stdout.strip()}/{series}/{run}/{shell.resource}"


def remove(shell: ResourceShell, root: str, series: str, run: str) -> None:
    """Remove the directory made by ``make``, and its parent directories below *root* that are then empty.

    Raises:
        ResourceUnfit: another user could replace a directory of the path; nothing was removed.
        CommandFailed: a job cannot be cancelled, or a file cannot be removed.
    """
    done = _run(shell, _REMOVE, root, [root, series, run, shell.resource], _REMOVE_SECONDS)
    if done.returncode != 0:
        doing = f"cannot remove the run's directory from scratch {root} at {shell.resource}"
        raise command_failed(doing, done, shell.resource)


def check_space(shell: ResourceShell, root: str, needed_bytes: int) -> None:
    """Raise ResourceUnfit unless *root* is a safe, writable directory with *needed_bytes* free."""
    done = _run(shell, _PROBE, root, [root], _CHECK_SECONDS)
    if done.returncode != 0:
        reason = decisive_line(done.stderr).rpartition(": ")[2]
        raise _unfit(f"scratch {root} at {shell.resource} is not writable: {reason}", shell, done)
    free_bytes = parse_free_bytes(done.stdout, shell.resource)
    if free_bytes < needed_bytes:
        amounts = f"{format_bytes(free_bytes)} free, needs {format_bytes(needed_bytes)}"
        raise ResourceUnfit(f"scratch {root} at {shell.resource} has {amounts}", resource=shell.resource)


def unsafe_reason(directory: str) -> str:
    """Return why the absolute path *directory* of this host is unsafe as a scratch; empty if it is safe."""
    script = f'{CHECK}\ncheck "$1"'
    try:
        done = process.run(["sh", "-c", script, "sh", directory], timeout_seconds=_CHECK_SECONDS)
    except process.ProcessError as error:
        return f"cannot be checked: {error}"
    return done.stderr.rpartition(UNSAFE_PREFIX)[2].strip() if done.returncode != 0 else ""


def _run(
    shell: ResourceShell, script: str, root: str, words: Sequence[str], timeout_seconds: float
) -> Completed:
    """Run *script* with the arguments *words*. Raises ResourceUnfit if it found *root* to be unsafe."""
    done = shell.run(["sh", "-c", script, "sh", *words], timeout_seconds=timeout_seconds)
    if done.returncode == UNSAFE_STATUS:
        reason = done.stderr.rpartition(UNSAFE_PREFIX)[2].strip()
        raise _unfit(f"scratch {root} at {shell.resource} is unsafe: {reason}", shell, done)
    return done


def _unfit(message: str, shell: ResourceShell, done: Completed) -> ResourceUnfit:
    return ResourceUnfit(
        message, resource=shell.resource, exit_status=done.returncode, stderr_tail=tail(done.stderr)
    )


def check_tools(shell: ResourceShell, tools: Sequence[str]) -> None:
    """Raise ResourceUnfit if *tools* are missing from the PATH; the message names them."""
    listed = shell.check(
        ["sh", "-c", _MISSING, "sh", *tools], timeout_seconds=_CHECK_SECONDS, doing="look for tools"
    )
    missing = listed.split()
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise ResourceUnfit(
            f"{', '.join(missing)} {verb} not installed at {shell.resource}", resource=shell.resource
        )


def parse_free_bytes(text: str, resource: str) -> int:
    """Return the available bytes from the output of ``df -Pk``. Raises ProbeFailed if unreadable."""
    words = text.strip().splitlines()[-1].split() if text.strip() else []
    numbers = [index for index, word in enumerate(words) if word.endswith("%") and index >= 1]
    if not numbers or not words[numbers[0] - 1].lstrip("-").isdigit():
        raise ProbeFailed(f"unreadable output of df at {resource}: {text[-200:]!r}", resource=resource)
    return int(words[numbers[0] - 1]) * 1024
