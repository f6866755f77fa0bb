"""Paths that another local user could replace: nothing is read, executed or written there."""

from __future__ import annotations

import os
import pwd
import random
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from reporters import scratch
from reporters.path_chain import unsafe_reason
from reporters.scratch_chain import TRUSTED_GROUPS_FILE
from tests.ordinary_user import only_root, python_for_nobody

OTHER, TEAM = 54322, 54323


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory for paths; the home directory beside it names no trusted group."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    directory = tmp_path / "place"
    directory.mkdir(mode=0o755)
    return directory


def directory(path: Path, mode: int, uid: int = -1, gid: int = -1) -> Path:
    path.mkdir()
    os.chown(path, uid, gid)
    path.chmod(mode)
    return path


def trust(group: int, mode: int = 0o644) -> None:
    file = Path(os.environ["HOME"], TRUSTED_GROUPS_FILE)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{group}\n")
    file.chmod(mode)


def test_our_own_directories_and_files_are_safe_whether_or_not_they_exist(place: Path) -> None:
    (place / "file").write_text("x")
    for path in (place, place / "file", place / "new" / "deep", place / "file" / "below"):
        assert unsafe_reason(path) == ""


@pytest.mark.parametrize("name", ["", "new", "new/deep"])
def test_a_parent_that_every_user_can_write_is_unsafe_without_the_sticky_bit(place: Path, name: str) -> None:
    shared = directory(place / "shared", 0o777)
    reason = unsafe_reason(shared / name)
    assert reason.startswith(f"{shared} has mode drwxrwxrwx, owner {os.geteuid()}")
    assert reason.endswith("take the permission away (chmod o-w), or set the sticky bit (chmod +t)")
    shared.chmod(0o1777)
    assert unsafe_reason(shared / name) == ""


def test_a_file_that_every_user_can_write_is_unsafe(place: Path) -> None:
    file = place / "file"
    file.write_text("x")
    file.chmod(0o646)
    assert "every user could change it; take the permission away (chmod o-w)" in unsafe_reason(file)


@only_root
def test_a_parent_of_another_user_is_unsafe_though_what_is_below_is_ours(place: Path) -> None:
    theirs = directory(place / "theirs", 0o755, OTHER)
    ours = directory(theirs / "ours", 0o700)
    assert f"{theirs} has mode drwxr-xr-x, owner {OTHER}" in unsafe_reason(ours)
    assert "its owner could replace it" in unsafe_reason(ours / "file")


@only_root
def test_entries_of_another_user_in_a_place_like_tmp_are_unsafe(place: Path) -> None:
    place.chmod(0o1777)
    planted = directory(place / "planted", 0o777, OTHER)
    file, link = place / "file", place / "link"
    file.touch()
    link.symlink_to(place)
    os.chown(file, OTHER, OTHER)
    os.lchown(link, OTHER, OTHER)
    for path in (planted, file, link, link / "x"):
        assert f"owner {OTHER}" in unsafe_reason(path)


@only_root
def test_a_directory_of_a_group_is_unsafe_unless_it_is_sticky_or_trusted(place: Path) -> None:
    project = directory(place / "project", 0o2775, gid=TEAM)
    ours = directory(project / "ours", 0o755)
    assert unsafe_reason(ours).endswith(f"add the line {TEAM} to ~/{TRUSTED_GROUPS_FILE}")
    project.chmod(0o3775)
    assert unsafe_reason(ours) == ""
    project.chmod(0o2775)
    trust(TEAM, 0o666)
    assert unsafe_reason(ours)  # other users could have written the list
    trust(TEAM)
    assert unsafe_reason(ours) == ""
    trust(TEAM + 1)
    assert unsafe_reason(ours)


def test_links_are_followed_also_upwards_and_in_circles(place: Path) -> None:
    real, shared = directory(place / "real", 0o755), directory(place / "shared", 0o777)
    (real / "up").symlink_to("../shared")
    (place / "safe").symlink_to(real)
    (shared / "back").symlink_to(f"{real}/.")
    (place / "circle").symlink_to("circle")
    assert unsafe_reason(place / "safe" / "x") == ""
    assert f"{shared} has mode" in unsafe_reason(place / "safe" / "up" / "x")
    assert f"{shared} has mode" in unsafe_reason(shared / "back")  # the link could be replaced
    # ".." is that of the directory that the link leads to.
    (place / "into").symlink_to(shared)
    assert f"{shared} has mode" in unsafe_reason(Path(f"{place}/into/../real"))
    assert "too many symbolic links" in unsafe_reason(place / "circle")


def test_a_trusted_directory_and_those_above_it_are_not_examined(place: Path) -> None:
    shared = directory(place / "shared", 0o777)
    checkout = directory(shared / "checkout", 0o777)
    var = directory(checkout / "var", 0o755)
    assert unsafe_reason(var)
    assert unsafe_reason(var, trusted=checkout) == ""
    var.chmod(0o777)
    assert f"{var} has mode" in unsafe_reason(var, trusted=checkout)


@only_root
def test_the_rules_are_those_of_the_scratch_of_sites(place: Path) -> None:
    """Draw trees: the shell functions and this module refuse the same ones."""
    draw = random.Random(20261129)
    daemon = pwd.getpwnam("daemon")
    trust(TEAM)
    verdicts = set()
    for number in range(40):
        path = place
        for depth in range(draw.randint(1, 3)):
            mode = draw.choice([0o755, 0o755, 0o700, 0o775, 0o1777, 0o777, 0o2775])
            uid = draw.choice([0, 0, 0, OTHER])
            path = directory(path / f"{number}-{depth}", mode, uid, draw.choice([0, TEAM, daemon.pw_gid]))
            if draw.random() < 0.2:
                link = path.with_name(f"link-{number}-{depth}")
                link.symlink_to(path)
                os.lchown(link, draw.choice([0, OTHER]), 0)
                path = link
        reasons = (unsafe_reason(path), scratch.unsafe_reason(str(path)))
        assert bool(reasons[0]) == bool(reasons[1]), (path, reasons)
        verdicts.add(bool(reasons[0]))
    assert verdicts == {True, False}


@only_root
def test_an_ordinary_user_trusts_root_and_its_private_group() -> None:
    daemon = pwd.getpwnam("daemon")
    with tempfile.TemporaryDirectory(prefix="chain-", dir="/tmp") as root:
        place = Path(root)
        place.chmod(0o755)
        ours = directory(place / "ours", 0o775, daemon.pw_uid, daemon.pw_gid)
        theirs = directory(place / "theirs", 0o775, daemon.pw_uid, TEAM)
        asked = "import sys, reporters.path_chain as chain; from pathlib import Path\n"
        asked += "print([bool(chain.unsafe_reason(Path(path))) for path in sys.argv[1:]])"
        done = subprocess.run(
            [python_for_nobody(), "-c", asked, str(place), str(ours), str(theirs)],
            user=daemon.pw_uid,
            group=daemon.pw_gid,
            extra_groups=[],
            env={"PYTHONPATH": str(_readable_copy(place))},
            cwd="/",
            capture_output=True,
            text=True,
            check=True,
        )
    assert done.stdout == "[False, False, True]\n"


def _readable_copy(place: Path) -> Path:
    """Return a copy of our packages below *place*: the checkout may be closed for ordinary users."""
    source = Path(__file__).parents[2]
    for package in ("reporters", "probes"):
        shutil.copytree(source / package, place / package, ignore=shutil.ignore_patterns("__pycache__"))
    return place
