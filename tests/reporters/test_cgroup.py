"""The reporter's own control group, in the forms in which kernels and containers show it."""

from __future__ import annotations

from pathlib import Path

import pytest

from reporters.cgroup import open_scope, parse_own_group

UNIFIED = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
HYBRID = (
    "33 23 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "34 23 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
)
BOUND = "900 880 0:26 /docker/abc /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n"


@pytest.mark.parametrize(
    ("groups", "mounts", "expected"),
    [
        ("0::/user.slice/a.service\n", UNIFIED, "/sys/fs/cgroup/user.slice/a.service"),
        ("0::/\n", UNIFIED, "/sys/fs/cgroup/"),
        ("4:memory:/x\n0::/user\n", HYBRID, "/sys/fs/cgroup/unified/user"),
        ("0::/docker/abc/inner\n", BOUND, "/sys/fs/cgroup/inner"),
        ("0::/docker/abcdef\n", BOUND, None),
        ("0::/../other\n", UNIFIED, None),
        ("4:memory:/x\n", HYBRID, None),
        ("0::/user\n", "33 23 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n", None),
        ("", "", None),
    ],
)
def test_the_directory_of_the_group_is_found(groups: str, mounts: str, expected: str | None) -> None:
    assert parse_own_group(groups, mounts) == (None if expected is None else Path(expected))


def test_there_is_no_scope_where_none_can_be_made(tmp_path: Path) -> None:
    assert open_scope("name", None) is None
    assert open_scope("name", tmp_path / "missing") is None
    assert open_scope("name", tmp_path) is None  # a directory that is no group
    assert list(tmp_path.iterdir()) == []
