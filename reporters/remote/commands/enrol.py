"""``enrol URL CODE``: make a key pair here, and have the server bind it to the reporter of the code."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from reporters.remote import enrolment, signing
from reporters.remote import options as common
from reporters.remote.agent.ownership import wake_owner
from reporters.remote.errors import UsageFault
from reporters.remote.server import ServerClient, ServerError, parse_url, proxy_for
from reporters.remote.signing.base import SigningError
from reporters.remote.state_directory import SITE_POLICY, StateDirectory, StateError


class Command:
    summary = "Enrol this reporter at a server, with a code from its admin."

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("url", metavar="URL", help="the server, such as https://grid.example.org")
        parser.add_argument(
            "code", metavar="CODE", help="valid for 15 minutes, and once; - reads it from the standard input"
        )
        common.add_state(parser)
        parser.add_argument(
            "--ca-file", default="", metavar="FILE", help="certificates of the authorities to trust"
        )
        parser.add_argument(
            "--proxy",
            default="",
            metavar="URL",
            help="HTTP proxy, such as http://proxy:3128, or none (default: that of https_proxy)",
        )
        parser.add_argument(
            "--method", default="", choices=signing.names(), help="how to sign (default: what works)"
        )
        parser.add_argument("--force", action="store_true", help="replace an earlier enrolment")

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        url = parse_url(options.url)
        ca_file = str(Path(options.ca_file).absolute()) if options.ca_file else ""
        chosen = enrolment.EnrolmentOptions(options.method, options.force, ca_file, options.proxy)
        client = ServerClient(url, ca_file=ca_file, proxy=proxy_for(url, options.proxy))
        # Other users of the host see the arguments of a process, but not its input.
        code = sys.stdin.readline().strip() if options.code == "-" else options.code
        try:
            state = StateDirectory.create(common.state_path(options))
            enrolled = enrolment.enrol(client, state, code, chosen)
        except (ServerError, SigningError, StateError) as error:
            raise UsageFault(str(error)) from None
        wake_owner(state.path)  # its former key is revoked
        sys.stdout.write(
            f"enrolled as {enrolled.reporter} at {enrolled.url}\n"
            f"key {enrolled.key_fingerprint[:16]}, made by {enrolled.method}, in {state.path}\n"
            f"next: write {state.path / SITE_POLICY} if this site limits what may run;\n"
            "then `run` starts the reporter, `install` has it started after every boot\n"
        )
        return 0
