"""Options of shells, transfers and batch systems: invalid ones are refused before a run."""

from __future__ import annotations

import math
from typing import Any

import pytest

from probes.base import InvalidParameters
from reporters import resolve
from reporters.config import ResourceConfig

SSH = {"kind": "ssh", "host": "login.example.org"}
GRIDFTP = {"kind": "gridftp", "host": "dtn.example.org"}
XROOTD = {"kind": "xrootd", "host": "dtn.example.org"}
HTTP = {"kind": "http", "host": "dtn.example.org"}


def complaint(**ways: Any) -> str:
    """Why a resource is not reached in such *ways*."""
    with pytest.raises(InvalidParameters) as raised:
        resolve.check(ResourceConfig("ncsa", "ncsa", "/scratch", **ways))
    return str(raised.value)


@pytest.mark.parametrize(
    ("ways", "expected"),
    [
        ({"shell": {**SSH, "port": "22"}}, "port: expected an integer or null, got '22'"),
        ({"shell": {**SSH, "port": True}}, "port: expected an integer or null, got True"),
        ({"shell": {**SSH, "port": 65_536}}, "port: 65536 is outside 1 to 65535"),
        ({"shell": {**SSH, "jump": 5}}, "jump: expected a text or null, got 5"),
        ({"shell": {**SSH, "host": None}}, "host: expected a text, got None"),
        ({"shell": {**SSH, "user": "a\0b"}}, r"user: expected a text or null, got 'a\x00b'"),
        ({"shell": {**SSH, "connect_timeout_seconds": "10"}}, "expected a number, got '10'"),
        ({"shell": {**SSH, "connect_timeout_seconds": math.inf}}, "expected a number, got inf"),
        ({"shell": {**SSH, "keep_alive_seconds": 0}}, "sessions and seconds must be greater than 0"),
        ({"shell": {**SSH, "sessions": 0}}, "sessions and seconds must be greater than 0"),
        ({"shell": {**SSH, "sessions": 2.5}}, "sessions: expected an integer, got 2.5"),
        ({"shell": {**SSH, "host": ""}}, "expected a host or a user, got ''"),
        ({"shell": {**SSH, "host": "-oProxyCommand=x"}}, "expected a host or a user, got '-oProxyCommand=x'"),
        ({"shell": {**SSH, "user": "a;b"}}, "expected a host or a user, got 'a;b'"),
        ({"shell": {"kind": "local", "directory": []}}, "directory: expected a text or null, got []"),
        ({"shell": {"kind": []}}, "there is no shell []"),
        ({"shell": {**SSH, "label": "x"}}, "multiple values for argument 'label'"),
        ({"transfer": {"kind": "ssh", "host": ""}}, "expected a host or a user, got None"),
        ({"transfer": {**GRIDFTP, "retries": -1}}, "retries: -1 is negative"),
        ({"transfer": {**GRIDFTP, "retries": "many"}}, "retries: expected an integer, got 'many'"),
        ({"transfer": {**GRIDFTP, "port": None}}, "port: expected an integer, got None"),
        ({"transfer": {**GRIDFTP, "host": "a b"}}, "the host is missing or invalid"),
        ({"transfer": {**GRIDFTP, "proxy_file": []}}, "proxy_file: expected a text, got []"),
        ({"transfer": {**XROOTD, "delegate": "false"}}, "delegate: expected true or false, got 'false'"),
        ({"transfer": {**XROOTD, "host": "a..b"}}, "expected a name or an address for a URL, got 'a..b'"),
        ({"transfer": {**XROOTD, "host": "a" * 64}}, "expected a name or an address for a URL"),
        ({"transfer": {**XROOTD, "port": 0}}, "port: 0 is outside 1 to 65535"),
        ({"transfer": {"kind": "http"}}, "expected a name or an address for a URL, got None"),
        ({"transfer": {**HTTP, "directory": ""}}, "expected an absolute path, got ''"),
        ({"transfer": {**HTTP, "token_file": ["x"]}}, "token_file: expected a text, got ['x']"),
        ({"transfer": {**HTTP, "stall_seconds": math.nan}}, "stall_seconds: expected a number, got nan"),
        ({"batch": {"kind": "slurm", "extra": "--exclusive"}}, "extra: expected a list of texts, got '--exc"),
        ({"batch": {"kind": "slurm", "extra": [5]}}, "extra: expected a list of texts, got [5]"),
        ({"batch": {"kind": "pbs", "select": 1}}, "select: expected true or false, got 1"),
    ],
)
def test_an_option_of_another_type_or_out_of_range_is_named(ways: dict[str, Any], expected: str) -> None:
    message = complaint(**ways)
    assert expected in message
    assert "ncsa" in message


@pytest.mark.parametrize(
    "ways",
    [
        {"shell": {**SSH, "port": 22, "user": "GRID\\probe", "connect_timeout_seconds": 5}},
        {"shell": {**SSH, "port": None, "jump": None}},
        {"shell": {**SSH, "host": "2001:db8::1"}, "transfer": HTTP},
        {"transfer": {**XROOTD, "host": "dtn.example.org."}},
        {"transfer": {**HTTP, "host": "::1", "stall_seconds": 5}},
        {"transfer": {"kind": "http"}, "address": "192.0.2.7"},
        {"batch": {"kind": "slurm", "extra": ["--exclusive"]}},
    ],
)
def test_valid_options_are_accepted(ways: dict[str, Any]) -> None:
    resolve.check(ResourceConfig("ncsa", "ncsa", "/scratch", **ways))
