#!/usr/bin/env python3
"""Find constructions that readers of this field stumble over (.ci/prose.txt) in prose that the project keeps.

Reads docstrings, comments and names of tests in Python, templates, and Markdown. Prints each finding as
`file:line: text (advice)`, and exits with 1 if there is one.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import re2

ROOT = Path(__file__).resolve().parent.parent
RULES = Path(__file__).with_name("prose.txt")
CODE = re.compile(r"``[^`]*``|`[^`\n]*`|\{[{%].*?[%}]\}|<[^>]*>", re.DOTALL)  # identifiers, tags: not prose
# Finds the same comments as the module tokenize, in a tenth of the time: a "#" in a string is no comment.
COMMENT_OR_STRING = re.compile(
    r"""#(?P<comment>[^\n]*)|\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}(?:[^\\]|\\.)*?'{3}"""
    r"""|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'""",
    re.DOTALL,
)

Line = tuple[int, str]


def rules() -> list[tuple[re.Pattern[str], str]]:
    lines = RULES.read_text(encoding="utf-8").splitlines()
    pairs = (line.split("\t") for line in lines if line and not line.startswith("#"))
    return [(re.compile(pattern, re.IGNORECASE), advice) for pattern, advice in pairs]


def prose_of_python(source: str) -> Iterator[Line]:
    for node in statements(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0] if node.body else None
            docstring = first.value if isinstance(first, ast.Expr) else None
            if isinstance(docstring, ast.Constant) and isinstance(docstring.value, str):
                yield from numbered(docstring.value, docstring.lineno)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.lineno, node.name.replace("_", " ")
    for match in COMMENT_OR_STRING.finditer(source):
        if (comment := match["comment"]) is not None:
            yield source.count("\n", 0, match.start()) + 1, comment.lstrip("# ")


def statements(module: ast.Module) -> Iterator[ast.AST]:
    """Yield the module and the statements in it, which are a fifth of the nodes."""
    nodes: list[ast.AST] = [module]
    while nodes:
        node = nodes.pop()
        yield node
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            nodes += getattr(node, block, [])


def numbered(text: str, first: int) -> Iterator[Line]:
    """Yield the lines of *text* with their numbers; what is code in them is blanked, across lines as well."""
    blanked = CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)
    yield from enumerate(blanked.splitlines(), first)


def prose_of(file: Path) -> Iterator[Line]:
    text = file.read_text(encoding="utf-8")
    yield from prose_of_python(text) if file.suffix == ".py" else numbered(text, 1)


def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.py", "*.md", "*.html"],
        cwd=ROOT, capture_output=True, check=True, text=True,
    ).stdout  # fmt: skip
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def main(names: list[str]) -> int:
    patterns, findings = rules(), 0
    any_rule = re2.compile("(?i)" + "|".join(f"(?:{pattern.pattern})" for pattern, _ in patterns))
    for file in [Path(name).resolve() for name in names] or tracked():
        for number, line in prose_of(file):
            for pattern, advice in patterns if any_rule.search(line) else ():
                for match in pattern.finditer(line):
                    findings += 1
                    where = f"{file.relative_to(ROOT)}:{number}"
                    print(f"{where}: {match[0].strip()!r} in {line.strip()[:90]!r} ({advice})")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
