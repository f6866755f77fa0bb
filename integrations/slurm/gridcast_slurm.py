#!/usr/bin/env python3
"""gridcast for Slurm: rank partitions for job_submit.lua, submit to the best cluster, tell how jobs ended.

Needs the file or package ``gridcast_client``, and Python 3.9. None of its commands keeps a job from being
submitted or from ending: where gridcast does not answer, Slurm works as without it. See README.md.
"""

from __future__ import annotations

import argparse
import configparser
import itertools
import os
import re
import subprocess
import sys
import syslog
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from gridcast_client import Client, GridcastError, InvalidInput, Ranked

CONFIGURATION = "/etc/gridcast/slurm.ini"
RANKING = "/run/gridcast/ranking"
OWN_SECTION = "gridcast"
SUBMIT_SECONDS = 3.0  # that a user waits for a ranking
EPILOG_SECONDS = 10.0
TRIES = 2  # a ranking is renewed every minute, an outcome waits in the spool
COMPLETING_SECONDS = 600.0  # a job is completing until the epilogs of its nodes have ended
_PAUSES_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0, 15.0)
# By state of the job. A job in another state says nothing about where it ran.
_OUTCOMES = {
    "COMPLETED": "passed",
    **dict.fromkeys(("BOOT_FAIL", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "TIMEOUT"), "failed"),
}
_CHOSEN = re.compile(r"(--partition|--clusters|--cluster)(=.*)?|-[pM].*")
_FORECAST = re.compile(r"gridcast:forecast=(\d+)")
_FIELD = re.compile(r"(?:^| )([A-Za-z]+(?:[/:][A-Za-z]+)*)=")


class StillCompleting(Exception):
    """Slurm does not show yet how the job ended."""


@dataclass(frozen=True)
class Configuration:
    """What the file says.

    *places* has, by application, the series that runs at each partition, or ``cluster/partition``.
    """

    url: str
    token_file: str
    spool: str
    ranking: Path
    places: Mapping[str, Mapping[str, str]]

    @classmethod
    def read(cls, file: Path) -> Configuration:
        """Read *file*. Raises InvalidInput: it cannot be read, or says nothing about gridcast."""
        parser = configparser.ConfigParser(interpolation=None, delimiters=("=",), strict=True)
        parser.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
        try:
            parser.read_string(file.read_text(encoding="utf-8"))
            own = parser[OWN_SECTION]
        except (OSError, UnicodeDecodeError, configparser.Error) as error:
            raise InvalidInput(f"cannot read {file}: {getattr(error, 'strerror', None) or error}") from None
        except KeyError:
            raise InvalidInput(f"{file}: expected a section [{OWN_SECTION}]") from None
        return cls(
            url=own.get("url", ""),
            token_file=own.get("token_file", ""),
            spool=own.get("spool", ""),
            ranking=Path(own.get("ranking", RANKING)),
            places={name: dict(parser[name]) for name in parser.sections() if name != OWN_SECTION},
        )

    def client(self, timeout_seconds: float) -> Client:
        return Client(
            self.url or None,
            token_file=self.token_file or None,
            spool=self.spool or None,
            timeout_seconds=timeout_seconds,
            tries=TRIES,
            user_agent="gridcast-slurm/1.0",
        )


def ranked(client: Client, places: Mapping[str, str]) -> list[tuple[str, Ranked]]:
    """Return the *places* with a forecast, the best first. Raises GridcastError: there is no answer."""
    best = {each.series: each for each in client.rank(sorted(set(places.values()))).ranked}
    known = [(place, best[series]) for place, series in places.items() if series in best]
    return sorted(known, key=lambda pair: pair[1].rank)


def refresh(configuration: Configuration, now: float) -> None:
    """Write the ranking of every application for job_submit.lua.

    Raises:
        GridcastError: there is no ranking, or it cannot be written; the file stays as it is.
    """
    client = configuration.client(EPILOG_SECONDS)
    lines = [f"{now:.0f}"]
    for application, places in configuration.places.items():
        local = {place: series for place, series in places.items() if "/" not in place}
        for partition, each in ranked(client, local) if local else ():
            lines.append(f"{application}\t{partition}\t{each.forecast}\t{each.seconds:.1f}")
    temporary = configuration.ranking.with_name(f"{configuration.ranking.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text("\n".join([*lines, ""]), encoding="utf-8")
        temporary.replace(configuration.ranking)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise InvalidInput(f"cannot write {configuration.ranking}: {error.strerror}") from None


def placed(argv: Sequence[str], place: str, application: str) -> list[str]:
    """Return the arguments of sbatch for *place*, with the comment for job_submit.lua."""
    cluster, _, partition = place.rpartition("/")
    options = [f"--clusters={cluster}"] if cluster else []
    has_comment = any(word.startswith("--comment") for word in argv)
    comment = [] if has_comment else [f"--comment=gridcast:{application}"]
    return [*options, f"--partition={partition}", *comment, *argv]


def chosen(file: Path, application: str, argv: Sequence[str]) -> list[str]:
    """Return the arguments of sbatch for the best place of *application*; *argv* as it is, if there is none.

    The number of the forecast is in the environment of the job, ``GRIDCAST_FORECAST``.
    """
    if any(_CHOSEN.fullmatch(word) for word in argv):
        return list(argv)
    try:
        configuration = Configuration.read(file)
        places = configuration.places.get(application)
        if places is None:
            known = ", ".join(configuration.places) or "none"
            raise InvalidInput(f"{file} has no application {application!r}, but {known}")
        best = ranked(configuration.client(SUBMIT_SECONDS), places)
    except GridcastError as error:
        print(f"gridcast: {error}; submitting without it", file=sys.stderr)
        return list(argv)
    if not best:
        print("gridcast: no place has a forecast; submitting without it", file=sys.stderr)
        return list(argv)
    place, each = best[0]
    print(f"gridcast: {place}, ends within {each.seconds:.1f} s (forecast {each.forecast})", file=sys.stderr)
    os.environ["GRIDCAST_FORECAST"] = str(each.forecast)
    return placed(argv, place, application)


@dataclass(frozen=True)
class EndedJob:
    forecast: int
    job: str
    outcome: str
    submitted_at: datetime
    ended_at: datetime


def ended_job(shown: str, job: str) -> EndedJob | None:
    """Return what ``scontrol show job --oneliner`` has *shown* of *job*, with times in seconds since 1970.

    None of a job without a forecast, and of one that neither passed nor failed by itself: a user cancelled
    it, or it waits again.

    Raises:
        StillCompleting: Slurm does not show yet how it ended.
    """
    for line in shown.splitlines():
        fields = _fields(line)
        forecast = _FORECAST.fullmatch(fields.get("AdminComment", "").strip())
        if fields.get("JobId") != job or forecast is None:
            continue
        if fields["JobState"] == "COMPLETING":
            raise StillCompleting
        outcome = _OUTCOMES.get(fields["JobState"])
        if outcome is None:
            return None
        return EndedJob(
            forecast=int(forecast[1]),
            job=f"slurm-{job}",
            outcome=outcome,
            submitted_at=datetime.fromtimestamp(int(fields["SubmitTime"]), timezone.utc),
            ended_at=datetime.fromtimestamp(int(fields["EndTime"]), timezone.utc),
        )
    return None


def _fields(line: str) -> dict[str, str]:
    """Return the fields of a line of ``NAME=VALUE``; a value may have blanks."""
    marks = list(_FIELD.finditer(line))
    ends = [mark.start() for mark in marks[1:]] + [len(line)]
    return {mark[1]: line[mark.end() : end] for mark, end in zip(marks, ends)}


def tell(configuration: Configuration, job: str) -> None:
    """Tell how *job* ended; the outcome waits in the spool if gridcast does not answer.

    Slurm shows how a job ended when its epilogs have ended: this does not run in one, but beside it.

    Raises:
        GridcastError: Slurm does not show how the job ended, or the outcome cannot be stored.
    """
    until = time.monotonic() + COMPLETING_SECONDS
    for pause_seconds in itertools.chain(_PAUSES_SECONDS, itertools.repeat(_PAUSES_SECONDS[-1])):
        try:
            ended = ended_job(_shown(job), job)
            break
        except StillCompleting:
            if time.monotonic() > until:
                raise InvalidInput(
                    f"the job {job} was still completing after {COMPLETING_SECONDS:g} s"
                ) from None
            time.sleep(pause_seconds)
        except (KeyError, ValueError) as error:
            raise InvalidInput(f"cannot read what Slurm shows of the job {job}: {error}") from None
    if ended is not None:
        configuration.client(EPILOG_SECONDS).tell_later(
            ended.forecast, ended.job, ended.outcome, started_at=ended.submitted_at, ended_at=ended.ended_at
        )


def _shown(job: str) -> str:
    show = ["scontrol", "show", "job", "--oneliner", job]
    environment = {**os.environ, "SLURM_TIME_FORMAT": "%s"}
    try:
        done = subprocess.run(
            show, capture_output=True, text=True, check=True, timeout=EPILOG_SECONDS, env=environment
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise InvalidInput(f"{' '.join(show)} failed: {error}") from None
    return done.stdout


def tell_detached(configuration: Path, job: str) -> None:
    """Start ``tell`` in a session of its own. Slurm kills the process group of an epilog that has ended."""
    argv = [sys.executable, __file__, "--configuration", str(configuration), "tell", job]
    null = subprocess.DEVNULL
    subprocess.Popen(argv, start_new_session=True, stdin=null, stdout=null, stderr=null)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gridcast_slurm.py", description=__doc__)
    configuration = os.environ.get("GRIDCAST_SLURM_INI", CONFIGURATION)
    parser.add_argument("--configuration", type=Path, default=Path(configuration), metavar="FILE")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("refresh", help="write the ranking for job_submit.lua; run it every minute")
    commands.add_parser("epilog", help="tell how the job SLURM_JOB_ID ended; for EpilogSlurmctld")
    tell_job = commands.add_parser("tell", help="tell how a job ended, as soon as Slurm shows it")
    tell_job.add_argument("job", help="the number of the job")
    sbatch = commands.add_parser("sbatch", help="submit a job to the best partition or cluster")
    sbatch.add_argument("application")
    sbatch.add_argument("argv", nargs=argparse.REMAINDER, metavar="...", help="the arguments of sbatch")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    try:
        if arguments.command == "sbatch":
            words = chosen(arguments.configuration, arguments.application, arguments.argv)
            os.execvp("sbatch", ["sbatch", *words])  # noqa: S606  # the caller gets its output and exit status
        configuration = Configuration.read(arguments.configuration)
        if arguments.command == "refresh":
            refresh(configuration, time.time())
        elif arguments.command == "epilog":
            tell_detached(arguments.configuration, _job_of_epilog())
        else:
            tell(configuration, arguments.job)
    except OSError as error:
        return _failed(f"cannot run {arguments.command}: {error.strerror}")
    except GridcastError as error:
        return _failed(str(error))
    return 0


def _job_of_epilog() -> str:
    job = os.environ.get("SLURM_JOB_ID")
    if not job:
        raise InvalidInput("SLURM_JOB_ID is not set: epilog is for EpilogSlurmctld in slurm.conf")
    return job


def _failed(problem: str) -> int:
    """Report *problem* also to the log of the system: slurmctld throws the output of an epilog away."""
    print(f"gridcast: {problem}", file=sys.stderr)
    syslog.openlog("gridcast-slurm")
    syslog.syslog(syslog.LOG_ERR, problem)
    return 1


if __name__ == "__main__":
    sys.exit(main())
