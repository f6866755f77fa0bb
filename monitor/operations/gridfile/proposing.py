"""Proposed signatures as a section of a grid file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from monitor.analysis.signatures.proposals import Proposal
from monitor.operations.gridfile.exporting import dump

_COMMENT_CHARACTERS = 100


def to_grid_file(proposals: Sequence[Proposal]) -> str:
    """Return *proposals* as the section ``signatures``, each with the evidence for it as a comment."""
    return "\n".join(["signatures:", *(line for each in proposals for line in _lines(each))]) + "\n"


def _lines(proposal: Proposal) -> Iterator[str]:
    signature = proposal.signature
    yield (
        f"  # {proposal.runs} runs of {len(proposal.series)} series, from {proposal.first:%Y-%m-%d %H:%M}"
        f" to {proposal.latest:%Y-%m-%d %H:%M} UTC, such as:"
    )
    yield f"  #   {_on_one_line(proposal.examples[0])}"
    if proposal.category_reason:
        yield f'  # The category is a guess, because of "{_on_one_line(proposal.category_reason)}".'
    entry = {
        "title": signature.title,
        "category": signature.category.value,
        "severity": signature.severity.value,
        "patterns": list(signature.patterns),
    }
    for line in dump({signature.name: entry}).splitlines():
        yield f"  {line}"


def _on_one_line(text: str) -> str:
    """Return the start of *text* as printable text that ends no comment."""
    line = "".join(letter if letter.isprintable() else " " for letter in text)
    return line if len(line) <= _COMMENT_CHARACTERS else f"{line[:_COMMENT_CHARACTERS]}..."
