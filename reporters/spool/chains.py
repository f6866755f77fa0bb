"""The chains in the directory of a spool, of all its writers; chains that are over are removed.

A chain is retired when its writer is dead and all its records are done: its directory is renamed, read once
more, and removed if nothing has appeared in it. A writer looks for its directory after each append and
starts another chain if the directory is gone. So a record that is written before the renaming is read after
it, and a record that is written later is appended again: no record is lost even where a living writer was
taken for a dead one.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import uuid
from dataclasses import dataclass
from pathlib import Path

from reporters.fields import Unfit, parse_object
from reporters.report import rfc3339
from reporters.spool.chain_view import RETIRED, ChainView
from reporters.spool.files import write_whole
from reporters.spool.owner import Observer
from reporters.spool.records import Record
from reporters.trees import remove_tree

_CHAIN_NAME = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(\.retired)?")
_NEW_NAME = re.compile(r"\.[0-9a-f-]{36}\.new")
_NEWEST = "newest"  # the file that keeps the newest chain that was removed
_MOST_NEWEST_BYTES = 4096


@dataclass(frozen=True)
class ChainHead:
    """Where a chain ends: the sequence number of its next record, and the hash of its last."""

    chain: uuid.UUID
    next: int
    head: str


class Chains:
    """The chains in *directory*. Methods that read or write files raise OSError."""

    def __init__(self, directory: Path, observer: Observer, *, is_durable: bool) -> None:
        self.views: dict[uuid.UUID, ChainView] = {}
        self._directory = directory
        self._observer = observer
        self._is_durable = is_durable
        self._is_read = False

    def refresh(self) -> list[tuple[ChainView, Record]]:
        """Read what is new in all chains; return the records that appeared, by chain.

        Records that were there before the first call have not appeared: they are backlog.
        """
        appeared: list[tuple[ChainView, Record]] = []
        directories = {}
        for name in sorted(os.listdir(self._directory)):  # noqa: PTH208  # names suffice
            if _CHAIN_NAME.fullmatch(name):
                directories[uuid.UUID(name.partition(".")[0])] = self._directory / name
        self.views = {chain: view for chain, view in self.views.items() if chain in directories}
        for chain, directory in directories.items():
            view = self.views.get(chain)
            if view is None or view.directory != directory:
                is_backlog = directory.name.endswith(RETIRED) or not self._is_read
                view = ChainView(directory, is_backlog=is_backlog)
            try:
                appeared += [(view, record) for record in view.refresh()]
                self.views[chain] = view
            except FileNotFoundError:  # retired by another process
                self.views.pop(chain, None)
        self._is_read = True
        return appeared

    def is_dead(self, view: ChainView) -> bool:
        return view.is_retired or self._observer.is_dead(view.directory)

    def is_local(self, view: ChainView) -> bool:
        """Return whether the writer is a process of this host, or has closed the chain."""
        return self._observer.is_proven(view.directory)

    def retire(self, view: ChainView) -> None:
        """Remove the chain of *view*, of which all records are done and whose writer is dead.

        The chain stays if a record appears in it, or if the death of its writer is not certain yet.
        """
        is_certain = not view.segments or self._observer.is_proven(view.directory)
        with contextlib.suppress(FileNotFoundError):  # another process does the same
            if not view.is_retired:
                target = view.directory.with_name(view.directory.name + RETIRED)
                view.directory.rename(target)
                view = self.views[view.chain] = ChainView(target, is_backlog=True)
                view.refresh()
            if view.pending_count() == 0 and (is_certain or self._is_still(view)):
                self._keep_newest(view)
                view.remove()
                self.views.pop(view.chain, None)
                self._observer.forget(view.directory)

    def heads(self) -> list[ChainHead]:
        """Return the heads of all chains, the oldest first, and the newest head of the removed chains."""
        newest = self.newest_removed()
        heads = [] if newest is None else [newest]
        views = sorted(self.views.values(), key=lambda view: view.started_at)
        return heads + [ChainHead(view.chain, view.next, view.head) for view in views if view.head]

    def newest_removed(self) -> ChainHead | None:
        """Return the newest head of the chains that were removed; None if none was."""
        document = self._newest()
        with contextlib.suppress(ValueError, KeyError, TypeError):
            return ChainHead(uuid.UUID(str(document["chain"])), int(document["next"]), str(document["head"]))
        return None

    def dropped_records(self) -> int:
        """Return how many records were dropped, ever."""
        dropped = self._newest().get("dropped_records", 0)
        return int(dropped) + sum(len(view.logs.dropped) for view in self.views.values())

    def remove_unfinished(self) -> None:
        """Remove what writers left that were killed while they started a chain."""
        for name in os.listdir(self._directory):  # noqa: PTH208  # names suffice
            if _NEW_NAME.fullmatch(name) and self._observer.is_dead(self._directory / name):
                remove_tree(self._directory / name)

    def _is_still(self, view: ChainView) -> bool:
        return self._observer.is_silent(view.directory, f"{view.bytes} bytes")

    def _keep_newest(self, view: ChainView) -> None:
        kept = self._newest()
        kept["dropped_records"] = int(kept.get("dropped_records", 0)) + len(view.logs.dropped)
        started = rfc3339(view.started_at)
        if view.head and started >= str(kept.get("started_at", "")):
            kept.update(chain=str(view.chain), next=view.next, head=view.head, started_at=started)
        write_whole(self._directory / _NEWEST, json.dumps(kept).encode(), is_durable=self._is_durable)

    def _newest(self) -> dict[str, str | int]:
        with contextlib.suppress(OSError, Unfit):
            data = (self._directory / _NEWEST).read_bytes()
            return parse_object(data, max_bytes=_MOST_NEWEST_BYTES)
        return {}
