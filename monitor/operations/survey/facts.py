"""Facts about one host: its Python, its scratch directory, its compiler, its tools and its batch system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reporters import site_tools
from reporters.base import ResourceShell
from reporters.error_lines import decisive_line
from reporters.scratch_chain import CHECK

_ASK_SECONDS = 60.0
_PREFIX = "fact"
_MAX_DIGITS = 18
# Prints lines "fact NAME VALUE"; the arguments are tools to look for. Scratch is the first writable directory
# that sites usually offer for it, or the home directory; not one that another user could replace.
_SCRIPT = rf"""
{CHECK}
say() {{ printf 'fact %s %s\n' "$1" "$2"; }}
say system "$(uname -sr)"
say cores "$(getconf _NPROCESSORS_ONLN 2> /dev/null)"
for python in python3 python3.13 python3.12 python3.11 python3.10 python3.9; do
  version=$("$python" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2> /dev/null) || continue
  say python "$version"
  break
done
for directory in "$SCRATCH" "$WORK" "/scratch/$(id -un)" "/work/$(id -un)" "$HOME"; do
  case $directory in /*) ;; *) continue ;; esac
  [ -d "$directory" ] && [ -w "$directory" ] && check "$directory" 2> /dev/null || continue
  say scratch "$directory"
  say free_kibibytes "$(df -Pk "$directory" 2> /dev/null | awk 'NR == 2 {{ print $4 }}')"
  break
done
has() {{ command -v "$1" > /dev/null 2>&1; }}
for tool; do
  has "$tool" && say tool "$tool"
done
answers() {{ has "$1" && timeout 10 "$@" > /dev/null 2>&1; }}
if has sbatch && answers sinfo; then
  say batch slurm
  sinfo -h -o '%P' 2> /dev/null | while read -r partition; do say partition "$partition"; done
elif has condor_submit && answers condor_q; then
  say batch htcondor
elif has qsub && answers qconf -sql; then
  say batch gridengine
elif has qsub && answers qstat -B; then
  say batch pbs
fi
"""


class NoShell(Exception):
    """A login succeeds, but the host does not run commands."""


@dataclass(frozen=True)
class HostFacts:
    """Facts about a host, collected in one login. *scratch* is empty without a safe, writable directory."""

    system: str
    cores: int
    python: str  # version of Python 3; empty without one
    scratch: str
    free_bytes: int
    tools: frozenset[str]
    batch_kind: str  # of a batch system whose server answers; "fork" without one
    partitions: tuple[str, ...]  # of Slurm; the default one first

    @property
    def missing_tools(self) -> list[str]:
        return [tool for tool in site_tools.NEEDED if tool not in self.tools]

    @property
    def copy_tools(self) -> list[str]:
        return [tool for tool in site_tools.COPIERS if tool in self.tools]

    @property
    def has_compiler(self) -> bool:
        return "cc" in self.tools

    @property
    def batch(self) -> Mapping[str, str]:
        """Return the batch system and its default queue as in a grid file."""
        queue = {"queue": self.partitions[0]} if self.partitions else {}
        return {"kind": self.batch_kind, **queue}


def ask(shell: ResourceShell) -> HostFacts:
    """Collect the facts of the host of the connected *shell*.

    Raises:
        NoShell: the host does not run commands, as with a forced command.
        ProbeFailed: the connection was lost, or the host does not answer.
    """
    tools = ("cc", *site_tools.NEEDED, *site_tools.COPIERS)
    done = shell.run(["sh", "-c", _SCRIPT, "sh", *tools], timeout_seconds=_ASK_SECONDS)
    facts = parse(done.stdout)
    if not facts.system:
        said = decisive_line(done.stderr) or decisive_line(done.stdout) or "nothing"
        raise NoShell(f"it runs no commands for us: it answers {said!r}")
    return facts


def parse(text: str) -> HostFacts:
    """Parse the output of ``_SCRIPT``; ignore lines without its prefix, such as those of start-up files."""
    values: dict[str, list[str]] = {}
    for line in text.splitlines():
        prefix, _, rest = line.partition(" ")
        name, _, value = rest.partition(" ")
        text = printable(value).strip()
        if prefix == _PREFIX and text:
            values.setdefault(name, []).append(text)
    partitions = sorted(values.get("partition", []), key=lambda name: not name.endswith("*"))
    return HostFacts(
        system=_first(values, "system"),
        cores=_number(values, "cores"),
        python=_first(values, "python"),
        scratch=_first(values, "scratch"),
        free_bytes=_number(values, "free_kibibytes") * 1024,
        tools=frozenset(values.get("tool", [])),
        batch_kind=_first(values, "batch") or "fork",
        partitions=tuple(name.removesuffix("*") for name in partitions),
    )


def _first(values: Mapping[str, list[str]], name: str) -> str:
    return values.get(name, [""])[0]


def _number(values: Mapping[str, list[str]], name: str) -> int:
    text = _first(values, name)
    return int(text) if text.isdecimal() and len(text) <= _MAX_DIGITS else 0


def printable(text: str) -> str:
    """Return *text* with a question mark for each character that could control a terminal or break a file."""
    return "".join(character if character.isprintable() else "?" for character in text)
