"""Read and check signatures of YAML files that users write."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, RootModel, StringConstraints, WithJsonSchema

from monitor.analysis.signatures.classifier import InvalidPattern, compile_pattern
from monitor.analysis.signatures.signature import Signature
from monitor.core.yamlfile import reading
from monitor.core.yamlfile.entry import Entry
from monitor.core.yamlfile.problems import InvalidYamlFile, Path, Problem, describe_key
from monitor.core.yamlfile.validation import DASHED, faults
from monitor.models.failure_signature import UNKNOWN, Category, Severity

MOST_PATTERNS = 50  # of one signature
MOST_CHARACTERS = 1000  # of one pattern


def _checked_pattern(pattern: str) -> str:
    try:
        compile_pattern(pattern)
    except InvalidPattern as error:
        raise ValueError(f"not a regular expression of RE2: {error}") from None
    return pattern


def _checked_name(name: str) -> str:
    if name == UNKNOWN:
        raise ValueError(f"{UNKNOWN} is what no signature matches; use another name")
    return name


def _one_of(choices: type[Category] | type[Severity]) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "enum": list(choices.values)})


Name = Annotated[
    str,
    StringConstraints(pattern=DASHED, max_length=50),
    AfterValidator(_checked_name),
]
Pattern = Annotated[
    str, StringConstraints(min_length=1, max_length=MOST_CHARACTERS), AfterValidator(_checked_pattern)
]
Word = Annotated[str, StringConstraints(pattern=r"^[-a-zA-Z0-9_]+$", max_length=50)]


class SignatureEntry(Entry):
    """A cause of failures, recognised by its texts."""

    title: Annotated[str, StringConstraints(min_length=1, max_length=200)] = Field(
        description="Name shown on pages."
    )
    category: Annotated[Category, Field(strict=False), _one_of(Category)] = Field(
        description="Kind of the cause."
    )
    severity: Annotated[Severity, Field(strict=False), _one_of(Severity)] = Field(
        description="`minor` usually ends by itself, `major` needs a person, `critical` stops a service."
    )
    patterns: Annotated[list[Pattern], Field(min_length=1, max_length=MOST_PATTERNS)] = Field(
        description="Regular expressions in the syntax of RE2; one of them has to match."
    )
    help: Annotated[str, StringConstraints(max_length=2000)] = Field(
        "", description="What usually removes the cause."
    )
    counts_against_site: bool | None = Field(
        None,
        description="Whether the adjusted success rate of the site counts it; default: all categories but "
        "`user`, `credential` and `probe`.",
    )
    stages: list[Word] = Field([], description="Stages to which it applies; default: all.")
    tools: list[Word] = Field(
        [], description="Kinds of shells, transfers and batch systems to which it applies; default: all."
    )
    precedence: Annotated[int, Field(ge=-100, le=100)] = Field(
        0, description="Of several signatures that match, the highest wins."
    )


class SignatureFile(RootModel[dict[Name, SignatureEntry]]):
    """A file of signatures, by name."""


def read(content: bytes, file: str) -> list[Signature]:
    """Return the signatures in *content*, the content of *file*.

    Raises:
        InvalidYamlFile: with all errors of the file, each with its line; no signature of it is returned.
    """
    root, problems = reading.read(content, file, expected="signatures by name")
    data = root.plain()
    problems += [
        Problem(root.locate(path), _place(path), message) for path, message in faults(SignatureFile, data)
    ]
    if problems:
        raise InvalidYamlFile(file, problems)
    entries = SignatureFile.model_validate(data).root
    return [Signature.of(name, entry.model_dump(exclude_unset=True)) for name, entry in entries.items()]


def _place(path: Path) -> str:
    if not path:
        return ""
    return f"signature {path[0]}" + (f", {describe_key(path[1:])}" if len(path) > 1 else "")
