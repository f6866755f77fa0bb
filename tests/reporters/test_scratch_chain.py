"""Scratch directories that another local user prepares, replaces or shares."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from probes.grid import Completed
from reporters import jobfiles, scratch
from reporters.base import CommandFailed, ResourceShell, ResourceUnfit
from reporters.process import Running
from reporters.scratch_chain import TRUSTED_GROUPS_FILE
from tests.reporters.ssh_sites import processes_naming
from tests.waiting import eventually

VICTIM, ATTACKER, TEAM = 54321, 54322, 54323
OWN = f"gridcast-{VICTIM}"
SERIES, RUN = "gather-main", "0123456789ab"
PROOF = "executed"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as two local users")


class AccountShell(ResourceShell):
    """Runs programs as another user of this host."""

    def __init__(self, uid: int, home: Path, gid: int) -> None:
        super().__init__("site", "")
        self.uid, self.home, self.gid = uid, home, gid

    def connect(self, *, timeout_seconds: float) -> None:
        """Do nothing: there is no connection."""

    def run(self, argv: Sequence[str], *, timeout_seconds: float, input: str | None = None) -> Completed:
        done = subprocess.run(
            argv,
            input=input,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_seconds,
            cwd="/",
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.home)},
            user=self.uid,
            group=self.gid,
            extra_groups=[],
        )
        return Completed(done.returncode, done.stdout, done.stderr, 0.0)

    def sh(self, script: str) -> str:
        return self.check(["sh", "-c", script], timeout_seconds=60, doing="prepare")

    def start(self, argv: Sequence[str]) -> Running:
        raise NotImplementedError

    def close(self) -> None:
        """Do nothing: there is no connection."""


class Host:
    """A directory as ``/tmp``, and two users."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.chmod(0o1777)
        self.victim, self.attacker = (self.account(uid) for uid in (VICTIM, ATTACKER))

    def account(self, uid: int, gid: int | None = None) -> AccountShell:
        home = self.root / f"home-{uid}"
        home.mkdir(mode=0o700)
        os.chown(home, uid, uid if gid is None else gid)
        return AccountShell(uid, home, uid if gid is None else gid)

    def directory(self, name: str, mode: int, uid: int = 0, gid: int = 0) -> Path:
        path = self.root / name
        path.mkdir()
        os.chown(path, uid, gid)
        path.chmod(mode)
        return path

    def make(self, root: Path | None = None) -> Path:
        return Path(scratch.make(self.victim, str(root or self.root), SERIES, RUN))

    def remove(self, root: Path | None = None) -> None:
        scratch.remove(self.victim, str(root or self.root), SERIES, RUN)

    def treasure(self) -> Path:
        """Return a file of the victim that looks like the remains of an earlier run."""
        file = self.victim.home / SERIES / "old-run" / "site" / "treasure"
        self.victim.sh(f"mkdir -p {file.parent} && echo gold > {file}")
        return file


@pytest.fixture
def host() -> Iterator[Host]:
    root = Path(tempfile.mkdtemp(prefix="host-", dir="/tmp"))
    yield Host(root)
    shutil.rmtree(root)


def bait(root: Path) -> str:
    """Return a script that makes a series' directory with remains whose cancel script leaves a proof."""
    job = f"{root}/{OWN}/{SERIES}/old-run/site/job-1"
    return f"mkdir -p {job} && echo 'touch {root}/{PROOF}' > {job}/cancel && chmod -R 777 {root}/{OWN}"


def test_the_directory_is_made_privately_and_removed_in_a_place_like_tmp(host: Host) -> None:
    made = host.make()
    assert made == host.root / OWN / SERIES / RUN / "site"
    for directory in (made, *made.parents[:3]):
        assert (directory.stat().st_uid, directory.stat().st_mode & 0o7777) == (VICTIM, 0o700)
    host.remove()
    assert not (host.root / OWN).exists()


def test_a_directory_that_another_user_made_first_is_refused_and_left_alone(host: Host) -> None:
    host.attacker.sh(bait(host.root))
    before = sorted(host.root.rglob("*"))
    for action in (host.make, host.remove):
        with pytest.raises(ResourceUnfit) as raised:
            action()
        expected = (
            f"scratch {host.root} at site is unsafe: {host.root / OWN} has mode drwxrwxrwx, owner {ATTACKER}"
        )
        assert raised.value.message.startswith(expected)
        assert raised.value.message.endswith("remove it, or use another scratch directory")
    with pytest.raises(ResourceUnfit, match="is unsafe"):
        scratch.check_space(host.victim, str(host.root), 1)
    assert sorted(host.root.rglob("*")) == before


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o777])
def test_a_directory_of_our_own_that_is_not_private_is_refused(host: Host, mode: int) -> None:
    host.directory(OWN, mode, VICTIM, VICTIM)
    with pytest.raises(ResourceUnfit, match=f"expected a directory of user {VICTIM} with mode drwx------"):
        host.make()


def test_a_planted_link_to_our_own_files_is_not_followed(host: Host) -> None:
    treasure = host.treasure()
    host.attacker.sh(f"ln -s {host.victim.home} {host.root / OWN}")
    for action in (host.make, host.remove):
        with pytest.raises(ResourceUnfit, match=f"{OWN} is a symbolic link to {host.victim.home}; remove it"):
            action()
    assert treasure.exists()


def test_a_planted_link_to_nothing_is_not_followed(host: Host) -> None:
    host.attacker.sh(f"ln -s {host.victim.home}/new {host.root / OWN}")
    with pytest.raises(ResourceUnfit, match=f"{OWN} has mode lrwxrwxrwx, owner {ATTACKER}"):
        host.make()
    assert not (host.victim.home / "new").exists()


def test_links_below_our_own_directory_are_not_followed(host: Host) -> None:
    treasure = host.treasure()
    own = host.directory(OWN, 0o700, VICTIM, VICTIM)
    (own / SERIES).symlink_to(host.victim.home / SERIES)
    with pytest.raises(ResourceUnfit, match="is a symbolic link to"):
        host.make()
    (own / SERIES).unlink()
    host.victim.sh(f"mkdir {own / SERIES}; ln -s {treasure.parents[1]} {own / SERIES / 'old-run'}")
    host.make()
    assert not (own / SERIES / "old-run").is_symlink()
    assert treasure.exists()


def test_a_parent_of_another_user_is_refused(host: Host) -> None:
    theirs = host.directory("theirs", 0o755, ATTACKER, ATTACKER)
    ours = theirs / "ours"
    ours.mkdir()
    os.chown(ours, VICTIM, VICTIM)
    with pytest.raises(ResourceUnfit) as raised:
        host.make(ours)
    assert f"{theirs} has mode drwxr-xr-x, owner {ATTACKER}" in raised.value.message
    assert f"belong to root or user {VICTIM}" in raised.value.message


def test_a_parent_that_every_user_can_write_is_refused_without_the_sticky_bit(host: Host) -> None:
    shared = host.directory("shared", 0o777)
    ours = host.directory("shared/ours", 0o700, VICTIM, VICTIM)
    with pytest.raises(ResourceUnfit, match=r"every user could replace its entries; .* \(chmod \+t\)"):
        host.make(ours)
    shared.chmod(0o1777)
    assert host.make(ours).is_dir()


def test_a_directory_of_a_group_is_refused_unless_it_is_sticky_or_trusted(host: Host) -> None:
    project = host.directory("project", 0o2775, 0, TEAM)
    ours = host.directory("project/ours", 0o755, VICTIM, TEAM)
    with pytest.raises(ResourceUnfit) as raised:
        host.make(ours)
    assert f"{project} has mode drwxrwsr-x, owner 0, group {TEAM}: members of group" in raised.value.message
    assert raised.value.message.endswith(f"add the line {TEAM} to ~/{TRUSTED_GROUPS_FILE}")
    project.chmod(0o3775)
    host.make(ours)
    host.remove(ours)
    project.chmod(0o2775)
    trusted = f"$HOME/{TRUSTED_GROUPS_FILE}"
    host.victim.sh(f"umask 022; mkdir -p $(dirname {trusted}); echo {TEAM} > {trusted}")
    assert host.make(ours).is_dir()
    project.chmod(0o2777)
    with pytest.raises(ResourceUnfit, match="every user could replace its entries"):
        host.make(ours)


def test_a_list_of_trusted_groups_that_others_can_write_does_not_count(host: Host) -> None:
    host.directory("project", 0o2775, 0, TEAM)
    ours = host.directory("project/ours", 0o755, VICTIM, TEAM)
    trusted = f"$HOME/{TRUSTED_GROUPS_FILE}"
    host.victim.sh(f"mkdir -p $(dirname {trusted}); echo {TEAM} > {trusted}; chmod 666 {trusted}")
    with pytest.raises(ResourceUnfit, match="trust the group"):
        host.make(ours)


def test_the_setgid_bit_of_the_directory_above_is_no_obstacle(host: Host) -> None:
    ours = host.directory("ours", 0o2755, VICTIM, TEAM)
    assert host.make(ours).stat().st_mode & 0o7777 == 0o2700
    host.remove(ours)
    assert list(ours.iterdir()) == []


def test_the_private_group_of_an_account_is_trusted(host: Host) -> None:
    daemon = pwd.getpwnam("daemon")
    account = host.account(daemon.pw_uid, daemon.pw_gid)
    for gid, is_safe in ((daemon.pw_gid, True), (TEAM, False)):
        ours = host.directory(f"by-umask-002-{gid}", 0o775, daemon.pw_uid, gid)
        if is_safe:
            assert Path(scratch.make(account, str(ours), SERIES, RUN)).is_dir()
        else:
            with pytest.raises(ResourceUnfit, match=f"members of group {TEAM} could replace"):
                scratch.make(account, str(ours), SERIES, RUN)


@pytest.mark.parametrize("target", ["{real}", "real", "../{root}/./real/"])
def test_links_of_root_and_our_own_are_followed(host: Host, target: str) -> None:
    real = host.directory("real", 0o700, VICTIM, VICTIM)
    link = host.root / "link"
    link.symlink_to(target.format(real=real, root=host.root.name))
    for owner in (0, VICTIM):
        os.lchown(link, owner, owner)
        assert host.make(link) == link / OWN / SERIES / RUN / "site"
        assert (real / OWN / SERIES / RUN / "site").is_dir()
        host.remove(link)
        assert list(real.iterdir()) == []


def test_a_link_of_another_user_is_refused(host: Host) -> None:
    real = host.directory("real", 0o700, VICTIM, VICTIM)
    link = host.root / "link"
    host.attacker.sh(f"ln -s {real} {link}")
    with pytest.raises(ResourceUnfit, match=f"{link} has mode lrwxrwxrwx, owner {ATTACKER}"):
        host.make(link / "deeper")
    assert list(real.iterdir()) == []


def test_links_that_lead_in_a_circle_are_refused(host: Host) -> None:
    (host.root / "link").symlink_to("link")
    with pytest.raises((ResourceUnfit, CommandFailed), match=r"too many symbolic links|Too many levels"):
        host.make(host.root / "link")


def race(host: Host, script: str, root: Path, attempts: int) -> None:
    """Make and remove a run's directory *attempts* times while the attacker repeats *script*."""
    argv = ["sh", "-c", f"while :; do {script}; done"]
    users = {"user": ATTACKER, "group": ATTACKER, "extra_groups": []}
    attack = subprocess.Popen(argv, cwd="/", start_new_session=True, stderr=subprocess.DEVNULL, **users)  # type: ignore[call-overload]
    try:
        for _ in range(attempts):
            for action in (host.make, host.remove):
                try:
                    action(root)
                except (ResourceUnfit, CommandFailed):
                    continue
    finally:
        os.killpg(attack.pid, signal.SIGKILL)
        attack.wait()
        eventually(lambda: not processes_naming(str(host.root)))


@pytest.mark.parametrize("attempts", [6, pytest.param(500, marks=pytest.mark.nightly)])
@pytest.mark.nightly
def test_a_race_for_the_name_of_our_directory_wins_nothing(host: Host, attempts: int) -> None:
    treasure = host.treasure()
    own = host.root / OWN
    race(
        host,
        f"ln -s {host.victim.home} {own}; rm {own}; {bait(host.root)}; rm -rf {own}",
        host.root,
        attempts,
    )
    assert treasure.read_text() == "gold\n"
    assert not (host.root / PROOF).exists()


@pytest.mark.parametrize("attempts", [6, pytest.param(500, marks=pytest.mark.nightly)])
@pytest.mark.nightly
def test_a_race_for_a_directory_above_ours_wins_nothing(host: Host, attempts: int) -> None:
    treasure = host.treasure()
    victims = host.directory("victims", 0o755, VICTIM, VICTIM)
    (victims / OWN).symlink_to(host.victim.home)
    root = host.root / "shared"
    swap = f"ln -s {victims} {root}; rm {root}; mkdir {root}; {bait(root)}; rm -rf {root}"
    race(host, swap, root, attempts)
    assert treasure.read_text() == "gold\n"
    assert not (root / PROOF).exists()


def test_a_job_runs_nothing_in_a_directory_of_another_user(host: Host) -> None:
    """The host of a job may have another directory under the path that was made at the login's host."""
    theirs = host.root / OWN
    host.attacker.sh(f"mkdir -p {theirs}/job-1 && chmod -R 777 {theirs}")
    script = jobfiles.script(
        ["touch", f"{host.victim.home}/{PROOF}"],
        directory=str(theirs),
        job="job-1",
        label="",
        wall_seconds=60,
    )
    done = host.victim.run(["sh", "-c", script], timeout_seconds=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"has mode drwxrwxrwx, owner {ATTACKER}: not the directory that the run made" in done.stderr
    assert not (host.victim.home / PROOF).exists()
    assert list((theirs / "job-1").iterdir()) == []
