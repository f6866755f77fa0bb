"""The command ``gridcast``: see ``gridcast --help`` and docs/client.md."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from datetime import datetime
from functools import partial, wraps
from typing import Any

from gridcast_client import (
    TIMEOUT_SECONDS,
    TRIES,
    Client,
    GridcastError,
    InvalidInput,
    NoForecast,
    Overloaded,
    Problem,
    Transport,
    __version__,
    commands,
    listings,
    measure,
)
from gridcast_client.completion import SCRIPTS, completions
from gridcast_client.result import AGAIN, DONE, NO_FORECAST, REFUSED, USAGE, Result
from gridcast_client.texts import duration

Connect = Callable[[], Client]
Run = Callable[[Connect, argparse.Namespace], Result]


def _connected(run: Callable[[Client, argparse.Namespace], Result]) -> Run:
    """Return *run*, with a client that is made first."""

    @wraps(run)
    def connected(connect: Connect, given: argparse.Namespace) -> Result:
        return run(connect(), given)

    return connected


COMMANDS: Mapping[str, tuple[Callable[[argparse.ArgumentParser], None], Run]] = {
    "ask": (commands.ask_arguments, _connected(commands.ask)),
    "rank": (commands.rank_arguments, _connected(commands.rank)),
    "tell": (commands.tell_arguments, _connected(commands.tell)),
    "send": (commands.send_arguments, _connected(commands.send)),
    "deliver": (commands.deliver_arguments, _connected(commands.deliver)),
    "measure": (measure.add_arguments, measure.measure),
    "sites": (listings.site_arguments, _connected(listings.sites)),
    "resources": (listings.resource_arguments, _connected(listings.resources)),
    "series": (listings.series_arguments, _connected(listings.series)),
    "runs": (listings.run_arguments, _connected(listings.runs)),
}

_EXIT_STATUS = """\
exit status:
  0  done
  2  the command line, a variable or a file is invalid
  3  no forecast can be trusted: too few or too old data, or a site is down
  4  gridcast does not answer or is overloaded: the same command may succeed later
  5  gridcast refused: the token, the request, or a report; or what answers is not gridcast
  measure: the exit status of the command that it ran

environment:
  GRIDCAST_URL, GRIDCAST_TOKEN or GRIDCAST_TOKEN_FILE, GRIDCAST_CA_FILE, GRIDCAST_SPOOL,
  https_proxy, no_proxy
"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    common = _common()
    whole = argparse.ArgumentParser(
        prog="gridcast",
        description="Ask gridcast how long jobs take and where, tell it how they ended, and send it reports.",
        epilog=_EXIT_STATUS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[common],
    )
    whole.add_argument("--version", action="version", version=f"gridcast-client {__version__}")
    subparsers = whole.add_subparsers(metavar="COMMAND", required=True)
    for name, (add_arguments, run) in COMMANDS.items():
        summary = (run.__doc__ or "").partition("\n")[0]
        one = subparsers.add_parser(
            name,
            help=summary,
            description=summary,
            parents=[common],
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        add_arguments(one)
        one.set_defaults(run=run)
    one = subparsers.add_parser("completion", help="Print the completion script of a shell.")
    one.add_argument("shell", choices=sorted(SCRIPTS))
    one = subparsers.add_parser("complete")  # asked by completion scripts
    one.add_argument("words", nargs="*")
    return whole


def _common() -> argparse.ArgumentParser:
    """Return the options that may stand before and after the name of a command."""
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    group = common.add_argument_group("connection and output")
    group.add_argument("--url", help="of gridcast, as in the browser")
    group.add_argument("--token-file", metavar="FILE", help="that only its owner can read")
    group.add_argument("--ca-file", metavar="FILE", help="certificates of the server's authority")
    group.add_argument("--proxy", metavar="URL", help="of an HTTP proxy; none: no proxy")
    group.add_argument("--plain-http", action="store_true", help="send the token without TLS")
    group.add_argument(
        "--timeout", type=float, metavar="SECONDS", help=f"of the whole command; default: {TIMEOUT_SECONDS:g}"
    )
    group.add_argument("--tries", type=int, metavar="N", help=f"default: {TRIES}")
    group.add_argument("--spool", metavar="DIRECTORY", help="where reports wait until gridcast has them")
    group.add_argument("--json", action="store_true", help="print JSON")
    return common


def main(
    argv: Sequence[str] | None = None,
    *,
    transport: Transport | None = None,
    environ: Mapping[str, str] = os.environ,
) -> int:
    """Run the command line *argv*; return the exit status."""
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == ["complete"]:  # its words look like options
        words = argv[2:] if argv[1:2] == ["--"] else argv[1:]
        print("\n".join(completions(parser(), words)))
        return DONE
    words, program = _cut(argv)
    arguments = parser().parse_args(words, argparse.Namespace(program=program))
    if "shell" in arguments:
        print(SCRIPTS[arguments.shell], end="")
        return DONE
    try:
        return _run(arguments, transport, environ)
    except BrokenPipeError:  # of ``gridcast runs | head``
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115  # until the process ends
        return DONE
    except KeyboardInterrupt:
        return 130


def _cut(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return our own words, and the command to be measured: what stands after the first ``--``."""
    at = argv.index("--") if "--" in argv else len(argv)
    return (list(argv[:at]), list(argv[at + 1 :])) if "measure" in argv[:at] else (list(argv), [])


def _run(arguments: argparse.Namespace, transport: Transport | None, environ: Mapping[str, str]) -> int:
    is_json = "json" in arguments
    try:
        result: Result = arguments.run(partial(_client, vars(arguments), transport, environ), arguments)
    except GridcastError as error:
        if is_json:
            _print_json({"error": _error_fields(error)})
        print(f"gridcast: {error}{_advice(error)}", file=sys.stderr)
        return status_of(error)
    if is_json:
        _print_json(result.answer)
    elif result.text:
        print(result.text)
    if result.error is not None:
        print(f"gridcast: {result.error}{_advice(result.error)}", file=sys.stderr)
    if result.note:
        print(f"gridcast: {result.note}", file=sys.stderr)
    return result.status


def _client(given: Mapping[str, Any], transport: Transport | None, environ: Mapping[str, str]) -> Client:
    return Client(
        given.get("url"),
        token_file=given.get("token_file"),
        spool=given.get("spool"),
        ca_file=given.get("ca_file"),
        proxy=given.get("proxy"),
        timeout_seconds=given.get("timeout", TIMEOUT_SECONDS),
        tries=given.get("tries", TRIES),
        plain_http=given.get("plain_http", False),
        user_agent="gridcast",
        transport=transport,
        environ=environ,
    )


def status_of(error: GridcastError) -> int:
    """Return the exit status that stands for *error*."""
    if isinstance(error, InvalidInput):
        return USAGE
    if isinstance(error, NoForecast):
        return NO_FORECAST
    return AGAIN if error.again else REFUSED


def _advice(error: GridcastError) -> str:
    if isinstance(error, Problem) and error.status == 401:
        return (
            "\nIssue a token on the account page, and name its file with --token-file or GRIDCAST_TOKEN_FILE."
        )
    if isinstance(error, Overloaded) and error.retry_after_seconds:
        return f"\nTry again in {duration(error.retry_after_seconds)}."
    return "\nTry again later." if error.again else ""


def _error_fields(error: GridcastError) -> dict[str, Any]:
    fields = {"kind": type(error).__name__, "again": error.again, "message": str(error)}
    return {**fields, **({"status": error.status, **error.fields} if isinstance(error, Problem) else {})}


def _print_json(answer: Any) -> None:
    print(json.dumps(answer, default=_as_json))


def _as_json(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return vars(value)
    if isinstance(value, datetime):
        return value.isoformat()
    return _error_fields(value) if isinstance(value, GridcastError) else str(value)


if __name__ == "__main__":
    sys.exit(main())
