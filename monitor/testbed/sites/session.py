"""One command at a site: run for real, streamed, killed with all its children when the client goes away."""

from __future__ import annotations

import asyncio
import os
import signal
import uuid
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable
from contextlib import suppress

import asyncssh

from monitor.testbed.sites.inflow import Inflow
from monitor.testbed.sites.processes import kill_marked

SESSION_MARK = "SITE_SESSION"
_CHUNK_BYTES = 1 << 16
_GONE = (ConnectionError, asyncssh.Error)  # what reading from or writing to a client that has left raises


async def run_command(
    client: asyncssh.SSHServerProcess[bytes],
    command: str,
    *,
    cwd: str,
    environment: dict[str, str],
    inflow: Inflow | None,
) -> None:
    """Run *command* as ``/bin/sh -c`` and tell *client* how it ended. *inflow*, if any, paces its input.

    A program that the command leaves behind lives on after an orderly end, as at any SSH server, until the
    site stops. When the client or its connection goes away first, nothing of the session survives.
    """
    mark = uuid.uuid4().hex
    program = await asyncio.create_subprocess_exec(
        "/bin/sh",
        "-c",
        command,
        cwd=cwd,
        env={**environment, SESSION_MARK: mark},
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        start_new_session=True,
    )
    ended = False
    try:
        ended = await _first_is_done(_streamed(client, program, inflow), client.wait_closed())
    finally:
        if not ended:
            kill_marked(f"{SESSION_MARK}={mark}")
            await program.wait()
    tell_end(client, program)


def tell_end(client: asyncssh.SSHServerProcess[bytes], program: Process) -> None:
    """Pass on the exit status of *program*, or the signal that ended it."""
    status = program.returncode
    with suppress(*_GONE):
        if status is not None and status < 0:
            client.exit_with_signal(signal.Signals(-status).name.removeprefix("SIG"))
        else:
            client.exit(status or 0)


async def _first_is_done(work: Awaitable[None], interruption: Awaitable[None]) -> bool:
    """Whether *work* ended before *interruption* did; the other one is cancelled."""
    working, interrupting = asyncio.ensure_future(work), asyncio.ensure_future(interruption)
    try:
        await asyncio.wait((working, interrupting), return_when=asyncio.FIRST_COMPLETED)
        return working.done() and working.exception() is None
    finally:
        for task in (working, interrupting):
            task.cancel()
        await asyncio.gather(working, interrupting, return_exceptions=True)


async def _streamed(
    client: asyncssh.SSHServerProcess[bytes], program: Process, inflow: Inflow | None
) -> None:
    """Pass bytes and signals both ways until the program has ended and all its output has been passed on."""
    if program.stdin is None or program.stdout is None or program.stderr is None:
        raise RuntimeError("a program without pipes")  # cannot be: it was started with them
    feeding = asyncio.create_task(_feed(client, program, program.stdin, inflow))
    try:
        await asyncio.gather(_drain(program.stdout, client.stdout), _drain(program.stderr, client.stderr))
        await program.wait()
    finally:
        feeding.cancel()
        await asyncio.gather(feeding, return_exceptions=True)


async def _drain(source: asyncio.StreamReader, target: asyncssh.SSHWriter[bytes]) -> None:
    while data := await source.read(_CHUNK_BYTES):
        target.write(data)
        await target.drain()


async def _feed(
    client: asyncssh.SSHServerProcess[bytes],
    program: Process,
    target: asyncio.StreamWriter,
    inflow: Inflow | None,
) -> None:
    """Pass the client's input on until its end; signals that it sends go to the program's group."""
    with suppress(*_GONE):  # the program need not read all
        while data := await _next_input(client, program):
            if inflow is not None:
                await inflow.admit(len(data))
            target.write(data)
            await target.drain()
        if inflow is not None:
            await inflow.end()
    target.close()


async def _next_input(client: asyncssh.SSHServerProcess[bytes], program: Process) -> bytes:
    while True:
        try:
            return await client.stdin.read(_CHUNK_BYTES)
        except asyncssh.SignalReceived as received:
            number = getattr(signal, f"SIG{received.signal}", None)
            if number is not None:
                with suppress(ProcessLookupError):
                    os.killpg(program.pid, number)
        except (asyncssh.BreakReceived, asyncssh.TerminalSizeChanged):
            continue
