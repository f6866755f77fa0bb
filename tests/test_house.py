"""The structure of the source: rooms, names, sizes, the map of CONTRIBUTING.md; the entries of CHANGELOG."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WINGS = ("web", "operations", "analysis", "runs", "depot", "core")  # from top to bottom
PACKAGES = ("probes", "reporters", "forecasting", "monitor")
STANDING_ALONE = ("client", "integrations")  # other programs copy them
# The folder is the registry: these names are the same in every file of theirs.
PLUG_INS = {
    "Probe",
    "Method",
    "Transfer",
    "Shell",
    "Batch",
    "Importer",
    "Export",
    "Notifier",
    "Condition",
    "Rule",
    "Feed",
    "SiteService",
}
DJANGO = {"Command", "Meta", "Migration"}
FUNCTION_LINES, MODULE_LINES = 40, 400
# The largest shares of small pieces: lower them with the shares, and never raise them.
ONE_USE_SHARE = 0.25  # of functions: private, and used once
SMALL_MODULES_SHARE, SMALL_MODULE_LINES, COUNTED_LINES = 0.28, 60, 5  # of modules with COUNTED_LINES or more
IMPORTS_SHARE = 0.094  # of lines of these modules: import statements
BLOCKS = (ast.stmt, ast.excepthandler, ast.match_case)
# A definition with another decorator is registered with a framework, which calls it.
PLAIN_DECORATORS = re.compile(
    r"(functools\.)?(cache|lru_cache|cached_property|total_ordering|wraps)\b|(contextlib\.)?contextmanager\b"
    r"|property\b|staticmethod\b|classmethod\b|(dataclasses\.)?dataclass\b|register\."
)
# Django, gunicorn and Python look these up by name.
LOOKED_UP = re.compile(r"handler[45]0\d|process_(exception|view)|sendfile|__\w+__")
WORD = re.compile(r"[^\W\d]\w*")
COMMENT = re.compile(r"^\s*# .*$|  # [^\"\n]*$", re.MULTILINE)
OTHER_SOURCES = (
    "manage.py",
    "pyproject.toml",
    "Makefile",
    "docker-compose.yml",
    ".ci",
    "client",
    "integrations",
)
SETTINGS = {ROOT / "monitor" / "settings.py"}  # Django, Celery and allauth read them
ONE_FILE = ROOT / "client" / "gridcast_client" / "__init__.py"  # the whole library, to be copied


def sources(folders: tuple[str, ...] = PACKAGES) -> dict[Path, list[ast.stmt]]:
    return {file: statements(file) for file in files(folders)}


def files(folders: tuple[str, ...]) -> list[Path]:
    found = [file for folder in folders for file in (ROOT / folder).rglob("*.py")]
    return [file for file in found if "migrations" not in file.parts]


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def statements(file: Path) -> list[ast.stmt]:
    """Return all statements of *file*, also nested ones; expressions, most of what it has, are left out."""
    found: list[ast.stmt] = []
    blocks: list[ast.AST] = [tree(file)]
    while blocks:
        for node in ast.iter_child_nodes(blocks.pop()):
            if isinstance(node, BLOCKS):
                blocks.append(node)
            if isinstance(node, ast.stmt):
                found.append(node)
    return found


def room(module: str) -> str | None:
    """Return the room of a module: its folder or file directly below a wing, or below ``monitor``."""
    parts = module.split(".")
    if parts[0] != "monitor" or len(parts) < 2:
        return None
    return "/".join(parts[1:3]) if parts[1] in WINGS and len(parts) > 2 else parts[1]


def imports(file: Path) -> Iterator[str]:
    """Yield every name that *file* imports, also inside functions, for types only, and relatively."""
    package = list(file.relative_to(ROOT).parent.parts)
    for node in statements(file):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*parents, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


@cache
def files_graph() -> dict[str, set[str]]:
    """Return by module the modules that it imports, also inside functions and for types only."""
    modules = {module_name(file): file for file in sources()}
    graph: dict[str, set[str]] = {}
    for module, file in modules.items():
        names = (name if name in modules else name.rpartition(".")[0] for name in imports(file))
        graph[module] = {name for name in names if name in modules} - {module}
    return graph


def module_name(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def rooms_graph() -> dict[str, set[str]]:
    graph: dict[str, set[str]] = defaultdict(set)
    for module, imported in files_graph().items():
        for own, other in ((room(module), room(name)) for name in imported):
            if own and other and own != other:
                graph[own].add(other)
    return graph


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """Return one cycle of *graph*, empty where there is none."""
    finished: set[str] = set()

    def visit(node: str, path: list[str]) -> list[str]:
        if node in path:
            return [*path[path.index(node) :], node]
        if node in finished:
            return []
        for target in sorted(graph.get(node, ())):
            if cycle := visit(target, [*path, node]):
                return cycle
        finished.add(node)
        return []

    return next((cycle for node in sorted(graph) if (cycle := visit(node, []))), [])


def test_the_rooms_of_monitor_import_each_other_without_a_cycle() -> None:
    graph = rooms_graph()
    assert len(graph) > 20, "the graph was not drawn"
    assert cycle(graph) == []


def test_no_two_files_import_each_other() -> None:
    """Not even for types or inside functions: what both need lies in a third."""
    graph = files_graph()
    assert len(graph) > 1000, "the graph was not drawn"
    assert cycle(graph) == []


def test_a_relative_import_is_an_import() -> None:
    embedded = "monitor.operations.embedded"
    assert files_graph()[f"{embedded}.postgres"] >= {f"{embedded}.binaries", f"{embedded}.places"}


def test_a_cycle_of_two_rooms_is_found() -> None:
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]


def test_the_name_of_a_class_is_unique_unless_it_is_published_or_a_plug_in() -> None:
    """The OpenAPI document publishes the names of the classes in ``monitor/web/api``."""
    places: dict[str, list[str]] = defaultdict(list)
    for file, found in sources().items():
        for node in found if file.parent != ROOT / "monitor" / "web" / "api" else ():
            if isinstance(node, ast.ClassDef) and node.name not in PLUG_INS | DJANGO:
                places[node.name].append(f"{file.relative_to(ROOT)}:{node.lineno}")
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def lines_of_code(function: ast.FunctionDef) -> int:
    """Count the lines of the body; signature and docstring do not count."""
    has_docstring = ast.get_docstring(function) is not None
    body = function.body[1:] if has_docstring else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def test_no_function_is_longer_than_a_page() -> None:
    functions = (
        (file, node)
        for file, found in sources(PACKAGES + STANDING_ALONE).items()
        for node in found
        if isinstance(node, ast.FunctionDef)
    )
    long = [
        f"{file.relative_to(ROOT)}:{function.lineno} {function.name} has {lines_of_code(function)} lines"
        for file, function in functions
        if lines_of_code(function) > FUNCTION_LINES
    ]
    assert long == []


def test_no_module_is_longer_than_ten_pages() -> None:
    measured = {*files(PACKAGES + STANDING_ALONE)} - {ONE_FILE}
    lengths = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in measured}
    assert {str(file.relative_to(ROOT)): n for file, n in lengths.items() if n > MODULE_LINES} == {}


def test_small_pieces_do_not_become_more() -> None:
    """A newcomer opens few files for a question: helpers used once, small modules and imports are counted."""
    functions = one_use = small = import_lines = all_lines = modules = 0
    for file, found in sources().items():
        text = file.read_text(encoding="utf-8")
        words = Counter(WORD.findall(text))
        private = [
            node.name
            for node in found
            if isinstance(node, ast.FunctionDef) and node.name.startswith("_") and node.name[1] != "_"
        ]
        functions += sum(isinstance(node, ast.FunctionDef) for node in found)
        one_use += sum(words[name] == 2 for name in private)
        lines = len(text.splitlines())
        if lines >= COUNTED_LINES:
            modules, all_lines, small = modules + 1, all_lines + lines, small + (lines < SMALL_MODULE_LINES)
            import_lines += sum(
                (node.end_lineno or node.lineno) - node.lineno + 1
                for node in found
                if isinstance(node, ast.Import | ast.ImportFrom)
            )
    shares = (one_use / functions, small / modules, import_lines / all_lines)
    assert shares[0] <= ONE_USE_SHARE, f"private functions used once: {one_use} of {functions}"
    assert shares[1] <= SMALL_MODULES_SHARE, f"small modules: {small} of {modules}"
    assert shares[2] <= IMPORTS_SHARE, f"lines of imports: {import_lines} of {all_lines}"


def definitions(file: Path) -> Iterator[ast.FunctionDef | ast.ClassDef | ast.Name]:
    """Yield what *file* defines for others: at its top, and the methods of classes without bases."""
    top = tree(file).body
    methods = (
        node for each in top if isinstance(each, ast.ClassDef) and not each.bases for node in each.body
    )
    for node in (*top, *methods):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            decorators = [ast.unparse(each) for each in node.decorator_list]
            if all(PLAIN_DECORATORS.match(each) for each in decorators):
                yield node
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node in top:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            parts = [
                part for each in targets for part in (each.elts if isinstance(each, ast.Tuple) else [each])
            ]
            yield from (part for part in parts if isinstance(part, ast.Name))


def code(file: Path) -> str:
    """Return the text of *file* without docstrings and comments: these mention, and do not use."""
    lines = file.read_text(encoding="utf-8").splitlines()
    for node in statements(file):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or 0) - node.lineno + 1)
    return COMMENT.sub("", "\n".join(lines))


def other_texts() -> Iterator[str]:
    """Yield the texts that use names of the packages without being part of them, comments included."""
    for name in (*OTHER_SOURCES, "templates", "monitor/static/monitor", "tests"):
        files = (ROOT / name).rglob("*") if (ROOT / name).is_dir() else [ROOT / name]
        for file in files:
            if file.suffix in {"", ".py", ".toml", ".yml", ".html", ".js", ".txt", ".xml"} and file.is_file():
                yield file.read_text(encoding="utf-8")


def unused(packages: tuple[str, ...] = PACKAGES) -> list[str]:
    """Return the definitions whose name occurs nowhere else, in code, templates, scripts and tests."""
    words = Counter(word for text in other_texts() for word in WORD.findall(text))
    words.update(word for file in sources(packages) for word in WORD.findall(code(file)))
    found = [
        (node.id if isinstance(node, ast.Name) else node.name, f"{file.relative_to(ROOT)}:{node.lineno}")
        for file in files(packages)
        if file not in SETTINGS
        for node in definitions(file)
    ]
    times_defined = Counter(name for name, _ in found)
    return [
        f"{where} {name}"
        for name, where in found
        if words[name] <= times_defined[name] and not LOOKED_UP.fullmatch(name)
    ]


def test_every_definition_is_used() -> None:
    assert unused() == []


def test_every_path_that_contributing_names_exists() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    folders = "probes|reporters|forecasting|monitor|client|integrations|templates|tests|docs"
    text = re.sub(r"^Files: .*?\n\n", "", text, flags=re.MULTILINE | re.DOTALL)  # recipes add some of these
    paths = set(re.findall(rf"`((?:{folders})/[\w./-]+)`", text))
    assert len(paths) > 20, "the map names no paths"
    assert sorted(path for path in paths if not (ROOT / path).exists()) == []


def defined(path: str) -> set[str]:
    """Return the names of the functions and classes at the top of the file *path*."""
    top = tree(ROOT / path).body
    return {each.name for each in top if isinstance(each, ast.FunctionDef | ast.ClassDef)}


def test_the_map_of_contributing_names_a_file_and_what_it_defines() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = text.partition("| where is ... | |\n|---|---|\n")[2].partition("\n\n")[0].splitlines()
    assert len(rows) > 30, "the map has no rows"
    for row in rows:
        answer = row.split("|")[2]
        named = re.findall(r"`([\w./]+\.py)`: `(\w+)`", answer)
        assert len(named) == answer.count(".py"), f"{row}: a file without what it defines"
        for path, name in named:
            assert name in defined(path), f"{path} does not define {name}"


def test_the_changelog_has_no_entry_twice() -> None:
    """A merge of two branches that reworded the same entry keeps both."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    beginnings = Counter(" ".join(entry.split()[:7]) for entry in text.split("\n- ")[1:])
    assert [beginning for beginning, number in beginnings.items() if number > 1] == []
