"""What is kept, for how long, for whom (RFC 9111), and how conditions and ranges are answered from the store (RFC 9110).

Time is the scenario's: clock.advance() moves Larder's clocks, nothing waits.
"""
import re
import threading

import pytest

from harness.origin import reply
from harness.tools import body_of

FRESH = {"Cache-Control": "max-age=60"}


def verdicts(larder, target, *fields):
    return [larder.get(target, f).verdict for f in fields]


# ---- freshness ---------------------------------------------------------------------------------------------------------

# RFC 9111 4.2.1; `date` and `expires` are seconds from now
LIFETIMES = [
    ("max-age", {"Cache-Control": "max-age=60"}, 60),
    ("s-maxage wins", {"Cache-Control": "max-age=10, s-maxage=60"}, 60),
    ("max-age wins over Expires", {"Cache-Control": "max-age=60", "Expires": 5}, 60),
    ("Expires", {"Expires": 60}, 60),
    ("Expires counts from Date", {"Date": -20, "Expires": 40}, 40),
    ("Age counts", {"Cache-Control": "max-age=100", "Age": "40"}, 60),
    ("an old Date counts", {"Cache-Control": "max-age=100", "Date": -40}, 60),
    ("a tenth of Last-Modified's age", {"Last-Modified": -600}, 60),
    ("of two max-ages the smaller", {"Cache-Control": "max-age=60, max-age=600"}, 60),
    ("quoted", {"Cache-Control": 'max-age="60"'}, 60),
    ("beyond 2^31", {"Cache-Control": "max-age=99999999999"}, 10_000_000),
]


@pytest.mark.parametrize("fields,seconds", [row[1:] for row in LIFETIMES], ids=[row[0] for row in LIFETIMES])
def test_fresh_until_the_last_second(origin, larder, clock, fields, seconds):
    def with_dates():
        return {n: clock.date(v) if isinstance(v, int) else v for n, v in fields.items()}

    origin.on("/a", lambda wire: reply("page", with_dates())(wire))
    l = larder(origin)
    assert l.get("/a").verdict == "stored"
    clock.advance(seconds - 3)  # dates have whole seconds
    r = l.get("/a")
    assert r.verdict == "hit" and 0 <= int(r.cache_status["ttl"]) <= 3 or seconds > 1_000_000
    if seconds < 1_000_000:
        clock.advance(5)
        assert l.get("/a").verdict == "stored" and origin.count() == 2


NOT_STORED = [
    ("no-store", {"Cache-Control": "no-store"}),
    ("no-store among others", {"Cache-Control": "max-age=60, No-Store"}),
    ("private", {"Cache-Control": "private, max-age=60"}),
    ("Set-Cookie", {**FRESH, "Set-Cookie": "id=1"}),
    ("Vary: *", {**FRESH, "Vary": "*"}),
    ("nothing to go by", {}),
    ("expired by birth, no validator", {"Cache-Control": "max-age=0"}),
    ("Expires: 0", {"Expires": "0"}),
]


@pytest.mark.parametrize("fields", [row[1] for row in NOT_STORED], ids=[row[0] for row in NOT_STORED])
def test_not_stored(origin, larder, fields):
    origin.on("/a", reply("page", fields))
    l = larder(origin)
    assert "hit" not in verdicts(l, "/a", {}, {}, {})
    assert origin.count() == 3
    l.wait_for(fill_stored=0)


@pytest.mark.parametrize("status,is_stored", [(200, True), (203, True), (301, True), (404, True), (410, True), (302, True), (500, True), (206, False)])
def test_statuses_with_explicit_freshness(origin, larder, status, is_stored):
    origin.on("/a", reply("text", {**FRESH, "Location": "/b"}, status))
    l = larder(origin)
    assert [l.get("/a").status for _ in range(2)] == [status] * 2
    assert origin.count() == (1 if is_stored else 2)


def test_the_operators_ttl_is_for_answers_that_bring_none(origin, larder, clock):
    origin.on("/plain", reply("page")).on("/missing", reply("no", status=404)).on("/own", reply("page", {"Cache-Control": "max-age=5"}))
    origin.on("/never", reply("page", {"Cache-Control": "no-store"})).on("/moved", reply("", {"Location": "/"}, 302))
    l = larder(origin, cache={"default_ttl": {"200": "5m", "404": "10s"}})
    for target in ("/plain", "/missing", "/own", "/never", "/moved"):
        l.get(target)
    assert [l.get(t).verdict for t in ("/plain", "/missing", "/own")] == ["hit"] * 3
    assert [l.get(t).verdict for t in ("/never", "/moved")] == ["passed"] * 2
    clock.advance(11)
    assert [l.get(t).verdict for t in ("/plain", "/missing", "/own")] == ["hit", "stored", "stored"]


def test_the_heuristic_has_a_bound_and_a_switch(origins, larder, clock):
    o = origins()
    o.on("/old", lambda wire: reply("page", {"Last-Modified": clock.date(-10_000_000)})(wire))
    bounded, off = larder(o, cache={"heuristic_max": "1h"}), larder(o, cache={"heuristic": False})
    assert verdicts(bounded, "/old", {}, {}) == ["stored", "hit"]
    clock.advance(3700)
    assert bounded.get("/old").verdict != "hit"
    assert "hit" not in verdicts(off, "/old", {}, {})


def test_age_and_ttl_count_up_and_down(origin, larder, clock):
    origin.on("/a", reply("page", {"Cache-Control": "max-age=100", "Age": "7"}))
    l = larder(origin)
    assert l.get("/a").get("Age") in ("7", "8")
    clock.advance(30)
    r = l.get("/a")
    age, ttl = int(r.get("Age")), int(r.cache_status["ttl"])
    assert 37 <= age <= 39 and age + ttl == 100 and len(r.fields.all("Age")) == 1


# ---- for whom ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("control,is_shared", [("max-age=60", False), ("public, max-age=60", True), ("s-maxage=60", True), ("max-age=60, must-revalidate", True)])
def test_authorized_answers_are_shared_only_when_they_say_so(origin, larder, control, is_shared):
    """RFC 9111 3.5."""
    origin.on("/a", lambda wire: reply(f"for {wire.request.get('Authorization')}", {"Cache-Control": control})(wire))
    l = larder(origin)
    assert l.get("/a", {"Authorization": "Basic eva"}).body == b"for Basic eva"
    second = l.get("/a", {"Authorization": "Basic adam"})
    assert (second.verdict == "hit") == is_shared
    if not is_shared:
        assert second.body == b"for Basic adam" and l.get("/a").body == b"for None"


def test_a_cookie_is_never_given_to_somebody_else(origin, larder):
    origin.on("/a", lambda wire: reply("page", {**FRESH, "Set-Cookie": f"id={wire.origin.count()}"})(wire))
    l = larder(origin)
    assert [l.get("/a").get("Set-Cookie") for _ in range(3)] == ["id=1", "id=2", "id=3"]


def test_requests_with_cookies_share_what_may_be_shared(origin, larder):
    origin.on("/a", reply("page", FRESH))
    l = larder(origin)
    assert verdicts(l, "/a", {"Cookie": "a=1"}, {"Cookie": "a=2"}, {}) == ["stored", "hit", "hit"]


def test_vary(origin, larder):
    """RFC 9111 4.1: full comparison, absent is a value too, order and white space of lists are not."""
    def story(wire):
        reply(f"{wire.request.get('Accept-Language')}|{wire.request.get('X-Kind')}", {**FRESH, "Vary": "accept-language, X-Kind"})(wire)

    origin.on("/a", story)
    l = larder(origin)
    rows = [({"Accept-Language": "de"}, "de|None"), ({"Accept-Language": "en"}, "en|None"), ({}, "None|None"),
            ({"Accept-Language": "de", "X-Kind": "1"}, "de|1"), ({"X-Kind": ""}, "None|")]
    for fields, body in rows:
        assert (l.get("/a", fields).verdict, l.get("/a", fields).body) == ("stored", body.encode())
    for fields, body in reversed(rows):
        r = l.get("/a", fields)
        assert (r.verdict, r.body) == ("hit", body.encode())
    assert origin.count() == len(rows)


def test_accept_encoding_is_normalised_and_a_coding_goes_only_to_who_takes_it(origin, larder):
    def story(wire):
        takes = "gzip" in wire.request.get("Accept-Encoding", "")
        reply("zipped" if takes else "plain", {**FRESH, "Vary": "Accept-Encoding", **({"Content-Encoding": "gzip"} if takes else {})})(wire)

    origin.on("/a", story)
    l = larder(origin)
    assert l.get("/a", {"Accept-Encoding": "gzip, deflate"}).body == b"zipped"
    assert l.get("/a", {"Accept-Encoding": "deflate,  gzip;q=1.0"}).verdict == "hit"
    for fields in ({}, {"Accept-Encoding": "identity"}, {"Accept-Encoding": "gzip;q=0"}):
        r = l.get("/a", fields)
        assert "Content-Encoding" not in r.fields or "gzip;q=0" not in str(fields)
    assert l.get("/a").body == b"plain"


def test_the_number_of_variants_is_bounded(origin, larder):
    origin.on("/a", lambda wire: reply(wire.request.get("X-Kind"), {**FRESH, "Vary": "X-Kind"})(wire))
    l = larder(origin, cache={"max_variants": 4})
    for n in range(20):
        assert l.get("/a", {"X-Kind": n}).body == b"%d" % n
    assert l.stats()["memory"]["objects"] == 4
    assert l.get("/a", {"X-Kind": 19}).verdict == "hit"


# ---- asking the origin again -------------------------------------------------------------------------------------------


def test_a_304_freshens_what_is_stored(origin, larder, clock):
    first = {"Cache-Control": "max-age=60", "ETag": '"v1"', "Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT", "X-Head": "old"}
    origin.on("/a", reply("page", first), reply("", {"Cache-Control": "max-age=60", "ETag": '"v1"', "X-Head": "new"}, 304))
    l = larder(origin)
    l.get("/a")
    clock.advance(61)
    r = l.get("/a")
    assert (r.status, r.body, r.verdict) == (200, b"page", "revalidated")
    assert origin.last().get("If-None-Match") == '"v1"' and origin.last().get("If-Modified-Since") == first["Last-Modified"]
    r = l.get("/a")
    assert (r.verdict, r.body, r.get("X-Head")) == ("hit", b"page", "new") and int(r.get("Age")) < 2
    assert origin.count() == 2 and l.stats()["memory"]["objects"] == 1


def test_a_changed_page_replaces_the_old(origin, larder, clock):
    origin.on("/a", reply("old", {**FRESH, "ETag": '"1"'}), reply("new", {**FRESH, "ETag": '"2"'}))
    l = larder(origin)
    l.get("/a")
    clock.advance(61)
    assert l.get("/a").body == b"new"
    assert (l.get("/a").body, l.get("/a").verdict) == (b"new", "hit")


def test_no_cache_is_stored_but_always_asked_about(origin, larder):
    origin.on("/a", reply("page", {"Cache-Control": "no-cache", "ETag": '"1"'}), reply("", {"Cache-Control": "no-cache", "ETag": '"1"'}, 304))
    l = larder(origin)
    assert verdicts(l, "/a", {}, {}, {}) == ["stored", "revalidated", "revalidated"]
    assert l.reason("validated") == 2


def test_a_range_or_condition_of_the_clients_is_not_the_fills(origin, larder):
    """A fill asks for the whole page, whatever its first client wanted."""
    origin.on("/a", reply("the whole page", {**FRESH, "ETag": '"1"'}))
    l = larder(origin)
    l.get("/a", {"Range": "bytes=0-2", "If-None-Match": '"0"'})
    assert "Range" not in origin.last().fields and "If-None-Match" not in origin.last().fields
    assert l.get("/a").body == b"the whole page" and origin.count() == 1


def test_clients_directives_count_only_when_the_operator_says_so(origins, larder):
    o = origins()
    o.on("/a", reply("page", {**FRESH, "ETag": '"1"'}))
    deaf, polite = larder(o), larder(o, cache={"honour_client_directives": True})
    for l in (deaf, polite):
        l.get("/a")
    assert deaf.get("/a", {"Cache-Control": "no-cache"}).verdict == "hit"
    assert polite.get("/a", {"Cache-Control": "no-cache"}).verdict != "hit"
    assert polite.reason("client-asked") == 1


# ---- conditions and ranges from the store --------------------------------------------------------------------------------

MODIFIED = "Mon, 01 Jan 2024 00:00:00 GMT"
# RFC 9110 13.1.2, 13.1.3, 13.2.2
CONDITIONS = [
    ({"If-None-Match": '"v1"'}, 304), ({"If-None-Match": 'W/"v1"'}, 304), ({"If-None-Match": '"x", "v1" , "y"'}, 304), ({"If-None-Match": "*"}, 304),
    ({"If-None-Match": '"v2"'}, 200), ({"If-Modified-Since": MODIFIED}, 304), ({"If-Modified-Since": "Sun, 31 Dec 2023 23:59:59 GMT"}, 200),
    ({"If-Modified-Since": "Tue, 02 Jan 2024 00:00:00 GMT"}, 304), ({"If-Modified-Since": "yesterday"}, 200),
    ({"If-None-Match": '"v2"', "If-Modified-Since": MODIFIED}, 200), ({"If-None-Match": '"v1"', "If-Modified-Since": "Sun, 31 Dec 2023 23:59:59 GMT"}, 304),
]


def test_conditions_are_answered_from_the_store(origin, larder):
    origin.on("/a", reply("page", {**FRESH, "ETag": '"v1"', "Last-Modified": MODIFIED, "Content-Type": "text/plain", "X-Own": "1", "Vary": "X"}))
    l = larder(origin)
    l.get("/a")
    for fields, status in CONDITIONS:
        for method in ("GET", "HEAD"):
            r = l.ask("/a", fields, method)
            assert r.status == status, fields
            if status == 304:
                assert r.get("ETag") == '"v1"' and r.get("Vary") == "X" and "Age" in r.fields and "Cache-Control" in r.fields
                assert "Content-Type" not in r.fields
    assert origin.count() == 1
    l.wait_for(not_modified=2 * sum(status == 304 for _, status in CONDITIONS))


def test_preconditions_are_the_origins_to_judge(origin, larder):
    origin.on("/a", reply("page", {**FRESH, "ETag": '"v1"'}), reply("", status=412))
    l = larder(origin)
    l.get("/a")
    assert l.get("/a", {"If-Match": '"v2"'}).status == 412 and origin.last().get("If-Match") == '"v2"'


BODY = body_of(100_000)


def ranges_of(n):
    """RFC 9110 14.1.2, 14.2: what is asked for of n bytes, and the stretches that come, or the status."""
    return [("bytes=0-0", [(0, 0)]), ("bytes=10-19", [(10, 19)]), (f"bytes={n - 10}-", [(n - 10, n - 1)]), ("bytes=-10", [(n - 10, n - 1)]),
            ("bytes=0-999999", [(0, n - 1)]), ("bytes=-999999", [(0, n - 1)]), ("bytes=0-1,50000-55000,-1", [(0, 1), (50_000, 55_000), (n - 1, n - 1)]),
            (f"bytes={n}-", 416), ("bytes=-0", 416), ("bytes=5-4", 200), ("bytes=a-b", 200), ("lines=1-2", 200), ("bytes=", 200)]


def parts_of(reply_):
    """The parts of a multipart/byteranges body: (Content-Range, bytes)."""
    boundary = re.fullmatch(r"multipart/byteranges; boundary=(\S+)", reply_.get("Content-Type"))[1].encode()
    first, *parts, last = reply_.body.split(b"\r\n--" + boundary)
    assert first == b"" and last.startswith(b"--")
    for part in parts:
        head, _, data = part.partition(b"\r\n\r\n")
        yield re.search(rb"Content-Range: (bytes \S+)", head)[1].decode(), data


@pytest.mark.parametrize("length", [100_000, 60_000], ids=["in a file", "in memory"])
def test_ranges_are_cut_from_the_store(origin, larder, length):
    body = BODY[:length]
    origin.on("/a", reply(body, {**FRESH, "ETag": '"v1"', "Content-Type": "text/plain"}))
    l = larder(origin)
    l.get("/a")
    for asked, expected in ranges_of(length):
        r = l.get("/a", {"Range": asked})
        if isinstance(expected, int):
            assert r.status == expected, asked
            assert r.body == body if expected == 200 else r.get("Content-Range") == f"bytes */{length}"
            continue
        got = [(r.get("Content-Range"), r.body)] if len(expected) == 1 else list(parts_of(r))
        assert r.status == 206 and got == [(f"bytes {a}-{b}/{length}", body[a : b + 1]) for a, b in expected], asked
    assert origin.count() == 1


@pytest.mark.parametrize("condition,status", [('"v1"', 206), ('"v2"', 200), ('W/"v1"', 200), ("Tue, 02 Jan 2024 00:00:00 GMT", 200)])
def test_if_range(origin, larder, condition, status):
    origin.on("/a", reply(BODY, {**FRESH, "ETag": '"v1"', "Last-Modified": MODIFIED}))
    l = larder(origin)
    l.get("/a")
    assert l.get("/a", {"Range": "bytes=1-2", "If-Range": condition}).status == status


def test_head_is_answered_from_a_stored_get(origin, larder):
    origin.on("/a", reply(BODY, FRESH))
    l = larder(origin)
    l.get("/a")
    r = l.ask("/a", method="HEAD")
    assert (r.verdict, r.get("Content-Length"), r.body) == ("hit", "100000", b"") and origin.count() == 1


# ---- getting rid of ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "BREW"])
@pytest.mark.parametrize("status,is_dropped", [(200, True), (204, True), (303, True), (400, False), (500, False)])
def test_unsafe_methods_drop_what_they_changed(origin, larder, method, status, is_dropped):
    """RFC 9111 4.4."""
    origin.on("/a", reply("page", FRESH), reply("", {"Location": "/b"}, status), reply("new page", FRESH))
    l = larder(origin)
    l.get("/a")
    l.ask("/a", method=method, body=b"x")
    assert (l.get("/a").verdict == "hit") != is_dropped
    l.wait_for(invalidated=int(is_dropped))


def test_safe_methods_drop_nothing(origin, larder):
    origin.on("/a", reply("page", FRESH))
    l = larder(origin)
    l.get("/a")
    l.ask("/a", method="OPTIONS")
    assert l.get("/a").verdict == "hit"


def test_purge_by_url_takes_all_variants_and_says_how_many(origin, larder):
    origin.on("/a", lambda wire: reply(wire.request.get("X-Kind"), {**FRESH, "Vary": "X-Kind"})(wire)).on("/b", reply("b", FRESH))
    l = larder(origin)
    for kind in "123":
        l.get("/a", {"X-Kind": kind})
    l.get("/b")
    assert l.purge("http://site.test/a") == 3
    assert l.get("/b").verdict == "hit" and l.get("/a", {"X-Kind": "1"}).verdict == "stored"
    assert l.purge("http://site.test/nothing") == 0
    l.wait_for(purged=3, purges=2)


def test_a_purge_beats_a_fill_under_way(origin, larder):
    half, rest = threading.Event(), threading.Event()

    def story(wire):
        wire.head(200, {**FRESH, "Content-Length": 8}).send("old ")
        half.set()
        wire.wait(rest).send("page")

    origin.on("/a", story, reply("new page", FRESH))
    l = larder(origin)
    c = l.client()
    c.request("/a")
    assert half.wait(20)
    l.purge("http://site.test/a")
    rest.set()
    assert c.reply().body == b"old page"
    assert (l.get("/a").body, l.get("/a").verdict) == (b"new page", "hit")


# ---- keys and room -------------------------------------------------------------------------------------------------------


def test_different_addresses_are_different_pages(origin, larder):
    origin.on("*", lambda wire: reply(wire.request.target, FRESH)(wire))
    l = larder(origin)
    targets = ["/", "/?", "/?a", "/?a=1&b=2", "/?b=2&a=1", "/A", "/a", "/a/", "//a", "/a%2fb", "/a/b", "/" + "x" * 3000]
    for _ in range(2):
        for t in targets:
            assert l.get(t).body == t.encode()
    assert origin.count() == len(targets)


def test_memory_has_one_budget(origin, larder):
    """Four times more than fits: the budget holds, all that is served is right, and what was asked for often is still there."""
    page = body_of(200_000)
    origin.on("*", lambda wire: reply(wire.request.target.encode() + page, FRESH)(wire))
    l = larder(origin, cache={"memory": "16MiB"})
    for n in range(320):
        assert l.get(f"/{n}").body == f"/{n}".encode() + page
        if n:
            l.get("/0")
    memory = l.stats()["memory"]
    assert memory["used_bytes"] <= 1.1 * memory["budget_bytes"] == 1.1 * (16 << 20)  # what is on its way out counts until no reader sees it
    assert memory["evicted"] > 200 and memory["objects"] > 20
    assert l.get("/0").verdict == "hit"


def test_bodies_above_max_object_pass_through(origin, larder):
    big = body_of(300_000)
    origin.on("/length", reply(big, FRESH)).on("/chunked", reply(big, FRESH, chunked=True)).on("/small", reply(big[:90_000], FRESH, chunked=True))
    l = larder(origin, cache={"max_object": "100KiB"})
    for target in ("/length", "/chunked"):
        assert [l.get(target).body == big for _ in range(2)] == [True, True] and origin.count(target) == 2
    assert verdicts(l, "/small", {}, {}) == ["stored", "hit"]
