"""stale-while-revalidate (RFC 5861, 3): what is stale goes out at once, and one request behind it fetches the new one, whoever
leaves meanwhile.
"""
import threading

import pytest

from harness.origin import reply
from harness.told import ask, store
from harness.tools import body_of

pytestmark = pytest.mark.concurrency
ETAG = {"ETag": '"1"'}
WINDOW = {**ETAG, "Cache-Control": "max-age=10, stale-while-revalidate=600"}
BARE = {**ETAG, "Cache-Control": "max-age=10"}
REFRESHING, PAUSED = ("stale", "refreshing"), ("stale", "refresh-failed")


def confirms(fields):
    return reply("", {**fields, "X-Head": "new"}, 304)


def renews(fields):
    return reply("new", {**fields, "ETag": '"2"', "X-Head": "new"})


SECOND = {"304": (confirms, b"old"), "200": (renews, b"new")}


@pytest.mark.parametrize("second", SECOND)
@pytest.mark.parametrize("fields,cache", [(WINDOW, {}), (BARE, {"stale_while_revalidate": "10m"})], ids=["directive", "configuration"])
def test_stale_at_once_then_new(origin, larder, clock, second, fields, cache):
    story, body = SECOND[second]
    go = threading.Event()
    origin.on("/a", reply("old", fields), lambda wire: (wire.wait(go), story(fields)(wire)))
    l = larder(origin, cache=cache)
    store(l)
    clock.advance(15)
    r = ask(l, "/a")  # the origin has not answered yet
    assert (r.status, r.body, r.told) == (200, b"old", REFRESHING)
    said = r.cache_status
    assert said["hit"] is True and "fwd" not in said and said["detail"] == "refreshing"
    assert -9 <= int(said["ttl"]) <= -5 and int(r.get("Age")) == 10 - int(said["ttl"])  # RFC 9211 2.4
    l.wait_for(origin_requests=2, refresh_started=1)
    assert origin.last().get("If-None-Match") == '"1"'
    go.set()
    l.wait_for(refresh_done=1, fills_live=0)
    r = ask(l, "/a")
    assert (r.told, r.body, r.get("X-Head")) == (("hit", "fresh"), body, "new") and int(r.get("Age")) < 9
    assert origin.count() == 2


@pytest.mark.parametrize("workers", [1, 4])
def test_one_refresh_however_many_ask(origin, larder, clock, workers):
    go = threading.Event()
    origin.on("/a", reply("old", WINDOW), reply("new", {**WINDOW, "ETag": '"2"'}, barrier=go))
    l = larder(origin, workers=workers)
    store(l)
    clock.advance(15)
    clients = [l.client() for _ in range(60)]
    for c in clients:
        c.request("/a")
    for c in clients:
        assert c.reply().body == b"old"
    for c in clients[::3]:
        assert c.get("/a").body == b"old"
    go.set()
    l.wait_for(refresh_started=1, refresh_done=1, fills_live=0)
    assert {c.get("/a").body for c in clients} == {b"new"} and origin.count() == 2
    assert l.outcome("stale") == 80 and l.reason("refreshing") == 80


@pytest.mark.parametrize("leave", ["close", "reset"])
def test_the_refresh_goes_on_when_its_client_has_left(origin, larder, clock, leave):
    """Also when what comes is larger than any buffer on the way: nobody reads along."""
    page, half, rest = body_of(3 << 20), threading.Event(), threading.Event()

    def story(wire):
        wire.head(200, {**WINDOW, "ETag": '"2"', "Content-Length": len(page)}).send(page[:5000])
        half.set()
        wire.wait(rest).send(page[5000:])

    origin.on("/a", reply("old", WINDOW), story)
    l = larder(origin)
    store(l)
    clock.advance(15)
    c = l.client()
    assert c.get("/a").body == b"old"
    assert half.wait(20)
    getattr(c, leave)()
    l.wait_for(client_open=0, fills_live=1)
    rest.set()
    l.wait_for(refresh_done=1, fills_live=0)
    r = ask(l, "/a")
    assert r.told == ("hit", "fresh") and r.body == page and origin.count() == 2


# ---- when it fails -----------------------------------------------------------------------------------------------------

WHOLE = body_of(100_000)


def cut(wire):
    wire.head(200, {**WINDOW, "Content-Length": len(WHOLE)}).send(WHOLE[:50_000]).close()


def silent(wire):
    wire.until_left()


FAILURES = {
    "500": reply("trouble", status=500),
    "502": reply("trouble", status=502),
    "503, said to be fresh": reply("trouble", {"Cache-Control": "max-age=60"}, 503),
    "504": reply("trouble", status=504),
    "closes": lambda wire: wire.close(),
    "resets": lambda wire: wire.reset(),
    "no HTTP": lambda wire: wire.send("SSH-2.0-OpenSSH_9.2\r\n\r\n").close(),
    "cut": cut,
    "silent": silent,
    "refused": None,
}


def fail_refreshes(l, clock, times):
    """So many refreshes that fail; the pause is then 2^(times - 1) seconds."""
    for number in range(times):
        r = ask(l, "/a")
        assert (r.status, r.body, r.told) == (200, b"old", REFRESHING), f"refresh {number + 1}"
        l.within(2.5, lambda: l.refresh_failed == number + 1, "the refresh fails")
        if number + 1 < times:
            clock.advance(2**number + 1)


@pytest.mark.parametrize("failure", FAILURES)
def test_a_refresh_that_fails_costs_nobody_anything(origin, origins, larder, clock, failure):
    origin.on("/a", reply("old", WINDOW), FAILURES[failure] or reply("never asked"))
    l = larder(origin, origin_items={"first_byte_timeout": "2s"})
    store(l)
    clock.advance(15)
    if failure == "refused":
        origin.close()
    fail_refreshes(l, clock, 3)
    asked = l.origin_requests
    for _ in range(5):
        r = ask(l, "/a")
        assert (r.status, r.body, r.told) == (200, b"old", PAUSED)
        assert r.cache_status["hit"] is True and int(r.cache_status["ttl"]) < 0 and r.cache_status["detail"] == "refresh-failed"
    assert l.origin_requests == asked and l.refresh_failed == 3
    back = origins(port=origin.port) if failure == "refused" else origin
    back.on("/a", reply("new", WINDOW))
    clock.advance(5)
    assert ask(l, "/a").told == REFRESHING
    l.wait_for(refresh_done=1, fills_live=0)
    r = ask(l, "/a")
    assert (r.told, r.body) == (("hit", "fresh"), b"new")


def test_the_pause_doubles_up_to_a_minute_and_a_success_ends_it(origin, larder, clock):
    origin.on("/a", reply("old", {**WINDOW, "Cache-Control": "max-age=10, stale-while-revalidate=86400"}), reply("trouble", status=503))
    l = larder(origin)
    store(l)
    clock.advance(15)
    for number, pause in enumerate((1, 2, 4, 8, 16, 32, 60, 60, 60)):
        assert ask(l, "/a").told == REFRESHING
        l.wait_for(refresh_failed=number + 1)
        if pause >= 8:  # shorter ones may pass by themselves on a busy machine
            clock.advance(0.75 * pause)
            assert ask(l, "/a").told == PAUSED, f"{pause} s after failure {number + 1}"
            clock.advance(0.3 * pause)
        else:
            clock.advance(pause + 0.2)
    origin.on("/a", confirms(WINDOW), reply("trouble", status=503))
    assert ask(l, "/a").told == REFRESHING
    l.wait_for(refresh_done=1, fills_live=0)
    assert ask(l, "/a").told == ("hit", "fresh")
    clock.advance(15)
    assert ask(l, "/a").told == REFRESHING
    l.wait_for(refresh_failed=10)
    clock.advance(1.5)  # the first pause again
    assert ask(l, "/a").told == REFRESHING


# ---- its bounds --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("age,told,body", [(9, ("hit", "fresh"), b"old"), (13, REFRESHING, b"old"), (65, REFRESHING, b"old"), (72, ("miss", "expired"), b"new")])
def test_the_window_has_an_end(origin, larder, clock, age, told, body):
    """Beyond it the client waits for the origin."""
    fields = {**ETAG, "Cache-Control": "max-age=10, stale-while-revalidate=60"}
    origin.on("/a", reply("old", fields), renews(fields))
    l = larder(origin)
    store(l)
    clock.advance(age - 1)
    r = ask(l, "/a")
    assert (r.told, r.body) == (told, body)


def test_the_answers_own_window_counts_before_the_configured_one(origin, larder, clock):
    for path, window in (("/short", 5), ("/none", 0)):
        origin.on(path, reply("old", {"Cache-Control": f"max-age=10, stale-while-revalidate={window}"}), reply("new", BARE))
    l = larder(origin, cache={"stale_while_revalidate": "10m"})
    for path in ("/short", "/none"):
        store(l, path)
    clock.advance(20)
    for path in ("/short", "/none"):
        assert ask(l, path).body == b"new"
    assert l.refresh_started == 0


FORBIDDING = ["max-age=10, must-revalidate", "max-age=10, proxy-revalidate", "s-maxage=10", "max-age=10, no-cache"]  # RFC 9111 4.2.4


@pytest.mark.parametrize("cache", [{}, {"stale_while_revalidate": "10m"}], ids=["directive", "configuration"])
@pytest.mark.parametrize("control", FORBIDDING)
def test_what_the_origin_forbids_to_serve_stale_is_not(origin, larder, clock, control, cache):
    fields = {**ETAG, "Cache-Control": control + ("" if cache else ", stale-while-revalidate=600")}
    origin.on("/a", reply("old", fields), renews(fields))
    l = larder(origin, cache=cache)
    store(l)
    clock.advance(15)
    r = ask(l, "/a")
    assert (r.body, r.told) == (b"new", ("miss", "must-ask" if "no-cache" in control else "expired"))
    assert l.refresh_started == 0


# ---- what it asks, and what comes of it --------------------------------------------------------------------------------


def test_it_asks_as_the_client_did_but_for_the_whole(origin, larder, clock):
    """The client's range and condition are answered from the stale object; the refresh has the stored one's."""
    fields = {"Cache-Control": "public, max-age=10, stale-while-revalidate=600", "ETag": '"1"', "Vary": "Accept-Language"}
    origin.on("/a", reply("old page", fields), confirms(fields))
    l = larder(origin)
    german = {"Accept-Language": "de", "Authorization": "Basic eva", "X-Own": "yes"}
    store(l, "/a", german)
    rows = [("GET", {"Range": "bytes=0-2"}, 206, b"old"), ("GET", {"If-None-Match": '"1"'}, 304, b""),
            ("GET", {"If-None-Match": '"0"'}, 200, b"old page"), ("HEAD", {}, 200, b"")]
    for number, (method, more, status, body) in enumerate(rows):
        clock.advance(15)
        r = ask(l, "/a", {**german, **more}, method=method)
        assert (r.status, r.body, r.told) == (status, body, REFRESHING), (method, more)
        l.wait_for(refresh_done=number + 1)
        asked = origin.last()
        assert asked.method == "GET" and "Range" not in asked.fields and asked.get("If-None-Match") == '"1"'
        assert all(asked.get(name) == value for name, value in german.items())


def test_each_variant_is_refreshed_for_itself(origin, larder, clock):
    def story(wire):
        language = wire.request.get("Accept-Language")
        known = wire.request.get("If-None-Match")
        fields = {**WINDOW, "ETag": f'"{language}"', "Vary": "Accept-Language"}
        reply(f"in {language}", fields, 304 if known == f'"{language}"' else 200)(wire)

    origin.on("/a", story)
    l = larder(origin)
    for language in ("de", "en"):
        store(l, "/a", {"Accept-Language": language})
    clock.advance(15)
    for number, language in enumerate(("de", "en")):
        assert ask(l, "/a", {"Accept-Language": language}).told == REFRESHING
        l.wait_for(refresh_done=number + 1)
        assert origin.last().get("Accept-Language") == language and origin.last().get("If-None-Match") == f'"{language}"'
    for language in ("de", "en"):
        r = ask(l, "/a", {"Accept-Language": language})
        assert (r.told, r.body) == (("hit", "fresh"), f"in {language}".encode())


LAST_WORDS = {
    "404": (reply("gone", status=404), True),
    "410": (reply("gone", status=410), True),
    "no-store": (reply("not kept", {"Cache-Control": "no-store"}), True),
    # that it is for the one who asked says nothing about others
    "private": (reply("eva's", {"Cache-Control": "private"}), False),
    "Set-Cookie": (reply("eva's", {"Cache-Control": "max-age=60", "Set-Cookie": "id=eva"}), False),
}


@pytest.mark.parametrize("second,is_last", LAST_WORDS.values(), ids=LAST_WORDS)
def test_an_answer_that_cannot_be_stored(origin, larder, clock, second, is_last):
    """RFC 9111 4.3.3: a full answer says that what is stored no longer holds, whether or not it may be stored itself."""
    origin.on("/a", reply("old", WINDOW), second)
    l = larder(origin)
    store(l)
    clock.advance(15)
    assert ask(l, "/a").told == REFRESHING
    l.wait_for(origin_requests=2, fills_live=0)
    r = ask(l, "/a")
    if is_last:
        assert r.body != b"old" and r.told[0] not in ("stale", "hit")
    else:
        assert r.told[0] == "stale" and r.body == b"old"


def test_a_purge_beats_a_refresh_under_way(origin, larder, clock):
    for second in (renews(WINDOW), confirms(WINDOW)):
        asked, go = threading.Event(), threading.Event()

        def late(wire):
            asked.set()
            wire.wait(go)
            second(wire)

        origin.on("/a", reply("old", WINDOW), late, reply("newest", WINDOW))
        l = larder(origin)
        store(l)
        clock.advance(15)
        assert ask(l, "/a").told == REFRESHING
        assert asked.wait(20)
        assert l.purge("http://site.test/a") == 1
        go.set()
        l.wait_for(fills_live=0)
        r = ask(l, "/a")
        assert (r.body, r.told) == (b"newest", ("miss", "absent"))
        r = ask(l, "/a")
        assert (r.body, r.told) == (b"newest", ("hit", "fresh"))


def test_without_a_validator_the_whole_is_fetched_behind(origin, larder, clock):
    fields = {"Cache-Control": "max-age=10, stale-while-revalidate=600"}
    origin.on("/a", reply("old", fields), reply("new", fields))
    l = larder(origin)
    store(l)
    clock.advance(15)
    assert ask(l, "/a").told == REFRESHING
    l.wait_for(refresh_done=1, fills_live=0)
    assert ask(l, "/a").body == b"new" and origin.count() == 2
    assert "If-None-Match" not in origin.last().fields and "If-Modified-Since" not in origin.last().fields
