"""Every recipe of CONTRIBUTING.md is true: applied to a copy of the source, what it adds works everywhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.contracts.recipes import Recipe, changed, recipes, run_command, snapshot
from tests.contracts.source_copy import copy_source, environment_of_copy, run_python

RECIPES = list(recipes())
WITH_COMMANDS = [recipe for recipe in RECIPES if recipe.commands]
ADDED = [Path(path) for recipe in RECIPES for path in recipe.new if path.endswith(".py")]
# Suites whose tests are generated from the registries; by day, those of plug-ins that need no server.
BY_DAY = (
    "tests/contracts/test_probes.py",
    "tests/contracts/test_forecasters.py",
    "tests/contracts/test_conditions.py",
    "tests/contracts/test_exports.py",
    "tests/contracts/test_importers.py",
    "tests/contracts/test_notifiers.py",
    "tests/contracts/test_protocols.py",
    "tests/contracts/test_shows_plug_ins.py",
)
FOLDERS_BY_DAY = (
    "probes",
    "forecasting/methods",
    "monitor/runs/imports/formats",
    "monitor/depot/samples/formats",
    "monitor/analysis/alerts/channels",
    "monitor/analysis/alerts/conditions",
)
# What shows, lists or decides about plug-ins of any kind.
BY_NIGHT = (
    "tests/contracts/test_batch.py",
    "tests/contracts/test_shells.py",
    "tests/contracts/test_transfers.py",
    "tests/monitor/depot/access/test_authorisation.py",
    "tests/monitor/web/api/test_every_operation.py",
    "tests/monitor/web/api/test_openapi.py",
    "tests/monitor/web/api/test_registries.py",
    "tests/monitor/web/api/test_values.py",
    "tests/monitor/cross",
    "tests/monitor/analysis/signatures/test_signatures.py",
    "tests/monitor/operations/gridfile/test_published.py",
    "tests/monitor/runs/ledger/admission",
    "tests/monitor/web/pages/test_components.py",
    "tests/monitor/web/pages/test_failures.py",
    "tests/monitor/web/pages/test_help.py",
    "tests/monitor/web/pages/test_series.py",
    "tests/monitor/web/pages/test_settings_alerts.py",
    "tests/monitor/web/pages/test_settings_series.py",
    "tests/monitor/web/pages/test_signatures.py",
    "tests/monitor/test_import_command.py",
    "tests/test_house.py",
)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("source")
    copy_source(directory)
    return directory


@pytest.fixture(scope="module")
def written(source: Path) -> dict[str, set[str]]:
    """Write all recipes with new files; return by title what each changed."""
    found = {}
    state = snapshot(source)
    for recipe in RECIPES:
        if recipe.new:
            recipe.write(source)
            before, state = state, snapshot(source)
            found[recipe.title] = changed(before, state)
    return found


def passed_in(directory: Path, *argv: str) -> list[str]:
    """Run pytest in *directory*; return the names of the tests that passed, and fail if one failed."""
    options = ("-q", "-rp", "-p", "no:xdist", "-p", "no:cacheprovider", "-p", "no:randomly")
    done = run_python(directory, "-m", "pytest", *argv, *options)
    assert done.returncode == 0, done.stdout[-12_000:] + done.stderr[-2_000:]
    return re.findall(r"^PASSED (.*)", done.stdout, re.MULTILINE)


def test_there_is_a_recipe_for_every_kind_of_plug_in() -> None:
    folders = {str(Path(path).parent) for recipe in RECIPES for path in recipe.new}
    assert folders >= {
        "probes",
        "forecasting/methods",
        "reporters/transfers",
        "reporters/shells",
        "reporters/batch",
        "monitor/runs/imports/formats",
        "monitor/depot/samples/formats",
        "monitor/analysis/alerts/channels",
        "monitor/analysis/alerts/conditions",
        "monitor/analysis/signatures/shipped",
        "monitor/runs/ledger/admission/rules",
        "monitor/web/pages",
        "templates/pages",
        "monitor/web/api",
    }


def test_a_recipe_changes_the_files_that_it_lists(written: dict[str, set[str]]) -> None:
    for recipe in RECIPES:
        if recipe.new:
            assert recipe.unlisted(written[recipe.title]) == set(), recipe.title
            missing = recipe.untouched(written[recipe.title])
            assert recipe.commands or not missing, f"{recipe.title}: {missing}"


def test_the_contract_suites_find_what_is_added_and_pass(source: Path, written: dict[str, set[str]]) -> None:
    passed = passed_in(source, *BY_DAY, "-k", " or ".join(each.stem for each in ADDED))
    for path in ADDED:
        if str(path.parent) in FOLDERS_BY_DAY:
            assert any(path.stem in name for name in passed), path


@pytest.mark.nightly
@pytest.mark.parametrize("recipe", WITH_COMMANDS, ids=[recipe.title for recipe in WITH_COMMANDS])
def test_the_commands_of_a_recipe_rewrite_the_files_that_it_lists(
    source: Path, tmp_path: Path, recipe: Recipe
) -> None:
    directory = tmp_path / "source"
    copy_source(directory)
    before = snapshot(directory)
    recipe.write(directory)
    for command in recipe.commands:
        run_command(command, directory, environment_of_copy())
    found = changed(before, snapshot(directory))
    assert recipe.unlisted(found) == set()
    assert recipe.untouched(found) == set()


@pytest.fixture(scope="module")
def complete(source: Path, written: dict[str, set[str]]) -> Path:
    """The copy with all recipes, and the files that their commands rewrite."""
    for command in dict.fromkeys(command for recipe in RECIPES if recipe.new for command in recipe.commands):
        run_command(command, source, environment_of_copy())
    return source


@pytest.mark.nightly
@pytest.mark.parametrize("suite", [*BY_DAY, *BY_NIGHT])
def test_all_recipes_together_pass_the_suites_of_whatever_shows_them(complete: Path, suite: str) -> None:
    assert passed_in(complete, suite, "-m", "not nightly")


@pytest.mark.nightly
def test_what_the_pages_of_all_recipes_offer_is_permitted(complete: Path) -> None:
    assert passed_in(complete, "tests/monitor/depot/access/test_offered.py")


@pytest.mark.nightly
def test_a_new_probe_is_a_choice_of_a_series_without_a_migration(
    source: Path, written: dict[str, set[str]]
) -> None:
    choices = "from monitor.admin import probe_choices; print(probe_choices())"
    listed = run_python(source, "manage.py", "shell", "--no-imports", "-c", choices)
    assert "('knock', 'knock')" in listed.stdout, listed.stderr
    unchanged = run_python(source, "manage.py", "makemigrations", "--check", "--dry-run")
    assert unchanged.returncode == 0, unchanged.stdout


@pytest.mark.nightly
def test_an_added_field_of_a_series_passes_the_suites_of_the_grid_file(tmp_path: Path) -> None:
    (recipe,) = (recipe for recipe in RECIPES if not recipe.new)
    directory = tmp_path / "widened"
    copy_source(directory)
    recipe.write(directory)
    for command in recipe.commands:
        run_command(command, directory, environment_of_copy())
    assert '"responsible"' in (directory / "docs" / "grid.schema.json").read_text(encoding="utf-8")
    suites = ("tests/monitor/operations/gridfile", "tests/monitor/web/pages/test_settings_series.py")
    assert passed_in(directory, *suites, "-m", "not nightly")
