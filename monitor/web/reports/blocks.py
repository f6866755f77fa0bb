"""The parts of a report: sections of numbered tables and figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from django.utils.safestring import SafeString

from monitor.analysis.performance.tables import StatisticsTable

PUBLISHED = "published"  # the heading of a column of published numbers ends with this word

_NOTHING = SafeString("")
_SHORT = 16  # rows of a table that a printer keeps on one page
_DENSE = 9  # columns of a table that a printer sets in small type


@dataclass(frozen=True)
class Block:
    """A table or a figure: *number* counts the tables and the figures of a report.

    Attributes:
        table: None for a figure. The first column, and *texts* further ones, are aligned left.
        svg: empty for a table.
    """

    title: str
    table: StatisticsTable | None = None
    svg: SafeString = _NOTHING
    texts: int = 0
    number: int = 0

    @property
    def kind(self) -> str:
        return "Table" if self.table else "Figure"

    @property
    def anchor(self) -> str:
        return f"{self.kind.lower()}-{self.number}"

    @property
    def layout(self) -> str:
        """The CSS classes of the layout on paper."""
        if self.table is None:
            return "short"
        is_short, is_dense = len(self.table.rows) <= _SHORT, len(self.table.headings) >= _DENSE
        return " ".join(["table", *(["short"] if is_short else []), *(["dense"] if is_dense else [])])

    def columns(self) -> list[str]:
        """Return the CSS classes of the columns of the table."""
        headings = self.table.headings if self.table else ()
        return [
            " ".join(
                name
                for name, is_set in (
                    ("text", place <= self.texts),
                    ("published", heading.endswith(PUBLISHED)),
                )
                if is_set
            )
            for place, heading in enumerate(headings)
        ]

    def rows(self) -> list[list[tuple[str, str]]]:
        """Return the rows of the table as pairs of a CSS class and a text."""
        classes = self.columns()
        return [list(zip(classes, row, strict=True)) for row in (self.table.rows if self.table else ())]

    def head(self) -> list[tuple[str, str]]:
        """Return the headings of the table as pairs of a CSS class and a text."""
        return list(zip(self.columns(), self.table.headings if self.table else (), strict=True))


@dataclass(frozen=True)
class Section:
    """A section with its *paragraphs*, above its *blocks*; *is_wide*: a printer turns its pages."""

    title: str
    paragraphs: Sequence[str]
    blocks: Sequence[Block]
    is_wide: bool = False


def table_block(
    title: str,
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    texts: int = 0,
) -> Block:
    return Block(title, StatisticsTable(title, headings, rows), texts=texts)


def numbered(sections: Iterable[Section]) -> list[Section]:
    """Number the tables and the figures of *sections* in order."""
    counts = {"Table": 0, "Figure": 0}
    result = []
    for section in sections:
        blocks = []
        for block in section.blocks:
            counts[block.kind] += 1
            blocks.append(replace(block, number=counts[block.kind]))
        result.append(replace(section, blocks=blocks))
    return result
