"""Ports, waiting, time and bytes: the small things that every scenario needs.

Nothing here sleeps for a while and hopes: until() asks for a condition, bounded; Clock moves the time that Larder sees.
"""
import email.utils
import os
import random
import socket
import struct
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BINARY = Path(os.environ.get("LARDER_BINARY", ROOT / "build/debug/larder")).resolve()
# How long anything may take before it counts as never. Sanitizers are slow, and so are busy machines.
BOUND_S = float(os.environ.get("LARDER_TEST_BOUND", "30"))


def until(condition, what, bound_s=None):
    """The condition's first true value; fails when it does not come."""
    end = time.monotonic() + (bound_s or BOUND_S)
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"never came: {what}")
        time.sleep(0.01)


def until_quiet(figure, rounds=25):
    """The figure, once it has not moved for a quarter of a second."""
    last, same = figure(), 0

    def has_settled():
        nonlocal last, same
        now = figure()
        same = same + 1 if now == last else 0
        last = now
        return same >= rounds

    until(has_settled, "a figure that stands still")
    return last


# Below the range from which the system takes ports by itself, so that nobody gets one between our look and its use.
_next_port = 20000 + os.getpid() * 7 % 9000


def free_port(host="127.0.0.1"):
    global _next_port
    for _ in range(3000):
        _next_port = 20000 + (_next_port - 19999) % 12000
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as s:
            try:
                s.bind((host, _next_port))
            except OSError:
                continue
            return _next_port
    raise AssertionError("no free port")


def home_dir():
    """A directory that servers which drop their rights can read as well."""
    path = Path(tempfile.mkdtemp(prefix="larder-test-"))
    path.chmod(0o755)
    return path


class Clock:
    """The time that Larder sees, ahead of the machine's by as much as a scenario says (base/clock.h)."""

    def __init__(self, path):
        self.path, self.ahead_ms = path, 0
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self.advance(0)

    def advance(self, seconds):
        self.ahead_ms += int(seconds * 1000)
        os.pwrite(self._fd, struct.pack("=q", self.ahead_ms), 0)

    def now(self):
        return time.time()  # dates are the wall clock's, which is not moved

    def date(self, from_now=0):
        return email.utils.formatdate(self.now() + from_now, usegmt=True)

    def close(self):
        os.close(self._fd)


_MIB = 1 << 20
_NOISE = random.Random(7).randbytes(_MIB)


def pieces(length, size=_MIB):
    """A body of that length whose every MiB is told apart, without holding it whole."""
    for number in range((length + _MIB - 1) // _MIB):
        block = struct.pack(">Q", number) + _NOISE[8:]
        block = block[: min(_MIB, length - number * _MIB)]
        for at in range(0, len(block), size):
            yield block[at : at + size]


def body_of(length):
    return b"".join(pieces(length))


def read_proc(pid, name):
    return Path(f"/proc/{pid}/{name}").read_text()


def cpu_s(pid):
    """Processor seconds, user and system, of the whole process."""
    fields = read_proc(pid, "stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
