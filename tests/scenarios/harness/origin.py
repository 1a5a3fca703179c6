"""An origin whose every move is written down in the scenario: a threaded raw-socket server.

A story is a function that gets the origin's end of one exchange (a Wire) and says what goes over it, byte for byte, with
waits for barriers in between. reply() makes the plain ones. `requests` holds what came in whole, in order.
"""
import contextlib
import socket
import struct
import threading
import traceback

from .client import parse_fields
from .tools import BOUND_S, free_port


class Request:
    def __init__(self, head, connection):
        line, *lines = head.split(b"\r\n")
        self.method, self.target, self.version = line.decode("latin-1").split(" ")
        self.head, self.fields, self.connection = head, parse_fields(lines), connection
        self.body = b""

    @property
    def path(self):
        return self.target.partition("?")[0]

    def get(self, name, default=None):
        return self.fields.get(name, default)

    def __repr__(self):
        return f"<{self.method} {self.target} {dict(self.fields)} {len(self.body)} bytes>"


class Left(Exception):
    """Larder ended the connection."""


class Wire:
    """The origin's end of one exchange."""

    def __init__(self, sock, request, origin):
        self.socket, self.request, self.origin = sock, request, origin
        self.sent, self.is_over = 0, False

    def send(self, data):
        data = data.encode("latin-1") if isinstance(data, str) else data
        view = memoryview(data)
        try:
            while view:
                n = self.socket.send(view[: 1 << 18])
                self.sent += n
                self.origin.sent += n
                view = view[n:]
        except (ConnectionError, BrokenPipeError):
            self.is_over = True
            raise Left from None
        return self

    def head(self, status=200, fields=None, version="HTTP/1.1"):
        pairs = fields.items() if isinstance(fields, dict) else fields or []
        return self.send(f"{version} {status} Status\r\n" + "".join(f"{n}: {v}\r\n" for n, v in pairs) + "\r\n")

    def chunk(self, data):
        data = data.encode("latin-1") if isinstance(data, str) else data
        return self.send(b"%x\r\n%s\r\n" % (len(data), data))

    def last_chunk(self, trailers=""):
        return self.send(f"0\r\n{trailers}\r\n")

    def wait(self, barrier):
        assert barrier.wait(BOUND_S), "a barrier that nobody lifted"
        return self

    def until_left(self):
        """Waits for Larder to end the connection; anything it sends meanwhile is dropped."""
        with contextlib.suppress(ConnectionError):
            while self.socket.recv(65536):
                pass
        self.is_over = True

    def close(self):
        self.is_over = True
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def half_close(self):
        self.is_over = True
        self.socket.shutdown(socket.SHUT_WR)

    def reset(self):
        self.is_over = True
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


def reply(body=b"", fields=None, status=200, chunked=False, close=False, barrier=None):
    """A story: waits for the barrier if there is one, then sends this. `fields` is a dict, or a function that makes one."""
    body = body.encode() if isinstance(body, str) else body

    def story(wire):
        if barrier:
            wire.wait(barrier)
        given = fields() if callable(fields) else fields or {}
        pairs = list(given.items()) if isinstance(given, dict) else list(given)
        has_body = wire.request.method != "HEAD" and status not in (204, 304)
        if chunked:
            pairs.append(("Transfer-Encoding", "chunked"))
        elif status not in (204, 304) and not close:
            pairs.append(("Content-Length", len(body)))
        wire.head(status, pairs)
        if has_body and chunked:
            for at in range(0, len(body), 65536):
                wire.chunk(body[at : at + 65536])
            wire.last_chunk()
        elif has_body:
            wire.send(body)
        if close:
            wire.close()

    return story


class Origin:
    def __init__(self, path=None, port=None, backlog=1024):
        """Listens on a port of the loopback, or on a unix socket's path."""
        self.listener = socket.socket(socket.AF_UNIX if path else socket.AF_INET, socket.SOCK_STREAM)
        if path:
            self.url = f"unix:{path}"
            self.listener.bind(path)
        else:
            self.port = port or free_port()
            self.url = f"http://127.0.0.1:{self.port}"
            self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.listener.bind(("127.0.0.1", self.port))
        self.listener.listen(backlog)
        self.requests, self.trouble = [], []
        self.connections, self.sent = 0, 0  # accepted; bytes sent
        self.first_request = threading.Event()
        self._stories, self._turn, self._sockets = {}, {}, set()
        self._lock = threading.Lock()
        self._run(self._accept)

    def on(self, path, *stories):
        """The stories for a path, told in turn; the last one repeats. "*" is any path."""
        self._stories[path], self._turn[path] = stories, 0
        return self

    def count(self, path=None):
        return sum(1 for r in self.requests if path in (None, r.path))

    def last(self, path=None):
        return next(r for r in reversed(self.requests) if path in (None, r.path))

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.close_connections()

    def close_connections(self):
        with self._lock:
            sockets, self._sockets = self._sockets, set()
        for s in sockets:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)

    # ---- serving

    @staticmethod
    def _run(function, *args):
        threading.Thread(target=function, args=args, daemon=True).start()

    def _accept(self):
        while True:
            try:
                s, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            with self._lock:
                self._sockets.add(s)
            self._run(self._serve, s, self.connections)

    def _next_story(self, path):
        with self._lock:
            key = path if path in self._stories else "*"
            assert key in self._stories, f"nobody told the origin what to say to {path}"
            turn = self._turn[key]
            self._turn[key] = turn + 1
            return self._stories[key][min(turn, len(self._stories[key]) - 1)]

    def _serve(self, s, number):
        got = bytearray()
        try:
            if s.family == socket.AF_INET:
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while request := self._read(s, got, number):
                story = self._next_story(request.path)
                if not getattr(story, "takes_body", False):
                    self._read_body(s, got, request)
                    self._note(request)
                wire = Wire(s, request, self)
                wire.got = got
                story(wire)
                if wire.is_over:
                    return
        except (Left, ConnectionError, OSError):
            pass
        except Exception:
            self.trouble.append(traceback.format_exc())
        finally:
            with self._lock:
                self._sockets.discard(s)
            self._linger(s)

    @staticmethod
    def _linger(s):
        """After a half close the other side is still read, so that closing does not reset what was sent."""
        with contextlib.suppress(OSError):
            s.settimeout(2)
            while s.recv(65536):
                pass
        with contextlib.suppress(OSError):
            s.close()

    def _note(self, request):
        with self._lock:
            self.requests.append(request)
        self.first_request.set()

    @staticmethod
    def _more(s, got):
        data = s.recv(1 << 18)
        if not data:
            raise Left
        got += data

    def _read(self, s, got, number):
        while (end := got.find(b"\r\n\r\n")) < 0:
            self._more(s, got)
        request = Request(bytes(got[:end]), number)
        del got[: end + 4]
        return request

    def _read_body(self, s, got, request):
        def take(length):
            while len(got) < length:
                self._more(s, got)
            taken = bytes(got[:length])
            del got[:length]
            return taken

        if request.get("Transfer-Encoding") == "chunked":
            parts = []
            while True:
                while (end := got.find(b"\r\n")) < 0:
                    self._more(s, got)
                size = int(take(end + 2).partition(b";")[0].strip(), 16)
                if size == 0:
                    break
                parts.append(take(size))
                assert take(2) == b"\r\n", "a chunk of Larder's is longer than it said"
            while True:
                while (end := got.find(b"\r\n")) < 0:
                    self._more(s, got)
                if take(end + 2) == b"\r\n":
                    break
            request.body = b"".join(parts)
        else:
            request.body = take(int(request.get("Content-Length", 0)))

    def read_body(self, wire):
        """For a story marked `takes_body`: reads the request's body now."""
        self._read_body(wire.socket, wire.got, wire.request)
        self._note(wire.request)
        return wire.request.body


def takes_body(story):
    """Marks a story that is told before the request's body has come."""
    story.takes_body = True
    return story
