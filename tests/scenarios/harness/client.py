"""A client on a raw socket that believes nothing: every line end, length and chunk of an answer is checked.

A reply knows how it ended: `whole` is only true when its framing said so, never because the bytes merely stopped.
"""
import contextlib
import re
import select
import socket
import struct

from .tools import BOUND_S

STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9][0-9])(?: ([^\x00-\x08\x0a-\x1f\x7f]*))?\Z")
FIELD_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*?)[ \t]*\Z")


class Ended(Exception):
    """The server ended the connection: `how` is "fin" or "reset"."""

    def __init__(self, how):
        super().__init__(how)
        self.how = how


class Fields(list):
    """Header fields as they came: (name, value) pairs."""

    def all(self, name):
        return [v for n, v in self if n.lower() == name.lower()]

    def get(self, name, default=None):
        return next(iter(self.all(name)), default)

    def __contains__(self, name):
        return bool(self.all(name))


def parse_fields(lines):
    fields = Fields()
    for line in lines:
        m = FIELD_LINE.match(line)
        assert m, f"not a header field: {line!r}"
        fields.append((m[1].decode(), m[2].decode("latin-1")))
    return fields


class Reply:
    def __init__(self, head):
        first, *lines = head.split(b"\r\n")
        m = STATUS_LINE.match(first)
        assert m, f"not a status line: {first!r}"
        assert b"\n" not in head.replace(b"\r\n", b""), f"a bare line feed: {head!r}"
        self.minor, self.status, self.reason = int(m[1]), int(m[2]), (m[3] or b"").decode("latin-1")
        self.fields = parse_fields(lines)
        self.interim = []  # 1xx replies that came before
        self.body, self.length = b"", 0  # length counts what a sink took, too
        self.trailers = Fields()
        self.framing = self.ended = None  # ended: "whole", "fin", "reset"

    def __repr__(self):
        return f"<{self.status} {dict(self.fields)} {self.length} bytes, {self.ended}>"

    def get(self, name, default=None):
        return self.fields.get(name, default)

    @property
    def whole(self):
        return self.ended == "whole"

    @property
    def cache_status(self):
        """RFC 9211: the parameters of our own member; a bare one is True."""
        value = self.get("Cache-Status", "")
        name, *parameters = [p.strip() for p in value.split(";")]
        assert name == "larder", f"Cache-Status: {value!r}"
        pairs = (p.partition("=") for p in parameters)
        return {key: v if eq else True for key, eq, v in pairs}

    @property
    def verdict(self):
        """hit, revalidated, collapsed, stored, or passed; one word for the assertions."""
        said = self.cache_status
        if "hit" in said:
            assert "fwd" not in said, "RFC 9211 2.1: hit and fwd exclude each other"
            return "hit"
        if said.get("fwd-status") == "304":
            return "revalidated"
        return next((word for word in ("collapsed", "stored") if word in said), "passed")


class Client:
    def __init__(self, address, source=None, receive_buffer=None, timeout=BOUND_S):
        """address: (host, port), or a path of a unix socket."""
        is_path = isinstance(address, str)
        family = socket.AF_UNIX if is_path else socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.settimeout(timeout)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if source:
            self.socket.bind((source, 0))
        self.socket.connect(address)
        if not is_path:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.got = bytearray()
        self.host = "site.test"

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    # ---- sending

    def send(self, data):
        self.socket.sendall(data.encode("latin-1") if isinstance(data, str) else data)
        return self

    def request(self, target, fields=None, method="GET", body=None, version="HTTP/1.1"):
        """Sends one request; Host and Content-Length are added when the fields do not say otherwise."""
        given = list(fields.items()) if isinstance(fields, dict) else list(fields or [])
        names = {name.lower() for name, _ in given}
        if "host" not in names:
            given.insert(0, ("Host", self.host))
        if body is not None and not names & {"content-length", "transfer-encoding"}:
            given.append(("Content-Length", len(body)))
        head = f"{method} {target} {version}\r\n" + "".join(f"{n}: {v}\r\n" for n, v in given) + "\r\n"
        return self.send(head.encode("latin-1") + (body or b""))

    def ask(self, target, fields=None, method="GET", body=None, version="HTTP/1.1", sink=None):
        return self.request(target, fields, method, body, version).reply(method, sink)

    def get(self, target, fields=None, **more):
        return self.ask(target, fields, **more)

    # ---- receiving

    def _more(self):
        try:
            data = self.socket.recv(1 << 18)
        except ConnectionError:
            raise Ended("reset") from None
        if not data:
            raise Ended("fin")
        self.got += data

    def _until(self, mark, most=1 << 18):
        while (at := self.got.find(mark)) < 0:
            assert len(self.got) < most, f"no {mark!r} in {most} bytes"
            self._more()
        taken = bytes(self.got[:at])
        del self.got[: at + len(mark)]
        return taken

    def read(self, length):
        """Exactly so many bytes."""
        while len(self.got) < length:
            self._more()
        taken = bytes(self.got[:length])
        del self.got[:length]
        return taken

    def _body(self, length, take):
        while length > 0:
            if not self.got:
                self._more()
            piece = bytes(self.got[:length])
            del self.got[: len(piece)]
            length -= len(piece)
            take(piece)

    def _chunks(self, reply, take):
        while True:
            line = self._until(b"\r\n", 4096)
            size, _, _ = line.partition(b";")
            assert re.fullmatch(rb"[0-9A-Fa-f]{1,16}", size), f"not a chunk size: {line!r}"
            if int(size, 16) == 0:
                break
            self._body(int(size, 16), take)
            assert self.read(2) == b"\r\n", "a chunk is longer than it said"
        lines = iter(lambda: self._until(b"\r\n"), b"")
        reply.trailers = parse_fields(lines)

    def _to_the_end(self, take):
        try:
            while True:
                if not self.got:
                    self._more()
                take(bytes(self.got))
                self.got.clear()
        except Ended as e:
            if e.how != "fin":
                raise

    def head(self):
        """The next final head; what comes before it (1xx) is in its `interim`."""
        interim = []
        while True:
            reply = Reply(self._until(b"\r\n\r\n"))
            if reply.status >= 200 or reply.status == 101:
                reply.interim = interim
                return reply
            interim.append(reply)

    def rest(self, reply, method="GET", sink=None):
        """Reads the body behind a head."""
        parts = []

        def take(piece):
            reply.length += len(piece)
            (sink or parts.append)(piece)

        lengths, coding = reply.fields.all("Content-Length"), reply.get("Transfer-Encoding")
        assert len(lengths) <= 1 and not (lengths and coding), f"two framings: {reply.fields}"
        try:
            if method == "HEAD" or reply.status in (204, 304) or reply.status < 200:
                reply.framing = "none"
                assert not coding, "a bodiless answer with Transfer-Encoding"
            elif coding:
                assert coding == "chunked", coding
                reply.framing = "chunked"
                self._chunks(reply, take)
            elif lengths:
                assert re.fullmatch("[0-9]+", lengths[0])
                reply.framing = "length"
                self._body(int(lengths[0]), take)
            else:
                reply.framing = "close"
                self._to_the_end(take)
            reply.ended = "whole"
        except Ended as e:
            reply.ended = e.how
        reply.body = b"".join(parts)
        return reply

    def reply(self, method="GET", sink=None):
        return self.rest(self.head(), method, sink)

    def ends(self):
        """How the server ends the connection, which sends nothing more: "fin" or "reset"."""
        try:
            while True:
                assert not self.got, f"more came: {bytes(self.got[:200])!r}"
                self._more()
        except Ended as e:
            return e.how

    def is_open(self):
        """No end in sight now."""
        readable, _, _ = select.select([self.socket], [], [], 0)
        if not readable:
            return True
        with contextlib.suppress(ConnectionError):
            return len(self.socket.recv(1, socket.MSG_PEEK)) > 0
        return False

    # ---- leaving

    def half_close(self):
        self.socket.shutdown(socket.SHUT_WR)

    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def close(self):
        self.socket.close()
