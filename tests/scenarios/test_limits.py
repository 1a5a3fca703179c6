"""Running out: of connections, of descriptors, of room in a request. New work is refused, nothing spins, and it goes on after."""
import threading
import time

import pytest

from harness.client import Client, Ended
from harness.origin import reply
from harness.tools import until

FRESH = {"Cache-Control": "max-age=600"}


def verdict_of(client):
    """What a new connection gets: an answer's status, or how it ended."""
    try:
        return client.get("/a").status
    except (Ended, ConnectionError) as e:
        return getattr(e, "how", "reset")


def test_clients_max_connections(origin, larder):
    origin.on("/a", reply("a", FRESH))
    l = larder(origin, clients={"max_connections": 10})
    inside = [l.client() for _ in range(10)]
    assert [c.get("/a").status for c in inside] == [200] * 10
    with l.client() as eleventh:
        r = eleventh.reply()
        assert r.status == 503 and r.get("Retry-After") and r.get("Connection") == "close"
    l.wait_for(client_refused_limit=1, client_open=10)
    assert inside[3].get("/a").status == 200
    inside[0].close()
    l.wait_for(client_open=9)
    assert l.get("/a").status == 200


def test_connections_per_address(origin, larder):
    origin.on("/a", reply("a", FRESH))
    l = larder(origin, clients={"max_connections_per_address": 3})
    for _ in range(3):
        assert l.client(source="127.0.0.2").get("/a").status == 200
    assert l.client(source="127.0.0.2").reply().status == 503
    assert l.client(source="127.0.0.3").get("/a").status == 200
    l.wait_for(client_refused_address=1, client_open=4)
    l.close_clients()
    l.wait_for(client_open=0)
    assert l.client(source="127.0.0.2").get("/a").status == 200


@pytest.mark.parametrize("asked", [{}, {"max_connections": 10000}], ids=["auto", "more than there are"])
def test_at_the_descriptor_limit_it_refuses_without_spinning_and_goes_on_after(origin, larder, asked):
    """400 connections, 200 descriptors."""
    origin.on("/a", reply("a", FRESH))
    l = larder(origin, descriptors=200, clients={**asked, "idle_timeout": "1h"})
    assert l.get("/a").status == 200
    first = l.client()
    assert first.get("/a").status == 200
    crowd = [l.client() for _ in range(400)]
    until(lambda: l.client_refused_descriptors > 100, "refusals")
    busy, began = l.cpu_s(), time.monotonic()
    time.sleep(1)  # a measurement, not a wait: how much processor does it take while clients queue up?
    share = (l.cpu_s() - busy) / (time.monotonic() - began)
    assert share < 0.3, f"{share:.0%} of a processor with nothing to do"
    assert first.get("/a").status == 200  # those who are in are served
    inside = sum(verdict_of(c) == 200 for c in crowd[:20])
    assert inside > 0
    for c in crowd:
        c.close()
    l.wait_for(client_open=1)
    for _ in range(20):
        assert l.get("/a").status == 200


def test_without_descriptors_for_the_origin_the_answer_is_a_503_and_hits_go_on(origin, larder):
    origin.on("/a", reply("a", FRESH)).on("/hold", lambda wire: wire.until_left()).on("/new", reply("new", FRESH))
    l = larder(origin, workers=1, descriptors=110, clients={"max_connections": 10000, "idle_timeout": "1h"})
    l.get("/a")
    inside = l.client()
    assert inside.get("/a").verdict == "hit"
    holders = [l.client() for _ in range(60)]
    for n, c in enumerate(holders):
        c.request(f"/hold?{n}")
    until(lambda: l.origin_open + l.reason("overloaded") + l.reason("origin-busy") + l.client_refused_descriptors > 10, "it runs out or holds")
    assert inside.get("/a").verdict == "hit"
    for c in holders:
        c.reset()
    l.within(10, lambda: l.exchanges_live == 0, "the holders are gone")
    assert l.get("/new").body == b"new"


def test_max_body(origin, larder):
    origin.on("/form", reply("thanks"))
    l = larder(origin, clients={"max_body": "10KiB"})
    assert l.ask("/form", method="POST", body=b"x" * 10240).status == 200
    with l.client() as c:
        r = c.ask("/form", method="POST", body=b"x" * 10241)
        assert r.status == 413 and r.get("Connection") == "close"
    assert origin.count() == 1 and l.reason("too-large") == 1
    with l.client() as c:  # its length is not known before it is there
        c.send("POST /form HTTP/1.1\r\nHost: site.test\r\nTransfer-Encoding: chunked\r\n\r\n" + f"1000\r\n{'x' * 4096}\r\n" * 4 + "0\r\n\r\n")
        assert c.reply().status == 413
    assert origin.count() == 1


@pytest.mark.parametrize("items,head,status", [
    ({"max_target": "256"}, f"GET /{'a' * 300} HTTP/1.1\r\nHost: a\r\n\r\n", 414),
    ({"max_fields": 10}, "GET / HTTP/1.1\r\nHost: a\r\n" + "X: y\r\n" * 10 + "\r\n", 431),
    ({"max_head": "1KiB", "max_target": "512"}, f"GET / HTTP/1.1\r\nHost: a\r\nX: {'y' * 1100}\r\n\r\n", 431),
], ids=["max_target", "max_fields", "max_head"])
def test_limits_of_the_head(origin, larder, items, head, status):
    l = larder(origin, clients=items)
    with l.client() as c:
        assert c.send(head).reply().status == status
    assert l.reason("too-large") == 1 and origin.connections == 0


def test_a_connection_storm_is_served_to_the_last_one(origin, larder):
    """A new connection per request from many threads: webbench, ab without -k."""
    origin.on("/a", reply("a" * 1000, FRESH))
    l = larder(origin)
    l.get("/a")
    failed = []

    def ask():
        for _ in range(100):
            with Client(l.address) as c:
                r = c.get("/a", {"Connection": "close"})
                if r.status != 200 or not r.whole:
                    failed.append(r)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failed == []
    l.wait_for(client_accepted=801, exchanges=801)
