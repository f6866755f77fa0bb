"""Read an XML document as plain elements with line numbers; document types and entities are refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.etree.ElementTree import ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from monitor.runs.maintenance.feeds.base import InvalidFeed, check_size

MAX_DEPTH, MAX_ELEMENTS = 20, 1_000_000


@dataclass
class XmlElement:
    tag: str
    line: int
    attributes: dict[str, str] = field(default_factory=dict)
    text: str = ""
    children: list[XmlElement] = field(default_factory=list)

    def all(self, tag: str) -> Iterator[XmlElement]:
        return (child for child in self.children if child.tag == tag)

    def value(self, *path: str) -> str:
        """Return the text of the first descendant at *path*; empty if there is none."""
        element: XmlElement | None = self
        for tag in path:
            element = next(element.all(tag), None) if element else None
        return element.text.strip() if element else ""


def parse_xml(data: bytes) -> XmlElement:
    """Return the root element of *data*.

    Raises:
        InvalidFeed: *data* is empty or huge, malformed, or has a document type or entities.
    """
    check_size(data)
    tree = _Tree()
    parser = DefusedXMLParser(target=tree, forbid_dtd=True)
    tree.parser = parser.parser
    try:
        parser.feed(data)
        parser.close()
    except DefusedXmlException as error:
        line = parser.parser.CurrentLineNumber
        raise InvalidFeed("a document type or an entity is refused", line) from error
    except ParseError as error:
        raise InvalidFeed(f"malformed XML: {error.msg}", error.position[0]) from error
    except (LookupError, ValueError) as error:  # an encoding that is unknown or unsupported
        raise InvalidFeed(f"malformed XML: {error}") from error
    return tree.root


class _Tree:
    """The target of the parser: builds the elements."""

    def __init__(self) -> None:
        self.parser: object = None
        self._open: list[XmlElement] = [XmlElement("", 0)]
        self._count = 0

    @property
    def root(self) -> XmlElement:
        return self._open[0].children[0]

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        line: int = getattr(self.parser, "CurrentLineNumber", 0)
        self._count += 1
        if len(self._open) > MAX_DEPTH:
            raise InvalidFeed(f"elements are nested deeper than {MAX_DEPTH}", line)
        if self._count > MAX_ELEMENTS:
            raise InvalidFeed(f"the document has more than {MAX_ELEMENTS:,} elements", line)
        element = XmlElement(tag, line, dict(attributes))
        self._open[-1].children.append(element)
        self._open.append(element)

    def end(self, _tag: str) -> None:
        self._open.pop()

    def data(self, text: str) -> None:
        self._open[-1].text += text

    def close(self) -> None:
        """Do nothing: the parser requires it."""
