"""Everybody may die at any point. Nothing cut is ever stored or ended cleanly, and nothing is left behind: the fixture's last
look finds no exchange, fill, follower, connection or descriptor.
"""
import threading

import pytest

from harness.origin import reply, takes_body
from harness.tools import body_of, free_port, until, until_quiet

pytestmark = pytest.mark.concurrency
FRESH = {"Cache-Control": "max-age=60"}
BODY = body_of(300_000)


def cut_length(wire):
    wire.head(200, {**FRESH, "Content-Length": len(BODY)}).send(BODY[:200_000])


def cut_chunk(wire):
    wire.head(200, {**FRESH, "Transfer-Encoding": "chunked"}).chunk(BODY[:100_000]).send("10000\r\n").send(BODY[:1000])


def cut_between_chunks(wire):
    wire.head(200, {**FRESH, "Transfer-Encoding": "chunked"}).chunk(BODY[:100_000])


def cut_before_last_line(wire):
    wire.head(200, {**FRESH, "Transfer-Encoding": "chunked"}).chunk(BODY[:100_000]).send("0\r\n")


def bad_chunk(wire):
    wire.head(200, {**FRESH, "Transfer-Encoding": "chunked"}).chunk(BODY[:1000]).send("0x10\r\n")


CUTS = {f.__name__: f for f in (cut_length, cut_chunk, cut_between_chunks, cut_before_last_line, bad_chunk)}
ENDS = {"closes": lambda wire: wire.close(), "resets": lambda wire: wire.reset()}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("cacheable", ["cacheable", "uncacheable"])
def test_the_origin_dies_in_mid_body(origin, larder, cut, end, cacheable):
    fields = FRESH if cacheable == "cacheable" else {"Cache-Control": "no-store"}
    half_way, followed = threading.Event(), threading.Event()

    def story(wire):
        plain_head = wire.head
        wire.head = lambda status, f: plain_head(status, {**f, **fields})
        CUTS[cut](wire)
        half_way.set()
        wire.wait(followed)
        ENDS[end](wire)

    origin.on("/a", story, reply(BODY, fields))
    l = larder(origin)
    first = l.client()
    first.request("/a")
    assert half_way.wait(20)
    clients = [first]
    if cacheable == "cacheable" and cut != "bad_chunk":  # somebody else is reading the same fill when it breaks
        clients.append(l.client())
        clients[1].request("/a")
        l.wait_for(fill_joined=1)
    followed.set()
    for c in clients:
        r = c.reply()
        assert r.status in (200, 502) and (r.status == 502 or not r.whole), f"a cut body that looks whole: {r}"
    assert l.stats()["memory"]["objects"] == 0
    again = l.get("/a")  # fetched anew, not from what was left
    assert again.body == BODY and again.verdict in ("stored", "passed")
    if cacheable == "cacheable":
        l.wait_for(fill_failed=1, fill_stored=1)
        assert l.get("/a").verdict == "hit"


@pytest.mark.parametrize("half_a_head", ["", "HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 103 Early Hints\r\n\r\n"])
@pytest.mark.parametrize("end", ENDS)
def test_the_origin_dies_before_its_head_is_whole(origin, larder, half_a_head, end):
    def story(wire):
        wire.send(half_a_head)
        ENDS[end](wire)

    origin.on("/a", story)
    l = larder(origin)
    r = l.get("/a")
    assert r.status == 502 and r.whole and r.get("Cache-Control") == "no-store"
    assert l.outcome("fault") == 1
    l.wait_for(fill_failed=1, fill_stored=0)


def test_an_answer_that_is_not_http_is_a_502(origin, larder):
    def story(wire):
        wire.send("SSH-2.0-OpenSSH_9.2\r\n\r\n").close()

    origin.on("/a", story)
    l = larder(origin)
    assert l.get("/a").status == 502
    assert l.reason("origin-malformed") == 1


def test_an_origin_that_is_not_there_is_a_502_and_back_when_it_is_back(origins, larder):
    class Absent:
        port = free_port()
        url = f"http://127.0.0.1:{port}"

    l = larder(Absent)
    r = l.get("/a")
    assert r.status == 502 and l.reason("origin-refused") == 1
    back = origins(port=Absent.port)
    back.on("/a", reply("here", FRESH))
    l.clock.advance(2)
    assert l.get("/a").body == b"here"


def test_a_dead_server_does_not_matter_while_another_lives(origins, larder):
    live, dead = origins(), origins()
    for each in (live, dead):
        each.on("*", reply("alive", {"Cache-Control": "no-store"}))
    l = larder([live, dead])
    assert {l.get(f"/{n}").status for n in range(4)} == {200} and live.count() and dead.count()
    dead.close()
    answers = [l.get(f"/again/{n}").status for n in range(6)]
    assert answers.count(200) >= 5  # only the one that found it dead may say so
    l.clock.advance(60)


def test_a_kept_connection_that_the_origin_closed_costs_no_client_an_error(origin, larder):
    """Either the pool saw the close, or the request is sent once more: GET may be."""

    def once_then_gone(wire):
        reply("one", {"Cache-Control": "no-store"})(wire)
        wire.close()

    origin.on("/a", once_then_gone)
    l = larder(origin, workers=1)
    for _ in range(20):
        r = l.get("/a")
        assert (r.status, r.body) == (200, b"one")
    assert l.outcome("fault") == 0


def test_a_get_is_sent_again_when_its_kept_connection_dies_under_it_but_a_post_is_not(origin, larder):
    def dies(wire):
        wire.close()

    ok = reply("fine", {"Cache-Control": "no-store"})
    origin.on("/warm", ok).on("/get", dies, ok).on("/post", dies, ok)
    l = larder(origin, workers=1)
    l.get("/warm")
    assert l.get("/get").body == b"fine"
    assert origin.count("/get") == 2 and l.origin_retried == 1
    assert l.ask("/post", method="POST", body=b"pay once").status == 502
    assert origin.count("/post") == 1 and l.origin_retried == 1


def test_a_request_on_a_fresh_connection_is_not_sent_twice(origin, larder):
    origin.on("/a", lambda wire: wire.close())
    l = larder(origin)
    assert l.get("/a").status == 502
    assert origin.count() == 1 and l.origin_retried == 0


# ---- clients ---------------------------------------------------------------------------------------------------------

LEAVES = {"closes": lambda c: c.close(), "resets": lambda c: c.reset()}


@pytest.fixture(params=LEAVES)
def leave(request):
    return LEAVES[request.param]


@pytest.mark.parametrize("sent", ["", "GE", "GET /a HTTP/1.1\r\nHost: site.te"])
def test_a_client_dies_before_its_head_is_whole(origin, larder, leave, sent):
    l = larder(origin)
    c = l.client()
    c.send(sent)
    l.wait_for(client_open=1, client_received_bytes=len(sent))
    leave(c)
    l.wait_for(client_open=0, exchanges=0)
    assert origin.count() == 0


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_client_dies_while_the_origin_thinks(origin, larder, leave, method):
    think = threading.Event()
    origin.on("/a", reply("late", FRESH, barrier=think))
    l = larder(origin)
    c = l.client()
    c.request("/a", method=method, body=b"form" if method == "POST" else None)
    assert origin.first_request.wait(20)
    leave(c)
    l.within(5, lambda: l.exchanges_live == 0, "the exchange ends with its client")
    think.set()
    l.wait_for(client_open=0, fills_live=0)
    assert l.outcome("aborted") == 1


def test_a_leader_that_dies_does_not_take_its_followers_along(origin, larder, leave):
    go = threading.Event()
    origin.on("/a", reply(BODY, FRESH, barrier=go))
    l = larder(origin)
    leader, follower = l.client(), l.client()
    leader.request("/a")
    assert origin.first_request.wait(20)
    follower.request("/a")
    l.wait_for(fill_joined=1)
    leave(leader)
    l.within(5, lambda: l.followers_live == 1, "the leader is gone")
    go.set()
    assert follower.reply().body == BODY
    assert origin.count() == 1
    l.wait_for(fill_stored=1)


def test_a_follower_that_dies_does_not_disturb_the_fill(origin, larder, leave):
    sent_half, rest = threading.Event(), threading.Event()

    def story(wire):
        wire.head(200, {**FRESH, "Content-Length": len(BODY)}).send(BODY[:150_000])
        sent_half.set()
        wire.wait(rest).send(BODY[150_000:])

    origin.on("/a", story)
    l = larder(origin)
    leader, follower = l.client(), l.client()
    leader.request("/a")
    assert sent_half.wait(20)
    follower.request("/a")
    follower.read(1000)
    leave(follower)
    l.within(5, lambda: l.followers_live == 1, "the follower is gone")
    rest.set()
    assert leader.reply().body == BODY
    l.wait_for(fill_stored=1)


@pytest.mark.parametrize("kind", ["cacheable", "uncacheable", "hit"])
def test_a_client_dies_in_mid_answer(origin, larder, leave, kind):
    """6 MiB do not fit the sockets' buffers: Larder is in the middle of sending when the client goes."""
    page = body_of(6 << 20)
    origin.on("/a", reply(page, FRESH if kind != "uncacheable" else {"Cache-Control": "no-store"}))
    l = larder(origin)
    if kind == "hit":
        assert l.get("/a").verdict == "stored"
    c = l.client(receive_buffer=4096)
    c.request("/a")
    c.read(10_000)
    until_quiet(lambda: l.client_sent_bytes)
    leave(c)
    l.wait_for(exchanges_live=0, client_open=0)
    assert l.outcome("aborted") == 1
    assert l.get("/a").body == page


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_client_dies_in_mid_upload(origin, larder, leave, framing):
    """The origin must not take half a form for a whole one."""
    ended = threading.Event()

    @takes_body
    def story(wire):
        try:
            wire.origin.read_body(wire)
        finally:
            ended.set()

    origin.on("/form", story)
    l = larder(origin)
    c = l.client()
    if framing == "length":
        c.send("POST /form HTTP/1.1\r\nHost: site.test\r\nContent-Length: 1000\r\n\r\nhalf of it")
    else:
        c.send("POST /form HTTP/1.1\r\nHost: site.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n100\r\nhalf")
    until(lambda: origin.connections == 1, "the request at the origin")
    leave(c)
    l.within(5, lambda: ended.is_set(), "the origin sees the end")
    assert origin.count() == 0, "the origin took a cut request for a whole one"
    l.wait_for(exchanges_live=0)


def test_larder_killed_and_started_again_serves_at_once(origin, larder, home):
    origin.on("/a", reply("page", FRESH))
    l = larder(origin)
    assert l.get("/a").body == b"page"
    l.kill()
    l.start()
    assert l.get("/a").body == b"page" and origin.count() == 2
