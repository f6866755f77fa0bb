"""Arguments that several commands have, and what their texts mean."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from datetime import datetime, timezone


def limit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--limit", type=int, metavar="N", help="at most so many; default: all")


def role(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--role", type=role_of, action="append", default=[], metavar="ROLE=A,B", help="resources of a role"
    )


def start(parser: argparse.ArgumentParser) -> None:
    when = parser.add_mutually_exclusive_group()
    when.add_argument("--at", type=time, metavar="TIME", help="start of the run, with a zone; default: now")
    when.add_argument("--horizon", type=float, metavar="SECONDS", help="the same, from now")


def time(text: str) -> datetime:
    """Return a time: RFC 3339, or seconds since 1970, as batch systems give it."""
    try:
        if text.replace(".", "", 1).isdigit():
            return datetime.fromtimestamp(float(text), timezone.utc)
        parsed = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"expected a time such as 2026-03-01T12:00:00Z, got {text!r}"
        ) from None
    if parsed.tzinfo is None:
        raise argparse.ArgumentTypeError(f"{text}: expected a zone at its end, such as Z or +01:00")
    return parsed


def names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",") if part]
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected numbers, separated by commas, got {text!r}") from None


def role_of(text: str) -> tuple[str, list[str]]:
    role, _, resources = text.partition("=")
    if not (role and names(resources)):
        raise argparse.ArgumentTypeError(f"expected ROLE=RESOURCE,RESOURCE, got {text!r}")
    return role, names(resources)


def candidate(text: str) -> tuple[str, Mapping[str, list[str]]]:
    key, _, roles = text.partition(":")
    if not (key and roles):
        raise argparse.ArgumentTypeError(f"expected KEY:ROLE=A,B;ROLE=C, got {text!r}")
    return key, dict(role_of(role) for role in roles.split(";"))
