"""Deliver what the spool has, without running anything: before a reporter is removed."""

from __future__ import annotations

import sys
import time

from reporters.remote import identity
from reporters.remote.agent.delivery import Delivery
from reporters.remote.agent.log import AgentLog
from reporters.remote.agent.notices import Notices
from reporters.remote.clock import SiteClock
from reporters.remote.gateway import Gateway
from reporters.remote.server import ServerClient, parse_url, proxy_for
from reporters.remote.state_directory import LOG, StateDirectory
from reporters.remote.token import TokenSource
from reporters.spool.spool import Spool


def drain(state: StateDirectory, within_seconds: float) -> None:
    """Deliver the records in the spool, for at most *within_seconds*. No agent runs meanwhile.

    Raises:
        StateError: the reporter is not enrolled.
        SpoolError: the spool cannot be read.
    """
    me = identity.load(state)
    clock = SiteClock()
    url = parse_url(me.url)
    client = ServerClient(url, ca_file=me.ca_file, proxy=proxy_for(url, me.proxy))
    gateway = Gateway(me, client, TokenSource(me, state, clock), clock)
    notices = Notices(AgentLog(state.path / LOG, sys.stderr), clock.now, clock.steady)
    delivery = Delivery(Spool(state.spool, me.reporter), gateway, me, notices, lambda: None)
    until = time.monotonic() + within_seconds
    while (wait_seconds := delivery.deliver()) is not None and time.monotonic() + wait_seconds < until:
        time.sleep(wait_seconds)
