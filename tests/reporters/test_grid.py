"""The operations of a grid, over local directories and over SSH."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from probes.base import InvalidParameters, OutOfTime, in_parallel
from probes.grid import Location
from reporters.base import CannotConnect, CannotCopy, CleanupFailed, CommandFailed, JobFailed, ResourceUnfit
from reporters.config import Assignment, ResourceConfig
from reporters.deadline import Deadline
from reporters.grid import RunGrid
from reporters.report import run_id
from reporters.usage import ResourceUsage
from tests.reporters.ssh_sites import SshSites, processes_naming
from tests.waiting import eventually

SLOT = datetime(2026, 3, 1, 12, 7, tzinfo=UTC)


class World:
    """Resources, and grids over them; every grid is cleaned up."""

    def __init__(self, resources: dict[str, ResourceConfig]) -> None:
        self.resources = resources
        self.log: list[str] = []
        self.grids: list[RunGrid] = []
        self.slot = SLOT

    def grid(self, *, limit_seconds: float = 60.0, series: str = "gather-main", **changes: Any) -> RunGrid:
        self.slot += timedelta(minutes=1)
        assignment = Assignment(
            series=series, slot=self.slot, reporter="home", probe="x", bindings={}, resources=self.resources
        )
        self.deadline = Deadline(limit_seconds, time.monotonic)
        grid = RunGrid(
            replace(assignment, **changes), self.deadline, lambda text, _level: self.log.append(text)
        )
        self.grids.append(grid)
        return grid

    def root(self, name: str) -> Path:
        return Path(self.resources[name].scratch)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Two directories of this host."""
    resources = {}
    for name in ("one", "two"):
        for directory in ("scratch", "bin"):
            (tmp_path / name / directory).mkdir(parents=True)
        path = f"{tmp_path / name / 'bin'}:/usr/bin:/bin"
        resources[name] = ResourceConfig(
            name, name, str(tmp_path / name / "scratch"), shell={"kind": "local", "path": path}
        )
    world = World(resources)
    yield world
    for grid in world.grids:
        world.deadline.restart(30.0, "cleanup")
        grid.clean_up()


@pytest.fixture(scope="module")
def sites() -> Iterator[SshSites]:
    with SshSites("iu", "ncsa", "sdsc") as running:
        yield running


def install(world: World, name: str, program: str, script: str) -> None:
    file = world.root(name).parent / "bin" / program
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def test_a_scratch_directory_is_fresh_private_and_the_same_at_every_call(world: World) -> None:
    grid = world.grid()
    directory = Path(grid.scratch("one"))
    run = run_id("gather-main", world.slot).hex[:12]
    assert directory == world.root("one") / f"gridcast-{os.getuid()}" / "gather-main" / run / "one"
    assert directory.stat().st_mode & 0o077 == 0
    (directory / "file").touch()
    assert grid.scratch("one") == str(directory)
    assert (directory / "file").exists()


def test_the_cleanup_removes_only_its_own_files(world: World) -> None:
    (world.root("one") / "theirs").touch()
    grid = world.grid()
    for name in ("one", "two"):
        (Path(grid.scratch(name)) / "file").write_text("x" * 1000)
    grid.clean_up()
    assert [path.name for path in world.root("one").iterdir()] == ["theirs"]
    assert list(world.root("two").iterdir()) == []


def test_a_second_cleanup_does_nothing(world: World) -> None:
    grid = world.grid()
    grid.scratch("one")
    grid.clean_up()
    grid.clean_up()


def test_a_cleanup_without_use_does_not_connect(world: World) -> None:
    world.grid().clean_up()
    assert world.log == []


def test_the_scratch_of_another_series_is_kept(world: World) -> None:
    grid, other = world.grid(), world.grid(series="circle-main")
    grid.scratch("one")
    directory = other.scratch("one")
    grid.clean_up()
    assert Path(directory).exists()


def test_the_next_run_of_a_series_removes_the_files_of_a_killed_run(world: World) -> None:
    seconds = str(secrets.randbelow(10**12))
    killed = world.grid()
    leftover = Path(killed.scratch("one"))
    job = killed.submit("one", ["sleep", seconds], cpus=1, wall_seconds=60)
    job.wait_started()
    world.grid().scratch("one")
    assert not leftover.exists()
    assert eventually(lambda: not processes_naming(f"sleep\0{seconds}"))


def test_a_process_with_a_reused_number_is_not_killed(world: World) -> None:
    killed = world.grid()
    job = Path(killed.scratch("one")) / "job-1"
    job.mkdir()
    bystander = killed.shell("two").start(["sleep", "600"])
    assert eventually(lambda: len(processes_naming("sleep\x00600")) > 0)
    (pid,) = processes_naming("sleep\x00600")[-1:]
    (job / "pid").write_text(f"{pid}\n")
    world.grid().scratch("one")
    assert bystander.poll() is None


def test_two_resources_may_share_a_file_system(world: World) -> None:
    world.resources["two"] = replace(world.resources["two"], scratch=world.resources["one"].scratch)
    grid = world.grid()
    one, two = in_parallel(grid.scratch, ["one", "two"])
    assert one != two
    (Path(one) / "x").touch()
    (Path(two) / "x").touch()
    grid.clean_up()
    assert list(world.root("one").iterdir()) == []


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", "-x", "a b", "a\nb", "ä"])
def test_a_name_that_must_not_become_a_path_is_refused(world: World, name: str) -> None:
    with pytest.raises(InvalidParameters, match="expected letters, digits and"):
        world.grid(series=name)
    with pytest.raises(InvalidParameters, match="expected letters, digits and"):
        world.grid(resources={name: world.resources["one"]})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shell": {"kind": "pigeon"}}, "resource one: shell: there is no shell 'pigeon'; known are"),
        ({"shell": {"kind": "local", "colour": 1}}, "resource one: shell 'local': got an unexpected keyword"),
        ({"shell": {"kind": "ssh"}}, "resource one: shell 'ssh': missing a required argument: 'host'"),
        ({"scratch": "tmp"}, "resource one: scratch 'tmp' is not absolute"),
    ],
)
def test_an_invalid_resource_is_named(world: World, change: dict[str, Any], message: str) -> None:
    world.resources["one"] = replace(world.resources["one"], **change)
    with pytest.raises(InvalidParameters) as raised:
        world.grid()
    assert message in str(raised.value)


def test_a_resource_that_is_not_in_the_run_is_refused(world: World) -> None:
    with pytest.raises(InvalidParameters, match="there is no resource 'three'"):
        world.grid().shell("three")


def test_a_file_is_copied_and_logged(world: World) -> None:
    grid = world.grid()
    source = Location("one", f"{grid.scratch('one')}/a")
    Path(source.path).write_bytes(b"12345")
    target = Location("two", f"{grid.scratch('two')}/b")
    assert grid.copy(source, target).bytes == 5
    assert Path(target.path).read_bytes() == b"12345"
    assert any("copied one:" in line and ": 5 bytes in" in line for line in world.log)


def test_ends_with_different_transfers_cannot_copy(world: World) -> None:
    world.resources["two"] = replace(world.resources["two"], transfer={"kind": "ssh", "host": "x"})
    with pytest.raises(CannotCopy, match="from one to two: one has transfer 'local', the other 'ssh'"):
        world.grid().copy(Location("one", "/x"), Location("two", "/y"))


def test_scratch_that_does_not_exist_is_named(world: World) -> None:
    world.resources["one"] = replace(world.resources["one"], scratch="/no/such/place")
    with pytest.raises(ResourceUnfit) as raised:
        world.grid().check_scratch("one", 1)
    assert raised.value.message == "scratch /no/such/place at one is not writable: no such directory"


def test_scratch_that_cannot_be_written_is_named_with_the_reason(world: World) -> None:
    why = "mktemp: failed to create directory via template '/x': Permission denied"
    install(world, "one", "mktemp", f'echo "{why}" >&2; exit 1')
    with pytest.raises(ResourceUnfit) as raised:
        world.grid().check_scratch("one", 1)
    expected = f"scratch {world.root('one')} at one is not writable: Permission denied"
    assert (raised.value.message, raised.value.resource) == (expected, "one")


def test_scratch_that_cannot_be_examined_is_refused(world: World) -> None:
    install(world, "one", "ls", "echo 'ls: broken' >&2; exit 1")
    with pytest.raises(ResourceUnfit, match=r"is unsafe: ls: broken$"):
        world.grid().check_scratch("one", 1)
    with pytest.raises(CommandFailed, match=r"cannot make a directory in scratch .*: ls: broken$"):
        world.grid().scratch("one")
    assert list(world.root("one").iterdir()) == []
    (world.root("one").parent / "bin" / "ls").unlink()  # the cleanup of the test needs it


def test_scratch_that_is_too_small_is_reported_with_its_size(world: World) -> None:
    table = "Filesystem 1024-blocks Used Available Capacity Mounted on\\n/dev/sd a1 99 98 1200 99%% /mnt/x y"
    install(world, "one", "df", f'printf "{table}\\n"')
    grid = world.grid()
    grid.check_scratch("one", 1_200_000)
    with pytest.raises(ResourceUnfit, match=r"scratch .* at one has 1.2 MB free, needs 600.0 MB"):
        grid.check_scratch("one", 600_000_000)


def test_checking_scratch_leaves_nothing_there(world: World) -> None:
    world.grid().check_scratch("one", 1)
    assert list(world.root("one").iterdir()) == []


def test_tools_that_are_missing_are_named_together(world: World) -> None:
    grid = world.grid()
    grid.check_tools("one", ["sh", "dd"])
    with pytest.raises(ResourceUnfit, match=r"^no-cc is not installed at one$"):
        grid.check_tools("one", ["sh", "no-cc"])
    with pytest.raises(ResourceUnfit, match=r"^no-cc, no-dd are not installed at one$"):
        grid.check_tools("one", ["no-cc", "no-dd"])


def out_of_time(work: Callable[[], object]) -> OutOfTime:
    with pytest.raises(OutOfTime) as raised:
        work()
    return raised.value


def test_a_command_ends_with_the_run(world: World) -> None:
    grid = world.grid(limit_seconds=0.4)
    error = out_of_time(lambda: grid.shell("one").run(["sleep", "600"], timeout_seconds=60))
    assert error.message == "the run's limit of 0.4 s was reached while running sleep at one"
    assert error.resource == "one"
    again = out_of_time(lambda: grid.shell("one").run(["true"], timeout_seconds=60))
    assert "running true at one" in again.message


def test_a_command_that_is_over_its_own_limit_has_failed(world: World) -> None:
    with pytest.raises(Exception, match=r"sleep at one ran longer than 0.2 s") as raised:
        world.grid().shell("one").run(["sleep", "600"], timeout_seconds=0.2)
    assert not isinstance(raised.value, OutOfTime)


def test_a_copy_ends_with_the_run(world: World) -> None:
    install(world, "one", "cp", "exec sleep 600")
    grid = world.grid(limit_seconds=1.0)
    source = Location("one", f"{grid.scratch('one')}/a")
    Path(source.path).touch()
    error = out_of_time(lambda: grid.copy(source, Location("two", f"{grid.scratch('two')}/b")))
    assert f"was reached while copying one:{source.path} to two:" in error.message


def test_waiting_for_a_job_ends_with_the_run(world: World) -> None:
    batch = {"kind": "fork", "launcher": ["sh", "-c", "sleep 600", "sh"]}
    world.resources["one"] = replace(world.resources["one"], batch=batch)
    grid = world.grid(limit_seconds=1.0)
    job = grid.submit("one", ["true"], cpus=1, wall_seconds=60)
    error = out_of_time(job.wait_started)
    assert error.message.endswith("was reached while waiting for the job at one to start")


def test_a_job_runs_in_the_scratch_directory_and_is_cancelled_in_the_cleanup(world: World) -> None:
    seconds = str(secrets.randbelow(10**12))
    grid = world.grid()
    job = grid.submit("one", ["sh", "-c", f"touch here; sleep {seconds}"], cpus=1, wall_seconds=60)
    job.wait_started()
    assert eventually((Path(grid.scratch("one")) / "here").exists)
    grid.clean_up()
    assert eventually(lambda: not processes_naming(f"sleep\0{seconds}"))


def test_what_cannot_be_removed_is_named_at_every_resource(world: World) -> None:
    grid = world.grid()
    for name in ("one", "two"):
        grid.scratch(name)
        install(world, name, "rm", "echo 'rm: cannot remove: Device or resource busy' >&2; exit 1")
    with pytest.raises(CleanupFailed) as raised:
        grid.clean_up()
    for name in ("one", "two"):
        assert f"{name}: cannot remove the run's directory from scratch {world.root(name)}" in str(
            raised.value
        )
    assert "Device or resource busy" in str(raised.value)
    assert raised.value.resource == "one"


def test_a_program_that_fails_is_quoted(world: World) -> None:
    with pytest.raises(CommandFailed, match=r"^cannot list at one: ls: cannot access '/no/such'"):
        world.grid().shell("one").check(["ls", "/no/such"], timeout_seconds=60, doing="list")


def test_all_connections_are_opened_once_and_at_the_first_use_of_any(sites: SshSites) -> None:
    logins = {name: site.logins for name, site in sites.sites.items()}
    grid = World({name: sites.resource(name) for name in sites.sites}).grid()
    grid.check_credentials("iu")
    in_parallel(grid.check_credentials, ["iu", "ncsa", "sdsc", "ncsa"])
    grid.clean_up()
    assert {name: site.logins - logins[name] for name, site in sites.sites.items()} == dict.fromkeys(
        logins, 1
    )


def test_a_failed_connection_raises_only_where_it_is_used(sites: SshSites, tmp_path: Path) -> None:
    broken = sites.resource("ncsa", host="nowhere.invalid")
    grid = World({"iu": sites.resource("iu"), "ncsa": broken}).grid()
    grid.check_credentials("iu")
    for _ in range(2):
        with pytest.raises(CannotConnect, match=r"cannot connect to nowhere.invalid:22: Could not resolve"):
            grid.check_credentials("ncsa")
    grid.clean_up()


def test_the_cleanup_reconnects_if_the_connection_is_lost(sites: SshSites) -> None:
    grid = World({"iu": sites.resource("iu")}).grid()
    seconds = str(secrets.randbelow(10**12))
    grid.submit("iu", ["sleep", seconds], cpus=1, wall_seconds=60).wait_started()
    sites.drop("iu")
    grid.clean_up()
    assert list(sites.sites["iu"].scratch.iterdir()) == []
    assert eventually(lambda: not processes_naming(f"sleep\0{seconds}"))


def test_files_go_from_site_to_site_and_nothing_is_left(sites: SshSites) -> None:
    grid = World({name: sites.resource(name) for name in ("iu", "sdsc")}).grid()
    source = Location("iu", f"{grid.scratch('iu')}/a")
    Path(source.path).write_bytes(b"x" * 100_000)
    target = Location("sdsc", f"{grid.scratch('sdsc')}/b")
    assert grid.copy(source, target).bytes == 100_000
    grid.clean_up()
    assert [list(sites.sites[name].scratch.iterdir()) for name in ("iu", "sdsc")] == [[], []]


def test_the_usage_of_copies_and_jobs_is_counted(world: World) -> None:
    grid = world.grid()
    source = Location("one", f"{grid.scratch('one')}/a")
    Path(source.path).write_bytes(b"12345")
    grid.copy(source, Location("two", f"{grid.scratch('two')}/b"))
    job = grid.submit("two", ["true"], cpus=3, wall_seconds=60)
    job.wait_started()
    run_seconds = job.wait_ended()
    used = grid.usage()
    assert used["one"] == ResourceUsage(bytes_sent=5)
    assert used["two"] == ResourceUsage(bytes_received=5, cpu_seconds=3 * run_seconds)


def test_the_usage_of_a_failed_job_is_the_time_it_was_seen_to_run(world: World) -> None:
    grid = world.grid()
    job = grid.submit("one", ["sh", "-c", "sleep 0.2; exit 1"], cpus=2, wall_seconds=60)
    job.wait_started()
    with pytest.raises(JobFailed):
        job.wait_ended()
    assert grid.usage()["one"].cpu_seconds > 0


def test_processes_that_had_to_be_killed_are_counted_and_logged(world: World) -> None:
    grid = world.grid()
    script = "trap '' TERM; (while :; do sleep 600; done) & (while :; do sleep 600; done) & exit 0"
    assert grid.shell("one").run(["sh", "-c", script], timeout_seconds=60).returncode == 0
    grid.clean_up()
    assert grid.survivors() >= 2
    assert f"{grid.survivors()} processes at the reporter ignored SIGTERM and were killed" in world.log


def test_programs_of_the_local_shell_have_the_limits_of_the_run(world: World) -> None:
    grid = world.grid(cleanup_seconds=10.0, max_file_bytes=512_000)
    done = grid.shell("one").run(["sh", "-c", "ulimit -t; ulimit -f; ulimit -c"], timeout_seconds=60)
    assert done.stdout == f"{1810 * (os.cpu_count() or 1)}\n1000\n0\n"
