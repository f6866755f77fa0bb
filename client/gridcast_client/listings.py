"""The commands that list: sites, resources, series and runs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import datetime

from gridcast_client import Client, Resource, Site, arguments
from gridcast_client.result import Result, width
from gridcast_client.texts import table

STATES = ("up", "held", "maintenance", "down", "unknown")


def site_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--state", default="", choices=STATES)
    arguments.limit(parser)


def sites(client: Client, given: argparse.Namespace) -> Result:
    """The sites, and whether runs may start there."""
    return _places("site", list(client.sites(state=given.state, limit=given.limit)))


def resource_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--site", default="")
    parser.add_argument("--state", default="", choices=STATES)
    arguments.limit(parser)


def resources(client: Client, given: argparse.Namespace) -> Result:
    """The resources, and whether runs may start there."""
    return _places("resource", list(client.resources(site=given.site, state=given.state, limit=given.limit)))


def _places(noun: str, places: Sequence[Site | Resource]) -> Result:
    rows = [
        (place.name, place.state, _at(place.since), "; ".join(reason.text for reason in place.reasons))
        for place in places
    ]
    return Result(places, table((noun, "state", "since", "reasons"), rows, width()))


def series_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--site", default="")
    parser.add_argument("--suite", default="")
    arguments.limit(parser)


def series(client: Client, given: argparse.Namespace) -> Result:
    """The series that the token may see."""
    found = list(client.series(site=given.site, suite=given.suite, limit=given.limit))
    rows = [(each.name, each.suite, each.probe, each.schedule or "-") for each in found]
    return Result(found, table(("series", "suite", "probe", "schedule"), rows, width()))


def run_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("series", nargs="?", default="")
    parser.add_argument("--site", default="")
    parser.add_argument("--suite", default="")
    parser.add_argument(
        "--state", default="", help="passed, failed, missed, running, ...; default: any final one"
    )
    parser.add_argument("--start", type=arguments.time, metavar="TIME", help="of the first slot")
    parser.add_argument("--end", type=arguments.time, metavar="TIME", help="before which slots are listed")
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="default: 20")


def runs(client: Client, given: argparse.Namespace) -> Result:
    """The newest runs, and how they ended."""
    found = list(
        client.runs(
            series=given.series,
            site=given.site,
            suite=given.suite,
            state=given.state,
            start=given.start,
            end=given.end,
            limit=given.limit,
        )
    )
    rows = [(_at(run.slot), run.series, run.state, run.failed_resource or "-", run.reason) for run in found]
    return Result(found, table(("slot", "series", "state", "at", "reason"), rows, width()))


def _at(time: datetime | None) -> str:
    return time.astimezone().strftime("%Y-%m-%d %H:%M") if time else "-"
