"""Ranges on a miss: the whole is fetched and cut, or the part goes through and is kept as one (RFC 9111 3.3, 3.4), or the file is
fetched in slices. Whatever the way, a client gets the right bytes of one version, or an end that cannot be taken for whole.
"""
import re
import threading

import pytest

from harness.client import Client
from harness.origin import reply
from harness.told import ask
from harness.tools import body_of

FRESH = {"Cache-Control": "max-age=600"}
HIT = ("hit", "fresh")
PAGE, NEWER = body_of(100_000), body_of(100_001)[1:]
THROUGH = {"range_whole": "0B", "slice": "off"}


class File:
    """What the origin has at a path, with ranges, tags and conditions as RFC 9110 has them."""

    def __init__(self, body, tag='"1"', **fields):
        self.fields, self.asked, self.before = fields, [], None
        self.becomes(body, tag)

    def becomes(self, body, tag):
        self.version = body, tag

    def __call__(self, wire):
        asks = wire.request.get
        if self.before:
            self.before(self, wire)
        body, tag = self.version
        self.asked.append(asks("Range"))
        fields = {**FRESH, "Accept-Ranges": "bytes", **({"ETag": tag} if tag else {}), **self.fields}
        if asks("If-Match") not in (None, "*", tag):
            return reply("", fields, 412)(wire)
        if tag and tag in asks("If-None-Match", ""):
            return reply("", fields, 304)(wire)
        m = re.fullmatch(r"bytes=(\d*)-(\d*)", asks("Range", ""))
        if not m or asks("If-Range") not in (None, tag, self.fields.get("Last-Modified")):
            return reply(body, fields)(wire)
        first = int(m[1]) if m[1] else max(0, len(body) - int(m[2]))
        last = min(int(m[2]), len(body) - 1) if m[1] and m[2] else len(body) - 1
        if first > last:
            return reply("", {**fields, "Content-Range": f"bytes */{len(body)}"}, 416)(wire)
        fields["Content-Range"] = f"bytes {first}-{last}/{len(body)}"
        return reply(body[first : last + 1], fields, 206)(wire)


def spans(reply_):
    """(first, last, complete) of Content-Range."""
    return tuple(map(int, re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", reply_.get("Content-Range")).groups()))


def get_range(l, asked, body=PAGE, target="/a", **fields):
    """A range, held against the file: 206 with exactly what was asked for."""
    r = ask(l, target, {"Range": f"bytes={asked}", **fields})
    first, _, last = asked.partition("-")
    span = (int(first) if first else len(body) - int(last), min(int(last), len(body) - 1) if first and last else len(body) - 1)
    assert r.status == 206, (asked, r)
    assert spans(r) == (*span, len(body)) and r.body == body[span[0] : span[1] + 1], asked
    return r


# ---- the whole, and cut ------------------------------------------------------------------------------------------------


def test_a_range_of_what_is_not_stored_fetches_the_whole_once(origin, larder):
    l = larder(origin)
    for asked in ("0-9", "500-999", "-10", "99000-", "0-0", "0-99999", "0-999999"):
        f, target = File(PAGE), f"/{asked}"
        origin.on(target, f)
        r = get_range(l, asked, target=target)
        assert r.told == ("miss", "absent") and "stored" in r.cache_status, asked
        assert get_range(l, "70000-70009", target=target).told == HIT and ask(l, target).body == PAGE, asked
        assert f.asked == [None], asked


def test_a_range_that_cannot_be_had(origin, larder):
    l = larder(origin)
    for asked, status in [("bytes=100000-", 416), ("bytes=5-4", 200), ("lines=1-2", 200), ("bytes=a-b", 200)]:
        target = f"/{asked}"
        origin.on(target, File(PAGE))
        r = ask(l, target, {"Range": asked})
        assert r.status == status and (r.body == PAGE if status == 200 else r.get("Content-Range") == f"bytes */{len(PAGE)}"), asked
        assert ask(l, target).told == HIT, asked


def test_a_range_of_a_page_of_unknown_length(origin, larder):
    """Chunked: no length to say in Content-Range yet. The whole, or the right part; then the part."""
    origin.on("/a", reply(PAGE, FRESH, chunked=True))
    l = larder(origin)
    r = ask(l, "/a", {"Range": "bytes=10-19"})
    assert r.body == (PAGE if r.status == 200 else PAGE[10:20])
    assert get_range(l, "10-19").told == HIT and origin.count() == 1


def test_several_ranges_at_once(origin, larder):
    origin.on("/a", File(PAGE))
    l = larder(origin)
    for told in (("miss", "absent"), HIT):
        r = ask(l, "/a", {"Range": "bytes=0-9,50000-50009"})
        assert r.told == told and (r.body == PAGE if r.status == 200 else PAGE[:10] in r.body and PAGE[50000:50010] in r.body)
    assert r.status == 206


def test_ranges_that_follow_one_fill(origin, larder):
    go = threading.Event()
    origin.on("/a", reply(PAGE, {**FRESH, "ETag": '"1"'}, barrier=go))
    l = larder(origin)
    clients = [(n, l.client()) for n in range(10)]
    for n, c in clients:
        c.request("/a", {"Range": f"bytes={n * 1000}-{n * 1000 + 9}"})
    l.wait_for(fill_joined=9)
    go.set()
    for n, c in clients:
        r = c.reply()
        assert r.whole and r.body == (PAGE[n * 1000 : n * 1000 + 10] if r.status == 206 else PAGE)
    assert origin.count() == 1


# ---- the part goes through, and is kept as one -----------------------------------------------------------------------------


def through(origin, larder, f=None):
    f = f or File(PAGE)
    origin.on("/a", f)
    return larder(origin, cache=THROUGH), f


def test_a_part_is_kept_as_a_part(origin, larder):
    l = larder(origin, cache=THROUGH)
    for number, (asked, beyond) in enumerate([("100-199", "99-199"), ("100-199", "100-200"), ("0-99", "0-100"), ("-100", "99899-"), ("99900-", "-101")]):
        f, target = File(PAGE), f"/{number}"
        origin.on(target, f)
        r = get_range(l, asked, target=target)
        assert r.told == ("miss", "absent") and "stored" in r.cache_status and f.asked == [f"bytes={asked}"], asked
        first, last, _ = spans(r)
        for again in (asked, f"{first}-{last}", f"{first + 10}-{last - 10}", f"{last}-{last}"):
            assert get_range(l, again, target=target).told == HIT, (asked, again)
        assert len(f.asked) == 1 and l.parts_stored == 2 * number + 1, asked
        assert get_range(l, beyond, target=target).told[0] == "miss" and l.parts_stored == 2 * number + 2, (asked, beyond)


def test_a_part_is_never_given_as_the_whole(origin, larder):
    """RFC 9111 3.3."""
    for asked in ("100-199", "99900-"):
        l, f = through(origin, larder)
        get_range(l, asked)
        r = ask(l, "/a")
        assert (r.status, r.body) == (200, PAGE) and r.told[0] == "miss"
        r = ask(l, "/a")
        assert (r.told, r.body) == (HIT, PAGE)


JOINING = [(["0-99", "100-199"], "50-149"), (["100-199", "0-99"], "0-199"), (["0-149", "100-299"], "120-280"), (["100-199", "150-159"], "100-199"),
           (["100-199", "200-299", "0-99"], "0-299")]


def test_adjoining_parts_are_joined(origin, larder):
    """RFC 9111 3.4: they share a strong validator."""
    l = larder(origin, cache=THROUGH)
    for number, (parts, inside) in enumerate(JOINING):
        f, target = File(PAGE), f"/{number}"
        origin.on(target, f)
        for asked in parts:
            get_range(l, asked, target=target)
        count = len(f.asked)
        assert get_range(l, inside, target=target).told == HIT and len(f.asked) == count, parts


def test_parts_with_a_gap_are_not_one(origin, larder):
    l, f = through(origin, larder)
    get_range(l, "0-99")
    get_range(l, "200-299")
    assert get_range(l, "50-249").told[0] == "miss"


def test_parts_that_make_the_whole_are_the_whole(origin, larder):
    l = larder(origin, cache=THROUGH)
    for number, parts in enumerate([["0-49999", "50000-99999"], ["50000-", "0-60000"], ["0-99999"], ["0-"]]):
        f, target = File(PAGE), f"/{number}"
        origin.on(target, f)
        for asked in parts:
            get_range(l, asked, target=target)
        count = len(f.asked)
        r = ask(l, target)
        assert (r.status, r.body, r.told) == (200, PAGE, HIT) and len(f.asked) == count, parts
        assert "Content-Range" not in r.fields and r.get("Content-Length") == "100000", parts


LAST_WEEK, LONG_AGO = "Mon, 08 Jan 2024 00:00:00 GMT", "Mon, 01 Jan 2024 00:00:00 GMT"


FOREVER = {"Cache-Control": "max-age=999999999"}
VALIDATORS = [
    ('"1"', {}, True),
    ('W/"1"', {}, False),
    (None, {}, False),
    (None, {**FOREVER, "Last-Modified": LONG_AGO, "Date": LAST_WEEK}, True),  # strong by its Date (RFC 9110 8.8.2.2)
    (None, {**FOREVER, "Last-Modified": LONG_AGO, "Date": LONG_AGO}, False),
]


def test_only_strong_validators_join(origin, larder):
    l = larder(origin, cache=THROUGH)
    for number, (tag, fields, is_joined) in enumerate(VALIDATORS):
        origin.on(f"/{number}", File(PAGE, tag, **fields))
        for asked in ("0-99", "100-199"):
            get_range(l, asked, target=f"/{number}")
        assert (get_range(l, "50-149", target=f"/{number}").told == HIT) == is_joined, (tag, fields)


@pytest.mark.parametrize("newer", [NEWER, PAGE + b"more"], ids=["same length", "longer"])
def test_a_part_of_another_version_ends_the_old_one(origin, larder, newer):
    l, f = through(origin, larder)
    get_range(l, "0-99")
    f.becomes(newer, '"2"')
    get_range(l, "100-199", newer)
    get_range(l, "0-99", newer)
    r = ask(l, "/a")
    assert (r.body, r.get("ETag")) == (newer, '"2"')


# Content-Range of an answer of 100 bytes to bytes=0-99 that is not what it says (RFC 9110 15.3.7)
INCONSISTENT = ["bytes 0-99/50", "bytes 0-9/100000", "bytes 0-199/100000", "bytes 99-0/100000", "bytes 0-99", "lines 0-99/100000",
                "bytes */100000", None, "bytes 0-99/x"]


def test_a_part_that_does_not_fit_is_not_kept(origin, larder):
    l = larder(origin, cache=THROUGH)
    for number, span in enumerate(INCONSISTENT):
        target = f"/{number}"
        origin.on(target, reply(PAGE[:100], {**FRESH, "ETag": '"1"', **({"Content-Range": span} if span else {})}, 206), File(PAGE))
        before = l.stats()["memory"]["objects"]
        with Client(l.address) as c:
            c.get(target, {"Range": "bytes=0-99"})
        l.wait_for(exchanges_live=0, fills_live=0)
        assert l.stats()["memory"]["objects"] == before, span
        get_range(l, "0-99", target=target)
        assert ask(l, target).body == PAGE, span


def test_a_part_that_nobody_asked_for_is_not_the_whole(origin, larder):
    for cache in ({}, THROUGH):
        origin.on("/a", reply(PAGE[:100], {**FRESH, "ETag": '"1"', "Content-Range": f"bytes 0-99/{len(PAGE)}"}, 206), File(PAGE))
        l = larder(origin, cache=cache)
        with Client(l.address) as c:
            assert c.get("/a").status in (206, 502)
        assert ask(l, "/a").body == PAGE


def test_the_origin_may_give_another_part_than_was_asked_for(origin, larder):
    """RFC 9110 15.3.7.1: the client has to look at Content-Range; so do we."""
    origin.on("/a", reply(PAGE[:50], {**FRESH, "ETag": '"1"', "Content-Range": f"bytes 0-49/{len(PAGE)}"}, 206), File(PAGE))
    l = larder(origin, cache=THROUGH)
    r = ask(l, "/a", {"Range": "bytes=0-99"})
    assert r.status == 206 and spans(r) == (0, 49, len(PAGE)) and r.body == PAGE[:50]
    get_range(l, "0-99")


def test_an_origin_without_ranges_sends_the_whole(origin, larder):
    origin.on("/a", reply(PAGE, {**FRESH, "ETag": '"1"'}))
    l = larder(origin, cache=THROUGH)
    r = ask(l, "/a", {"Range": "bytes=10-19"})
    assert r.body == (PAGE if r.status == 200 else PAGE[10:20])
    assert get_range(l, "10-19").told == HIT and origin.count() == 1


def test_a_416_is_not_kept(origin, larder):
    l, f = through(origin, larder)
    for _ in range(2):
        r = ask(l, "/a", {"Range": "bytes=100000-"})
        assert r.status == 416 and "stored" not in r.cache_status
    get_range(l, "0-9")


@pytest.mark.parametrize("changed", [False, True])
def test_a_stale_part_is_asked_about(origin, larder, clock, changed):
    l, f = through(origin, larder)
    get_range(l, "0-99")
    clock.advance(601)
    if changed:
        f.becomes(NEWER, '"2"')
    body = NEWER if changed else PAGE
    assert get_range(l, "0-99", body).told[0] in ("miss", "revalidated", "pass")
    get_range(l, "0-99", body)
    assert ask(l, "/a").body == body


@pytest.mark.parametrize("condition,status", [('"1"', 206), ('"2"', 200)])
def test_if_range_on_a_part(origin, larder, condition, status):
    l, f = through(origin, larder)
    get_range(l, "0-99")
    r = ask(l, "/a", {"Range": "bytes=10-19", "If-Range": condition})
    assert (r.status, r.body) == ((206, PAGE[10:20]) if status == 206 else (200, PAGE))
    if status == 206:
        assert r.told == HIT


STALE = "max-age=10, stale-while-revalidate=600, stale-if-error=600"


@pytest.mark.parametrize("changed", [False, True])
def test_a_stale_part_while_it_is_refreshed(origin, larder, clock, changed):
    l, f = through(origin, larder, File(PAGE, **{"Cache-Control": STALE}))
    get_range(l, "0-99")
    clock.advance(15)
    if changed:
        f.becomes(NEWER, '"2"')
    assert get_range(l, "10-19").told == ("stale", "refreshing")
    l.wait_for(refresh_started=1, fills_live=0)
    body = NEWER if changed else PAGE
    get_range(l, "10-19", body)
    get_range(l, "90000-90099", body)
    assert ask(l, "/a").body == body


def test_a_stale_part_stands_in_for_an_origin_in_trouble(origin, larder, clock):
    l, f = through(origin, larder, File(PAGE, **{"Cache-Control": "max-age=10, stale-if-error=600"}))
    get_range(l, "0-99")
    clock.advance(15)
    origin.on("/a", reply("trouble", status=503))
    assert get_range(l, "10-19").told == ("stale", "origin-error")
    r = ask(l, "/a")
    assert (r.status, r.body) == (503, b"trouble")  # a part cannot stand in for the whole


def test_parts_of_variants_are_kept_apart(origin, larder):
    pages = {"1": PAGE, "2": NEWER}

    def story(wire):
        kind = wire.request.get("X-Kind")
        File(pages[kind], f'"{kind}"', Vary="X-Kind")(wire)

    origin.on("/a", story)
    l = larder(origin, cache=THROUGH)
    for asked in ("0-99", "100-199"):
        for kind, page in pages.items():
            get_range(l, asked, page, **{"X-Kind": kind})
    for kind, page in pages.items():
        assert get_range(l, "50-149", page, **{"X-Kind": kind}).told == HIT


@pytest.mark.parametrize("fields", [{"Cache-Control": "no-store"}, {"Cache-Control": "private"}, {"Set-Cookie": "id=1"}, {"Vary": "*"}], ids=str)
def test_parts_are_kept_by_the_same_rules_as_wholes(origin, larder, fields):
    l, f = through(origin, larder, File(PAGE, **fields))
    for _ in range(2):
        assert get_range(l, "0-99").told[0] == "pass"
    assert f.asked == ["bytes=0-99"] * 2 and l.stats()["memory"]["objects"] == 0


def test_parts_go_with_everything_else(origin, larder):
    l, f = through(origin, larder)
    get_range(l, "0-99")
    assert l.purge("http://site.test/a") == 1
    assert get_range(l, "0-99").told == ("miss", "absent")
    ask(l, "/a", method="POST", body=b"x")
    assert get_range(l, "0-99").told == ("miss", "absent")


# ---- the rest of it ------------------------------------------------------------------------------------------------------


def test_the_whole_asks_only_for_what_is_missing(origin, larder):
    """RFC 9111 3.4."""
    l, f = through(origin, larder)
    get_range(l, "0-59999")
    r = ask(l, "/a")
    assert (r.status, r.body, r.told[0]) == (200, PAGE, "miss") and "Content-Range" not in r.fields
    assert origin.last().get("Range") == "bytes=60000-" and origin.last().get("If-Range") == '"1"'
    r = ask(l, "/a")
    assert (r.told, r.body) == (HIT, PAGE) and len(f.asked) == 2
    assert l.parts_joined >= 1


def test_the_rest_of_a_changed_file_is_the_new_one_whole(origin, larder):
    l, f = through(origin, larder)
    get_range(l, "0-59999")
    f.becomes(NEWER, '"2"')
    r = ask(l, "/a")
    assert (r.status, r.body, r.get("ETag")) == (200, NEWER, '"2"')
    assert (ask(l, "/a").body, ask(l, "/a").told) == (NEWER, HIT)


def test_the_rest_from_an_origin_that_mixes_versions_up(origin, larder):
    """It ignores If-Range: the tag tells. What is joined is never of two versions."""
    l, f = through(origin, larder)
    get_range(l, "0-59999")
    rest = {**FRESH, "ETag": '"2"', "Content-Range": f"bytes 60000-99999/{len(NEWER)}"}
    f.becomes(NEWER, '"2"')
    origin.on("/a", reply(NEWER[60000:], rest, 206), f)
    with Client(l.address) as c:
        r = c.get("/a")
        assert not r.whole or r.status >= 500 or r.body == NEWER
    assert ask(l, "/a").body == NEWER


@pytest.mark.parametrize("how", ["cut", "503"])
def test_when_the_rest_does_not_come(origin, larder, how):
    l, f = through(origin, larder)
    get_range(l, "0-59999")

    def cut(wire):
        wire.head(206, {**FRESH, "ETag": '"1"', "Content-Range": "bytes 60000-99999/100000", "Content-Length": 40000}).send(PAGE[60000:70000]).reset()

    origin.on("/a", cut if how == "cut" else reply("trouble", status=503), f)
    with Client(l.address) as c:
        r = c.get("/a")
        assert not r.whole if how == "cut" else r.status == 503 or not r.whole
    assert ask(l, "/a").body == PAGE


# ---- slices --------------------------------------------------------------------------------------------------------------

SLICE = 64 << 10
LARGE, LARGER = body_of(4 << 20), body_of((4 << 20) + 1)[1:]
SLICED = {"range_whole": "256KiB", "slice": "64KiB"}


def sliced(origin, larder, f=None):
    f = f or File(LARGE)
    origin.on("/a", f)
    return larder(origin, cache=SLICED), f


def ranges_asked(f):
    return [tuple(map(int, r.removeprefix("bytes=").split("-"))) for r in f.asked if r]


def assert_aligned(f, body=LARGE):
    for first, last in ranges_asked(f):
        assert first % SLICE == 0 and last >= first and ((last + 1) % SLICE == 0 or last + 1 >= len(body)), f.asked


def test_a_range_of_a_large_file_fetches_its_slices_alone(origin, larder):
    l, f = sliced(origin, larder)
    r = get_range(l, "1000000-1000099", LARGE)
    assert r.told[0] == "miss"
    assert_aligned(f)
    asked = len(f.asked)
    assert any(first <= 1000000 <= last for first, last in ranges_asked(f))
    assert get_range(l, "1000000-1000099", LARGE).told == HIT
    assert get_range(l, "1000050-1001000", LARGE).told == HIT
    assert len(f.asked) == asked and l.slices_fetched >= 1


def test_ranges_over_several_slices(origin, larder):
    l = larder(origin, cache=SLICED)
    for asked in ("65530-65541", "0-200000", "131072-262143", "4194000-", "-100", "0-0", "65535-65535", "65536-65536", "4194303-4294967296"):
        f, target = File(LARGE), f"/{asked}"
        origin.on(target, f)
        get_range(l, asked, LARGE, target)
        assert_aligned(f)
        count = len(ranges_asked(f))
        assert get_range(l, asked, LARGE, target).told == HIT and len(ranges_asked(f)) == count, asked


def test_only_the_slices_that_are_missing_are_fetched(origin, larder):
    l, f = sliced(origin, larder)
    get_range(l, f"{SLICE}-{2 * SLICE - 1}", LARGE)
    f.asked.clear()
    get_range(l, f"0-{3 * SLICE - 1}", LARGE)
    asked = ranges_asked(f)
    assert all(last < SLICE or first >= 2 * SLICE for first, last in asked) and asked


def test_the_whole_of_a_file_that_is_there_in_slices(origin, larder):
    l, f = sliced(origin, larder)
    get_range(l, "1000000-1000099", LARGE)
    for _ in range(2):
        r = ask(l, "/a")
        assert (r.status, r.body) == (200, LARGE) and "Content-Range" not in r.fields
    get_range(l, "2000000-2000099", LARGE)


def test_a_small_file_is_fetched_whole_all_the_same(origin, larder):
    f = File(PAGE)
    l, _ = sliced(origin, larder, f)
    get_range(l, "10-19")
    assert get_range(l, "90000-90009").told == HIT and ask(l, "/a").body == PAGE
    assert len(f.asked) <= 2


def test_a_range_beyond_the_end_of_a_large_file(origin, larder):
    l, f = sliced(origin, larder)
    for _ in range(2):
        r = ask(l, "/a", {"Range": f"bytes={len(LARGE)}-"})
        assert r.status == 416 and r.get("Content-Range") == f"bytes */{len(LARGE)}"


def test_a_file_that_changes_between_slices(origin, larder):
    """Slices are bound to one strong validator: this client is cut off, the next one gets the new file."""
    l, f = sliced(origin, larder)

    def change(file, wire):
        if ranges_asked(file) and (wire.request.get("Range") or "").startswith(f"bytes={2 * SLICE}-"):
            file.becomes(LARGER, '"2"')

    f.before = change
    with Client(l.address) as c:
        r = c.get("/a", {"Range": f"bytes=0-{4 * SLICE - 1}"})
    assert f.version[1] == '"2"', f"never asked for the third slice: {f.asked}"
    if r.whole:
        assert r.status == 206 and r.body == LARGER[: 4 * SLICE]
    else:
        assert LARGE[: 4 * SLICE].startswith(r.body)
    l.wait_for(exchanges_live=0, fills_live=0)
    get_range(l, f"0-{4 * SLICE - 1}", LARGER)
    r = ask(l, "/a")
    assert (r.status, r.body, r.get("ETag")) == (200, LARGER, '"2"')


def test_slices_that_are_stored_go_when_a_newer_one_comes(origin, larder):
    l, f = sliced(origin, larder)
    get_range(l, "0-99", LARGE)
    get_range(l, "1000000-1000099", LARGE)
    f.becomes(LARGER, '"2"')
    assert get_range(l, "0-99", LARGE).told == HIT  # nobody knows yet
    with Client(l.address) as c:
        r = c.get("/a", {"Range": "bytes=2000000-2000099"})
        assert not r.whole or r.status >= 500 or r.body == LARGER[2000000:2000100]
    for asked in ("2000000-2000099", "0-99", "1000000-1000099"):
        get_range(l, asked, LARGER)
    assert l.slices_healed >= 1


def test_slices_grow_old_like_everything_else(origin, larder, clock):
    l, f = sliced(origin, larder)
    get_range(l, "0-99", LARGE)
    clock.advance(601)
    f.becomes(LARGER, '"2"')
    with Client(l.address) as c:
        r = c.get("/a", {"Range": "bytes=0-99"})
        assert not r.whole or r.body == LARGER[:100]
    get_range(l, "0-99", LARGER)
    clock.advance(601)
    get_range(l, "0-99", LARGER)


@pytest.mark.parametrize("tag", ['W/"1"', None])
def test_without_a_strong_validator_there_are_no_slices(origin, larder, tag):
    l, f = sliced(origin, larder, File(LARGE, tag))
    for asked in ("0-99", "100000-200000", "0-99"):
        get_range(l, asked, LARGE)


def test_a_purge_takes_all_slices(origin, larder):
    l, f = sliced(origin, larder)
    for asked in ("0-99", "1000000-1000099"):
        get_range(l, asked, LARGE)
    assert l.purge("http://site.test/a") >= 1
    f.becomes(LARGER, '"2"')
    for asked in ("0-99", "1000000-1000099"):
        get_range(l, asked, LARGER)


def test_head_and_conditions_on_a_file_in_slices(origin, larder):
    l, f = sliced(origin, larder)
    get_range(l, "0-99", LARGE)
    r = ask(l, "/a", method="HEAD")
    assert (r.status, r.get("Content-Length")) == (200, str(len(LARGE))) and "Content-Range" not in r.fields
    r = ask(l, "/a", {"Range": "bytes=0-9", "If-None-Match": '"1"'})
    assert (r.status, r.body) == (304, b"")
    for condition, status in (('"1"', 206), ('"2"', 200)):
        r = ask(l, "/a", {"Range": "bytes=0-9", "If-Range": condition})
        assert (r.status, r.body) == ((206, LARGE[:10]) if status == 206 else (200, LARGE))


def test_several_ranges_of_a_file_in_slices(origin, larder):
    l, f = sliced(origin, larder)
    for _ in range(2):
        r = ask(l, "/a", {"Range": "bytes=0-9,3000000-3000009"})
        assert r.body == LARGE if r.status == 200 else r.status == 206 and LARGE[:10] in r.body and LARGE[3000000:3000010] in r.body


def part_from(body, at, length=SLICE, complete=len(LARGE), tag='"1"'):
    """A 206 with these bytes, whatever was asked for."""
    span = {"Content-Range": f"bytes {at}-{at + length - 1}/{complete}", **({"ETag": tag} if tag else {})}
    return reply(body[at : at + length], {**FRESH, **span}, 206)


def breaks_off(wire):
    at = 2 * SLICE
    wire.head(206, {**FRESH, "ETag": '"1"', "Content-Range": f"bytes {at}-{at + SLICE - 1}/{len(LARGE)}", "Content-Length": SLICE})
    wire.send(LARGE[at : at + 5000]).reset()


BREAKS = {
    "resets": lambda wire: wire.reset(),
    "breaks off": breaks_off,
    # an origin that does not know If-Range: the tag alone tells
    "another version": part_from(LARGER, 2 * SLICE, tag='"2"'),
    "503": reply("trouble", status=503),
    "404": reply("gone", status=404),
    "another part": part_from(LARGE, 0, 100),
    "no tag": part_from(LARGE, 2 * SLICE, tag=None),
    "another length": part_from(LARGE, 2 * SLICE, complete=99_999_999),
}


def test_a_slice_that_does_not_come(origin, larder):
    """Never a clean end, never bytes of something else; and the next client has what it wants."""
    l = larder(origin, cache=SLICED)
    for number, (what, story) in enumerate(BREAKS.items()):
        target, f, broken = f"/{number}", File(LARGE), []

        def breaks_once(wire, f=f, story=story, broken=broken):
            if not broken and (wire.request.get("Range") or "").startswith(f"bytes={2 * SLICE}-"):
                broken.append(True)
                return story(wire)
            return f(wire)

        origin.on(target, breaks_once)
        with Client(l.address) as c:
            r = c.get(target, {"Range": f"bytes=0-{4 * SLICE - 1}"})
        assert broken, what
        assert not r.whole and LARGE.startswith(r.body) or r.status == 206 and r.body == LARGE[: 4 * SLICE], what
        l.wait_for(exchanges_live=0, fills_live=0)
        get_range(l, f"0-{4 * SLICE - 1}", LARGE, target)


@pytest.mark.concurrency
def test_a_client_that_leaves_between_slices(origin, larder):
    l, f = sliced(origin, larder)
    for leave in ("close", "reset"):
        c = l.client(receive_buffer=4096)
        c.request("/a", {"Range": "bytes=0-4000000"})
        c.read(100_000)
        getattr(c, leave)()
        l.wait_for(client_open=0, exchanges_live=0)
    get_range(l, "0-4000000", LARGE)


def test_slices_that_do_not_all_fit(origin, larder):
    """A file larger than the memory: nothing grows, every byte is right."""
    large = body_of(24 << 20)
    f = File(large)
    origin.on("/a", f)
    l = larder(origin, cache={"memory": "16MiB", **SLICED})
    for asked in ("0-20000000", "5000000-25000000", "0-20000000"):
        get_range(l, asked, large)
    memory = l.stats()["memory"]
    assert memory["used_bytes"] <= 1.1 * memory["budget_bytes"]


@pytest.mark.concurrency
def test_a_file_that_keeps_changing(origin, larder):
    """Two versions in turn: what ends well is one of them throughout, whoever asks."""
    l, f = sliced(origin, larder)
    versions, wrong, cut, done = (LARGE, LARGER), [], [], threading.Event()

    def change():
        turn = 0
        while not done.wait(0.05):
            turn += 1
            f.becomes(versions[turn % 2], f'"at {turn}"')

    def some(seed):
        with Client(l.address) as c:
            for turn in range(15):
                first = (seed * 7919 + turn * 104729) % (len(LARGE) - 500_000)
                r = c.get("/a", {"Range": f"bytes={first}-{first + 400_000}"})
                if not r.whole:
                    cut.append(r)
                    c.close()
                    c.__init__(l.address)
                elif r.status not in (502, 503) and r.body not in [v[first : first + 400_001] for v in versions]:
                    wrong.append((first, r))

    threads = [threading.Thread(target=some, args=(seed,)) for seed in range(4)]
    changer = threading.Thread(target=change)
    for t in [*threads, changer]:
        t.start()
    for t in threads:
        t.join()
    done.set()
    changer.join()
    assert wrong == []
    f.becomes(LARGE, '"last"')
    l.purge("http://site.test/a")
    get_range(l, "0-400000", LARGE)


@pytest.mark.concurrency
def test_many_clients_over_the_same_slices(origin, larder):
    l, f = sliced(origin, larder)
    wrong = []

    def some(seed):
        with Client(l.address) as c:
            for turn in range(12):
                first = (seed * 7919 + turn * 104729) % (len(LARGE) - 200_000)
                r = c.get("/a", {"Range": f"bytes={first}-{first + 150_000}"})
                if not (r.whole and r.status == 206 and r.body == LARGE[first : first + 150_001]):
                    wrong.append((first, r))

    threads = [threading.Thread(target=some, args=(seed,)) for seed in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []
    assert_aligned(f)
