"""gridcast in a real Slurm: partitions are chosen by rank, and the outcomes of jobs are told."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pytest_django.live_server_helper import LiveServer

import gridcast_slurm
from gridcast_client import Client, GridcastError, InvalidInput
from gridcast_slurm import Configuration, EndedJob, StillCompleting, chosen, ended_job, placed, refresh
from monitor.models import Outcome
from monitor.testbed.middleware import slurm
from tests.client.grid_rows import define_rings, new_token
from tests.reporters.clusters import SLURM_PROGRAMS
from tests.reporters.needs import needs
from tests.waiting import eventually

SCRIPT = Path(gridcast_slurm.__file__)
NOWHERE = "http://127.0.0.1:9"  # the port of discard, which nothing serves
PYTHON = f"{SCRIPT.parent}:{SCRIPT.parents[2] / 'client'}"


@dataclass(frozen=True)
class Site:
    """A cluster with the plug-in and the epilog of the integration; *root* has its files."""

    root: Path
    cluster: slurm.SlurmCluster

    @property
    def ranking(self) -> Path:
        return self.root / "ranking"

    def configure(self, url: str, token: str = "secret") -> None:
        token_file = self.root / "token"
        token_file.touch(mode=0o600)
        token_file.write_text(token)
        lines = [
            f"url = {url}",
            f"token_file = {token_file}",
            f"spool = {self.root}/spool",
            f"ranking = {self.ranking}",
        ]
        places = ["[circle]", "short = slow", "long = quick", "far/away = new"]
        (self.root / "slurm.ini").write_text("\n".join(["[gridcast]", *lines, *places, ""]))

    def command(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the integration as a user or a timer does."""
        command = [sys.executable, str(SCRIPT), "--configuration", str(self.root / "slurm.ini"), *argv]
        env = {**os.environ, "PYTHONPATH": PYTHON, "PATH": f"{self.cluster.programs}:{os.environ['PATH']}"}
        return subprocess.run(command, env=env, cwd=self.root, capture_output=True, text=True, check=False)

    def rank(self, *lines: str, age_seconds: float = 0.0) -> None:
        self.ranking.write_text("\n".join([f"{time.time() - age_seconds:.0f}", *lines, ""]))

    def submit(self, *argv: str, script: str = "true") -> tuple[dict[str, str], str]:
        """Return the fields of a new job, and what sbatch said to its user."""
        command = [str(self.cluster.programs / "sbatch"), "--output=/dev/null", *argv, f"--wrap={script}"]
        done = subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=True)
        return self.job(done.stdout.split()[-1]), done.stderr

    def job(self, number: str) -> dict[str, str]:
        (line,) = self.cluster.run("scontrol", "show", "job", "--oneliner", number).splitlines()
        return {name: value.strip() for name, value in gridcast_slurm._fields(line).items()}

    def has_ended(self, number: str) -> bool:
        return self.job(number)["JobState"] not in {"PENDING", "RUNNING", "COMPLETING"}


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    needs(*SLURM_PROGRAMS)
    root = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))
    directory = root / "cluster"
    directory.mkdir()
    plug_in = (SCRIPT.parent / "job_submit.lua").read_text()
    (directory / "job_submit.lua").write_text(plug_in.replace("/run/gridcast/ranking", str(root / "ranking")))
    epilog = root / "epilog"
    epilog.write_text(
        f"#!/bin/sh\nexport PYTHONPATH={PYTHON} PATH={directory}/bin:{os.environ['PATH']}\n"
        f"exec {sys.executable} {SCRIPT} --configuration {root}/slurm.ini epilog\n"
    )
    epilog.chmod(0o755)
    options = slurm.SlurmOptions(lines=["JobSubmitPlugins=lua", f"EpilogSlurmctld={epilog}"])
    try:
        with slurm.cluster(directory, options) as cluster:
            yield Site(root, cluster)
    finally:
        shutil.rmtree(root)


@pytest.mark.django_db(transaction=True)
def test_jobs_go_to_the_best_partition_and_their_outcomes_come_back(
    site: Site, live_server: LiveServer
) -> None:
    define_rings()
    site.configure(live_server.url, new_token())
    refreshed = site.command("refresh")
    assert refreshed.returncode == 0, refreshed.stderr
    assert [line.split("\t")[:2] for line in site.ranking.read_text().splitlines()[1:]] == [
        ["circle", "long"],
        ["circle", "short"],
    ]
    passing, said = site.submit("--comment=gridcast:circle")
    assert passing["Partition"] == "long"
    assert passing["AdminComment"].startswith("gridcast:forecast=")
    assert f"gridcast: partition long, ends within 19.0 s (forecast {passing['AdminComment'][18:]})" in said
    failing, _ = site.submit("--comment=gridcast:circle", script="exit 3")
    cancelled, _ = site.submit("--comment=gridcast:circle", "--hold")
    site.cluster.run("scancel", cancelled["JobId"])
    assert eventually(lambda: Outcome.objects.count() == 2)
    assert set(Outcome.objects.values_list("job", "passed", "forecast")) == {
        (f"slurm-{passing['JobId']}", True, int(passing["AdminComment"][18:])),
        (f"slurm-{failing['JobId']}", False, int(failing["AdminComment"][18:])),
    }
    submitted = site.command("sbatch", "circle", "--output=/dev/null", "--wrap=env | grep GRIDCAST_FORECAST")
    assert "Submitted batch job" in submitted.stdout, submitted.stderr
    assert "gridcast: long, ends within 19.0 s (forecast " in submitted.stderr
    assert site.job(submitted.stdout.split()[-1])["Partition"] == "long"
    assert eventually(lambda: Outcome.objects.count() == 3)


def test_the_outcome_of_a_job_waits_in_the_spool_while_gridcast_is_away(site: Site) -> None:
    site.configure(NOWHERE)
    site.rank("circle\tlong\t4711\t12.5")
    job, _ = site.submit("--comment=gridcast:circle")
    spool = site.root / "spool"
    assert eventually(lambda: [*spool.glob("*.outcome")])
    (file,) = spool.glob("*.outcome")
    assert f'"job":"slurm-{job["JobId"]}","outcome":"passed"' in file.read_text()
    assert eventually(lambda: site.has_ended(job["JobId"]))
    shutil.rmtree(spool)


def test_a_partition_that_the_user_names_is_kept_with_its_forecast(site: Site) -> None:
    site.rank("circle\tlong\t4711\t12.5", "circle\tshort\t4712\t20.0")
    job, said = site.submit("--comment=gridcast:circle", "--partition=short", "--hold")
    assert (job["Partition"], job["AdminComment"]) == ("short", "gridcast:forecast=4712")
    assert "partition short, ends within 20.0 s (forecast 4712)" in said


@pytest.mark.parametrize("state", ["DOWN", "DRAIN"])
def test_a_partition_that_is_down_is_passed_over(site: Site, state: str) -> None:
    site.rank("circle\tlong\t4711\t12.5", "circle\tshort\t4712\t20.0")
    site.cluster.run("scontrol", "update", "PartitionName=long", f"State={state}")
    try:
        assert site.submit("--comment=gridcast:circle", "--hold")[0]["Partition"] == "short"
    finally:
        site.cluster.run("scontrol", "update", "PartitionName=long", "State=UP")


@pytest.mark.parametrize("comment", ["gridcast:other", "gridcast:", "gridcast:circle; rm", "mine"])
def test_other_jobs_are_submitted_as_they_are(site: Site, comment: str) -> None:
    site.rank("circle\tlong\t4711\t12.5")
    job, said = site.submit(f"--comment={comment}", "--hold")
    assert (job["Partition"], "AdminComment" in job, said) == ("short", False, "")


def test_without_a_usable_ranking_jobs_are_submitted_as_they_are(site: Site) -> None:
    site.ranking.unlink(missing_ok=True)
    unusable = ["none", "an old one", "no time", "malformed lines", "a directory"]
    for name in unusable:
        if name == "an old one":
            site.rank("circle\tlong\t4711\t12.5", age_seconds=1000)
        elif name == "no time":
            site.ranking.write_text("circle\tlong\t4711\t12.5\n")
        elif name == "malformed lines":
            site.rank("circle\tlong", "circle\tlong\tx\ty", "circle\tnosuch\t1\t1.0", "\0\t\t\t")
        elif name == "a directory":
            site.ranking.unlink()
            site.ranking.mkdir()
        job, _ = site.submit("--comment=gridcast:circle", "--hold")
        assert (job["Partition"], "AdminComment" in job) == ("short", False), name
    site.ranking.rmdir()


def test_a_job_is_submitted_where_gridcast_does_not_answer(site: Site) -> None:
    site.configure(NOWHERE)
    done = site.command("sbatch", "circle", "--output=/dev/null", "--hold", "--wrap=true")
    assert (done.returncode, "Submitted batch job" in done.stdout) == (0, True)
    assert "no answer from 127.0.0.1:9" in done.stderr
    assert "submitting without it" in done.stderr


def test_a_refusal_of_slurm_is_the_result_of_the_command(site: Site) -> None:
    refused = site.command("sbatch", "circle", "--partition=nosuch", "--wrap=true")
    assert (refused.returncode, "invalid partition" in refused.stderr) == (1, True)


# Functions without Slurm


def configured(directory: Path, text: str) -> Path:
    file = directory / "slurm.ini"
    file.write_text(f"[gridcast]\nranking = {directory}/ranking\n{text}", encoding="latin-1")
    return file


def test_a_ranking_stays_while_gridcast_does_not_answer(tmp_path: Path) -> None:
    file = configured(tmp_path, f"url = {NOWHERE}\n[circle]\nlong = quick\n")
    (tmp_path / "ranking").write_text("1\ncircle\tlong\t4711\t12.5\n")
    with pytest.raises(GridcastError, match=r"no answer from 127.0.0.1:9"):
        refresh(Configuration.read(file), time.time())
    assert (tmp_path / "ranking").read_text() == "1\ncircle\tlong\t4711\t12.5\n"
    assert {path.name for path in tmp_path.iterdir()} == {"slurm.ini", "ranking"}


@pytest.mark.parametrize(
    "argv", [["--partition=a"], ["-pa"], ["-p", "a"], ["-Mncsa"], ["--clusters", "ncsa"]]
)
def test_what_the_user_chose_stays(tmp_path: Path, argv: list[str]) -> None:
    assert chosen(tmp_path / "missing", "circle", [*argv, "job.sh"]) == [*argv, "job.sh"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("url = nowhere\n[circle]\na = b\n", "expected a URL"),
        ("[other]\na = b\n", "no application 'circle', but other"),
    ],
)
def test_a_configuration_that_is_unusable_keeps_no_job_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    assert chosen(configured(tmp_path, text), "circle", ["job.sh"]) == ["job.sh"]
    assert said in capsys.readouterr().err


LINE = (
    "JobId=81 JobName=wrap UserId=ada(1000) GroupId=ada(1000) JobState={state} Reason=None Dependency=(null)"
    " ExitCode=0:0 SubmitTime=1795653612 StartTime=1795653613 EndTime=1795653614 CPUs/Task=1"
    " ReqB:S:C:T=0:0:*:* WorkDir=/home/ada/a b AdminComment={comment}  Comment=gridcast:forecast=1 "
)
MINE = "gridcast:forecast=4711"


@pytest.mark.parametrize(
    ("state", "outcome"),
    [("COMPLETED", "passed"), ("FAILED", "failed"), ("TIMEOUT", "failed"), ("NODE_FAIL", "failed")],
)
def test_the_end_of_a_job_is_read_from_what_slurm_shows(state: str, outcome: str) -> None:
    ended = ended_job(LINE.format(state=state, comment=MINE), "81")
    assert isinstance(ended, EndedJob)
    assert (ended.forecast, ended.job, ended.outcome) == (4711, "slurm-81", outcome)
    assert (ended.ended_at - ended.submitted_at).total_seconds() == 2


@pytest.mark.parametrize(
    ("state", "comment", "job"),
    [
        ("CANCELLED", MINE, "81"),
        ("PENDING", MINE, "81"),
        ("COMPLETED", "", "81"),
        ("COMPLETED", "other", "81"),
        ("COMPLETED", MINE, "8"),
    ],
)
def test_other_jobs_have_no_outcome(state: str, comment: str, job: str) -> None:
    assert ended_job(LINE.format(state=state, comment=comment), job) is None


def test_an_epilog_outside_of_slurm_is_refused(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": PYTHON, "GRIDCAST_SLURM_INI": str(configured(tmp_path, ""))}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "epilog"], env=env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "SLURM_JOB_ID is not set" in done.stderr) == (1, True)


def test_a_completing_job_has_no_outcome_yet() -> None:
    with pytest.raises(StillCompleting):
        ended_job(LINE.format(state="COMPLETING", comment=MINE), "81")


def test_a_place_is_a_partition_or_a_cluster_with_one() -> None:
    assert placed(["job.sh"], "short", "preco") == ["--partition=short", "--comment=gridcast:preco", "job.sh"]
    assert placed(["--comment=x", "job.sh"], "ncsa/gpu", "preco") == [
        "--clusters=ncsa",
        "--partition=gpu",
        "--comment=x",
        "job.sh",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", r"expected a section \[gridcast\]"),
        ("x", "cannot read"),
        ("[a]\n[a]", "cannot read"),
        ("\xff", "cannot read"),
    ],
)
def test_a_configuration_that_cannot_be_read_is_named(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "slurm.ini"
    file.write_text(text, encoding="latin-1")
    with pytest.raises(InvalidInput, match=said) as raised:
        Configuration.read(file)
    assert str(file) in str(raised.value)


def test_a_configuration_gives_the_client(tmp_path: Path) -> None:
    file = tmp_path / "slurm.ini"
    file.write_text(
        "[gridcast]\nurl = http://localhost:8000\n[preco]\nGPU = preco-ncsa\nfar/away = preco-sdsc\n"
    )
    configuration = Configuration.read(file)
    assert configuration.places == {"preco": {"GPU": "preco-ncsa", "far/away": "preco-sdsc"}}
    assert isinstance(configuration.client(1.0), Client)
