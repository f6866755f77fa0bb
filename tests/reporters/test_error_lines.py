"""The decisive line in the captured output of tools."""

from __future__ import annotations

import pytest

from reporters.error_lines import decisive_line, tail

HOST_KEY_CHANGED = """\
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!
Someone could be eavesdropping on you right now (man-in-the-middle attack)!
It is also possible that a host key has just been changed.
The fingerprint for the ED25519 key sent by the remote host is
SHA256:RwbR1j46KUmITVaNKeWqNkLsQh0gy7LlFNpX9GpPKEI.
Please contact your system administrator.
Add correct host key in /home/grid/.ssh/known_hosts to get rid of this message.
Offending ED25519 key in /home/grid/.ssh/known_hosts:2
Host key for [127.0.0.1]:41361 has changed and you have requested strict checking.
Host key verification failed.
"""


@pytest.mark.parametrize(
    ("stderr", "line"),
    [
        ("", ""),
        ("\n\n", ""),
        (
            "protocol version mismatch -- is your shell clean?\n"
            "(see the rsync manpage for an explanation)\n"
            "rsync error: protocol incompatibility (code 2) at compat.c(622) [sender=3.2.7]\n",
            "protocol version mismatch -- is your shell clean?",
        ),
        ("cat: /x: No such file or directory\n", "cat: /x: No such file or directory"),
        (
            "ssh: connect to host ce1 port 22: Connection refused\r\nscp: Connection closed\r\n",
            "ssh: connect to host ce1 port 22: Connection refused",
        ),
        (
            "kex_exchange_identification: read: Connection reset by peer\r\n"
            "Connection reset by 127.0.0.1 port 22\r\nlost connection\n",
            "kex_exchange_identification: read: Connection reset by peer",
        ),
        ("lost connection\n", "lost connection"),
        (HOST_KEY_CHANGED, "Host key verification failed."),
        (
            "Warning: Permanently added 'ce1' (ED25519) to the list of known hosts.\n"
            "grid@ce1: Permission denied (publickey,password).\n",
            "grid@ce1: Permission denied (publickey,password).",
        ),
        (
            "dd: error writing '/x': No space left on device\n1+0 records in\n0+0 records out\n",
            "dd: error writing '/x': No space left on device",
        ),
        (
            "In file included from a.c:1:\nb.h:3:10: fatal error: c.h: No such file or directory\n"
            "    3 | #include <c.h>\ncompilation terminated.\n",
            "b.h:3:10: fatal error: c.h: No such file or directory",
        ),
        ("something happened\nand then it was over\n", "and then it was over"),
    ],
)
def test_the_decisive_line_is_found(stderr: str, line: str) -> None:
    assert decisive_line(stderr) == line


def test_the_tail_is_verbatim_and_bounded() -> None:
    assert tail("a\nb\n") == "a\nb\n"
    assert tail("x" * 10_000 + "end").endswith("xend")
    assert len(tail("x" * 10_000)) == 4000
