"""Run the programs of a reporter, each under a guardian that ends the program's whole process tree.

    python -I -S -c "exec(CODE)" REPORTER

This process, the *forker*, forks a guardian for each request of the reporter with process id REPORTER. Its
stdin is a socket. A request is a length, with five descriptors (the program's stdin, stdout and stderr, and
the pipe ends CONTROL and STATUS), and then, marshalled, ``(argv, environment, directory, grace_seconds)``.
The answer is the guardian's process id, or a negative errno.

A guardian starts its program at the first byte on CONTROL. It stops everything that the program has started
when the program ends, at the next byte or the end of file on CONTROL, when the forker is gone, or on SIGTERM.
Orphans are adopted (PR_SET_CHILD_SUBREAPER), so a process that forks twice, calls setsid or clears its
environment stays in the tree. The guardian writes one line to STATUS when the program has ended:

    exit STATUS SECONDS | signal NUMBER SECONDS | missing ERRNO | broken TEXT

and, when no process is left, a second line with the number of processes that needed SIGKILL:

    ended KILLED

On systems other than Linux, the program's process group is killed instead of its tree, and only the pipe
signals the reporter's death. After ten seconds the guardian gives up on processes it cannot kill (another
user's, or stuck in the kernel).
"""

import _signal as signal  # type: ignore[import-not-found]  # the enums of signal cost 5 ms
import _socket as socket
import marshal
import os
import select
import struct
import sys
import time
import warnings  # noqa: F401  # os.execvpe imports it: once, instead of in each child
from _collections_abc import Callable, Iterator  # loaded already, unlike its public name

LENGTH, ANSWER = struct.Struct("=Q"), struct.Struct("=i")
DESCRIPTORS = struct.Struct("=5i")
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
GIVE_UP_SECONDS = 10.0


def load_prctl() -> "Callable[[int, int], bool]":
    """Return a function that calls prctl and returns whether it succeeded; it never does without ctypes."""
    try:
        import ctypes  # noqa: PLC0415  # missing in some Pythons; orphans then escape

        function = ctypes.CDLL(None).prctl
    except (ImportError, AttributeError, OSError):
        return lambda _option, _value: False
    return lambda option, value: bool(function(option, value, 0, 0, 0) == 0)


prctl = load_prctl()


def processes() -> "Iterator[tuple[int, int]]":
    """Yield all processes with their parents, newest first; nothing on systems without ``/proc``."""
    names = os.listdir("/proc") if os.path.exists("/proc/self/stat") else ()  # noqa: PTH110, PTH208
    for pid in sorted((int(name) for name in names if name.isdigit()), reverse=True):
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123  # pathlib costs 10 ms to import
                parent = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, IndexError):
            continue
        yield pid, parent


class Guardian:
    """One guardian. *standards* are the program's stdin, stdout and stderr; *forker* is the parent."""

    def __init__(
        self, standards: "tuple[int, ...]", control: int, status: int, forker: int, grace_seconds: float
    ) -> None:
        self.standards, self.control, self.status = standards, control, status
        self.forker, self.grace_seconds = forker, grace_seconds
        self.is_stopping = False
        self.program = self.group = 0
        self.began = 0.0
        self.killed: set[int] = set()
        self.signalled, wake = os.pipe()
        for end in (self.signalled, wake):
            os.set_blocking(end, False)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, self.on_signal)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)

    def on_signal(self, number: int, _frame: object) -> None:
        self.is_stopping = self.is_stopping or number == signal.SIGTERM

    def run(self, argv: "list[bytes]", environment: "dict[bytes, bytes]", directory: "bytes | None") -> None:
        adopts_orphans = prctl(PR_SET_CHILD_SUBREAPER, 1)
        prctl(PR_SET_PDEATHSIG, signal.SIGHUP)
        while not self.must_stop():
            self.wait(None)
        if not is_readable(self.control) or not os.read(self.control, 1):
            return  # the reporter is gone
        failed = self.start(argv, environment, directory)
        if failed:
            os.waitpid(self.program, 0)
            self.report(f"missing {failed}\nended 0")
            return
        while self.reap() and self.program and not self.must_stop():
            self.wait(None)
        if self.program and os.getppid() != self.forker:
            self.report("broken the process that forked it was killed")
        self.end_everything()
        if adopts_orphans and not self.reap():
            self.report(f"ended {len(self.killed)}")

    def start(self, argv: "list[bytes]", environment: "dict[bytes, bytes]", directory: "bytes | None") -> str:
        """Start *argv*; return the errno as text if the program could not be started, else an empty text."""
        readable, writable = os.pipe()
        self.began = time.monotonic()
        self.program = os.fork()
        if self.program == 0:
            become(argv, environment, directory, self.standards, writable)
        self.group = self.program
        for descriptor in (writable, *self.standards):
            os.close(descriptor)
        with open(readable, "rb") as answer:  # noqa: PTH123
            return answer.read().decode()

    def must_stop(self) -> bool:
        return self.is_stopping or os.getppid() != self.forker or is_readable(self.control)

    def wait(self, seconds: "float | None") -> None:
        """Return at a signal, or after *seconds*; if *seconds* is None, at a signal or a byte on CONTROL."""
        poller = select.poll()
        poller.register(self.signalled, select.POLLIN)
        if seconds is None:
            poller.register(self.control, select.POLLIN)
        poller.poll(None if seconds is None else seconds * 1000)
        try:
            os.read(self.signalled, 4096)
        except BlockingIOError:
            return

    def reap(self) -> bool:
        """Reap ended children; return whether any child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.program:
                self.program = 0
                self.report_end(status, time.monotonic() - self.began)

    def end_everything(self) -> None:
        """Send SIGTERM to all processes, and SIGKILL repeatedly after the grace, until none is left."""
        began = time.monotonic()
        if self.reap():
            self.send(signal.SIGTERM)
        while self.reap() and time.monotonic() - began < self.grace_seconds + GIVE_UP_SECONDS:
            if time.monotonic() - began >= self.grace_seconds:
                self.send(signal.SIGKILL)
                self.wait(0.005)
            else:
                self.wait(min(0.05, self.grace_seconds))

    def send(self, number: int) -> None:
        """Signal all descendants; children at once, since a child may be about to fork and exit."""
        this = os.getpid()
        children: dict[int, list[int]] = {}
        for pid, parent in processes():
            if parent == this:
                self.kill(pid, number)
            children.setdefault(parent, []).append(pid)
        if not children:
            self.kill(-self.group, number)
        below = list(children.get(this, ()))
        for pid in below:
            deeper = children.get(pid, ())
            below.extend(deeper)  # the list grows during the iteration: breadth first
            for descendant in deeper:
                self.kill(descendant, number)

    def kill(self, pid: int, number: int) -> None:
        try:
            os.kill(pid, number)
        except OSError:  # it has ended, or belongs to another user
            return
        if number == signal.SIGKILL:
            self.killed.add(pid)

    def report_end(self, status: int, seconds: float) -> None:
        if os.WIFSIGNALED(status):
            self.report(f"signal {os.WTERMSIG(status)} {seconds:.6f}")
        else:
            self.report(f"exit {os.WEXITSTATUS(status)} {seconds:.6f}")

    def report(self, text: str) -> None:
        try:
            os.write(self.status, text.encode() + b"\n")
        except OSError:
            return  # the reporter is gone


def is_readable(descriptor: int) -> bool:
    poller = select.poll()  # select() cannot watch a descriptor above 1023
    poller.register(descriptor, select.POLLIN)
    return bool(poller.poll(0))


def become(
    argv: "list[bytes]",
    environment: "dict[bytes, bytes]",
    directory: "bytes | None",
    standards: "tuple[int, ...]",
    failure: int,
) -> None:
    """Execute *argv* in this child process, or write the errno to descriptor *failure*. Does not return."""
    guardian = os.getppid()
    try:
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in signal.valid_signals():  # else the program ignores what the reporter once ignored
            if number not in (signal.SIGKILL, signal.SIGSTOP):
                signal.signal(number, signal.SIG_DFL)
        for number, descriptor in enumerate(standards):
            os.dup2(descriptor, number)
        if directory is not None:
            os.chdir(directory)
        if os.getppid() == guardian:
            os.execvpe(argv[0], argv, environment)  # noqa: S606  # there is no shell, on purpose
    except OSError as error:
        os.write(failure, str(error.errno).encode())
    finally:
        os._exit(127)


class Forker:
    """Forks a guardian for each request on *requests*, until the reporter is gone."""

    def __init__(self, requests: "socket.socket", reporter: int) -> None:
        self.requests, self.reporter, self.pid = requests, reporter, os.getpid()

    def run(self) -> None:
        signal.signal(signal.SIGHUP, self.on_hangup)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # ended guardians leave no zombies
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        prctl(PR_SET_PDEATHSIG, signal.SIGHUP)
        self.on_hangup(signal.SIGHUP, None)
        while True:
            head, ancillary, _, _ = self.requests.recvmsg(LENGTH.size, socket.CMSG_SPACE(DESCRIPTORS.size))
            if not head:
                return
            descriptors = DESCRIPTORS.unpack(ancillary[0][2])
            data = read(self.requests.fileno(), *LENGTH.unpack(head))
            request = marshal.loads(data)  # noqa: S302  # only the reporter has the other end
            try:
                pid = os.fork()
            except OSError as error:
                pid = -(error.errno or 1)
            if pid == 0:
                guard(self.pid, descriptors, *request)
            for descriptor in descriptors:
                os.close(descriptor)
            self.requests.sendall(ANSWER.pack(pid))

    def on_hangup(self, _number: int, _frame: object) -> None:
        # The kernel sends SIGHUP when the thread that started this process ends; the reporter may live on.
        if os.getppid() != self.reporter:
            os._exit(0)


def guard(
    forker: int,
    descriptors: "tuple[int, ...]",
    argv: "list[bytes]",
    environment: "dict[bytes, bytes]",
    directory: "bytes | None",
    grace_seconds: float,
) -> None:
    """Be the guardian of *argv* in this child of the forker. Does not return."""
    *standards, control, status = descriptors
    try:
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        os.dup2(1, 0)  # a guardian must not keep the forker's socket open
        guardian = Guardian(tuple(standards), control, status, forker, grace_seconds)
        try:
            guardian.run(argv, environment, directory)
        except Exception as error:  # noqa: BLE001  # the program's stderr is not ours
            guardian.report(f"broken {error!r}")
    finally:
        os._exit(0)


def read(descriptor: int, size: int) -> bytes:
    """Read *size* bytes; end this process at the end of the file: the reporter is gone."""
    data = bytearray()
    while len(data) < size:
        part = os.read(descriptor, size - len(data))
        if not part:
            os._exit(0)
        data += part
    return bytes(data)


if __name__ == "__main__":
    Forker(socket.socket(fileno=0), int(sys.argv[1])).run()
