"""Run one command at a site, stream its data, and kill all its processes if the client disconnects."""

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
from monitor.testbed.sites.processes import kill_with_variable

SESSION_VARIABLE = "SITE_SESSION"
_CHUNK_BYTES = 1 << 16
_DISCONNECTED = (
    ConnectionError,
    asyncssh.Error,
)  # raised by reads and writes after the client has disconnected


async def run_command(
    client: asyncssh.SSHServerProcess[bytes],
    command: str,
    *,
    cwd: str,
    environment: dict[str, str],
    inflow: Inflow | None,
) -> None:
    """Run *command* as ``/bin/sh -c`` and send *client* its exit status. *inflow*, if given, paces its input.

    As with any SSH server, background programs outlive an orderly end of the command, but not the site.
    If the client disconnects first, all processes of the session are killed.
    """
    session = uuid.uuid4().hex
    program = await asyncio.create_subprocess_exec(
        "/bin/sh",
        "-c",
        command,
        cwd=cwd,
        env={**environment, SESSION_VARIABLE: session},
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
            kill_with_variable(f"{SESSION_VARIABLE}={session}")
            with suppress(ProcessLookupError):  # a shell that is just being executed shows no environment yet
                os.killpg(program.pid, signal.SIGKILL)
            await program.wait()
    _send_exit_status(client, program)


def _send_exit_status(client: asyncssh.SSHServerProcess[bytes], program: Process) -> None:
    """Send the exit status of *program*, or the signal that ended it."""
    status = program.returncode
    with suppress(*_DISCONNECTED):
        if status is not None and status < 0:
            client.exit_with_signal(signal.Signals(-status).name.removeprefix("SIG"))
        else:
            client.exit(status or 0)


async def _first_is_done(work: Awaitable[None], interruption: Awaitable[None]) -> bool:
    """Return whether *work* ended before *interruption* and without an error; cancel what is unfinished."""
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
    """Stream data and signals until the program has ended and all its output has been sent."""
    if program.stdin is None or program.stdout is None or program.stderr is None:
        raise RuntimeError("a program without pipes")  # cannot happen: it was started with pipes
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
    """Write the client's input to the program; send the client's signals to the program's process group."""
    with suppress(*_DISCONNECTED):  # the program may end without reading all
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
