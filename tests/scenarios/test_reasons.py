"""One outcome and one reason for every request; the access log, Cache-Status (RFC 9211) and the counters say the same."""
import collections
import re
import threading

import pytest

from harness.client import Client
from harness.origin import reply
from harness.told import ask, store
from harness.tools import until

FRESH = {"Cache-Control": "max-age=60"}
MODIFIED = "Mon, 01 Jan 2024 00:00:00 GMT"
# RFC 9211 2: one member, parameters of known names and kinds (RFC 8941)
PARAMETER = r'; (hit|fwd=(bypass|method|uri-miss|vary-miss|miss|request|stale|partial)|fwd-status=\d{3}|ttl=-?\d+|stored|collapsed|detail=[a-z][a-z0-9-]*|key="[^"\\]*")'
CACHE_STATUS = re.compile(rf"larder({PARAMETER})*")


# ---- why an answer was not stored --------------------------------------------------------------------------------------

# the reason's word; where the counter of unstored answers has another one, that
UNSTORED = [
    ("no-store", {"Cache-Control": "no-store"}, {}, 200),
    ("private", {"Cache-Control": "private, max-age=60"}, {}, 200),
    ("set-cookie", {**FRESH, "Set-Cookie": "id=1"}, {}, 200),
    ("authorization", FRESH, {"Authorization": "Basic eva"}, 200),
    ("vary-all", {**FRESH, "Vary": "*"}, {}, 200),
    ("no-lifetime", {}, {}, 200),
    ("no-lifetime", {"Cache-Control": "max-age=0"}, {}, 200),
    ("no-lifetime", {"Last-Modified": MODIFIED}, {}, 302),
    ("status", FRESH, {}, 429),
    ("object-large", FRESH, {}, 200),
]


def test_why_it_was_not_stored(origin, larder):
    l = larder(origin, cache={"max_object": "2KiB"})
    for number, (word, fields, asked, status) in enumerate(UNSTORED):
        target, body = f"/{number}", b"x" * 4000 if word == "object-large" else b"page"
        origin.on(target, reply(body, {**fields, "Location": "/b"} if status == 302 else fields, status))
        before = l.stats()["unstored"]
        r = ask(l, target, asked)
        assert r.get("Cache-Status") == f"larder; fwd=uri-miss; fwd-status={status}; detail={word}"
        assert r.told == ("pass", word)
        after = l.stats()["unstored"]
        assert {w: after[w] - before[w] for w in after if after[w] != before[w]} == {word: 1}
        assert ask(l, target, asked).told[0] == "pass"
    assert l.stats()["memory"]["objects"] == 0


# ---- Cache-Status --------------------------------------------------------------------------------------------------------


def test_cache_status_says_what_was_done(origin, larder, clock):
    """Row by row: what is asked, and the parameters that must be there, must have this value, or (None) must not be there."""
    def story(wire):
        fields = {"Cache-Control": "max-age=60", "ETag": '"1"', "Vary": "X-Kind"}
        reply("page", fields, 304 if wire.request.get("If-None-Match") else 200)(wire)

    origin.on("/a", story).on("/form", reply("done"))
    l = larder(origin, cache={"honour_client_directives": True})
    none = dict.fromkeys(("hit", "stored", "collapsed", "key"))
    rows = [
        ({}, "GET", {**none, "fwd": "uri-miss", "fwd-status": "200", "stored": True}),
        ({}, "GET", {**none, "hit": True, "ttl": "60", "fwd": None, "fwd-status": None, "detail": None}),
        ({}, "HEAD", {**none, "hit": True, "ttl": "60", "fwd": None}),
        ({"X-Kind": "1"}, "GET", {"fwd": "vary-miss", "stored": True, "hit": None}),
        ({"Cache-Control": "no-cache"}, "GET", {"fwd": "request", "fwd-status": "304", "hit": None}),
        ({"If-Match": '"1"'}, "GET", {**none, "fwd": "bypass"}),
    ]
    for fields, method, expected in rows:
        said = ask(l, "/a", fields, method=method).cache_status
        for name, value in expected.items():
            if name == "ttl" and value:
                assert 55 <= int(said["ttl"]) <= 60
            else:
                assert said.get(name) == value, (fields, method, name, said)
    clock.advance(61)
    said = ask(l, "/a").cache_status
    assert said["fwd"] == "stale" and said["fwd-status"] == "304" and "hit" not in said
    said = ask(l, "/form", method="POST", body=b"x").cache_status
    assert said["fwd"] == "method" and "stored" not in said and "hit" not in said


def test_followers_say_collapsed(origin, larder):
    go = threading.Event()
    origin.on("/a", reply("page", FRESH, barrier=go))
    l = larder(origin)
    clients = [l.client() for _ in range(5)]
    for c in clients:
        c.request("/a")
    l.wait_for(fill_joined=4)
    go.set()
    said = [c.reply().cache_status for c in clients]
    assert sum("collapsed" in s for s in said) == 4 and all(s["fwd"] == "uri-miss" and "hit" not in s for s in said)
    assert (l.outcome("collapsed"), l.outcome("miss")) == (4, 1)


FORBIDDING = {"Cache-Control": "max-age=60, must-revalidate", "ETag": '"1"'}


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_fault_says_whether_something_was_stored(origin, larder, clock, is_stored):
    origin.on("/a", *([reply("page", FORBIDDING)] if is_stored else []), lambda wire: wire.reset())
    l = larder(origin)
    if is_stored:
        store(l)
        clock.advance(61)
    r = ask(l, "/a")
    said = r.cache_status
    assert r.status == 502 and r.told == ("fault", "origin-closed")
    assert (said["fwd"], said["detail"]) == ("stale" if is_stored else "uri-miss", "origin-closed") and "fwd-status" not in said


KEYS = [({}, False), ({"tell_key": True, "purge_from": ["127.0.0.0/8"]}, True), ({"purge_from": ["127.0.0.0/8"]}, False)]


@pytest.mark.parametrize("cache,is_told", KEYS)
def test_the_key_is_told_only_when_the_operator_wants_it(origin, larder, cache, is_told):
    origin.on("/a", reply("page", FRESH))
    l = larder(origin, cache=cache)
    for _ in range(2):
        said = ask(l, "/a?b=1").get("Cache-Status")
        assert ("key=" in said) == is_told and CACHE_STATUS.fullmatch(said)
        if is_told:
            key = re.search(r'key="([^"]*)"', said)[1]
            assert "site.test" in key and key.endswith("/a?b=1")


def test_a_key_cannot_break_out_of_its_quotes(origin, larder):
    """What a structured string cannot hold is not in it."""
    origin.on("*", reply("page", FRESH))
    l = larder(origin, cache={"tell_key": True, "purge_from": ["127.0.0.0/8"]})
    for target in ('/a"; hit; x="', "/a\\", '/a?"'):
        with Client(l.address) as c:
            r = c.get(target)
        if r.status == 200:
            assert re.fullmatch(r'larder; fwd=uri-miss(; [a-z]+(-[a-z]+)*(=\d+)?)*(; key="([^"\\]|\\["\\])*")?(; stored)?', r.get("Cache-Status"))


# ---- everything is counted once --------------------------------------------------------------------------------------------


def a_mixed_load(origin, l, clock):
    """Many fates; returns how many requests there were."""
    go = threading.Event()
    tagged = {"Cache-Control": "max-age=60", "ETag": '"1"'}
    origin.on("/page", reply("page", tagged), reply("", tagged, 304))
    origin.on("/swr", reply("old", {**tagged, "Cache-Control": "max-age=10, stale-while-revalidate=600"}))
    origin.on("/sie", reply("old", {**tagged, "Cache-Control": "max-age=10, stale-if-error=600"}), reply("no", status=503))
    origin.on("/strict", reply("old", FORBIDDING), lambda wire: wire.reset())
    origin.on("/private", reply("mine", {"Cache-Control": "private"})).on("/dead", lambda wire: wire.reset()).on("/slow", reply("slow", FRESH, barrier=go))
    origin.on("/never", reply("never", FRESH, barrier=go))
    asked = 0

    def get(target, fields=None, **more):
        nonlocal asked
        asked += 1
        with Client(l.address) as c:
            return c.get(target, fields, **more)

    for _ in range(2):
        for target in ("/page", "/swr", "/sie", "/strict", "/private"):
            get(target)
        clock.advance(61)
    get("/page", {"Cache-Control": "no-cache"})
    get("/page", {"Range": "bytes=0-1"})
    get("/page", {"If-None-Match": '"1"'})
    get("/page", {"If-Match": '"1"'})
    get("/page", method="HEAD")
    get("/nothing", {"Cache-Control": "only-if-cached"})
    get("/dead")
    get("/private", method="POST", body=b"x")
    get("/page", method="PURGE")
    get("/page", method="OPTIONS")
    get("*", method="OPTIONS")
    get("/page", {"Max-Forwards": "0"}, method="TRACE")
    get("/page", {"Host": "a b"})
    get("/" + "x" * 9000)
    get("site.test:443", method="CONNECT")
    clients = [l.client() for _ in range(4)]
    for c in clients:
        c.request("/slow")
    leaver = l.client()
    leaver.request("/never")
    asked += 5
    l.wait_for(exchanges_live=5)
    leaver.reset()
    l.within(5, lambda: l.exchanges_live == 4, "the leaver's end is noticed")
    go.set()
    for c in clients:
        assert c.reply().whole
    return asked


def test_every_request_is_counted_once_and_the_log_agrees(origin, larder, clock):
    l = larder(origin, workers=4, cache={"honour_client_directives": True})
    asked = a_mixed_load(origin, l, clock)
    l.wait_for(exchanges=asked, exchanges_live=0, fills_live=0)
    stats = l.stats()
    assert sum(stats["outcomes"].values()) == sum(stats["reasons"].values()) == asked
    until(lambda: len(l.log()) == asked, "the log's last line")
    for table, name in (("outcomes", "outcome"), ("reasons", "reason")):
        logged = collections.Counter(line[name] for line in l.log())
        assert logged == {word: n for word, n in stats[table].items() if n}, name
    assert {w for w, n in stats["outcomes"].items() if n} >= {"hit", "revalidated", "stale", "miss", "collapsed", "pass", "local", "refused", "fault", "aborted"}


def test_every_answer_of_a_mixed_load_has_a_well_formed_cache_status(origin, larder, clock):
    l = larder(origin, cache={"honour_client_directives": True})
    seen = []
    plain = Client.reply

    def noting(self, *more):
        r = plain(self, *more)
        seen.append(r)
        return r

    Client.reply = noting
    try:
        a_mixed_load(origin, l, clock)
    finally:
        Client.reply = plain
    assert len(seen) > 25
    for r in seen:
        said = r.get("Cache-Status")
        if said is None:  # what was refused before anything was looked up
            assert r.status in (400, 414, 501), r
            continue
        assert CACHE_STATUS.fullmatch(said), said
        assert not ("; hit" in said and ("; fwd" in said or "; stored" in said or "; collapsed" in said)), said  # RFC 9211 2.1, 2.2


# ---- the words come from one table ---------------------------------------------------------------------------------------


def test_the_word_is_the_same_everywhere(origin, larder, clock):
    fields = {"Cache-Control": "max-age=10, stale-if-error=600", "ETag": '"1"'}
    origin.on("/a", reply("old", fields), reply("no", status=503))
    l = larder(origin)
    store(l)
    clock.advance(15)
    r = ask(l, "/a")
    assert r.told == ("stale", "origin-error") and r.cache_status["detail"] == "origin-error"
    until(lambda: len(l.log()) == 2, "the log's line")
    assert (l.log()[1]["outcome"], l.log()[1]["reason"], l.log()[1]["status"]) == ("stale", "origin-error", 200)
    _, text, _ = l.admin("GET", "/metrics")
    assert re.search(r'reason="origin-error"[^}]*} 1$', text, re.M)
