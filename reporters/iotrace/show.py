"""What a trace has: calls, bytes and seconds of each operation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from probes.common.io_counters import ProcessCounters


def lines(processes: Sequence[ProcessCounters]) -> Iterator[str]:
    """Yield the lines of a table."""
    totals: dict[str, tuple[int, int, int]] = {}
    for process in processes:
        for name, counts in process.operations.items():
            number, moved, spent = totals.get(name, (0, 0, 0))
            totals[name] = (number + counts[0], moved + counts[1], spent + counts[2])
    yield f"{'operation':<12}{'calls':>14}{'bytes':>20}{'seconds':>14}{'mean us':>12}"
    for name, (number, moved, spent) in totals.items():
        if number:
            yield f"{name:<12}{number:>14,}{moved:>20,}{spent * 1e-9:>14.6f}{spent / number / 1000:>12.2f}"
