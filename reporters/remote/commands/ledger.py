"""``ledger``: what ran at this site, by slot, and which reports wait for delivery. Reads local files only."""

from __future__ import annotations

import argparse
import sys

from reporters.remote.agent import history
from reporters.remote.errors import UsageFault
from reporters.remote.options import add_state, state_path
from reporters.remote.state_directory import StateDirectory, StateError
from reporters.spool.files import SpoolError
from reporters.spool.run_index import run_of
from reporters.spool.waiting import WaitingSpool


class Command:
    summary = "Show what ran at this site, and which reports wait for delivery."

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        add_state(parser)
        parser.add_argument("--series", default="", metavar="NAME", help="of this series only")
        parser.add_argument(
            "--last", type=int, default=50, metavar="N", help="the newest N runs (default: 50)"
        )

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        try:
            state = StateDirectory.open(state_path(options))
            waiting = {
                str(run_of(record))
                for parts in WaitingSpool(state.spool).batches()
                for part in parts
                for record in part.records
            }
            past = list(history.read(state.path))
        except (StateError, SpoolError, OSError) as error:
            raise UsageFault(str(error)) from None
        chosen = sorted(
            (each for each in past if options.series in ("", each.series)), key=lambda each: each.slot
        )
        for each in chosen[-options.last :] if options.last > 0 else ():
            delivery = "waits" if each.run in waiting else "delivered"
            reason = "".join(character if character.isprintable() else " " for character in each.reason)
            sys.stdout.write(
                f"{each.slot[:19]}Z {each.outcome:<9} {each.seconds:>9.3f} s {delivery:<9} {each.series}"
                f"{f': {reason}' if reason else ''}\n"
            )
        if not chosen:
            sys.stderr.write(f"no runs{f' of {options.series}' if options.series else ''} yet\n")
        return 0
