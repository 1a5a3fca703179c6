"""Slow clients and slow origins: memory stays bounded, others are not held up, every wait has its timer."""
import contextlib
import socket
import statistics
import threading
import time

import pytest

from harness.client import Ended
from harness.origin import reply, takes_body
from harness.tools import body_of, free_port, pieces, until, until_quiet

MIB = 1 << 20
HUGE = 200 * MIB
FRESH = {"Cache-Control": "max-age=60"}


def huge(fields, chunked):
    def story(wire):
        if chunked:
            wire.head(200, {**fields, "Transfer-Encoding": "chunked"})
            for piece in pieces(HUGE):
                wire.chunk(piece)
            wire.last_chunk()
        else:
            wire.head(200, {**fields, "Content-Length": HUGE})
            for piece in pieces(HUGE):
                wire.send(piece)

    return story


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize("kind", ["cacheable", "uncacheable"])
def test_a_client_that_reads_next_to_nothing_of_200_mib(origin, larder, kind, framing):
    """The origin is held back: neither Larder nor its store gathers the body, and when the client reads on, it gets all of it."""
    origin.on("/huge", huge(FRESH if kind == "cacheable" else {"Cache-Control": "no-store"}, framing == "chunked"))
    origin.on("/other", reply("quick", FRESH))
    l = larder(origin, cache={"memory": "32MiB"}, clients={"send_timeout": "1h"}, origin_items={"between_bytes_timeout": "1h"})
    l.get("/other")
    before = l.memory_bytes()
    slow = l.client(receive_buffer=4096)
    slow.request("/huge")
    head = slow.head()
    for _ in range(8):  # a KiB a second
        slow.read(1024)
        l.clock.advance(1)
    sent = until_quiet(lambda: origin.sent)
    assert sent < 40 * MIB, f"the origin could send {sent / MIB:.0f} MiB ahead of its reader"
    grown = l.memory_bytes() - before
    assert grown < 40 * MIB, f"{grown / MIB:.0f} MiB more memory for one slow reader"
    assert l.get("/other").verdict == "hit"

    taken = []
    if framing == "length":  # the first 8 KiB are read already
        head.fields[:] = [(n, v if n != "Content-Length" else str(HUGE - 8192)) for n, v in head.fields]
        r = slow.rest(head, sink=lambda piece: taken.append(len(piece)))
        assert r.whole and sum(taken) == HUGE - 8192
        assert l.memory_bytes() - before < 40 * MIB
    slow.close()
    l.wait_for(fill_stored=1, exchanges_live=0)  # the quick one only


def test_a_slow_reader_of_a_storable_page_does_not_hold_up_its_storing(origin, larder):
    page = body_of(6 * MIB)
    origin.on("/page", reply(page, FRESH))
    l = larder(origin)
    slow = l.client(receive_buffer=4096)
    slow.request("/page")
    slow.read(1024)
    l.wait_for(fill_stored=1, fills_live=0)
    assert l.get("/page").verdict == "hit"


def test_a_slow_upload_is_held_back_too(origin, larder):
    """An origin that does not read: the client's 100 MiB stay with the client."""
    read_on = threading.Event()

    @takes_body
    def story(wire):
        wire.wait(read_on)
        body = wire.origin.read_body(wire)
        reply(str(len(body)))(wire)

    origin.on("/upload", story)
    l = larder(origin, clients={"body_timeout": "1h"})
    before = l.memory_bytes()
    c = l.client()
    c.send(f"POST /upload HTTP/1.1\r\nHost: site.test\r\nContent-Length: {100 * MIB}\r\n\r\n")
    sent = 0

    def send_all():
        nonlocal sent
        for piece in pieces(100 * MIB):
            c.send(piece)
            sent += len(piece)

    sender = threading.Thread(target=send_all)
    sender.start()
    until_quiet(lambda: sent)
    assert sent < 40 * MIB and l.memory_bytes() - before < 16 * MIB
    read_on.set()
    sender.join()
    assert c.reply().body == str(100 * MIB).encode()
    assert l.memory_bytes() - before < 16 * MIB


def answer_times(client, count=200):
    times = []
    for _ in range(count):
        began = time.perf_counter()
        assert client.get("/page").verdict == "hit"
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def test_slowloris(origin, larder):
    """Thousands of heads that come a byte at a time: the others notice nothing, and the dribblers go when clients.head_timeout is up."""
    count = 5000
    origin.on("/page", reply(body_of(4096), {"Cache-Control": "max-age=86400"}))
    l = larder(origin, clients={"idle_timeout": "1h"})
    other = l.client()
    other.get("/page")
    alone = answer_times(other)
    head = b"GET /page HTTP/1.1\r\nHost: site.test\r\nX-Dribble: "
    dribblers = [l.client() for _ in range(count)]
    for c in dribblers:
        c.send(head[:16])
    until(lambda: l.client_received_bytes >= 16 * count, "all heads begun")

    stop = threading.Event()

    def dribble():
        at = 16
        while not stop.is_set():
            for c in dribblers:
                c.socket.send(head[at : at + 1] or b"x")
            at += 1

    dribbling = threading.Thread(target=dribble)
    dribbling.start()
    crowded = answer_times(other)
    stop.set()
    dribbling.join()
    assert crowded < 10 * alone + 0.02, f"{crowded * 1e3:.1f} ms beside slowloris, {alone * 1e3:.1f} ms alone"
    l.clock.advance(11)
    l.wait_for(client_timeout_head=count)
    for c in dribblers:
        r = c.reply()
        assert r.status == 408 and r.get("Connection") == "close"
    assert other.get("/page").verdict == "hit"
    l.wait_for(client_refused_limit=0, client_refused_descriptors=0)


# ---- every wait has its timer; time is ours ----------------------------------------------------------------------------


def test_an_idle_connection_is_closed_without_a_word(origin, larder):
    origin.on("/a", reply("a", FRESH))
    l = larder(origin, clients={"idle_timeout": "20s"})
    used, never_used = l.client(), l.client()
    used.get("/a")
    l.wait_for(client_idle=2)
    l.clock.advance(18)
    assert used.get("/a").whole  # begins anew with each request
    l.clock.advance(5)
    assert never_used.ends() == "fin" and used.is_open()
    l.clock.advance(16)
    assert used.ends() == "fin"
    l.wait_for(client_timeout_idle=2)


def test_a_head_that_does_not_end_is_a_408(origin, larder):
    l = larder(origin, clients={"head_timeout": "5s"})
    c = l.client()
    c.send("GET / HTTP/1.1\r\n")
    l.wait_for(client_received_bytes=16)
    for n in range(4):
        l.clock.advance(1)
        c.send("X")
        l.wait_for(client_received_bytes=17 + n)  # dribbling does not move the deadline
    l.clock.advance(1.5)
    assert c.reply().status == 408
    l.wait_for(client_timeout_head=1)
    assert l.reason("too-slow") == 1 and origin.connections == 0


def test_a_request_body_that_stops_is_a_408(origin, larder):
    @takes_body
    def story(wire):
        wire.origin.read_body(wire)

    origin.on("/form", story)
    l = larder(origin, clients={"body_timeout": "5s"})
    c = l.client()
    c.send("POST /form HTTP/1.1\r\nHost: site.test\r\nContent-Length: 100\r\n\r\nsome")
    until(lambda: origin.connections, "the request at the origin")
    l.within(6, lambda: l.exchanges_live == 0, "the answer")
    assert c.reply().status == 408 and c.ends() in ("fin", "reset")
    l.wait_for(client_timeout_body=1)
    assert origin.count() == 0


def test_a_client_that_takes_nothing_is_let_go(origin, larder):
    origin.on("/a", reply(body_of(6 * MIB), FRESH))
    l = larder(origin, clients={"send_timeout": "20s"})
    c = l.client(receive_buffer=4096)
    c.request("/a")
    l.wait_for(fill_stored=1)
    until_quiet(lambda: l.client_sent_bytes)
    l.clock.advance(21)
    l.wait_for(client_timeout_send=1, exchanges_live=0)
    r = c.reply()
    assert not r.whole and l.reason("client-stalled") == 1


@pytest.mark.parametrize("fields", [FRESH, {"Cache-Control": "no-store"}], ids=["cacheable", "uncacheable"])
def test_an_origin_that_never_answers_is_a_504(origin, larder, fields):
    origin.on("/a", lambda wire: wire.until_left(), reply("at last", fields))
    l = larder(origin, origin_items={"first_byte_timeout": "7s"})
    c = l.client()
    c.request("/a")
    assert origin.first_request.wait(20)
    l.clock.advance(6)
    assert c.is_open() and l.exchanges_live == 1
    l.within(8, lambda: l.exchanges_live == 0, "the answer")
    r = c.reply()
    assert r.status == 504 and r.whole and l.reason("origin-slow") == 1
    assert c.get("/a").body == b"at last"


@pytest.mark.parametrize("fields", [FRESH, {"Cache-Control": "no-store"}], ids=["cacheable", "uncacheable"])
def test_an_origin_that_stops_in_mid_body_is_cut_off(origin, larder, fields):
    half = threading.Event()

    def story(wire):
        wire.head(200, {**fields, "Content-Length": 1000}).send("half")
        half.set()
        wire.until_left()

    origin.on("/a", story)
    l = larder(origin, origin_items={"between_bytes_timeout": "7s"})
    c = l.client()
    c.request("/a")
    assert half.wait(20) and c.head().status == 200 and c.read(4) == b"half"
    l.within(8, lambda: l.exchanges_live == 0, "the cut")
    with pytest.raises(Ended):
        c.read(1)
    l.wait_for(fill_stored=0)
    assert l.reason("origin-stalled") == 1


class BlackHole:
    """A port whose queue is full and that nobody empties: the system drops what comes."""

    def __init__(self):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        listener = socket.socket()
        listener.bind(("127.0.0.1", self.port))
        listener.listen(0)
        self.sockets = [listener]
        with contextlib.suppress(TimeoutError):
            while True:
                self.sockets.append(socket.socket())
                self.sockets[-1].settimeout(0.3)
                self.sockets[-1].connect(("127.0.0.1", self.port))

    def close(self):
        for s in self.sockets:
            s.close()


def test_an_origin_that_does_not_take_connections_is_a_504(larder):
    hole = BlackHole()
    l = larder(hole, origin_items={"connect_timeout": "3s"})
    c = l.client()
    c.request("/a")
    l.wait_for(exchanges_live=1)
    l.within(4, lambda: l.exchanges_live == 0, "the answer")
    assert c.reply().status == 504 and l.reason("origin-connect-slow") == 1
    hole.close()


def test_a_follower_waits_for_anothers_fill_only_so_long(origin, larder):
    go = threading.Event()
    origin.on("/a", reply("first", FRESH, barrier=go), reply("second", FRESH))
    l = larder(origin, cache={"collapse_timeout": "5s"})
    leader, follower = l.client(), l.client()
    leader.request("/a")
    assert origin.first_request.wait(20)
    follower.request("/a")
    l.wait_for(fill_joined=1)
    l.within(6, lambda: l.exchanges_live == 1, "the follower fetches for itself")
    assert follower.reply().body == b"second"
    go.set()
    assert leader.reply().body == b"first"
    assert l.reason("fill-slow") == 1


def test_idle_origin_connections_go_before_the_origin_closes_them(origin, larder):
    origin.on("/a", reply("a", {"Cache-Control": "no-store"}))
    l = larder(origin, workers=1, origin_items={"idle_timeout": "4s"})
    l.get("/a")
    l.get("/a")
    assert origin.connections == 1
    l.wait_for(origin_idle=1, origin_open=1)
    l.clock.advance(5)
    l.wait_for(origin_idle=0, origin_open=0)


def test_a_thousand_idle_connections_own_no_buffers(origin, larder):
    origin.on("/a", reply("a", FRESH))
    l = larder(origin)
    l.get("/a")
    before = l.memory_bytes()
    clients = [l.client() for _ in range(1000)]
    for c in clients:
        c.request("/a")
    for c in clients:
        assert c.reply().body == b"a"
    l.wait_for(client_idle=1000)
    assert l.memory_bytes() - before < 12 * MIB
