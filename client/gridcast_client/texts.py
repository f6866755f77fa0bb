"""What the command prints for people: durations, quantities, and tables that fit a terminal."""

from __future__ import annotations

from collections.abc import Sequence

LEAST_COLUMN = 8  # characters of a column that is cut
_STEPS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


def duration(seconds: float) -> str:
    """Return *seconds* in at most two units: ``11.8 s``, ``3 min 20 s``, ``2 d 4 h``."""
    if abs(seconds) < 100:
        return f"{seconds:.3g} s"
    for (size, unit), (smaller, smaller_unit) in zip(_STEPS, _STEPS[1:]):
        if round(seconds / smaller) * smaller >= size:
            whole, rest = divmod(round(seconds / smaller), round(size / smaller))
            return f"{whole} {unit} {rest} {smaller_unit}" if rest else f"{whole} {unit}"
    return f"{seconds:.0f} s"


def quantity(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    if unit == "seconds":
        return duration(value)
    return f"{value:.4g} {unit.replace('_', ' ')}"


def percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def table(heads: Sequence[str], rows: Sequence[Sequence[object]], width: int) -> str:
    """Return lines of at most *width* characters; the widest columns are cut, numbers stand to the right."""
    texts = [[_one_line(cell) for cell in row] for row in rows]
    is_number = [
        bool(rows) and all(isinstance(row[at], (int, float)) for row in rows) for at in range(len(heads))
    ]
    widths = [max(len(head), *(len(row[at]) for row in texts), 0) for at, head in enumerate(heads)]
    excess = sum(widths) + 2 * (len(widths) - 1) - width
    while excess > 0 and max(widths) > LEAST_COLUMN:
        widest = widths.index(max(widths))
        widths[widest] -= 1
        excess -= 1
    lines = [list(heads), *texts]
    return "\n".join(
        "  ".join(
            _cut(cell, widths[at]).rjust(widths[at])
            if is_number[at]
            else _cut(cell, widths[at]).ljust(widths[at])
            for at, cell in enumerate(line)
        ).rstrip()
        for line in lines
    )


def _one_line(cell: object) -> str:
    text = "-" if cell is None else str(cell)
    return "".join(character if character.isprintable() else " " for character in text)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"
