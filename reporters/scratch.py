"""Scratch directories of runs, ``<scratch>/gridcast/<series>/<run>/<resource>``, and checks of a resource.

Each operation is one command at the site. Two runs of a series never overlap, so any other run below the
series' directory was left behind by a killed reporter: its jobs are killed or cancelled and its files
removed. If a job cannot be cancelled, its run's directory stays for the next attempt. Resources may share a
file system: the path ends with the resource's name, and the directories of the current run are kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from probes.base import ProbeFailed
from reporters.base import ResourceShell, ResourceUnfit
from reporters.error_lines import decisive_line, tail
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
# gone. Fails if some remain. Runs none below a directory that other users can write.
_CANCEL_JOBS = """\
private() { [ -n "$(find gridcast -prune -type d -user "$(id -u)" ! -perm -020 ! -perm -002)" ]; }
uncancelled() {
  for home; do
    for file in "$home"/job-*/cancel; do
      [ ! -f "$file" ] || echo "$file"
    done
  done
}
cancel_jobs() {
  private 2> /dev/null || return 0
  for home; do
    for file in "$home"/job-*/cancel; do
      [ ! -f "$file" ] || sh "$file" < /dev/null > /dev/null &
    done
  done
  wait
  [ -z "$(uncancelled "$@")" ]
}
"""
_MAKE = f"""\
{_KILL_JOB}
{_CANCEL_JOBS}
umask 077
cd "$1" || exit 1
series="gridcast/$2" run="gridcast/$2/$3" own="gridcast/$2/$3/$4"
set -- "$own"
for old in "$series"/*/*; do
  case $old in "$run"/*) ;; *) set -- "$@" "$old" ;; esac
done
for old; do
  for file in "$old"/job-*/pid; do
    [ ! -f "$file" ] || kill_job "$file"
  done
done
cancel_jobs "$@"
for old in "$series"/*; do
  [ "$old" != "$run" ] || continue
  ! private || [ -z "$(uncancelled "$old"/*)" ] || continue
  rm -rf -- "$old" || {{ sleep 0.2; rm -rf -- "$old"; }} || exit 1
done
# The cleanup of another series may remove a parent that is still empty; then try again.
mkdir -p "$own" 2> /dev/null || mkdir -p "$own" || exit 1
"""
_REMOVE = f"""\
{_CANCEL_JOBS}
cd "$1" || exit 1
own="gridcast/$2/$3/$4"
cancel_jobs "$own" || exit 1
rm -rf -- "$own" 2> /dev/null || {{ sleep 0.2; rm -rf -- "$own"; }} || exit 1
rmdir "gridcast/$2/$3" "gridcast/$2" gridcast 2> /dev/null
exit 0
"""
_PROBE = """\
[ -d "$1" ] || { echo "no such directory" >&2; exit 1; }
trial=$(mktemp -d "$1/.gridcast-XXXXXX") && rmdir "$trial" || exit 1
df -Pk "$1"
"""
_MISSING = 'for tool; do command -v "$tool" > /dev/null || echo "$tool"; done'


def make(shell: ResourceShell, root: str, series: str, run: str) -> str:
    """Remove the remains of earlier runs of *series*; create the directory of *run* and return its path.

    *root* is the scratch directory of the resource.
    """
    shell.check(
        ["sh", "-c", _MAKE, "sh", root, series, run, shell.resource],
        timeout_seconds=_REMOVE_SECONDS,
        doing=f"make a directory in scratch {root}",
    )
    return f"{root.rstrip('/')}/gridcast/{series}/{run}/{shell.resource}"


def remove(shell: ResourceShell, root: str, series: str, run: str) -> None:
    """Remove the directory made by ``make``, and its parent directories below *root* that are then empty."""
    shell.check(
        ["sh", "-c", _REMOVE, "sh", root, series, run, shell.resource],
        timeout_seconds=_REMOVE_SECONDS,
        doing=f"remove the run's directory from scratch {root}",
    )


def check_space(shell: ResourceShell, root: str, needed_bytes: int) -> None:
    """Raise ResourceUnfit unless *root* is a writable directory with *needed_bytes* free."""
    done = shell.run(["sh", "-c", _PROBE, "sh", root], timeout_seconds=_CHECK_SECONDS)
    if done.returncode != 0:
        reason = decisive_line(done.stderr).rpartition(": ")[2]
        raise ResourceUnfit(
            f"scratch {root} at {shell.resource} is not writable: {reason}",
            resource=shell.resource,
            exit_status=done.returncode,
            stderr_tail=tail(done.stderr),
        )
    free_bytes = parse_free_bytes(done.stdout, shell.resource)
    if free_bytes < needed_bytes:
        amounts = f"{format_bytes(free_bytes)} free, needs {format_bytes(needed_bytes)}"
        raise ResourceUnfit(f"scratch {root} at {shell.resource} has {amounts}", resource=shell.resource)


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
