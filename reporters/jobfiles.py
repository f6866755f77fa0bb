"""A queued job's directory ``job-*`` at the site: what is in it, and the scripts that write and read it.

``script`` is what the batch system runs; ``cancel`` cancels the job by its name, whoever runs it, and removes
itself when the job is gone: so a job is found again whose reporter was killed, or whose number never arrived.
``started`` is the job's first breath and ``ended`` its last, in seconds since the epoch at the site, the
latter with the exit status. ``stdout`` and ``stderr`` are the program's, ``batch`` is what the batch system
writes beside them. A job that finds ``cancelled``, or no directory, does not begin.

The program runs in a session of its own. A guard in another one kills that session when the script is gone,
be it by SIGKILL: batch systems that follow a session or a process group would lose it from sight.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from reporters.scratch import KILL_SESSION

NOW = "now() { date +%s.%N; }"
_GUARD = f"""{KILL_SESSION}
trap '' HUP INT TERM
read -r session
read -r _
[ -n "$session" ] && kill_session KILL "$session"
"""
_SCRIPT = """\
#!/bin/sh
: "${{PATH:=/usr/local/bin:/usr/bin:/bin}}"
LC_GRIDCAST_RUN={label}
export PATH LC_GRIDCAST_RUN
job={job}
cd {directory} && [ -d "$job" ] || exit 1
[ ! -e "$job/cancelled" ] || {{ echo "cancelled before it began" >&2; exit 1; }}
[ ! -e "$job/started" ] || {{ echo "started for a second time" >&2; exit 1; }}
umask 077
{functions}
say() {{ echo "$2" > "$job/$1.part" && mv "$job/$1.part" "$job/$1"; }}
mkfifo "$job/alive" && exec 5<> "$job/alive" 6< "$job/alive" && rm "$job/alive" || exit 1
setsid sh -c {guard} <&6 > /dev/null 2>&1 5>&- 6<&- &
exec 6<&-
say started "$(now)"
setsid timeout -k 2 {wall_seconds:g} {program} < /dev/null > "$job/stdout" 2> "$job/stderr" 5>&- &
session=$!
echo "$session" >&5
{{ wait "$session"; }} 2> /dev/null  # a shell tells of signals there
status=$?
now=$(now)
kill_session KILL "$session"
say ended "$now $status"
exit "$status"
"""
# A job that has ended by itself is about to go. One that the batch system has just heard of may be listed
# only in a moment, so that what is there is told to go again and again.
_CANCEL = """\
name={name}
listed() {{
{listing}
}}
remove() {{
{removing}
}}
cd "$(dirname "$0")" || exit 1
: > cancelled
if read -r pid < submitter && [ "$(readlink "/proc/$pid/cwd")" = "$(cd -P .. && pwd -P)" ]; then
  kill -s KILL "$pid"
fi 2> /dev/null
until=$(($(date +%s) + {patience_seconds})) round=0 ids=
[ ! -e ended ] || round=-10
while [ "$(date +%s)" -lt "$until" ]; do
  if ids=$(listed); then
    [ -n "$ids" ] || {{ rm -f cancel; exit 0; }}
    [ "$round" -lt 0 ] || [ "$((round % 5))" -ne 0 ] || remove $ids > /dev/null
  fi
  sleep 0.2
  round=$((round + 1))
done
echo "cannot cancel the job $name${{ids:+: it is still listed}}" >&2
exit 1
"""
_PATIENCE_SECONDS = 20
CANCEL_SECONDS = _PATIENCE_SECONDS + 40.0  # until everybody has given up
RUN_CANCEL = '[ ! -e "$1" ] || exec sh "$1"'

# DIRECTORY JOB CANCEL COMMAND..., the script in its stdin: hands a job in. Prints when, then what COMMAND
# prints. The process is COMMAND's in the end.
SUBMIT = f"""{NOW}
umask 077
cd "$1" && mkdir "$2" && printf %s "$3" > "$2/cancel" && cat > "$2/script" || exit 1
echo "$$" > "$2/submitter" || exit 1
shift 3
echo "submitted $(now)"
exec "$@" < /dev/null
"""
# JOB EVENT ROUNDS PAUSE: waits for a file for so many pauses. Prints the stamps that are there, an empty
# line, and what the batch system says, which is asked for behind this unless the job has said all.
WATCH = """\
rounds=$3
until [ -s "$1/$2" ] || [ -s "$1/ended" ] || [ "$rounds" -le 0 ]; do
  sleep "$4"
  rounds=$((rounds - 1))
done
ls "$1" > /dev/null 2>&1  # lets a network file system look again
for event in started ended; do
  [ ! -s "$1/$event" ] || echo "$event $(cat "$1/$event")"
done
echo
[ "$2" != ended ] || [ ! -s "$1/ended" ] || exit 0
"""
STDERR = 'file=$1/stderr; [ -s "$file" ] || file=$1/batch; exec tail -c 4000 "$file"'

_STAMP = re.compile(r"^(?P<event>started|ended) (?P<at>\d+(\.\d+)?)\D*?( (?P<status>\d+))?$", re.MULTILINE)
_SUBMITTED = re.compile(r"^submitted (\d+(?:\.\d+)?).*\n", re.MULTILINE)


@dataclass(frozen=True)
class Breath:
    """What a job has said itself; times in seconds since the epoch, by the clock where it ran."""

    started: float | None = None
    ended: float | None = None
    status: int | None = None


def parse_breath(text: str) -> Breath:
    """Parse the stamps that ``WATCH`` prints. Where ``date`` knows whole seconds only, so do they."""
    found = {stamp["event"]: stamp for stamp in _STAMP.finditer(text)}
    times = {event: float(stamp["at"]) for event, stamp in found.items()}
    status = found["ended"]["status"] if "ended" in found else None
    return Breath(times.get("started"), times.get("ended"), int(status) if status else None)


def parse_submitted(text: str) -> tuple[float | None, str]:
    """When the job was handed in, and what the batch system's command printed; None if it was not run."""
    found = _SUBMITTED.match(text)
    return (float(found[1]), text[found.end() :]) if found else (None, text)


def script(argv: Sequence[str], *, directory: str, job: str, label: str, wall_seconds: float) -> str:
    """What the batch system is to run."""
    return _SCRIPT.format(
        label=shlex.quote(label),
        directory=shlex.quote(directory),
        job=shlex.quote(job),
        functions=f"{NOW}\n{KILL_SESSION}",
        guard=shlex.quote(_GUARD),
        wall_seconds=wall_seconds,
        program=shlex.join(argv),
    )


def cancel_script(name: str, listing: str, removing: str) -> str:
    """What cancels the jobs called *name*; *listing* prints their numbers, *removing* takes them as "$@"."""
    return _CANCEL.format(
        name=shlex.quote(name), listing=listing, removing=removing, patience_seconds=_PATIENCE_SECONDS
    )
