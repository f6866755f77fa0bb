"""Which process has a token: a pure queue, in order of arrival."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

READ, WRITE = "read", "write"

# The messages of ``probes/kernels/iotokens.c``.
ASK = {"r": READ, "w": WRITE}
GIVE_BACK = {"R": READ, "W": WRITE}
GRANTED = {READ: "r", WRITE: "w"}
CONTENDED = {READ: "x", WRITE: "y"}

Client = TypeVar("Client", bound=Hashable)


@dataclass
class _Queue(Generic[Client]):
    limit: int
    holders: dict[Client, float] = field(default_factory=dict)  # with the time of the grant, oldest first
    waiting: deque[Client] = field(default_factory=deque)
    told: set[Client] = field(default_factory=set)  # holders that know that a client waits
    granted: int = 0
    waited: int = 0  # of those granted, after a wait


class TokenBank(Generic[Client]):
    """Tokens of a storage area: at most *readers* and *writers* clients have one to read, one to write.

    Each method returns the messages to send: pairs of a client and a character.
    """

    def __init__(self, readers: int, writers: int) -> None:
        self._queues: dict[str, _Queue[Client]] = {READ: _Queue(readers), WRITE: _Queue(writers)}

    def ask(self, client: Client, direction: str, now: float) -> list[tuple[Client, str]]:
        """Grant a token, or let *client* wait for one. Asking twice changes nothing."""
        queue = self._queues[direction]
        if client not in queue.holders and client not in queue.waiting:
            queue.waiting.append(client)
        return list(self._grant(direction, now))

    def give_back(self, client: Client, direction: str, now: float) -> list[tuple[Client, str]]:
        """Take the token of *client* and grant it to the next."""
        queue = self._queues[direction]
        queue.holders.pop(client, None)
        queue.told.discard(client)
        before = queue.granted
        messages = list(self._grant(direction, now))
        queue.waited += queue.granted - before
        return messages

    def leave(self, client: Client, now: float) -> list[tuple[Client, str]]:
        """Take all tokens of *client*, whose process has ended, and forget that it waits."""
        messages = []
        for direction, queue in self._queues.items():
            if client in queue.waiting:
                queue.waiting.remove(client)
            messages += self.give_back(client, direction, now)
        return messages

    def _grant(self, direction: str, now: float) -> Iterator[tuple[Client, str]]:
        queue = self._queues[direction]
        while queue.waiting and len(queue.holders) < queue.limit:
            client = queue.waiting.popleft()
            queue.holders[client] = now
            queue.granted += 1
            yield client, GRANTED[direction]
        if queue.waiting:
            for client in queue.holders.keys() - queue.told:
                queue.told.add(client)
                yield client, CONTENDED[direction]

    def figures(self, now: float) -> dict[str, dict[str, object]]:
        """Return, for each direction, the limit, the seconds of each holder, and the numbers of clients."""
        return {
            direction: {
                "limit": queue.limit,
                "held_seconds": [round(now - since, 3) for since in queue.holders.values()],
                "waiting": len(queue.waiting),
                "granted": queue.granted,
                "waited": queue.waited,
            }
            for direction, queue in self._queues.items()
        }
