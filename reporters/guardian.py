"""Run one program and end its whole process tree. The guardian process reads this code from CONTROL.

    python -I -S -c "exec(CODE)" CONTROL STATUS PARENT GRACE program [argument ...]

CONTROL and STATUS are file descriptors of inherited pipe ends, PARENT is the reporter's process id, GRACE the
seconds between SIGTERM and SIGKILL. Everything that the program starts is stopped when the program ends, at a
byte or the end of file on CONTROL, when PARENT is gone, or on SIGTERM. Orphans are adopted
(PR_SET_CHILD_SUBREAPER), so a process that forks twice, calls setsid or clears its environment stays in the
tree. The guardian writes one line to STATUS when the program has ended:

    exit STATUS SECONDS | signal NUMBER SECONDS | missing ERRNO | broken TEXT

and, when no process is left, a second line with the number of processes that needed SIGKILL:

    ended KILLED

On systems other than Linux, the program's process group is killed instead of its tree, and only the pipe
signals the reporter's death. After ten seconds the guardian gives up on processes it cannot kill (another
user's, or stuck in the kernel).
"""

import _signal as signal  # type: ignore[import-not-found]  # the enums of signal cost 5 ms per program
import os
import select
import sys
import time
from _collections_abc import Iterator  # loaded already, unlike its public name

# A tag of the program, which the guardian itself must not have: a search for the tag kills what has it.
GUARDED_VARIABLE, VARIABLE = "GRIDCAST_GUARDED_RUN", "GRIDCAST_RUN"
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
GIVE_UP_SECONDS = 10.0


def prctl(option: int, value: int) -> bool:
    try:
        import ctypes  # noqa: PLC0415  # missing in some Pythons; orphans then escape

        return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)
    except (ImportError, AttributeError, OSError):
        return False


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
    def __init__(self, control: int, status: int, parent: int, grace: float) -> None:
        self.control, self.status, self.parent, self.grace = control, status, parent, grace
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
        signal.pthread_sigmask(signal.SIG_SETMASK, [])

    def on_signal(self, number: int, _frame: object) -> None:
        # The kernel sends SIGHUP when the thread that started this process ends; the reporter may live on.
        self.is_stopping = self.is_stopping or number == signal.SIGTERM

    def run(self, argv: "list[str]") -> None:
        adopts_orphans = prctl(PR_SET_CHILD_SUBREAPER, 1)
        prctl(PR_SET_PDEATHSIG, signal.SIGHUP)
        failed = self.start(argv)
        if failed:
            os.waitpid(self.program, 0)
            self.report(f"missing {failed}\nended 0")
            return
        while self.reap() and self.program and not self.must_stop():
            self.wait(None)
        self.end_everything()
        if adopts_orphans and not self.reap():
            self.report(f"ended {len(self.killed)}")

    def start(self, argv: "list[str]") -> str:
        """Start *argv*; return the errno as text if the program could not be started, else an empty text."""
        readable, writable = os.pipe()
        self.began = time.monotonic()
        self.program = os.fork()
        if self.program == 0:
            become(argv, writable)
        self.group = self.program
        os.close(writable)
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(null, standard)
        with open(readable, "rb") as answer:  # noqa: PTH123
            return answer.read().decode()

    def must_stop(self) -> bool:
        if self.is_stopping or os.getppid() != self.parent:
            return True
        return bool(select_poll(self.control, 0))

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
        number = signal.SIGTERM
        if self.reap():
            self.send(number)
        while self.reap() and time.monotonic() - began < self.grace + GIVE_UP_SECONDS:
            if time.monotonic() - began >= self.grace:
                self.send(signal.SIGKILL)
                self.wait(0.005)
            else:
                self.wait(min(0.05, self.grace))

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


def select_poll(descriptor: int, milliseconds: int) -> "list[tuple[int, int]]":
    poller = select.poll()  # select() cannot watch a descriptor above 1023
    poller.register(descriptor, select.POLLIN)
    return poller.poll(milliseconds)


def become(argv: "list[str]", failure: int) -> None:
    """Execute *argv* in this child process, or write the errno to descriptor *failure*. Does not return."""
    guardian = os.getppid()
    tag = os.environ.pop(GUARDED_VARIABLE, "")
    if tag:
        os.environ[VARIABLE] = tag
    try:
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)  # Python ignores these, which a program would inherit
        if os.getppid() == guardian:
            os.execvp(argv[0], argv)  # noqa: S606  # there is no shell, on purpose
    except OSError as error:
        os.write(failure, str(error.errno).encode())
    finally:
        os._exit(127)


def main(arguments: "list[str]") -> None:
    control, status, parent = (int(text) for text in arguments[:3])
    for descriptor in (control, status):
        os.set_inheritable(descriptor, False)
    guardian = Guardian(control, status, parent, float(arguments[3]))
    try:
        guardian.run(arguments[4:])
    except Exception as error:  # noqa: BLE001  # stderr belongs to the program
        guardian.report(f"broken {error!r}")


if __name__ == "__main__":
    main(sys.argv[1:])
