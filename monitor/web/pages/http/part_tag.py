"""The template tag ``part``: what it encloses is shown, or the sentence that it could not be computed.

``{% part "incidents" %} ... {% endpart %}`` encloses a part of a page; further names are parts whose values
it shows, too. Headings stay outside, so that the sentence says what is missing. ``{% part "alerts" short %}``
is for the frame of pages, which has no room for a sentence: it shows a mark with the sentence as its title.
``{% part "series" quiet %}`` shows nothing: it encloses what another part of this name goes on with.

A name without quotation marks is a variable: ``{% part site.part %}``. A page that is rendered without a
request has its ``Rendering`` in the context as ``rendering``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.template import Library, Node, TemplateSyntaxError
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from monitor.core.log import request_id
from monitor.web.pages.http import parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.template.base import FilterExpression, NodeList, Parser, Token
    from django.template.context import Context

register = Library()
_SHORT, _QUIET = "short", "quiet"


class PartNode(Node):
    def __init__(self, names: Sequence[FilterExpression], nodelist: NodeList, manner: str) -> None:
        self.names, self.nodelist, self.manner = names, nodelist, manner

    def render(self, context: Context) -> SafeString:
        request = context.get("request") or context["rendering"]
        names = [str(name.resolve(context)) for name in self.names]
        if not parts.has_failed(request, *names):
            with parts.guarded(request, names[0]):
                parts.announce(request, names[0])
                return self.nodelist.render(context)
        if self.manner == _QUIET:
            return SafeString("")
        shown = {
            "request_id": request_id.get(),
            "is_short": self.manner == _SHORT,
            "slow_seconds": parts.slow_part(request) in names and settings.GRIDCAST_WEB_STATEMENT_SECONDS,
        }
        return SafeString(render_to_string("parts/failed_part.html", shown))


@register.tag
def part(parser: Parser, token: Token) -> PartNode:
    words = token.split_contents()[1:]
    manner = words.pop() if words and words[-1] in (_SHORT, _QUIET) else ""
    names = [parser.compile_filter(word) for word in words]
    if not names:
        raise TemplateSyntaxError('expected the name of the part: {% part "incidents" %}')
    nodelist = parser.parse(("endpart",))
    parser.delete_first_token()
    return PartNode(names, nodelist, manner)
