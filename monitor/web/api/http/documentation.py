"""The operations of the API as its documentation shows them, read from the OpenAPI document."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode

from monitor.models.token import READ
from monitor.web.api.http.json_schema import SchemaField, Schemas

_EDITABLE = ("application/json", "text/plain", "application/x-ndjson")  # bodies that a form can send
_SIGNED = "AgentAuth"
_SESSION = "PersonAuth"


@dataclass(frozen=True)
class DocumentedParameter:
    """A parameter; *place*: ``path`` or ``query``; *choices*: the values permitted, if they are few."""

    name: str
    place: str
    type: str
    description: str
    limits: str
    is_required: bool
    example: str
    choices: tuple[str, ...]


@dataclass(frozen=True)
class DocumentedContent:
    """A body or an answer; *status* is None for a body."""

    status: int | None
    media_types: tuple[str, ...]
    type: str
    description: str
    fields: tuple[SchemaField, ...]
    example: str

    @property
    def phrase(self) -> str:
        return HTTPStatus(self.status).phrase if self.status else ""

    @property
    def editable_type(self) -> str:
        return next((each for each in _EDITABLE if each in self.media_types), "")


@dataclass(frozen=True)
class DocumentedError:
    status: int
    phrase: str
    codes: tuple[str, ...]


@dataclass(frozen=True)
class DocumentedOperation:
    """An operation.

    Attributes:
        scopes: those that a token needs; empty if every token, or none, is asked for.
        takes_token: whether it asks for a token.
        has_session: whether a logged-in browser may call it, too.
        is_signed: only agents of reporters may call it, with the signature of their key.
        curl: a command that calls it, with ``$URL`` and ``$TOKEN``; empty if it is signed.
    """

    id: str
    method: str
    path: str
    tag: str
    summary: str
    paragraphs: tuple[str, ...]
    parameters: tuple[DocumentedParameter, ...]
    body: DocumentedContent | None
    answers: tuple[DocumentedContent, ...]
    errors: tuple[DocumentedError, ...]
    scopes: tuple[str, ...]
    takes_token: bool
    has_session: bool
    is_signed: bool
    curl: str

    @property
    def is_tryable(self) -> bool:
        """Return whether a form can send it."""
        return not self.is_signed and (self.body is None or bool(self.body.editable_type))

    @property
    def is_changing(self) -> bool:
        """Return whether it may change data: some questions are too long for a query string."""
        return self.method != "GET" and self.scopes != (READ,)

    @property
    def search_text(self) -> str:
        names = " ".join(parameter.name for parameter in self.parameters)
        return f"{self.method} {self.path} {self.id} {self.summary} {self.tag} {names}".lower()


def documented_operations(document: Mapping[str, Any]) -> tuple[DocumentedOperation, ...]:
    """Return the operations of *document*, by tag, then as the document has them."""
    schemas = Schemas(document["components"]["schemas"])
    found = [
        _operation(schemas, path, method.upper(), operation)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]
    return tuple(sorted(found, key=lambda each: each.tag))


def matching(operations: Sequence[DocumentedOperation], text: str) -> list[DocumentedOperation]:
    """Return the operations whose method, path, id, summary, tag or parameters have each word of *text*."""
    words = text.lower().split()
    return [each for each in operations if all(word in each.search_text for word in words)]


def _operation(schemas: Schemas, path: str, method: str, operation: Mapping[str, Any]) -> DocumentedOperation:
    parameters = tuple(_parameter(schemas, each) for each in operation["parameters"])
    body = _content(schemas, None, operation["requestBody"]) if "requestBody" in operation else None
    by_status = {int(status): answer for status, answer in operation["responses"].items()}
    security = operation.get("security", ())
    ways = {name for way in security for name in way}
    return DocumentedOperation(
        id=operation["operationId"],
        method=method,
        path=path,
        tag=operation["tags"][0],
        summary=operation["summary"],
        paragraphs=_paragraphs(operation.get("description", "")),
        parameters=parameters,
        body=body,
        answers=tuple(
            _content(schemas, status, by_status[status]) for status in sorted(by_status) if status < 400
        ),
        errors=tuple(
            DocumentedError(status, HTTPStatus(status).phrase, tuple(by_status[status].get("x-codes", ())))
            for status in sorted(by_status)
            if status >= 400
        ),
        scopes=tuple(sorted({scope for way in security for scopes in way.values() for scope in scopes})),
        takes_token=bool(ways - {_SESSION, _SIGNED}),
        has_session=_SESSION in ways,
        is_signed=_SIGNED in ways,
        curl="" if _SIGNED in ways else _curl(method, path, parameters, body, has_token=bool(ways)),
    )


def _parameter(schemas: Schemas, parameter: Mapping[str, Any]) -> DocumentedParameter:
    schema = parameter["schema"]
    example = parameter.get("example", schema.get("examples", [""])[0])
    if isinstance(example, list):  # of a parameter that may be repeated: one value
        example = example[0]
    if example is None:  # an optional parameter, which is best left out
        example = ""
    return DocumentedParameter(
        name=parameter["name"],
        place=parameter["in"],
        type=schemas.type_words(schema),
        description=parameter.get("description", ""),
        limits=schemas.limits(schema),
        is_required=parameter.get("required", False),
        example=str(example).lower() if isinstance(example, bool) else str(example),
        choices=schemas.choices(schema),
    )


def _content(schemas: Schemas, status: int | None, shown: Mapping[str, Any]) -> DocumentedContent:
    contents = shown.get("content", {})
    first: Mapping[str, Any] = next(iter(contents.values()), {})
    schema = first.get("schema", {})
    return DocumentedContent(
        status=status,
        media_types=tuple(contents),
        type=schemas.type_words(schema) if schema else "",
        description=shown.get("description", ""),
        fields=schemas.fields(schema) if schema else (),
        example=_text(first.get("example", schemas.example(schema))) if schema else "",
    )


def _paragraphs(text: str) -> tuple[str, ...]:
    return tuple(" ".join(part.split()) for part in text.split("\n\n") if part.strip())


def _text(example: Any) -> str:
    return example if isinstance(example, str) else json.dumps(example, indent=2, ensure_ascii=False)


def _curl(
    method: str,
    path: str,
    parameters: Sequence[DocumentedParameter],
    body: DocumentedContent | None,
    *,
    has_token: bool,
) -> str:
    """Return a command that sends the required parameters; those without an example keep their names."""
    for each in (one for one in parameters if one.place == "path" and one.example):
        path = path.replace(f"{{{each.name}}}", quote(each.example, safe=""))
    query = {
        each.name: each.example or each.name.upper()
        for each in parameters
        if each.place == "query" and each.is_required
    }
    address = f'"$URL{path}{"?" + urlencode(query) if query else ""}"'
    parts = ["curl"]
    if has_token:
        parts.append('-H "Authorization: Bearer $TOKEN"')
    if method != "GET" and not (method == "POST" and body):
        parts.append(f"-X {method}")
    parts.append(address)
    if body and body.editable_type:
        parts.insert(-1, f'-H "Content-Type: {body.editable_type}"')
        parts.append(f"--data {shlex.quote(body.example)}")
    return " ".join(parts)
