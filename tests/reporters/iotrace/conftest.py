"""A program that makes calls of each kind, and how to trace one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from reporters.iotrace.calls import IoCall
from reporters.iotrace.records import TraceFile
from reporters.preloaded import preloaded

needs_compiler = pytest.mark.skipif(
    shutil.which("cc") is None, reason="no C compiler (Debian: gcc, libc6-dev)"
)
ROOT = Path(__file__).parents[3]
# Calls of each kind, from threads and a forked child; stdio with calls smaller than its buffer.
PROGRAM = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char buffer[4096];
static int file;

static void *in_a_thread(void *argument) {
    for (int call = 0; call < 100; call++)
        if (pread(file, buffer, 100, 100 * call) != 100)
            abort();
    return argument;
}

int main(int argc, char **argv) {
    pthread_t threads[2];
    struct stat status;
    file = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    for (int call = 0; call < 50; call++)
        if (write(file, buffer, 1000) != 1000)
            abort();
    fsync(file), fdatasync(file);
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    lseek(file, 2000, SEEK_SET);
    if (read(file, buffer, 500) != 500)
        abort();
    for (int thread = 0; thread < 2; thread++)
        pthread_create(&threads[thread], NULL, in_a_thread, NULL);
    for (int thread = 0; thread < 2; thread++)
        pthread_join(threads[thread], NULL);
    if (fork() == 0) {
        if (read(file, buffer, 300) != 300)
            abort();
        _exit(0);
    }
    wait(NULL);
    if (read(file, buffer, 200) != 200) /* after the child's read: they share the position */
        abort();
    FILE *stream = fdopen(file, "r+");
    fseek(stream, 0, SEEK_SET);
    for (int call = 0; call < 9000; call++)
        fgetc(stream);
    fseek(stream, 0, SEEK_END);
    for (int call = 0; call < 10; call++)
        fprintf(stream, "%04d\n", call);
    fflush(stream);
    stat(argv[1], &status);
    fclose(stream);
    unlink(argv[1]);
    printf("%ld bytes\n", (long)status.st_size);
    return argc == 2 ? 0 : 1;
}
"""


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("program")
    (directory / "program.c").write_text(PROGRAM, encoding="ascii")
    subprocess.run(["cc", "-o", directory / "program", directory / "program.c", "-lpthread"], check=True)
    return directory / "program"


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of compiled libraries, which all workers share; the library is there."""
    cache = tmp_path_factory.getbasetemp().parent / "compiled"
    preloaded(cache / "gridcast", "iotrace")
    return cache


Traced = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def traced(tmp_path: Path, cache: Path) -> Traced:
    def run(
        *command: str, options: tuple[str, ...] = (), cache: Path = cache
    ) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "reporters", "iotrace", "run", "-o", str(tmp_path / "trace")]
        return subprocess.run(
            [*argv, *options, "--", *command],
            cwd=ROOT,
            env={**os.environ, "XDG_CACHE_HOME": str(cache)},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def trace_of(directory: Path) -> TraceFile:
    return TraceFile(directory / "trace")


def calls_of(directory: Path) -> list[IoCall]:
    return [call for stream in trace_of(directory).trace().streams for call in stream.calls]
