"""A cache in Valkey that falls back to the memory of the process while Valkey is unreachable."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from typing import Any, TypeVar

from django.core.cache.backends.base import DEFAULT_TIMEOUT, BaseCache
from django.core.cache.backends.locmem import LocMemCache
from django.core.cache.backends.redis import RedisCache, RedisCacheClient
from django.utils.functional import cached_property

logger = logging.getLogger(__name__)
Answer = TypeVar("Answer")

ANSWER_SECONDS = 3.0
MOST_IN_MEMORY = 100_000  # by default a few hundred other names would push a counter out


class JsonValues:
    """Values as JSON, not pickled: a process that can write into Valkey must not be able to run code here.

    The JSON of an integer is what Valkey counts with.
    """

    def dumps(self, obj: Any) -> bytes:
        return json.dumps(obj).encode()

    def loads(self, data: Any) -> Any:
        return json.loads(data)


class ValkeyCache(BaseCache):
    """Values in Valkey, at a URL in Celery's form.

    While Valkey is unreachable, values are kept in the memory of this process, and Valkey is tried again
    every few seconds. Each process then knows only its own values, and logins go on.
    """

    def __init__(
        self, location: str, params: dict[str, Any], steady: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(params)
        self._valkey = _Valkey(location, params)
        self._memory = LocMemCache(location, {**params, "OPTIONS": {"MAX_ENTRIES": MOST_IN_MEMORY}})
        self._steady = steady
        self._retry_at = steady()

    def add(
        self, key: str, value: Any, timeout: float | None = DEFAULT_TIMEOUT, version: int | None = None
    ) -> bool:
        return self._ask(lambda cache: cache.add(key, value, timeout, version))

    def get(self, key: str, default: Any = None, version: int | None = None) -> Any:
        return self._ask(lambda cache: cache.get(key, default, version))

    def set(
        self, key: str, value: Any, timeout: float | None = DEFAULT_TIMEOUT, version: int | None = None
    ) -> None:
        self._ask(lambda cache: cache.set(key, value, timeout, version))

    def touch(self, key: str, timeout: float | None = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        return self._ask(lambda cache: cache.touch(key, timeout, version))

    def delete(self, key: str, version: int | None = None) -> bool:
        return self._ask(lambda cache: cache.delete(key, version))

    def has_key(self, key: str, version: int | None = None) -> bool:
        return self._ask(lambda cache: cache.has_key(key, version))

    def incr(self, key: str, delta: int = 1, version: int | None = None) -> int:
        return self._ask(lambda cache: cache.incr(key, delta, version))

    def clear(self) -> None:
        """Do nothing: the server is also the broker, and Django would empty the database."""

    def _ask(self, call: Callable[[BaseCache], Answer]) -> Answer:
        from redis import RedisError  # noqa: PLC0415 - slow to import, and few processes use the cache

        from monitor.core.valkey import PAUSE_SECONDS  # noqa: PLC0415 - see above

        if self._steady() >= self._retry_at:
            try:
                return call(self._valkey)
            except RedisError as error:
                self._retry_at = self._steady() + PAUSE_SECONDS
                logger.warning("Valkey is unreachable: each process keeps its own cache in memory: %s", error)
        return call(self._memory)


class _Valkey(RedisCache):
    """Django's cache in Valkey, without retries: a login must not wait for a server that is down."""

    @cached_property
    def _cache(self) -> RedisCacheClient:
        from monitor.core import valkey  # noqa: PLC0415 - see above

        servers = [valkey.server_url(url) for url in self._servers]  # type: ignore[attr-defined]  # missing in the stubs
        return RedisCacheClient(servers, serializer=JsonValues, **valkey.options(ANSWER_SECONDS))
