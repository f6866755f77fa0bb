"""A network between agents and their server that refuses, cuts, delays, doubles and reorders requests."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

_LINGER_SECONDS = 2.0  # the longest time that a request is held back
_HEADER_BYTES = 64 * 1024
_Answer = Callable[["Request"], Coroutine[None, None, bytes]]


@dataclass
class Request:
    """One HTTP request, as it came; *later* is set when another request has passed it."""

    data: bytes
    later: asyncio.Event = field(default_factory=asyncio.Event)


class UnreliableNetwork:
    """A TCP relay on loopback to the server at *port*, with a fault in a *share* of the requests.

    Each connection carries one request. *seed* draws the faults. ``faults`` counts them by name.
    """

    def __init__(self, port: int, share: float, seed: int) -> None:
        self.port = 0
        self.faults: Counter[str] = Counter()
        self.is_down = False
        self._server_port, self.share = port, share
        self._chance = random.Random(seed)
        self._waiting: list[Request] = []
        self._kinds: dict[str, _Answer] = {
            "the request is lost": self._lose_request,
            "the request is truncated": self._truncate_request,
            "the request arrives twice": self._double,
            "the request is overtaken": self._reorder,
            "the answer is lost": self._lose_answer,
            "the answer is truncated": self._truncate_answer,
            "the answer is late": self._delay,
        }

    @contextmanager
    def running(self) -> Iterator[None]:
        """Relay in a thread until the end of the block."""
        ready = threading.Event()
        loop = asyncio.new_event_loop()
        end = asyncio.Event()
        thread = threading.Thread(target=loop.run_until_complete, args=(self._serve(ready, end),))
        thread.start()
        ready.wait()
        try:
            yield
        finally:
            loop.call_soon_threadsafe(end.set)
            thread.join()
            loop.close()

    async def _serve(self, ready: threading.Event, end: asyncio.Event) -> None:
        tasks: set[asyncio.Task[None]] = set()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.ensure_future(self._relay(reader, writer))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        server = await asyncio.start_server(accept, "127.0.0.1", 0, limit=_HEADER_BYTES)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await end.wait()
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            if not self.is_down:
                request = Request(await _read_message(reader))
                for other in self._waiting:
                    other.later.set()
                writer.write(await self._answer(request))
                await writer.drain()
        with suppress(OSError):
            writer.close()
            await writer.wait_closed()

    async def _answer(self, request: Request) -> bytes:
        if self._chance.random() >= self.share:
            return await self._forward(request)
        kind = self._chance.choice(list(self._kinds))
        self.faults[kind] += 1
        return await self._kinds[kind](request)

    async def _forward(self, request: Request) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._server_port, limit=_HEADER_BYTES)
        try:
            writer.write(request.data)
            await writer.drain()
            return await reader.read(-1) if _closes(request.data) else await _read_message(reader)
        finally:
            writer.close()

    async def _lose_request(self, _request: Request) -> bytes:
        return b""

    async def _truncate_request(self, request: Request) -> bytes:
        _, writer = await asyncio.open_connection("127.0.0.1", self._server_port)
        writer.write(request.data[: self._chance.randrange(len(request.data))])
        await writer.drain()
        writer.close()
        return b""

    async def _double(self, request: Request) -> bytes:
        first, second = await asyncio.gather(self._forward(request), self._forward(request))
        return self._chance.choice([first, second])

    async def _reorder(self, request: Request) -> bytes:
        self._waiting.append(request)
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(request.later.wait(), _LINGER_SECONDS)
        self._waiting.remove(request)
        return await self._forward(request)

    async def _lose_answer(self, request: Request) -> bytes:
        await self._forward(request)
        return b""

    async def _truncate_answer(self, request: Request) -> bytes:
        answer = await self._forward(request)
        return answer[: self._chance.randrange(len(answer) or 1)]

    async def _delay(self, request: Request) -> bytes:
        answer = await self._forward(request)
        await asyncio.sleep(self._chance.uniform(0.0, _LINGER_SECONDS))
        return answer


async def _read_message(reader: asyncio.StreamReader) -> bytes:
    """Return one HTTP message with a Content-Length, or without a body."""
    head = await reader.readuntil(b"\r\n\r\n")
    return head + await reader.readexactly(_content_bytes(head))


def _content_bytes(head: bytes) -> int:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return int(value)
    return 0


def _closes(request: bytes) -> bool:
    return b"\r\nconnection: close" in request.partition(b"\r\n\r\n")[0].lower()
