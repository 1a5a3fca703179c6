"""Waits that meet each other: a client, an origin and a fill that are each slow in their own way, and what a request may
not do to the answers of others.
"""
import gzip
import threading

import pytest

from harness.origin import reply, takes_body
from harness.tools import body_of, pieces, until, until_quiet

MIB = 1 << 20
FRESH = {"Cache-Control": "max-age=60"}
NO_STORE = {"Cache-Control": "no-store"}


def test_a_follower_that_was_let_go_has_the_origins_time_not_the_fills(origin, larder):
    """cache.collapse_timeout bounds the wait behind another's fill; after the release it is over."""
    first, second = threading.Event(), threading.Event()
    origin.on("/a", reply("first", NO_STORE, barrier=first), reply("second", NO_STORE, barrier=second))
    l = larder(origin, cache={"collapse_timeout": "5s"})
    leader, follower = l.client(), l.client()
    leader.request("/a")
    assert origin.first_request.wait(20)
    follower.request("/a")
    l.wait_for(fill_joined=1)
    first.set()
    assert leader.reply().body == b"first"
    until(lambda: origin.count() == 2, "the follower's own request")
    l.clock.advance(6)
    until_quiet(lambda: l.exchanges_live)
    second.set()
    assert follower.reply().body == b"second"
    assert l.outcome("aborted") == 0


def test_a_slow_reader_of_a_pass_is_not_the_origins_fault(origin, larder):
    """The origin is always ahead: neither of its timeouts may run while the client is the slow one."""
    page = body_of(12 * MIB)
    origin.on("/a", reply(page, NO_STORE))
    l = larder(origin, origin_items={"first_byte_timeout": "5s", "between_bytes_timeout": "5s"}, clients={"send_timeout": "60s"})
    assert l.get("/a").body == page  # remembered as uncacheable
    assert l.get("/a").body == page  # remembered as uncacheable
    c = l.client(receive_buffer=4096)
    c.request("/a")
    head = c.head()
    got = c.read(1000)
    for _ in range(4):
        until_quiet(lambda: l.client_sent_bytes)
        l.clock.advance(4)
        got += c.read(500_000)
    head.fields[:] = [(n, v if n != "Content-Length" else str(len(page) - len(got))) for n, v in head.fields]
    r = c.rest(head)
    assert r.whole and got + r.body == page
    assert l.outcome("fault") == 0


def test_pipelined_passes_to_a_client_that_reads_nothing_keep_their_framing(origin, larder, home):
    """One of them finds the socket full before its first byte: a unix socket takes a message whole or not at all, and the large
    one at an answer's end leaves none for the small one that begins the next. What comes from the origin then has to wait."""
    count, one, two = 60, body_of(10), body_of(16000)
    made = []

    def story(wire):
        size = b"%x\r\n%s\r\n" % (len(one), one)
        wire.send(b"HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nTransfer-Encoding: chunked\r\n\r\n" + size)
        until(lambda: made[0].origin_received_bytes >= origin.sent, "Larder has read it")
        wire.chunk(two).last_chunk()

    origin.on("/a", story)
    l = larder(origin, workers=1, listen=f"unix:{home}/larder.sock")
    l.address = f"{home}/larder.sock"
    made.append(l)
    c = l.client()
    c.send("GET /a HTTP/1.1\r\nHost: site.test\r\n\r\n" * count)
    until_quiet(lambda: l.client_sent_bytes)
    assert origin.count("/a") < count, "nothing was held back"
    for _ in range(count):
        r = c.reply()
        assert r.whole and r.body == one + two


def test_an_answer_that_comes_while_the_body_is_still_sent(origin, larder):
    """An origin that answers first and reads on: the rest of the upload goes on when it does."""
    read_on = threading.Event()

    @takes_body
    def story(wire):
        wire.head(200, {**NO_STORE, "Transfer-Encoding": "chunked"}).chunk("begun ")
        wire.wait(read_on)
        wire.chunk(str(len(wire.origin.read_body(wire)))).last_chunk()

    origin.on("/echo", story)
    l = larder(origin)
    c = l.client()
    c.send(f"POST /echo HTTP/1.1\r\nHost: site.test\r\nContent-Length: {30 * MIB}\r\n\r\n")
    head = c.head()
    sender = threading.Thread(target=lambda: [c.send(p) for p in pieces(30 * MIB)])
    sender.start()
    until_quiet(lambda: l.client_received_bytes)
    read_on.set()
    assert c.rest(head).body == b"begun %d" % (30 * MIB)
    sender.join()


def test_an_upload_that_the_origin_does_not_take_is_not_the_clients_fault(origin, larder):
    read_on = threading.Event()

    @takes_body
    def story(wire):
        wire.wait(read_on)
        reply(str(len(wire.origin.read_body(wire))), NO_STORE)(wire)

    origin.on("/up", story)
    l = larder(origin, clients={"body_timeout": "5s"}, origin_items={"first_byte_timeout": "60s"})
    c = l.client()
    c.send(f"POST /up HTTP/1.1\r\nHost: site.test\r\nContent-Length: {30 * MIB}\r\n\r\n")
    sender = threading.Thread(target=lambda: [c.send(p) for p in pieces(30 * MIB)], daemon=True)
    sender.start()
    until_quiet(lambda: l.client_received_bytes)
    l.clock.advance(8)
    until_quiet(lambda: l.client_timeout_body)
    assert l.client_timeout_body == 0
    read_on.set()
    assert c.reply().body == b"%d" % (30 * MIB)
    sender.join()


def test_a_client_that_was_told_to_continue_and_does_not_is_a_408(origin, larder):
    @takes_body
    def story(wire):
        wire.origin.read_body(wire)

    origin.on("/form", story)
    l = larder(origin, clients={"body_timeout": "5s"})
    c = l.client()
    c.request("/form", {"Expect": "100-continue", "Content-Length": 100}, method="POST")
    until(lambda: origin.connections, "the request at the origin")
    l.within(6, lambda: l.exchanges_live == 0, "the answer")
    r = c.reply()
    assert r.status == 408 and [i.status for i in r.interim] == [100]
    assert l.reason("too-slow") == 1


def test_a_client_that_takes_nothing_is_let_go_though_the_fill_goes_on(origin, larder):
    """clients.send_timeout runs from the last byte that the client took, not from the last that came for it."""
    steps = [threading.Event() for _ in range(8)]
    arrived = body_of(8 * MIB)

    def story(wire):
        wire.head(200, {**FRESH, "Transfer-Encoding": "chunked"}).chunk(arrived)
        for step in steps:
            wire.wait(step).chunk("more")
        wire.last_chunk()

    origin.on("/a", story)
    l = larder(origin, clients={"send_timeout": "200s"}, origin_items={"between_bytes_timeout": "1h"})
    c = l.client(receive_buffer=4096)
    c.request("/a")
    l.wait_for(client_open=1)
    until_quiet(lambda: l.client_sent_bytes)
    for step in steps[:5]:
        assert l.client_timeout_send == 0
        before = l.origin_received_bytes
        step.set()
        until(lambda: l.origin_received_bytes > before, "the piece")
        l.clock.advance(45)
        until_quiet(lambda: l.client_timeout_send, rounds=20)
    l.wait_for(client_timeout_send=1)
    for step in steps:
        step.set()


def test_a_field_that_the_origin_did_not_see_does_not_choose_the_variant(origin, larder):
    """Connection takes Accept-Language off the request: the answer is the one for requests without it."""

    def story(wire):
        language = wire.request.get("Accept-Language", "none")
        reply(f"in {language}", {**FRESH, "Vary": "Accept-Language"})(wire)

    origin.on("/a", story)
    l = larder(origin)
    assert l.get("/a", {"Accept-Language": "de", "Connection": "Accept-Language"}).body == b"in none"
    assert l.get("/a", {"Accept-Language": "de"}).body == b"in de"
    assert l.get("/a").body == b"in none"


def test_an_encoded_object_is_not_confirmed_for_a_client_that_cannot_read_it(origin, larder):
    plain, packed = b"page " * 100, gzip.compress(b"page " * 100)

    def story(wire):
        fields = {**FRESH, "Vary": "X-Kind", "ETag": '"1"'}
        if wire.request.get("If-None-Match"):
            return reply("", fields, status=304)(wire)
        if "gzip" in wire.request.get("Accept-Encoding", ""):
            return reply(packed, {**fields, "Content-Encoding": "gzip"})(wire)
        return reply(plain, fields)(wire)

    origin.on("/a", story)
    l = larder(origin)
    assert l.get("/a", {"Accept-Encoding": "gzip"}).body == packed
    r = l.get("/a", {"Accept-Encoding": "identity"})
    assert r.get("Content-Encoding") is None and r.body == plain


@pytest.mark.parametrize("name", ["X-HTTP-Method-Override", "X-HTTP-Method", "X_Method_Override", "X-Forwarded-Ssl", "X_Forwarded_Host",
                                  "X_Original_URL", "Front-End-Https"])
def test_a_field_that_makes_another_request_of_it_does_not_reach_the_origin(origin, larder, name):
    origin.on("/a", reply("page", FRESH))
    l = larder(origin)
    l.get("/a", {name: "evil"})
    assert name not in origin.last().fields


def test_a_client_that_fidgets_does_not_give_the_origin_more_time(origin, larder):
    """first_byte_timeout runs from the request, not from whatever last happened on the client's side."""
    origin.on("/a", lambda wire: wire.until_left())
    l = larder(origin, origin_items={"first_byte_timeout": "70s"})
    c = l.client()
    c.request("/a", method="POST", body=b"x")
    assert origin.first_request.wait(20)
    for _ in range(4):
        c.send("G")  # of a next request
        until_quiet(lambda: l.exchanges_live, rounds=10)
        l.clock.advance(30)
    l.wait_for(exchanges_live=0)
    assert c.reply().status == 504


def test_a_length_that_came_twice_goes_on_once(origin, larder):
    """RFC 9110 8.6."""
    origin.on("/a", lambda wire: wire.head(200, {**NO_STORE, "Content-Length": "5, 5"}))
    assert larder(origin).get("/a", method="HEAD").get("Content-Length") == "5"


@pytest.mark.parametrize("ends", ["client leaves", "origin closes"])
def test_a_change_whose_end_nobody_saw_is_taken_as_made(origin, larder, ends):
    """The origin had the POST; what is stored may be old from then on."""
    has_come, may_go = threading.Event(), threading.Event()

    def story(wire):
        has_come.set()
        may_go.wait(10)
        wire.close()

    origin.on("/a", reply("old", FRESH), story, reply("new", FRESH))
    l = larder(origin)
    assert l.get("/a").body == b"old" and l.get("/a").verdict == "hit"
    with l.client() as c:
        c.send("POST /a HTTP/1.1\r\nHost: site.test\r\nContent-Length: 1\r\n\r\nx")
        assert has_come.wait(10)
        if ends == "origin closes":
            may_go.set()
            assert c.reply().status == 502
    until(lambda: l.stats()["counters"]["invalidated"] == 1, "invalidated")
    may_go.set()
    assert l.get("/a").body == b"new"
