"""Texts of failures, each with the name of its signature.

A file of ``texts/`` has the texts for the signatures of the file with the same name. Texts are captured from
real servers and programs, or from their documentation and sources.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import yaml

_FOLDER = Path(__file__).parent / "texts"


class LabelledText(NamedTuple):
    signature: str
    text: str


def labelled_texts() -> list[LabelledText]:
    documents = [
        yaml.load(file.read_text(), Loader=yaml.CSafeLoader) for file in sorted(_FOLDER.glob("*.yaml"))
    ]
    return [
        LabelledText(name, text)
        for document in documents
        for name, texts in document.items()
        for text in texts
    ]
