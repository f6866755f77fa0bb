"""Assignments for tests, signed as the server signs them."""

from __future__ import annotations

import json
from typing import Any

from monitor.runs.fleet import signatures
from reporters.remote import signing
from reporters.remote.identity import ReporterIdentity
from reporters.remote.state_directory import StateDirectory

SERIES: dict[str, Any] = {
    "name": "noop-ncsa",
    "probe": "noop",
    "parameters": {},
    "bindings": {"target": ["ncsa-login"]},
    "schedule": "* * * * *",
    "schedule_name": "noop-ncsa",
    "timezone": "UTC",
    "starts_at": None,
    "ends_at": None,
    "delay_seconds": 0,
    "after": None,
    "jitter_seconds": 0,
    "exclusive": "",
    "exclusive_wait_seconds": 900,
    "limit_seconds": 60.0,
    "max_load1": None,
    "warm_up_runs": 0,
    "expected_seconds": {},
}
RESOURCE: dict[str, Any] = {
    "site": "ncsa",
    "scratch": "/scratch/grid",
    "shell": {"kind": "local"},
    "transfer": {"kind": "local"},
    "batch": {"kind": "fork"},
    "address": "",
}


def series(name: str = "noop-ncsa", **changes: Any) -> dict[str, Any]:
    return {**SERIES, "name": name, "schedule_name": name, **changes}


def assignment(*each: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return an assignment of the series *each*, by default one."""
    return {
        "format": 1,
        "reporter": "ncsa",
        "version": 7,
        "issued_at": "2026-11-23T06:00:00.000000Z",
        "series": list(each) or [series()],
        "resources": {"ncsa-login": RESOURCE},
        "windows": [],
        "capacity": 4,
        **changes,
    }


def sign(
    document: dict[str, Any] | str, purpose: str = signing.ASSIGNMENT, method: str = "openssl"
) -> dict[str, str]:
    """Return *document* with the signature of the server."""
    text = document if isinstance(document, str) else json.dumps(document)
    return {
        "document": text,
        "signature": signatures.sign(method, signatures.Purpose(purpose), text.encode()),
    }


def enrolled(state: StateDirectory, method: str = "openssl", **changes: Any) -> ReporterIdentity:
    """Return the identity that an enrolment of the reporter ncsa leaves; a key is made in *state*."""
    key_file = f"key-{'0' * 16}-{method}"
    if not (state.path / key_file).exists():
        signing.load(method).make_key(state.path / key_file)
    public_key = signing.load(method).public_key(state.path / key_file)
    values: dict[str, Any] = {
        "url": "http://localhost:1",
        "reporter": "ncsa",
        "method": method,
        "key_file": key_file,
        "key_fingerprint": signing.load(method).fingerprint(public_key),
        "server_key": signatures.server_public_key(method),
        "server_fingerprint": signatures.server_fingerprint(),
        "exchange_seconds": 60.0,
        "ca_file": "",
        "proxy": "none",
    }
    return ReporterIdentity(**{**values, **changes})
