"""Counts of failed attempts, and the places of attempts under way, under the keys of limits.

A count ends a window after its first failure. An attempt holds a place under each of its keys while it is
checked; the place of a process that has died ends by itself. One rule decides, as a script in Valkey for all
processes, and in the memory of a process while Valkey is unreachable.
"""

from __future__ import annotations

import enum
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from redis import Redis

logger = logging.getLogger(__name__)
Answer = TypeVar("Answer")

WINDOW_SECONDS = 900
PLACE_SECONDS = 30  # longer than a password is checked, on a busy machine
ANSWER_SECONDS = 3.0
MOST_IN_MEMORY = 100_000  # an attacker with other names must not push a count out
_KEPT_SHARE = 0.9  # of them, when there would be more


class AttemptState(enum.IntEnum):
    ADMITTED = 0
    BUSY = 1  # places and failures together reach a limit
    REFUSED = 2  # failures alone do


class AttemptRuling(NamedTuple):
    """*at*: the index of the key that decided; *ends*: when its window ends; *is_news*: its first refusal."""

    state: AttemptState
    at: int = 0
    ends: int = 0
    is_news: bool = False


class Counts(Protocol):
    """Keys are counted together: all of them, or none. *limits* has the failures that each permits."""

    def begin(self, keys: Sequence[str], limits: Sequence[int], place: str, now: int) -> AttemptRuling:
        """Take a place under each of *keys*, unless one of the limits is reached."""

    def count(self, keys: Sequence[str], limits: Sequence[int], now: int) -> AttemptRuling:
        """Count a failure under each of *keys*, unless one of the limits is reached."""

    def fail(self, keys: Sequence[str], place: str, now: int) -> None:
        """Give the places back, and count a failure under each of *keys*."""

    def release(self, keys: Sequence[str], place: str, forgiven: Sequence[str] = ()) -> None:
        """Give the places back, and forget the failures under the keys *forgiven*."""

    def take_back(self, key: str, ends: int, now: int) -> None:
        """Count one failure less in the window of *key* that ends at *ends*, if it has not."""

    def forget(self, keys: Sequence[str], now: int) -> list[int]:
        """Forget the failures under *keys*; return how many there were."""


# KEYS: of the counts, each a hash with the fields failures, ends, told and one for each place.
# ARGV: act, place, now, window, duration of a place, and more by the act.
_SCRIPT = """
local act, place, now = ARGV[1], 'place:' .. ARGV[2], tonumber(ARGV[3])
local window, lasting = tonumber(ARGV[4]), tonumber(ARGV[5])

local function read(key)
  local count, fields = {failures = 0, ends = 0, places = 0}, redis.call('HGETALL', key)
  for at = 1, #fields, 2 do
    local name, value = fields[at], tonumber(fields[at + 1])
    if string.sub(name, 1, 6) ~= 'place:' then
      count[name] = value
    elseif value <= now then
      redis.call('HDEL', key, name)
    else
      count.places = count.places + 1
      if value > now + lasting then redis.call('HSET', key, name, now + lasting) end  -- the clock went back
    end
  end
  if count.ends <= now then
    redis.call('HDEL', key, 'failures', 'ends', 'told')
    count.failures, count.ends = 0, 0
  elseif count.ends > now + window then
    count.ends = now + window
    redis.call('HSET', key, 'ends', count.ends)
  end
  return count
end

local function fail(key, count)
  if count.ends == 0 then redis.call('HSET', key, 'ends', now + window) end
  redis.call('HINCRBY', key, 'failures', 1)
  redis.call('EXPIRE', key, window + lasting)
end

if act == 'begin' or act == 'count' then
  local counts = {}
  for at, key in ipairs(KEYS) do
    counts[at] = read(key)
    if counts[at].failures >= tonumber(ARGV[5 + at]) then
      return {2, at - 1, counts[at].ends, redis.call('HINCRBY', key, 'told', 1)}
    end
  end
  for at, count in ipairs(counts) do
    if count.failures + count.places >= tonumber(ARGV[5 + at]) then return {1, at - 1, count.ends, 0} end
  end
  for at, key in ipairs(KEYS) do
    if act == 'count' then
      fail(key, counts[at])
    else
      redis.call('HSET', key, place, now + lasting)
      redis.call('EXPIRE', key, window + lasting)
    end
  end
  return {0, 0, read(KEYS[1]).ends, 0}
end

local forgotten = {}
for at, key in ipairs(KEYS) do
  if act == 'fail' then
    redis.call('HDEL', key, place)
    fail(key, read(key))
  elseif act == 'release' then
    redis.call('HDEL', key, place)
    if ARGV[5 + at] == '1' then redis.call('HDEL', key, 'failures', 'ends', 'told') end
  elseif act == 'take back' then
    local count = read(key)
    if count.failures > 0 and count.ends == tonumber(ARGV[6]) then
      redis.call('HINCRBY', key, 'failures', -1)
    end
  elseif act == 'forget' then
    forgotten[at] = read(key).failures
    redis.call('HDEL', key, 'failures', 'ends', 'told')
  end
end
return forgotten
"""


class ValkeyCounts:
    """Counts of all processes. Every method raises ``redis.RedisError`` while Valkey is unreachable."""

    def __init__(self, client: Redis) -> None:
        self._script = client.register_script(_SCRIPT)

    def begin(self, keys: Sequence[str], limits: Sequence[int], place: str, now: int) -> AttemptRuling:
        return _ruling(self._run("begin", keys, place, now, *limits))

    def count(self, keys: Sequence[str], limits: Sequence[int], now: int) -> AttemptRuling:
        return _ruling(self._run("count", keys, "", now, *limits))

    def fail(self, keys: Sequence[str], place: str, now: int) -> None:
        self._run("fail", keys, place, now)

    def release(self, keys: Sequence[str], place: str, forgiven: Sequence[str] = ()) -> None:
        self._run("release", keys, place, 0, *(int(key in forgiven) for key in keys))

    def take_back(self, key: str, ends: int, now: int) -> None:
        self._run("take back", [key], "", now, ends)

    def forget(self, keys: Sequence[str], now: int) -> list[int]:
        return [int(number) for number in self._run("forget", keys, "", now)]

    def _run(self, act: str, keys: Sequence[str], place: str, now: int, *more: int) -> Any:
        return self._script(keys=list(keys), args=[act, place, now, WINDOW_SECONDS, PLACE_SECONDS, *more])


def _ruling(answer: Sequence[int]) -> AttemptRuling:
    state, at, ends, told = map(int, answer)
    return AttemptRuling(AttemptState(state), at, ends, told == 1)


@dataclass
class _FailureCount:
    failures: int = 0
    ends: int = 0
    told: int = 0
    places: dict[str, int] = field(default_factory=dict)  # until when

    def forget(self) -> None:
        self.failures = self.ends = self.told = 0

    def at(self, now: int) -> _FailureCount:
        """Return this count without what has ended at *now*, and nothing longer than it can be."""
        lasting = now + PLACE_SECONDS
        self.places = {place: min(until, lasting) for place, until in self.places.items() if until > now}
        if self.ends <= now:
            self.forget()
        self.ends = min(self.ends, now + WINDOW_SECONDS)
        return self

    def fail(self, now: int) -> None:
        self.failures, self.ends = self.failures + 1, self.ends or now + WINDOW_SECONDS


class MemoryCounts:
    """Counts of this process."""

    def __init__(self) -> None:
        self._counts: dict[str, _FailureCount] = {}
        self._lock = threading.Lock()

    def begin(self, keys: Sequence[str], limits: Sequence[int], place: str, now: int) -> AttemptRuling:
        return self._admit(keys, limits, now, lambda count: count.places.update({place: now + PLACE_SECONDS}))

    def count(self, keys: Sequence[str], limits: Sequence[int], now: int) -> AttemptRuling:
        return self._admit(keys, limits, now, lambda count: count.fail(now))

    def _admit(
        self, keys: Sequence[str], limits: Sequence[int], now: int, act: Callable[[_FailureCount], None]
    ) -> AttemptRuling:
        with self._lock:
            counts = [self._of(key, now) for key in keys]
            for index, (count, most) in enumerate(zip(counts, limits, strict=True)):
                if count.failures >= most:
                    count.told += 1
                    return AttemptRuling(AttemptState.REFUSED, index, count.ends, count.told == 1)
            for index, (count, most) in enumerate(zip(counts, limits, strict=True)):
                if count.failures + len(count.places) >= most:
                    return AttemptRuling(AttemptState.BUSY, index, count.ends)
            for count in counts:
                act(count)
            return AttemptRuling(AttemptState.ADMITTED, 0, counts[0].ends)

    def fail(self, keys: Sequence[str], place: str, now: int) -> None:
        with self._lock:
            for key in keys:
                count = self._of(key, now)
                count.places.pop(place, None)
                count.fail(now)

    def release(self, keys: Sequence[str], place: str, forgiven: Sequence[str] = ()) -> None:
        with self._lock:
            for key in keys:
                if count := self._counts.get(key):
                    count.places.pop(place, None)
                    if key in forgiven:
                        count.forget()

    def take_back(self, key: str, ends: int, now: int) -> None:
        with self._lock:
            count = self._of(key, now)
            if count.failures and count.ends == ends:
                count.failures -= 1

    def forget(self, keys: Sequence[str], now: int) -> list[int]:
        with self._lock:
            counts = [self._of(key, now) for key in keys]
            forgotten = [count.failures for count in counts]
            for count in counts:
                count.forget()
            return forgotten

    def _of(self, key: str, now: int) -> _FailureCount:
        if key not in self._counts and len(self._counts) >= MOST_IN_MEMORY:
            live = [(name, count) for name, count in self._counts.items() if _is_live(count.at(now))]
            # Those that end last stay: it takes thousands of failures at other names to push one out.
            live.sort(key=lambda each: each[1].ends)
            self._counts = dict(live[-int(MOST_IN_MEMORY * _KEPT_SHARE) :])
        return self._counts.setdefault(key, _FailureCount()).at(now)


def _is_live(count: _FailureCount) -> bool:
    return bool(count.failures or count.places)


class SharedCounts:
    """Counts in *shared*, and in the memory of this process while Valkey is unreachable.

    Logins then go on, and the limits hold for each process by itself.
    """

    def __init__(self, shared: ValkeyCounts, steady: Callable[[], float] = time.monotonic) -> None:
        self.shared, self._memory, self._steady = shared, MemoryCounts(), steady
        self._retry_at = steady()

    def begin(self, keys: Sequence[str], limits: Sequence[int], place: str, now: int) -> AttemptRuling:
        return self._ask(lambda counts: counts.begin(keys, limits, place, now))

    def count(self, keys: Sequence[str], limits: Sequence[int], now: int) -> AttemptRuling:
        return self._ask(lambda counts: counts.count(keys, limits, now))

    def fail(self, keys: Sequence[str], place: str, now: int) -> None:
        self._ask(lambda counts: counts.fail(keys, place, now))

    def release(self, keys: Sequence[str], place: str, forgiven: Sequence[str] = ()) -> None:
        self._ask(lambda counts: counts.release(keys, place, forgiven))

    def take_back(self, key: str, ends: int, now: int) -> None:
        self._ask(lambda counts: counts.take_back(key, ends, now))

    def forget(self, keys: Sequence[str], now: int) -> list[int]:
        """Forget the failures that all processes share.

        Raises:
            redis.RedisError: Valkey is unreachable.
        """
        self._memory.forget(keys, now)
        return self.shared.forget(keys, now)

    def _ask(self, call: Callable[[Counts], Answer]) -> Answer:
        from redis import RedisError  # noqa: PLC0415 - slow to import, and few processes count

        from monitor.core.valkey import PAUSE_SECONDS  # noqa: PLC0415 - see above

        if self._steady() >= self._retry_at:
            try:
                return call(self.shared)
            except RedisError as error:
                self._retry_at = self._steady() + PAUSE_SECONDS
                logger.warning("Valkey is unreachable: failed logins are counted in each process: %s", error)
        return call(self._memory)
