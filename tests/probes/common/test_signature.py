"""Signatures come from elsewhere: what is damaged, newer, too large or leaves scratch is refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from probes.common.signature import MAX_BYTES, BadSignature, digest, parse, write
from probes.replay import Probe

TEXT = str(Probe.trial["signature"])
Document = dict[str, Any]


def changed(change: Callable[[Document], object]) -> str:
    document = copy.deepcopy(json.loads(TEXT))
    change(document)
    return json.dumps(document)


def call(document: Document) -> Document:
    instruction: Document = document["programs"][0]["body"][1]["body"][0]
    return instruction


BARRIER: Document = {"op": "barrier"}


def with_programs(bodies: list[list[Document]], size: int = 1) -> str:
    """Return a signature of one shared file, with a program for each task, which writes after its body."""

    def change(document: Document) -> None:
        document.update(
            tasks=len(bodies),
            programs=[
                {
                    "tasks": [task, 1],
                    "files": [[0, 0, 1, 0]],
                    "body": [*body, {"op": "write", "file": 0, "size": size}],
                }
                for task, body in enumerate(bodies)
            ],
        )

    return changed(change)


@pytest.mark.parametrize(
    ("change", "needed_bytes"),
    [
        ({"size": 1 << 30, "at": [0, 1 << 30]}, 2 * 8 << 30),
        ({"size": 1 << 30, "at": "next"}, 2 * 8 << 30),
        ({"size": 1 << 30, "at": {"random": [0, 1 << 40, 1]}}, 2 * 8 << 30),
        ({"size": 1 << 30, "at": [0, 0]}, 2 << 30),  # in its place
        ({"size": 1 << 30, "at": {"random": [0, 1 << 30, 1]}}, 2 * 2 << 30),
        ({"size": 4096, "at": [0, 1 << 40]}, 65536),  # a file with holes
        ({"op": "allocate", "size": 1 << 40, "at": [0]}, 2 << 40),
        ({"op": "read", "size": 1 << 30}, 65536),
    ],
)
def test_the_calls_tell_how_much_space_a_replay_needs_whatever_the_signature_says(
    change: Document, needed_bytes: int
) -> None:
    assert parse(changed(lambda document: call(document).update(change))).needed_bytes == needed_bytes


def test_what_tasks_and_phases_write_to_the_same_place_takes_its_space_once() -> None:
    write_again = [{"op": "write", "file": 0, "size": 1 << 20}] * 3
    assert parse(with_programs([write_again, write_again], size=1 << 20)).needed_bytes == 1 << 20
    own = {"op": "write", "file": 0, "size": 1 << 20, "at": [5 << 20]}
    assert parse(with_programs([[own], []], size=1 << 20)).needed_bytes == 3 << 20


def test_files_of_one_program_take_their_space_beside_those_of_another() -> None:
    def change(document: Document) -> None:
        document["files"] = [
            {**document["files"][0], "name": name, "count": count, "initial_bytes": initial}
            for name, count, initial in (("a", 3, 0), ("b", 4, 10 << 20), ("c", 5, 0))
        ]
        body = [{"op": "write", "file": 0, "size": 1 << 20}, {"op": "write", "file": 1, "size": 1 << 30}]
        document["programs"] = [{"tasks": [0, 2], "files": [[2, 1, 1, 0], [9, 1, 1, 0]], "body": body}]

    # Of file 2 a mebibyte, of files 3 to 6 what they had, of 9 and 10 a gibibyte.
    assert parse(changed(change)).needed_bytes == (1 << 20) + (40 << 20) + (2 << 30)


def test_a_signature_says_what_it_needs() -> None:
    signature = parse(TEXT)
    assert (signature.tasks, signature.calls) == (2, 2 * 19)
    assert (signature.needed_bytes, signature.bytes_read, signature.bytes_written) == (65536, 65536, 65536)


def test_spaces_and_the_order_of_names_do_not_change_the_digest() -> None:
    document = json.loads(TEXT)
    other = json.dumps(dict(reversed(document.items())), indent=3)
    assert digest(other) == digest(TEXT) == parse(TEXT).digest
    assert digest(changed(lambda document: call(document).update(size=4097))) != digest(TEXT)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the signature is empty"),
        (TEXT[:-20], "the signature is no JSON"),
        ("[]", "its format is not gridcast-io-signature"),
        ('{"format": "gridcast-io-trace"}', "its format is not gridcast-io-signature"),
        ("[" * 50_000, "the signature is no JSON"),
        (" " * (MAX_BYTES + 1) + TEXT, "at most 65,536 bytes"),
        (changed(lambda document: document.update(version=2)), "version 2, this gridcast reads 1: update"),
        (changed(lambda document: document.pop("files")), "has no files"),
        (changed(lambda document: document.update(programs=7)), "the signature is damaged"),
        (changed(lambda document: document.update(source="gossip")), "has the source 'gossip'"),
        (changed(lambda document: document.update(tasks=10**6)), "has 1000000 for tasks"),
        (changed(lambda document: document["seconds"].update(read=float("nan"))), "NaN is no number"),
        (changed(lambda document: document["files"][0].update(name="../../etc/passwd")),
         "a file outside of the scratch directory: '../../etc/passwd'"),
        (changed(lambda document: document["files"][0].update(name="/tmp/x")), "outside of the scratch"),
        (changed(lambda document: document["files"][0].update(name="..")), "outside of the scratch"),
        (changed(lambda document: document["files"][0].update(count=10**9)), "has 1000000000 for files"),
        (changed(lambda document: document["programs"][0]["body"][1].update(times=10**9)),
         "has 1000000000 for times"),
        (changed(lambda document: document["programs"][0]["body"][1].update(times=10**8)),
         "has 200000000 for calls, expected 1 to 100,000,000"),
        (changed(lambda document: call(document).update(size=10**12)), "has 1000000000000 for size"),
        (changed(lambda document: call(document).update(at=[0, -4096])), "which leaves the file"),
        (changed(lambda document: call(document).update(at=[0, 1, 2, 3])), "expected an offset and"),
        (changed(lambda document: call(document).update(file=[0, 1])), "has 7 for file"),
        (changed(lambda document: call(document).update(file=1)), "has 1 for file"),
        (changed(lambda document: call(document).update(op="system")), "the operation 'system', which"),
        (changed(lambda document: call(document).update(op="rename")), "has no to"),
        (changed(lambda document: call(document).update(op="rename", to="../x")), "has '../x' for file"),
        (changed(lambda document: call(document).update(op="rename", to=1)), "has 1 for file"),
        (changed(lambda document: call(document).update(op="rename", to=[0, 1])), "has 7 for file"),
        (changed(lambda document: call(document).update(op="mkdir", file=-1)), "has -1 for file"),
        (changed(lambda document: call(document).update(think=-1)), "has -1 for think"),
        (changed(lambda document: call(document).update(think="9" * 5000)), "has '999"),
        (changed(lambda document: document["programs"][0].update(tasks=[])), "the signature is damaged"),
        (changed(lambda document: call(document).update(at={"random": [10, 0, 1]})), "expected .low, high"),
        (changed(lambda document: document["programs"][0].update(files=[[1, 1, 1, 0]])), "has 2 for a file"),
        (changed(lambda document: document["programs"][0].update(tasks=[1, 2])), "has 2 for tasks of a"),
        (changed(lambda document: document.update(tasks=3)), "has 3 tasks and programs for 2$"),
        (changed(lambda document: document["programs"][0].update(tasks=[1, 1])), "from 1, expected 0"),
        (changed(lambda document: document["programs"].append(document["programs"][0])), "0, expected 2"),
        (with_programs([[BARRIER], []]), "tasks with 1 and with 0 barriers: they would wait"),
        (with_programs([[{"times": 3, "body": [BARRIER]}], [BARRIER]]), "with 3 and with 1 barriers"),
        (with_programs([[{"times": 10**8, "body": [BARRIER]}] * 2, []]), "has 200000000 for barriers"),
        (with_programs([[{"times": 10**8, "body": []}], []]), "has a loop without calls"),
    ],
)  # fmt: skip
def test_what_a_replay_must_not_play_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(BadSignature, match=message) as refused:
        parse(text)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 300


def test_loops_that_are_nested_too_deep_are_refused() -> None:
    body: list[Document] = [{"op": "barrier"}]
    for _ in range(30):
        body = [{"times": 1, "body": body}]
    with pytest.raises(BadSignature, match="nests loops deeper than 16"):
        parse(changed(lambda document: document["programs"][0].update(body=body)))


def test_a_document_that_is_too_long_is_not_written() -> None:
    with pytest.raises(BadSignature, match="at most 65,536 bytes"):
        write(json.loads(changed(lambda document: document.update(application="x" * MAX_BYTES))))
