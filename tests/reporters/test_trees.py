"""The removal of directories."""

from __future__ import annotations

from pathlib import Path

from reporters.trees import remove_tree


def test_a_tree_is_removed_and_links_are_not_followed(tmp_path: Path) -> None:
    kept, tree = tmp_path / "kept", tmp_path / "tree"
    for directory in (kept, tree / "a" / "b", tree / "empty"):
        directory.mkdir(parents=True)
        (directory / "file").write_text("")
    (tree / "directory").symlink_to(kept)
    (tree / "a" / "file").symlink_to(kept / "file")
    (tree / "nowhere").symlink_to(tree / "missing")
    remove_tree(tree)
    assert not tree.exists()
    assert (kept / "file").exists()


def test_what_is_missing_is_no_error(tmp_path: Path) -> None:
    remove_tree(tmp_path / "missing")
    assert list(tmp_path.iterdir()) == []
