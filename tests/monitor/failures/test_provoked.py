"""Failures provoked here and now, with the programs of this machine, have the signatures that they should."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from monitor.failures.classifier import Classifier, FailureText
from monitor.failures.shipped import shipped
from tests.reporters.needs import needs

# What is provoked, by the name of its signature. ``{port}`` is a closed port, ``{silent}`` one that accepts
# connections and closes them at once.
PROVOKED = [
    ("ssh-connect-refused", "ssh -o BatchMode=yes -p {port} 127.0.0.1 true"),
    ("ssh-name-resolution", "ssh -o BatchMode=yes no-such-host.invalid true"),
    ("ssh-identification-closed", "ssh -o BatchMode=yes -p {silent} 127.0.0.1 true"),
    ("ssh-configuration", "echo 'Hostnam x' > c; ssh -F c -p {port} 127.0.0.1 true"),
    ("ssh-connect-refused", "scp -o BatchMode=yes -P {port} 127.0.0.1:/etc/hosts x"),
    ("rsync-socket", "rsync rsync://127.0.0.1:{port}/x y"),
    ("ssh-connect-refused", "rsync -e 'ssh -o BatchMode=yes -p {port}' 127.0.0.1:/etc/hosts x"),
    ("rsync-syntax", "rsync --no-such-option a b"),
    ("rsync-partial", "rsync no-such-file x"),
    ("disk-full", "dd if=/dev/zero of=/dev/full bs=1 count=1"),
    ("disk-full", "rsync /etc/hostname - > /dev/full; cat /etc/hostname > /dev/full"),
    ("no-such-file", "cat no-such-file"),
    ("not-a-directory", "cat /tmp"),
    ("not-a-directory", "cd /etc/passwd"),
    ("file-exists", "mkdir /tmp"),
    ("directory-not-empty", "mkdir -p a/b; rmdir a"),
    ("name-too-long", "touch $(printf 'x%.0s' $(seq 300))"),
    ("too-many-links", "ln -s loop loop; cat loop"),
    ("program-missing", "no-such-program-of-a-grid"),
    ("interpreter-missing", "printf '#!/no/such/interpreter\\n' > s; chmod +x s; bash -c ./s"),
    ("interpreter-missing", "env python9.99"),
    ("wrong-architecture", "printf '\\177ELF-of-nothing' > e; chmod +x e; bash -c ./e"),
    ("compiler-error", "echo 'int main() {{ return 1' > a.c; gcc a.c"),
    ("compiler-header-missing", "echo '#include <no_such.h>' > a.c; gcc a.c"),
    ("linker-failed", "echo 'int f(); int main() {{ return f(); }}' > a.c; gcc a.c"),
    ("linker-failed", "echo 'int main() {{}}' > a.c; gcc a.c -lno_such_library"),
    ("program-crashed", "bash -c 'ulimit -c 0; sh -c \"kill -SEGV \\$\\$\"; true'"),
    ("python-module-missing", "python3 -c 'import no_such_module'"),
    ("out-of-memory", "(ulimit -v 30000; python3 -Sc 'b = bytearray(10**9)')"),
    ("gridftp-connect-refused", "globus-url-copy gsiftp://127.0.0.1:{port}/etc/hosts file:///dev/null"),
    ("gsi-no-proxy", "globusrun -a -r 127.0.0.1:{port}"),
    ("xrootd-connection-error", "xrdcp -f root://127.0.0.1:{port}//x y"),
    ("slurm-controller-unreachable", "SLURM_CONF=$PWD/slurm.conf sbatch --wrap true"),
    ("sge-master-unreachable", "SGE_QMASTER_PORT={port} SGE_EXECD_PORT=1 SGE_ROOT=$PWD/sge SGE_CELL=c qstat"),
    ("certificate-unknown-issuer", "openssl verify -CAfile other.pem own.pem"),
    ("certificate-expired", "openssl verify -CAfile own.pem -attime 4102444800 own.pem"),
    ("certificate-not-yet-valid", "openssl verify -CAfile own.pem -attime 1 own.pem"),
    ("connection-failed", "curl -sS http://127.0.0.1:{port}/"),
    ("name-resolution", "curl -sS http://no-such-host.invalid/"),
]


@pytest.fixture(scope="module")
def classifier() -> Classifier:
    return Classifier(shipped())


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with what the commands need: configurations of batch systems without servers."""
    (tmp_path / "slurm.conf").write_text(
        "ClusterName=none\nSlurmctldHost=localhost(127.0.0.1)\nSlurmctldPort=1\nAuthType=auth/none\n"
        "CredType=cred/none\nMessageTimeout=1\nPluginDir=/usr/lib/x86_64-linux-gnu/slurm-wlm\n"
        "NodeName=n1\nPartitionName=p Nodes=n1\n"
    )
    cell = tmp_path / "sge" / "c" / "common"
    cell.mkdir(parents=True)
    (cell / "act_qmaster").write_text("localhost\n")
    (cell / "bootstrap").write_text(
        "admin_user none\ndefault_domain none\nignore_fqdn true\nspooling_method classic\nspooling_lib none\n"
        "spooling_params none\nbinary_path none\nqmaster_spool_dir none\nsecurity_mode none\n"
        "listener_threads 2\nworker_threads 2\nscheduler_threads 1\njvm_threads 0\n"
    )
    return tmp_path


def needed(command: str) -> list[str]:
    programs = (
        "ssh",
        "scp",
        "rsync",
        "gcc",
        "globus-url-copy",
        "globusrun",
        "xrdcp",
        "sbatch",
        "qstat",
        "openssl",
        "curl",
    )
    return [name for name in programs if name in command.replace("=", " ").split()]


@pytest.mark.parametrize(("signature", "command"), PROVOKED, ids=[command for _, command in PROVOKED])
def test_a_provoked_failure_has_its_signature(
    classifier: Classifier, place: Path, signature: str, command: str
) -> None:
    needs(*needed(command))
    if "openssl" in command:
        for name in ("own", "other"):
            self_signed(place / f"{name}.pem", name)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(60)
        text = command.format(port=port, silent=silent.getsockname()[1])
        running = subprocess.Popen(
            ["bash", "-c", text],
            cwd=place,
            env={
                **os.environ,
                "LC_ALL": "C",
                "X509_USER_PROXY": "/none",
                "XRD_CONNECTIONRETRY": "0",
                "XRD_CONNECTIONWINDOW": "1",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        if "{silent}" in command:
            silent.accept()[0].close()
        _, stderr = running.communicate(timeout=120)
    named = classifier.classify(FailureText("", stderr_tail=stderr))
    assert (named.name if named else None) == signature, stderr


def self_signed(file: Path, name: str) -> None:
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    files = ["-keyout", str(file.with_suffix(".key")), "-out", str(file)]
    command = ["openssl", "req", "-x509", *key, *files, "-subj", f"/CN={name}", "-days", "30"]
    subprocess.run(command, check=True, capture_output=True)
