"""Scratch directories of runs: ``<scratch>/gridcast/<series>/<run>/<resource>``, and checks of a resource.

Each is one command at the site. Two runs of one series never overlap, so that whatever else lies below the
series' directory was left behind by a reporter that was killed: its jobs are killed or cancelled, its files
removed. Where a job cannot be cancelled now, its run's directory stays for the next time. Two resources may
share a file system: a run's own directories are left alone.

The last component is the resource's name, so that two resources with one file system do not collide.
"""

from __future__ import annotations

from collections.abc import Sequence

from probes.base import ProbeFailed
from reporters.base import ResourceShell, ResourceUnfit
from reporters.error_lines import decisive_line, tail
from reporters.usage import format_bytes

_CHECK_SECONDS = 60.0
_REMOVE_SECONDS = 600.0

# kill_session SIGNAL SESSION: to every process of a session, whatever process groups it has made (timeout and
# job-control shells make some); whether there was any.
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
# kill_job FILE: kills the session whose number is in FILE, unless the number has another owner by now. The
# first process of a job works in the directory above the job's.
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
# gone; whether all are. None is run below a directory where somebody else may have put it.
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
# Another series' cleanup may remove a parent that is still empty: then once more.
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
    """Make the directory of *run* below *root*, rid of what an earlier run of *series* left; its path."""
    shell.check(
        ["sh", "-c", _MAKE, "sh", root, series, run, shell.resource],
        timeout_seconds=_REMOVE_SECONDS,
        doing=f"make a directory in scratch {root}",
    )
    return f"{root.rstrip('/')}/gridcast/{series}/{run}/{shell.resource}"


def remove(shell: ResourceShell, root: str, series: str, run: str) -> None:
    """Remove what ``make`` made, and the directories above it up to *root* that are empty now."""
    shell.check(
        ["sh", "-c", _REMOVE, "sh", root, series, run, shell.resource],
        timeout_seconds=_REMOVE_SECONDS,
        doing=f"remove the run's directory from scratch {root}",
    )


def check_space(shell: ResourceShell, root: str, needed_bytes: int) -> None:
    """Raise ResourceUnfit unless *root* is a directory that can be written and has *needed_bytes* free."""
    done = shell.run(["sh", "-c", _PROBE, "sh", root], timeout_seconds=_CHECK_SECONDS)
    if done.returncode != 0:
        why = decisive_line(done.stderr).rpartition(": ")[2]
        raise ResourceUnfit(
            f"scratch {root} at {shell.resource} is not writable: {why}",
            resource=shell.resource,
            exit_status=done.returncode,
            stderr_tail=tail(done.stderr),
        )
    free_bytes = parse_free_bytes(done.stdout, shell.resource)
    if free_bytes < needed_bytes:
        amounts = f"{format_bytes(free_bytes)} free, needs {format_bytes(needed_bytes)}"
        raise ResourceUnfit(f"scratch {root} at {shell.resource} has {amounts}", resource=shell.resource)


def check_tools(shell: ResourceShell, tools: Sequence[str]) -> None:
    """Raise ResourceUnfit naming the *tools* that are not on the PATH."""
    listed = shell.check(
        ["sh", "-c", _MISSING, "sh", *tools], timeout_seconds=_CHECK_SECONDS, doing="look for tools"
    )
    missing = listed.split()
    if missing:
        are = "is" if len(missing) == 1 else "are"
        raise ResourceUnfit(
            f"{', '.join(missing)} {are} not installed at {shell.resource}", resource=shell.resource
        )


def parse_free_bytes(text: str, resource: str) -> int:
    """The bytes that ``df -Pk`` says are available. Raises ProbeFailed for anything else."""
    words = text.strip().splitlines()[-1].split() if text.strip() else []
    numbers = [index for index, word in enumerate(words) if word.endswith("%") and index >= 1]
    if not numbers or not words[numbers[0] - 1].lstrip("-").isdigit():
        raise ProbeFailed(f"unreadable output of df at {resource}: {text[-200:]!r}", resource=resource)
    return int(words[numbers[0] - 1]) * 1024
