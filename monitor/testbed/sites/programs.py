"""Wrapper scripts that slow down and break a site's programs; they precede the real programs on the PATH.

Each script reads the weather of its session from the environment (``effects.session_environment``) and runs
the real program by its absolute path. A script that no session has started, as in a run of a reporter at the
site, reads the current weather of the site from a file. ``pace`` extends a program to its drawn time: the
real work and a sleep start together, and the script ends after both.
"""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

from monitor.testbed.errors import MissingProgram
from monitor.testbed.sites.cron import CRONTAB_PROGRAM
from monitor.testbed.sites.files import write_atomically
from monitor.testbed.sites.layout import Layout, SiteLayout

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
COMPILERS = frozenset({"cc", "c89", "c99", "gcc", "clang", "tcc"})
BATCH_LAUNCHER = "batch-start"
LAUNCHER_MECHANISMS = ("queue", "compute")  # implemented by the batch launcher only

RUN_VARIABLE = "SITE_RUN"  # has the label of the run that a session belongs to, in its processes

_PACE = """\
#!/bin/sh
[ "$LC_GRIDCAST_RUN" = "$SITE_RUN" ] || [ ! -r {weather} ] || . {weather}
paced() { [ -z "$SITE_PACED" ] || echo "$1" > "$SITE_PACED"; } # MECHANISM
pace() { # MECHANISM SECONDS PROGRAM [ARGUMENT...]
    paced "$1"
    pace_seconds=$2; shift 2
    sleep "${pace_seconds:-0}" </dev/null >/dev/null 2>&1 &
    "$@"
    pace_status=$?
    wait
    return $pace_status
}
"""

# The search for the smallest block of direct I/O, with a dd for each size, is no work of the disk.
_DD = """\
case " $* " in *' oflag=direct '*) exec {real} "$@" ;; esac
of=
for word; do case $word in of=*) of=${word#of=} ;; esac; done
case $SITE_DISK_FAULT in
full)
    [ -z "$of" ] || {real} if=/dev/zero "of=$of" bs=4096 count=16 status=none || exit 1
    echo "dd: error writing '${of:-standard output}': No space left on device" >&2
    exit 1 ;;
unwritable)
    echo "dd: failed to open '${of:-standard output}': Permission denied" >&2
    exit 1 ;;
esac
pace disk "$SITE_DISK_SECONDS" {real} "$@"
"""

# "busy": rm empties the directory and fails to remove it, as it does with a mount point.
# Only the removal of directories is slow: jobs remove single files during their work.
_RM = """\
last=
for word; do last=$word; done
[ -d "$last" ] || exec {real} "$@"
if [ "$SITE_UNLINK_FAULT" = busy ]; then
    find "$last" -mindepth 1 -delete
    echo "rm: cannot remove '$last': Device or resource busy" >&2
    exit 1
fi
pace unlink "$SITE_UNLINK_SECONDS" {real} "$@"
"""

# At the source of an application the built program generates the data: it is slow instead of the compiler.
# The kernel of the disk probe, which is built as ``disk``, meets the weather of the disk, as dd does.
_CC = """\
case $SITE_COMPILE_FAULT in
crash)
    echo "cc: internal compiler error: Segmentation fault signal terminated program cc1" >&2
    echo "Please submit a full bug report, with preprocessed source (by using -freport-bug)." >&2
    exit 4 ;;
missing) # a session has no cc at all
    echo "cc: not found" >&2
    exit 127 ;;
esac
built= last=
for word; do
    [ "$last" != -o ] || built=$word
    last=$word
done
wrapper=
[ "${built##*/}" != disk ] || wrapper=use-disk
if [ -n "$SITE_MAKES_DATA" ]; then
    wrapper=make-data
    {real} "$@" || exit
else
    pace compile "$SITE_COMPILE_SECONDS" {real} "$@" || exit
fi
[ -n "$wrapper" ] || exit 0
mv "$built" "$built.real" && cat > "$built" <<END && chmod 755 "$built"
#!/bin/sh
exec $wrapper "\\$0.real" "\\$@"
END
"""

_USE_DISK = """\
[ "$2" = write ] || exec "$@"
case $SITE_DISK_FAULT in
full) echo "disk: cannot write $3: No space left on device" >&2; exit 1 ;;
unwritable) echo "disk: cannot open $3: Permission denied" >&2; exit 1 ;;
esac
pace disk "$SITE_DISK_SECONDS" "$@"
"""

_MAKE_DATA = """\
case $SITE_DISK_FAULT in
full) echo "$1: write error: No space left on device" >&2; exit 1 ;;
unwritable) echo "$1: cannot open the output: Permission denied" >&2; exit 1 ;;
esac
pace disk "$SITE_DISK_SECONDS" "$@"
"""

_BATCH = """\
case $SITE_QUEUE_FAULT in
rejected)
    echo "batch-start: error: Batch job submission failed: Requested partition is not accepting jobs" >&2
    exit 1 ;;
stuck)
    exec sleep 2147483647 ;;
esac
paced queue
sleep "${SITE_QUEUE_SECONDS:-0}"
case $SITE_COMPUTE_FAULT in
killed)
    paced compute
    "$@" &
    job=$!
    sleep 1 & # the job needs time to start
    started=$!
    sleep "${SITE_COMPUTE_SECONDS:-0}"
    wait "$started"
    kill -KILL "$job" 2>/dev/null
    kill -KILL $$ ;;
exit)
    pace compute "$SITE_COMPUTE_SECONDS" "$@"
    echo "batch-start: error: job step aborted: the node failed its health check" >&2
    exit 3 ;;
esac
pace compute "$SITE_COMPUTE_SECONDS" "$@"
"""

_CLIENT = """\
exec {real} -F {config} "$@"
"""


def prepare_programs(layout: Layout) -> None:
    """Write the scripts of every site. Raises MissingProgram if the OpenSSH client is not installed."""
    for site in layout.sites:
        site.bin.mkdir(exist_ok=True)
        site.compiler_bin.mkdir(exist_ok=True)
        for client in ("ssh", "scp"):
            _write(
                site.bin / client,
                _CLIENT.format(real=_real(client), config=shlex.quote(str(site.ssh_config))),
            )
        pace = _PACE.replace("{weather}", shlex.quote(str(site.weather)))
        for name, script in (("dd", _DD), ("rm", _RM)):
            _write(site.bin / name, pace + script.replace("{real}", _real(name)))
        _write(site.bin / "crontab", CRONTAB_PROGRAM.format(table=shlex.quote(str(site.crontab))))
        for name, script in ((BATCH_LAUNCHER, _BATCH), ("make-data", _MAKE_DATA), ("use-disk", _USE_DISK)):
            _write(site.bin / name, pace + script)
        _prepare_compiler(site, pace)


def _prepare_compiler(site: SiteLayout, pace: str) -> None:
    wrapper = site.compiler_bin / "cc"
    real = shutil.which("cc", path=SYSTEM_PATH)
    if real is None:  # a wrapper alone would pass the probes' check for tools
        wrapper.unlink(missing_ok=True)
    else:
        _write(wrapper, pace + _CC.replace("{real}", real))


def _real(program: str) -> str:
    path = shutil.which(program, path=SYSTEM_PATH)
    if path is None:
        raise MissingProgram(f"the local grid needs the program {program!r}, which is not on {SYSTEM_PATH}")
    return path


def _write(path: Path, script: str) -> None:
    if not script.startswith("#!"):
        script = "#!/bin/sh\n" + script
    write_atomically(path, script, mode=0o755)


def search_path(layout: Layout, site: SiteLayout, *, with_compiler: bool) -> str:
    """Return the PATH of a session, with or without compilers."""
    if with_compiler:
        return f"{site.bin}:{site.compiler_bin}:{SYSTEM_PATH}"
    return f"{site.bin}:{_tools_without_compilers(layout.tools)}"


def _tools_without_compilers(tools: Path) -> Path:
    """Return the directory *tools*; if it is missing, create it with links to all programs but compilers."""
    if not tools.exists():
        building = tools.with_name(".tools")
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir()
        for directory in map(Path, SYSTEM_PATH.split(":")):
            _link_programs(directory, building)
        building.rename(tools)
    return tools


def _link_programs(directory: Path, target: Path) -> None:
    for program in directory.iterdir() if directory.is_dir() else ():
        link = target / program.name
        if program.name not in COMPILERS and not link.is_symlink():
            link.symlink_to(program)
