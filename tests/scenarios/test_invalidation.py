"""What unsafe methods drop (RFC 9111 4.4), and cache groups (RFC 9875)."""
import threading

import pytest

from harness.origin import reply
from harness.told import ask, store

FRESH = {"Cache-Control": "max-age=60"}
HIT = ("hit", "fresh")
UNSAFE = ["POST", "PUT", "DELETE", "PATCH", "PROPFIND", "M-SEARCH", "MKCOL", "post"]  # what is not known to be safe is not
SAFE = ["GET", "HEAD", "OPTIONS", "TRACE"]


def stored(origin, larder, *targets, **more):
    for target in targets:
        path = target.partition("?")[0]
        origin.on(path, lambda wire: reply("page", FRESH)(wire))
    l = larder(origin, **more)
    for target in targets:
        store(l, target)
    return l


def is_there(l, target, fields=None):
    """Whether it is stored; looks by way of the origin, so once for each."""
    return ask(l, target, fields).told == HIT


def test_the_target_goes_and_nothing_else(origin, larder):
    l = stored(origin, larder, "/a", "/a?x", "/a/b", "/b")
    for number, method in enumerate(UNSAFE):
        r = ask(l, "/a", method=method, body=b"x")
        assert r.told == ("pass", "method") and r.cache_status["fwd"] == "method", method
        assert [is_there(l, t) for t in ("/a", "/a?x", "/a/b", "/b")] == [False, True, True, True], method
        l.wait_for(invalidated=number + 1)


def test_safe_methods_drop_nothing(origin, larder):
    l = stored(origin, larder, "/a", "/b")
    origin.on("/a", reply("", {"Location": "/b", "Content-Location": "/b", "Cache-Group-Invalidation": '"g"'}))
    for method in SAFE:
        ask(l, "/a", method=method)
        assert is_there(l, "/a") and is_there(l, "/b") and l.invalidated == 0, method


STATUSES = [(200, True), (201, True), (202, True), (204, True), (299, True), (301, True), (303, True), (307, True),
            (400, False), (403, False), (404, False), (409, False), (500, False), (503, False)]


def test_only_an_answer_that_is_no_error_drops(origin, larder):
    l = stored(origin, larder, "/a", "/b")
    for status, drops in STATUSES:
        origin.on("/a", reply("", {"Location": "/b"}, status), reply("page", FRESH))
        assert ask(l, "/a", method="POST", body=b"x").status == status
        assert [is_there(l, "/a"), is_there(l, "/b")] == [not drops] * 2, status


# what names /dir/b for a request to http://site.test/dir/a, and what does not
REFERENCES = [
    ("/dir/b", True), ("b", True), ("./b", True), ("../dir/b", True), ("/x/../dir/b", True), ("b#part", True),
    ("http://site.test/dir/b", True), ("HTTP://SITE.TEST/dir/b", True), ("http://site.test:80/dir/b", True), ("//site.test/dir/b", True),
    ("http://other.test/dir/b", False), ("//other.test/dir/b", False), ("http://site.test:81/dir/b", False), ("https://site.test/dir/b", False),
    ("http://site.test.other.test/dir/b", False), ("http://site.test@other.test/dir/b", False), ("b?x", False), ("/dir/B", False), ("", False), ("http://", False),
    ("http://[::1/dir/b", False),
]


@pytest.mark.parametrize("field", ["Location", "Content-Location"])
def test_what_the_answer_names(origin, larder, field):
    """Of the same origin only: nobody can empty another's part of the cache."""
    l = stored(origin, larder, "/dir/a")
    others = [("other.test", "/dir/b"), ("site.test:81", "/dir/b"), ("site.test", "/dir/b")]
    origin.on("/dir/b", reply("page", FRESH))
    for reference, drops in REFERENCES:
        for host, target in others:
            ask(l, target, {"Host": host})
        origin.on("/dir/a", reply("", {field: reference}, 201), reply("page", FRESH))
        assert ask(l, "/dir/a", method="POST", body=b"x").status == 201
        there = [is_there(l, target, {"Host": host}) for host, target in others]
        assert there == [True, True, not drops], reference


def test_both_fields_and_the_target(origin, larder):
    l = stored(origin, larder, "/a", "/b", "/c?x=1", "/d")
    origin.on("/a", reply("", {"Location": "/b", "Content-Location": "/c?x=1"}, 201), reply("page", FRESH))
    ask(l, "/a", method="POST", body=b"x")
    assert [is_there(l, t) for t in ("/a", "/b", "/c?x=1", "/d")] == [False, False, False, True]
    l.wait_for(invalidated=3)


def test_all_variants_go(origin, larder):
    origin.on("/a", lambda wire: reply(wire.request.get("X-Kind", ""), {**FRESH, "Vary": "X-Kind"})(wire))
    l = larder(origin)
    for kind in "123":
        store(l, "/a", {"X-Kind": kind})
    ask(l, "/a", {"X-Kind": "2"}, method="PUT", body=b"x")
    assert [is_there(l, "/a", {"X-Kind": kind}) for kind in "123"] == [False] * 3
    l.wait_for(invalidated=3)


def test_hosts_are_told_apart(origin, larder):
    origin.on("/a", reply("page", FRESH))
    l = larder(origin)
    for host in ("one.test", "two.test"):
        store(l, "/a", {"Host": host})
    ask(l, "/a", {"Host": "ONE.test.:80"}, method="DELETE")
    assert [is_there(l, "/a", {"Host": host}) for host in ("one.test", "two.test")] == [False, True]


@pytest.mark.concurrency
def test_a_change_beats_a_fill_under_way(origin, larder):
    """What was fetched before the change is delivered, but not kept."""
    half, rest = threading.Event(), threading.Event()

    def story(wire):
        wire.head(200, {**FRESH, "Content-Length": 8}).send("old ")
        half.set()
        wire.wait(rest).send("page")

    origin.on("/a", story, reply("done", status=201), reply("new page", FRESH))
    l = larder(origin)
    c = l.client()
    c.request("/a")
    assert half.wait(20)
    l.ask("/a", method="POST", body=b"x")
    rest.set()
    assert c.reply().body == b"old page"
    l.wait_for(fills_live=0)
    assert l.get("/a").body == b"new page" and ask(l, "/a").told == HIT


# ---- an answer that stands for GET ---------------------------------------------------------------------------------------

POSTS = [
    ({**FRESH, "Content-Location": "/a"}, True),
    ({**FRESH, "Content-Location": "http://site.test/a"}, True),
    ({**FRESH, "Content-Location": "/b"}, False),
    (FRESH, False),
    ({"Content-Location": "/a", "ETag": '"1"'}, False),
    ({**FRESH, "Content-Location": "/a", "Set-Cookie": "id=1"}, False),
]


@pytest.mark.parametrize("fields,is_stored", POSTS, ids=str)
def test_a_post_may_answer_later_gets(origin, larder, fields, is_stored):
    """RFC 9110 9.3.3: explicit freshness and a Content-Location that is its own URL; a POST itself always goes through."""
    origin.on("/a", reply("of the POST", fields), reply("of the GET", FRESH))
    l = larder(origin)
    assert ask(l, "/a", method="POST", body=b"x").body == b"of the POST"
    r = ask(l, "/a")
    assert (r.told == HIT, r.body) == ((True, b"of the POST") if is_stored else (False, b"of the GET"))
    assert ask(l, "/a", method="POST", body=b"x").body == b"of the GET" and origin.last().method == "POST"


# ---- groups ------------------------------------------------------------------------------------------------------------

GROUPS = {"/1": '"scores"', "/2": '"scores", "eva\'s"', "/3": '"eva\'s"', "/4": "scores", "/5": None}
INVALIDATIONS = [
    ('"scores"', {"/1", "/2"}),
    ('"eva\'s"', {"/2", "/3"}),
    ('"scores", "eva\'s"', {"/1", "/2", "/3"}),
    ('"SCORES"', set()),  # compared byte for byte
    ("scores", set()),  # tokens are not strings: the field is no good
    ('"scores", 1', set()),
    ('"scores', set()),
    ('"none"', set()),
]


def test_groups(origin, larder):
    for path, groups in GROUPS.items():
        origin.on(path, reply("page", {**FRESH, **({"Cache-Groups": groups} if groups else {})}))
    l = larder(origin)
    for path in GROUPS:
        store(l, path)
        store(l, path, {"Host": "other.test"})
    for value, gone in INVALIDATIONS:
        origin.on("/form", reply("done", {"Cache-Group-Invalidation": value}))
        ask(l, "/form")  # a safe method's says nothing
        ask(l, "/form", method="POST", body=b"x")
        assert {path for path in GROUPS if not is_there(l, path)} == gone, value
        assert all(is_there(l, path, {"Host": "other.test"}) for path in GROUPS), value  # groups are an origin's own


def test_the_fields_of_groups_are_the_clients_business_too(origin, larder):
    origin.on("/a", reply("page", {**FRESH, "Cache-Groups": '"g"'}))
    l = larder(origin)
    assert [ask(l, "/a").get("Cache-Groups") for _ in range(2)] == ['"g"'] * 2
