"""Asking the origin whether what is stored still holds (RFC 9111 4.3), and clients that ask the same of us (RFC 9110 13)."""
import pytest

from harness.client import Client
from harness.origin import reply
from harness.told import ask, store
from harness.tools import body_of

MODIFIED, LATER, EARLIER = "Mon, 01 Jan 2024 00:00:00 GMT", "Tue, 02 Jan 2024 00:00:00 GMT", "Sun, 31 Dec 2023 00:00:00 GMT"
LIFE = {"Cache-Control": "max-age=60"}
TAGGED = {**LIFE, "ETag": '"1"'}
CONDITIONS = ("If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range", "Range")
REVALIDATED = ("revalidated", "validated")


def conditions_of(request):
    return {n: request.get(n) for n in CONDITIONS if n in request.fields}


def grow_old(l, origin, clock, fields, *stories, target="/a", body="old"):
    """A page that is stored and stale, and what the origin says from then on."""
    origin.on(target, reply(body, fields), *stories)
    store(l, target)
    clock.advance(61)


def stale(origin, larder, clock, fields, *stories):
    l = larder(origin)
    grow_old(l, origin, clock, fields, *stories)
    return l


# ---- what is asked -----------------------------------------------------------------------------------------------------

# RFC 9111 4.3.1
ASKED = [
    ("a strong tag", {"ETag": '"1"'}, {"If-None-Match": '"1"'}),
    ("a weak tag", {"ETag": 'W/"1"'}, {"If-None-Match": 'W/"1"'}),
    ("a date", {"Last-Modified": MODIFIED}, {"If-Modified-Since": MODIFIED}),
    ("both", {"ETag": '"1"', "Last-Modified": MODIFIED}, {"If-None-Match": '"1"', "If-Modified-Since": MODIFIED}),
    ("neither", {}, {}),
    ("not a date", {"Last-Modified": "yesterday", "ETag": '"1"'}, {"If-None-Match": '"1"'}),
]


def test_the_stored_validators_are_asked_with(origin, larder, clock):
    l = larder(origin)
    for number, (what, fields, asked) in enumerate(ASKED):
        target = f"/{number}"
        grow_old(l, origin, clock, {**LIFE, **fields}, reply("new", LIFE), target=target)
        r = ask(l, target, {"If-None-Match": '"mine"', "If-Modified-Since": EARLIER, "Range": "bytes=0-0"})
        assert conditions_of(origin.last()) == asked and origin.count(target) == 2, what
        assert r.body in (b"new", b"n"), what


def languages(wire):
    """One page in three languages; French is the English one until it is translated."""
    known = wire.request.get("If-None-Match", "")
    language = wire.request.get("Accept-Language")
    tag = f'"{"en" if language == "fr" else language}"'
    fields = {**LIFE, "ETag": tag, "Vary": "Accept-Language"}
    reply(f"in {tag}", fields, 304 if tag in known else 200)(wire)


def test_all_stored_variants_are_offered(origin, larder, clock):
    """RFC 9111 4.1, 4.3.1: none of them is selected, yet the origin may say that one is right."""
    origin.on("/a", languages)
    l = larder(origin)
    for language in ("de", "en"):
        store(l, "/a", {"Accept-Language": language})
    r = ask(l, "/a", {"Accept-Language": "fr"})
    assert (r.status, r.body, r.get("ETag")) == (200, b'in "en"', '"en"')
    tags = origin.last().get("If-None-Match", "").split(", ")
    assert sorted(tags) == ['"de"', '"en"']
    assert "If-Modified-Since" not in origin.last().fields  # of several, a date would not say which
    assert ask(l, "/a", {"Accept-Language": "fr"}).body == b'in "en"'
    for language in ("de", "en"):
        assert ask(l, "/a", {"Accept-Language": language}).body == f'in "{language}"'.encode()


def test_a_stale_variant_is_asked_about_by_its_own_tag(origin, larder, clock):
    origin.on("/a", languages)
    l = larder(origin)
    for language in ("de", "en"):
        store(l, "/a", {"Accept-Language": language})
    clock.advance(61)
    r = ask(l, "/a", {"Accept-Language": "de"})
    assert (r.told, r.body) == (REVALIDATED, b'in "de"') and '"de"' in origin.last().get("If-None-Match")


# ---- what a 304 changes ------------------------------------------------------------------------------------------------

# RFC 9111 3.2: the stored field, the 304's, and what is there afterwards (None: absent)
UPDATES = [
    ("X-Own", "old", "new", "new"),
    ("X-Own", "old", None, "old"),
    ("X-Own", None, "new", "new"),
    ("Content-Type", "text/plain", "text/html", "text/html"),
    ("Content-Language", "de", "en", "en"),
    ("Content-Location", "/x", "/y", "/y"),
    ("Content-Security-Policy", "default-src 'self'", "default-src *", "default-src *"),
    ("Expires", "Fri, 01 Jan 2038 01:01:01 GMT", "Mon, 11 Jan 2038 11:11:11 GMT", "Mon, 11 Jan 2038 11:11:11 GMT"),
    ("Cache-Control", "max-age=60", "max-age=600", "max-age=600"),
    ("Last-Modified", MODIFIED, LATER, LATER),
    ("Content-Encoding", "gzip", "br", "gzip"),
    ("Content-Encoding", None, "gzip", None),
    ("Content-Range", None, "bytes 0-1/3", None),
    ("Keep-Alive", None, "timeout=5", None),
    ("X-Nominated", None, "hop", None),  # by the 304's own Connection
    ("Proxy-Authenticate", None, "Basic", None),
    ("Proxy-Authentication-Info", None, "x", None),
]


def test_a_304_updates_the_stored_fields(origin, larder, clock):
    l = larder(origin)
    for number, (name, before, brought, after) in enumerate(UPDATES):
        confirmed = {**TAGGED, **({name: brought} if brought else {})}
        if name == "X-Nominated":
            confirmed["Connection"] = "x-nominated"
        grow_old(l, origin, clock, {**TAGGED, **({name: before} if before else {})}, reply("", confirmed, 304), target=f"/{number}")
        for told in (REVALIDATED, ("hit", "fresh")):
            r = ask(l, f"/{number}")
            assert (r.told, r.body, r.get(name), r.get("Content-Length")) == (told, b"old", after, "3"), name
            assert len(r.fields.all(name)) == (after is not None), name


def test_a_304_never_brings_a_length(origin, larder, clock):
    """RFC 9111 3.2. The story sends its own, which a 304 may carry (RFC 9110 8.6)."""
    def story(wire):
        wire.head(304, {**TAGGED, "Content-Length": "9999"})

    l = stale(origin, larder, clock, TAGGED, story)
    for told in (REVALIDATED, ("hit", "fresh")):
        r = ask(l, "/a")
        assert (r.told, r.body, r.get("Content-Length")) == (told, b"old", "3")


def test_a_304_replaces_all_lines_of_a_field(origin, larder, clock):
    before = [*TAGGED.items(), ("X-Many", "a"), ("X-Many", "b"), ("X-Keep", "1"), ("X-Keep", "2")]
    l = stale(origin, larder, clock, before, reply("", [*TAGGED.items(), ("X-Many", "c")], 304))
    for _ in range(2):
        r = ask(l, "/a")
        assert r.fields.all("X-Many") == ["c"] and r.fields.all("X-Keep") == ["1", "2"]


def test_a_304_brings_a_new_lifetime(origin, larder, clock):
    l = stale(origin, larder, clock, TAGGED, reply("", {"ETag": '"1"', "Cache-Control": "max-age=600"}, 304))
    assert ask(l, "/a").told == REVALIDATED
    clock.advance(500)
    r = ask(l, "/a")
    assert r.told == ("hit", "fresh") and 500 <= int(r.get("Age")) < 520


@pytest.mark.parametrize("more", [{"Cache-Control": "no-store"}, {"Cache-Control": "private"}, {"Set-Cookie": "id=eva"}], ids=str)
def test_a_304_that_may_not_be_stored_is_its_askers_alone(origin, larder, clock, more):
    """Whether the asker gets the old body or Larder asks once more: nobody else gets anything of it."""
    l = stale(origin, larder, clock, TAGGED, reply("", {**TAGGED, **more}, 304), reply("new", TAGGED))
    r = ask(l, "/a")
    assert r.status == 200 and r.body in (b"old", b"new")
    r = ask(l, "/a")
    assert "Set-Cookie" not in r.fields and r.get("Cache-Control") == TAGGED["Cache-Control"]


# RFC 9111 4.3.4: the stored validators, the 304's, and whether it is about what is stored
CONFIRMATIONS = [
    ("the same strong tag", {"ETag": '"1"'}, {"ETag": '"1"'}, True),
    ("the same weak tag", {"ETag": 'W/"1"'}, {"ETag": 'W/"1"'}, True),
    ("the same date", {"Last-Modified": MODIFIED}, {"Last-Modified": MODIFIED}, True),
    ("no validator at all", {"ETag": '"1"'}, {}, True),
    ("another strong tag", {"ETag": '"1"'}, {"ETag": '"2"'}, False),
    ("another weak tag", {"ETag": 'W/"1"'}, {"ETag": 'W/"2"'}, False),
    ("a strong tag for a date", {"Last-Modified": MODIFIED}, {"ETag": '"2"'}, False),
]


def test_a_304_is_of_use_only_for_what_it_is_about(origin, larder, clock):
    """Of no use: the client's own request is sent, without our conditions."""
    l = larder(origin)
    for number, (what, stored, brought, holds) in enumerate(CONFIRMATIONS):
        target = f"/{number}"
        grow_old(l, origin, clock, {**LIFE, **stored}, reply("", {**LIFE, **brought}, 304), reply("new", {**LIFE, "ETag": '"2"'}), target=target)
        r = ask(l, target)
        if holds:
            assert (r.told, r.body, origin.count(target)) == (REVALIDATED, b"old", 2), what
            continue
        assert (r.status, r.body, origin.count(target), conditions_of(origin.last())) == (200, b"new", 3, {}), what
        assert ask(l, target).body == b"new", what


def test_a_304_that_nobody_asked_for_is_not_kept(origin, larder):
    """A fill asks without conditions: there is nothing that this 304 could be about."""
    origin.on("/a", lambda wire: wire.head(304, TAGGED), reply("page", TAGGED))
    l = larder(origin)
    r = ask(l, "/a")
    assert r.told[0] in ("fault", "pass") and l.stats()["memory"]["objects"] == 0
    assert ask(l, "/a").body == b"page"


def test_a_full_answer_takes_the_place_of_what_is_stored(origin, larder, clock):
    l = stale(origin, larder, clock, TAGGED, reply("new", {**LIFE, "ETag": '"2"', "X-Own": "1"}))
    r = ask(l, "/a")
    assert (r.told, r.body) == (("miss", "expired"), b"new")
    assert r.cache_status["fwd"] == "stale" and r.cache_status["stored"] is True
    assert (ask(l, "/a").told, l.stats()["memory"]["objects"]) == (("hit", "fresh"), 1)


# ---- HEAD --------------------------------------------------------------------------------------------------------------

NO_CACHE = {"Cache-Control": "no-cache"}
HEADS = [  # RFC 9111 4.3.5: fields of the HEAD's answer, and whether the stored GET still holds
    ("the same", {"ETag": '"1"', "Last-Modified": MODIFIED, "Content-Length": "4"}, True),
    ("the same tag", {"ETag": '"1"'}, True),
    ("another tag", {"ETag": '"2"', "Last-Modified": MODIFIED, "Content-Length": "4"}, False),
    ("another date", {"ETag": '"1"', "Last-Modified": LATER, "Content-Length": "4"}, False),
    ("another length", {"ETag": '"1"', "Last-Modified": MODIFIED, "Content-Length": "5"}, False),
]


def test_head_freshens_or_invalidates(origin, larder, clock):
    l = larder(origin, cache={"honour_client_directives": True})
    page = {**LIFE, "ETag": '"1"', "Last-Modified": MODIFIED, "X-Own": "old"}
    for number, (what, fields, holds) in enumerate(HEADS):
        def story(wire, fields=fields):
            if wire.request.method == "HEAD":
                wire.head(200, {**LIFE, "X-Own": "new", **fields})
            else:
                reply("new!", {**page, "ETag": '"2"'})(wire)

        target = f"/{number}"
        origin.on(target, reply("page", page), story)
        store(l, target)
        clock.advance(40)
        r = ask(l, target, NO_CACHE, method="HEAD")
        assert r.status == 200 and r.get("X-Own") == "new" and origin.last().method == "HEAD", what
        r = ask(l, target)
        if not holds:
            assert r.body == b"new!" and r.told[0] == "miss", what
            continue
        assert (r.told, r.body, r.get("X-Own"), r.get("Content-Length")) == (("hit", "fresh"), b"page", "new", "4"), what
        clock.advance(40)  # 80 s after it was fetched, 40 after HEAD
        assert ask(l, target).told == ("hit", "fresh"), what


@pytest.mark.parametrize("status", [404, 500, 302])
def test_head_that_is_no_200_says_nothing_about_the_stored_page(origin, larder, status):
    origin.on("/a", reply("page", TAGGED), reply("", {"ETag": '"2"'}, status))
    l = larder(origin, cache={"honour_client_directives": True})
    store(l)
    assert ask(l, "/a", NO_CACHE, method="HEAD").status == status
    assert ask(l, "/a").told == ("hit", "fresh")


# ---- clients' conditions -----------------------------------------------------------------------------------------------

BOTH = {**LIFE, "ETag": '"1"', "Last-Modified": MODIFIED}
# the client's condition, and the status when what is stored (or now validated) is version 1; RFC 9110 13.2.2
CLIENTS = [
    ({"If-None-Match": '"1"'}, 304),
    ({"If-None-Match": 'W/"1"'}, 304),
    ({"If-None-Match": '"0", "1"'}, 304),
    ({"If-None-Match": "*"}, 304),
    ({"If-None-Match": '"0"'}, 200),
    ({"If-Modified-Since": MODIFIED}, 304),
    ({"If-Modified-Since": LATER}, 304),
    ({"If-Modified-Since": EARLIER}, 200),
    ({"If-None-Match": '"0"', "If-Modified-Since": LATER}, 200),
    ({"If-None-Match": '"1"', "If-Modified-Since": EARLIER}, 304),
]


@pytest.mark.parametrize("state", ["fresh", "confirmed", "renewed", "absent"])
def test_clients_conditions(origin, larder, clock, state):
    """Whatever it takes to have a fresh answer, the client's own condition is judged against that one (RFC 9111 4.3.2)."""
    l = larder(origin)
    for number, (asked, status) in enumerate(CLIENTS):
        target = f"/{number}"
        first = [] if state == "absent" else [reply("page", {**BOTH, "ETag": '"0"'} if state == "renewed" else BOTH)]
        origin.on(target, *first, reply("", BOTH, 304) if state == "confirmed" else reply("page", BOTH))
        if first:
            store(l, target)
        if state in ("confirmed", "renewed"):
            clock.advance(61)
        r = ask(l, target, asked)
        # with a whole answer from the origin in hand the condition may be left aside, but not judged wrongly
        assert r.status == status or r.status == 200 and state in ("absent", "renewed"), asked
        assert r.body == (b"page" if r.status == 200 else b""), asked
        if r.status == 304:
            assert r.get("ETag") == '"1"' and "Content-Length" not in r.fields, asked
        r = ask(l, target)
        assert (r.told, r.body) == (("hit", "fresh"), b"page"), asked
        assert origin.count(target) == (1 if state in ("fresh", "absent") else 2), asked


def test_preconditions_go_on_to_the_origin(origin, larder):
    """RFC 9111 4.3.2: If-Match and If-Unmodified-Since are not a cache's to judge."""
    origin.on("/a", reply("page", BOTH), reply("", status=412))
    l = larder(origin)
    store(l)
    for asked in ({"If-Match": '"1"'}, {"If-Unmodified-Since": EARLIER}):
        r = ask(l, "/a", asked)
        assert (r.status, r.told) == (412, ("pass", "precondition")) and conditions_of(origin.last()) == asked
        assert r.cache_status["fwd"] == "bypass"
    assert ask(l, "/a").told == ("hit", "fresh")


# RFC 9110 13.1.5: If-Range, the stored validators, the status of a range
STRONG = {"ETag": '"1"', "Last-Modified": MODIFIED}
IF_RANGES = [
    ('"1"', STRONG, 206), ('"2"', STRONG, 200), ('W/"1"', STRONG, 200), ('W/"1"', {"ETag": 'W/"1"'}, 200), ('"1"', {"ETag": 'W/"1"'}, 200),
    (MODIFIED, {"Last-Modified": MODIFIED, "Date": LATER}, 206), (LATER, {"Last-Modified": MODIFIED, "Date": LATER}, 200),
    (EARLIER, {"Last-Modified": MODIFIED, "Date": LATER}, 200), (MODIFIED, {"Last-Modified": MODIFIED, "Date": MODIFIED}, 200), ("tomorrow", STRONG, 200),
]
PAGE = body_of(5000)


@pytest.mark.parametrize("state", ["fresh", "confirmed", "absent"])
def test_if_range(origin, larder, state):
    l = larder(origin)
    for number, (condition, validators, status) in enumerate(IF_RANGES):
        target = f"/{number}"
        fields = {"Cache-Control": "no-cache" if state == "confirmed" else "max-age=999999999", **validators}  # Date is long ago
        whole = reply(PAGE, fields)
        origin.on(target, whole, reply("", fields, 304) if state == "confirmed" else whole)
        if state != "absent":
            store(l, target)
        r = ask(l, target, {"Range": "bytes=10-19", "If-Range": condition})
        assert r.status == status and r.body == (PAGE[10:20] if status == 206 else PAGE), (condition, validators)
        assert not {"Range", "If-Range"} & conditions_of(origin.last()).keys()


def test_a_broken_connection_while_asking_leaves_what_is_stored(origin, larder, clock):
    l = stale(origin, larder, clock, {**TAGGED, "Cache-Control": "max-age=60, must-revalidate"}, lambda wire: wire.reset(), reply("", TAGGED, 304))
    with Client(l.address) as c:
        assert c.get("/a").status == 502
    clock.advance(61)
    r = ask(l, "/a")
    assert r.body == b"old" and origin.last().get("If-None-Match") == '"1"'
