"""Many clients, one page: what can be shared is fetched once, what cannot is fetched in parallel."""
import threading

import pytest

from harness.client import Client
from harness.origin import reply
from harness.tools import body_of, until

pytestmark = pytest.mark.concurrency
CROWD = 500


def crowd(larder, target, count=CROWD):
    clients = [larder.client() for _ in range(count)]
    for c in clients:
        c.request(target)
    return clients


def test_500_clients_ask_for_one_slow_page_and_the_origin_sees_one_request(origin, larder):
    page = body_of(48 * 1024)
    all_joined, half_read = threading.Event(), threading.Event()

    def story(wire):
        wire.wait(all_joined).head(200, {"Cache-Control": "max-age=60", "Content-Length": len(page)})
        wire.send(page[:10000]).wait(half_read).send(page[10000:])

    origin.on("/slow", story)
    l = larder(origin)
    clients = crowd(l, "/slow")
    l.wait_for(fill_joined=CROWD - 1, followers_live=CROWD, fills_live=1)
    all_joined.set()
    assert clients[0].head().get("Content-Length") == str(len(page))  # it streams: the head is here before the page's end
    half_read.set()
    assert clients[0].read(len(page)) == page
    for c in clients[1:]:
        r = c.reply()
        assert r.whole and r.status == 200 and r.body == page
        assert r.verdict in ("collapsed", "stored")
    assert origin.count() == 1
    assert l.get("/slow").verdict == "hit"
    l.wait_for(fill_started=1, fill_stored=1, fill_joined=CROWD - 1, followers_live=0, origin_requests=1)


def test_an_uncacheable_page_does_not_serialise_the_crowd(origin, larder):
    """All of them are at the origin at one time: the barrier lifts only when the last has come."""
    everybody = threading.Barrier(CROWD)

    def story(wire):
        everybody.wait(60)
        reply(f"for {wire.request.get('X-Number')}", {"Cache-Control": "private"})(wire)

    origin.on("/private", reply("nobody's", {"Cache-Control": "private"}), story)
    l = larder(origin)
    assert l.get("/private").verdict == "passed"  # from here on it is known that this cannot be shared
    clients = [l.client() for _ in range(CROWD)]
    for number, c in enumerate(clients):
        c.request("/private", {"X-Number": number})
    for number, c in enumerate(clients):
        r = c.reply()
        assert r.whole and r.body == f"for {number}".encode() and r.verdict == "passed"
    assert origin.count() == 1 + CROWD
    l.wait_for(fill_stored=0, exchanges=1 + CROWD)


def test_a_page_that_turns_out_uncacheable_lets_its_followers_go_in_parallel(origin, larder):
    crowd_size = 50
    head, everybody = threading.Event(), threading.Barrier(crowd_size - 1)

    def alone(wire):
        everybody.wait(60)
        reply("each their own", {"Cache-Control": "no-store"})(wire)

    origin.on("/who-knows", reply("the leader's", {"Cache-Control": "no-store"}, barrier=head), alone)
    l = larder(origin)
    clients = crowd(l, "/who-knows", crowd_size)
    l.wait_for(fill_joined=crowd_size - 1)
    head.set()
    bodies = sorted(c.reply().body for c in clients)
    assert bodies == sorted([b"the leader's"] + [b"each their own"] * (crowd_size - 1))
    l.wait_for(fill_released=1, fill_stored=0, origin_requests=crowd_size)


def test_a_slow_follower_does_not_slow_the_others(origin, larder):
    page = body_of(6 << 20)
    go = threading.Event()
    origin.on("/big", reply(page, {"Cache-Control": "max-age=60"}, barrier=go))
    l = larder(origin)
    slow, quick = l.client(receive_buffer=4096), l.client()
    slow.request("/big")
    l.wait_for(fills_live=1)
    quick.request("/big")
    l.wait_for(fill_joined=1)
    go.set()
    assert quick.reply().body == page  # while the first one has taken next to nothing
    l.wait_for(fill_stored=1, fills_live=0)
    assert slow.reply().body == page
    assert origin.count() == 1


def test_variants_are_filled_side_by_side_and_nobody_gets_anothers(origin, larder):
    go = threading.Event()

    def story(wire):
        language = wire.request.get("Accept-Language")
        reply(f"in {language}", {"Cache-Control": "max-age=60", "Vary": "Accept-Language"}, barrier=go)(wire)

    origin.on("/page", story)
    l = larder(origin)
    clients = [(language, l.client()) for language in ("de", "en", "fr") * 10]
    for language, c in clients:
        c.request("/page", {"Accept-Language": language})
    l.wait_for(exchanges_live=len(clients))
    go.set()
    for language, c in clients:
        assert c.reply().body == f"in {language}".encode()
    for language in ("de", "en", "fr"):
        r = l.get("/page", {"Accept-Language": language})
        assert (r.verdict, r.body) == ("hit", f"in {language}".encode())
    assert l.stats()["memory"]["variants"] == 3


def test_threads_that_hammer_a_few_pages_always_get_the_right_one(origin, larder):
    """Pages expire, are purged and filled again while eight threads ask: every answer is whole and belongs to its address."""
    for number in range(8):
        origin.on(f"/{number}", reply(body_of(1000 + 9000 * number), {"Cache-Control": "max-age=1"}))
    l = larder(origin, cache={"memory": "16MiB"})
    wrong, done = [], threading.Event()

    def ask(seed):
        with Client(l.address) as c:
            for turn in range(150):
                number = (seed + turn * 5) % 8
                r = c.get(f"/{number}")
                if not (r.whole and r.body == body_of(1000 + 9000 * number)):
                    wrong.append(r)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(8)]
    for t in threads:
        t.start()

    def disturb():
        turn = 0
        while not done.is_set():
            l.purge(f"http://site.test/{turn % 8}")
            l.clock.advance(0.3)
            turn += 1

    disturber = threading.Thread(target=disturb)
    disturber.start()
    for t in threads:
        t.join()
    done.set()
    disturber.join()
    assert wrong == []
    until(lambda: l.exchanges == 8 * 150, "every request counted")
