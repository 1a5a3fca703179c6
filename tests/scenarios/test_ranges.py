"""Ranges, the harder cases (test_parts.py has the plain ones): parts that are kept while they go to a client at the client's pace, what
is put together and what is not, answers to POST that stand for GET, and large files in slices: records, versions, back-pressure.
"""
import re
import threading

import pytest

from harness.client import Client
from harness.origin import reply
from harness.told import ask
from harness.tools import body_of, until, until_quiet

FRESH = {"Cache-Control": "max-age=600"}
HIT = ("hit", "fresh")
MIB = 1 << 20
THROUGH = {"range_whole": "0B", "slice": "off"}
SLICE = 64 << 10
SLICED = {"range_whole": "256KiB", "slice": "64KiB"}
LARGE, LARGER = body_of(4 * MIB), body_of(4 * MIB + 1)[1:]


class File:
    """What the origin has at a path, as RFC 9110 has it. `turns` are told before the file itself is asked."""

    def __init__(self, body, tag='"1"', **fields):
        self.fields, self.asked, self.turns = fields, [], []
        self.ignores_range = False
        self.becomes(body, tag)

    def becomes(self, body, tag):
        self.version = body, tag  # at once

    @property
    def body(self):
        return self.version[0]

    def ranges(self):
        return [tuple(map(int, r.removeprefix("bytes=").split("-"))) for r in self.asked if r]

    def __call__(self, wire):
        asks = wire.request.get
        self.asked.append(asks("Range"))
        if self.turns:
            return self.turns.pop(0)(wire)
        return self.tell(wire)

    def tell(self, wire):
        asks, (body, tag) = wire.request.get, self.version
        fields = {**FRESH, "Accept-Ranges": "bytes", "ETag": tag, **self.fields}
        if tag in asks("If-None-Match", ""):
            return reply("", fields, 304)(wire)
        m = re.fullmatch(r"bytes=(\d*)-(\d*)", asks("Range", ""))
        if not m or self.ignores_range or asks("If-Range") not in (None, tag):
            return reply(body, fields)(wire)
        first = int(m[1]) if m[1] else len(body) - int(m[2])
        last = min(int(m[2]), len(body) - 1) if m[1] and m[2] else len(body) - 1
        fields["Content-Range"] = f"bytes {first}-{last}/{len(body)}"
        return reply(body[first : last + 1], fields, 206)(wire)


def serve(origin, larder, f, cache, **more):
    origin.on("/a", f)
    return larder(origin, cache=cache, **more)


def get_range(l, first, last, body, **fields):
    r = ask(l, "/a", {"Range": f"bytes={first}-{last}", **fields})
    assert r.status == 206 and r.fields.all("Content-Range") == [f"bytes {first}-{last}/{len(body)}"], r
    assert r.body == body[first : last + 1]
    return r


# ---- a part that is kept while it goes to a client -------------------------------------------------------------------------


def test_a_client_that_leaves_takes_the_part_with_it(origin, larder):
    """What it had of the part is not kept, and nothing goes on without it."""
    f = File(body_of(8 * MIB))
    l = serve(origin, larder, f, THROUGH)
    c = Client(l.address, receive_buffer=4096)
    c.request("/a", {"Range": f"bytes=0-{6 * MIB - 1}"})
    c.head()
    c.reset()
    l.wait_for(exchanges_live=0, fills_live=0)
    assert l.parts_stored == 0 and l.stats()["memory"]["objects"] == 0
    get_range(l, 0, 99, f.body)
    assert l.parts_stored == 1


def test_keeping_a_part_does_not_draw_it_from_the_origin(origin, larder):
    """A client that takes nothing: the origin's bytes wait at the origin, as in any pass."""
    f = File(body_of(48 * MIB))
    l = serve(origin, larder, f, {**THROUGH, "memory": "512MiB"})
    with Client(l.address, receive_buffer=4096) as c:
        c.request("/a", {"Range": "bytes=1-"})
        c.head()
        drawn = until_quiet(lambda: l.origin_received_bytes)
        assert drawn < 16 * MIB
    l.wait_for(exchanges_live=0, fills_live=0)


def test_a_part_that_breaks_is_not_kept(origin, larder):
    f = File(body_of(100_000))
    f.turns = [lambda wire: wire.head(206, {**FRESH, "ETag": '"1"', "Content-Range": "bytes 0-49999/100000", "Content-Length": 50000}).send(f.body[:20000]).reset()]
    l = serve(origin, larder, f, THROUGH)
    with Client(l.address) as c:
        assert not c.get("/a", {"Range": "bytes=0-49999"}).whole
    l.wait_for(exchanges_live=0, fills_live=0)
    assert get_range(l, 0, 9999, f.body).told[0] == "miss"
    assert get_range(l, 0, 9999, f.body).told == HIT


def test_parts_too_large_to_be_put_together(origin, larder):
    """Joining is done in one go: above its bound the larger of the two stays."""
    f = File(body_of(24 * MIB))
    l = serve(origin, larder, f, {**THROUGH, "memory": "512MiB"})
    get_range(l, 0, 7 * MIB - 1, f.body)
    get_range(l, 7 * MIB, 10 * MIB - 1, f.body)
    assert get_range(l, 0, 99, f.body).told == HIT and l.parts_joined == 0
    get_range(l, 7 * MIB, 23 * MIB - 1, f.body)
    assert get_range(l, 8 * MIB, 20 * MIB, f.body).told == HIT
    assert get_range(l, 0, 99, f.body).told[0] == "miss"


def test_the_newer_part_speaks_for_both(origin, larder):
    """RFC 9111 3.4: its fields replace those of the same name, the others stay."""
    f = File(body_of(100_000), **{"X-Old": "old", "X-Both": "old"})
    l = serve(origin, larder, f, THROUGH)
    get_range(l, 0, 99, f.body)
    f.fields = {"X-Both": "new"}
    get_range(l, 100, 199, f.body)
    r = get_range(l, 50, 149, f.body)
    assert r.told == HIT and (r.get("X-Old"), r.get("X-Both")) == ("old", "new")
    assert r.fields.all("Content-Range") == ["bytes 50-149/100000"]


def test_variants_are_not_joined(origin, larder):
    f = File(body_of(100_000), Vary="Accept-Language")
    l = serve(origin, larder, f, THROUGH)
    get_range(l, 0, 99, f.body, **{"Accept-Language": "de"})
    get_range(l, 100, 199, f.body, **{"Accept-Language": "fr"})
    for language in ("de", "fr"):
        assert get_range(l, 50, 149, f.body, **{"Accept-Language": language}).told[0] == "miss"


def test_a_part_that_varies_is_not_joined_with_one_that_did_not(origin, larder):
    f = File(body_of(100_000))
    l = serve(origin, larder, f, THROUGH)
    get_range(l, 0, 99, f.body)
    f.fields = {"Vary": "Accept-Language"}
    get_range(l, 100, 199, f.body, **{"Accept-Language": "de"})
    assert get_range(l, 50, 149, f.body, **{"Accept-Language": "fr"}).told[0] == "miss"
    assert l.parts_joined == 0


def test_a_condition_comes_before_the_range(origin, larder):
    """RFC 9110 13.2.2."""
    l = serve(origin, larder, File(body_of(100_000)), THROUGH)
    l.ask("/a", {"Range": "bytes=0-99"})
    r = ask(l, "/a", {"Range": "bytes=0-9", "If-None-Match": '"1"'})
    assert (r.status, r.body, r.told) == (304, b"", HIT) and "Content-Range" not in r.fields


def test_a_private_part_is_not_kept(origin, larder):
    l = serve(origin, larder, File(body_of(1000), **{"Cache-Control": "private, max-age=60"}), THROUGH)
    r = get_range(l, 0, 9, body_of(1000))
    assert r.told[0] == "pass" and r.cache_status["detail"] == "private" and "stored" not in r.cache_status
    assert get_range(l, 0, 9, body_of(1000)).told[0] == "pass"


def test_a_purge_beats_a_part_on_its_way(origin, larder):
    go = threading.Event()
    f = File(body_of(100_000))

    def slow(wire):
        wire.head(206, {**FRESH, "ETag": '"1"', "Content-Range": "bytes 0-99/100000", "Content-Length": 100}).send(f.body[:50])
        wire.wait(go).send(f.body[50:100])

    f.turns = [slow]
    l = serve(origin, larder, f, THROUGH)
    with Client(l.address) as c:
        c.request("/a", {"Range": "bytes=0-99"})
        head = c.head()
        l.purge("http://site.test/a")
        go.set()
        assert c.rest(head).body == f.body[:100]
    l.wait_for(exchanges_live=0, fills_live=0)
    assert l.stats()["memory"]["objects"] == 0


# ---- the rest of what is stored ----------------------------------------------------------------------------------------------


def test_the_rest_of_a_large_part(origin, larder):
    """What is stored is copied in turns, so that others have theirs."""
    f = File(body_of(20 * MIB))
    l = serve(origin, larder, f, {**THROUGH, "memory": "512MiB"})
    get_range(l, 0, 12 * MIB - 1, f.body)
    r = ask(l, "/a")
    assert (r.status, r.body) == (200, f.body) and f.asked[-1] == f"bytes={12 * MIB}-"
    assert ask(l, "/a").told == HIT and len(f.asked) == 2


def test_a_range_behind_the_part_completes_it(origin, larder):
    f = File(body_of(100_000))
    l = serve(origin, larder, f, THROUGH)
    get_range(l, 0, 49_999, f.body)
    l.config["cache"]["range_whole"] = "8MiB"
    l.write_config()
    assert l.reload()[0] == 200
    get_range(l, 70_000, 70_099, f.body)
    assert f.asked[-1] == "bytes=50000-" and ask(l, "/a").told == HIT


def test_a_416_for_the_rest_asks_for_the_whole(origin, larder):
    f = File(body_of(100_000))
    l = serve(origin, larder, f, THROUGH)
    get_range(l, 0, 49_999, f.body)
    f.turns = [reply("", {"Content-Range": "bytes */100000"}, 416)]
    r = ask(l, "/a")
    assert (r.status, r.body) == (200, f.body) and f.asked[-2:] == ["bytes=50000-", None]


def test_followers_get_what_is_put_together(origin, larder):
    f = File(body_of(100_000))
    l = serve(origin, larder, f, THROUGH)
    get_range(l, 0, 49_999, f.body)
    go = threading.Event()
    f.turns = [lambda wire: f.tell(wire.wait(go))]
    clients = [l.client() for _ in range(5)]
    for c in clients:
        c.request("/a")
    l.wait_for(fill_joined=4)
    go.set()
    for c in clients:
        r = c.reply()
        assert r.whole and r.status == 200 and r.body == f.body
    assert origin.count() == 2


# ---- POST that stands for GET (RFC 9110 9.3.3) ---------------------------------------------------------------------------------


@pytest.mark.parametrize("fields,is_kept", [
    ({"Content-Location": "/a", **FRESH}, True),
    ({"Content-Location": "http://site.test/a", **FRESH}, True),
    ({"Content-Location": "/b", **FRESH}, False),
    ({**FRESH}, False),
    ({"Content-Location": "/a"}, False),
    ({"Content-Location": "/a", "Cache-Control": "max-age=600, private"}, False),
    ({"Content-Location": "/a", "Set-Cookie": "a=b", **FRESH}, False),
], ids=str)
def test_an_answer_to_post_that_stands_for_get(origin, larder, fields, is_kept):
    origin.on("/a", reply("before", FRESH), reply("posted", fields), reply("after", FRESH))
    l = larder(origin)
    assert ask(l, "/a").body == b"before"
    r = ask(l, "/a", method="POST", body=b"x=1")
    assert r.body == b"posted" and r.told == ("pass", "method") and ("stored" in r.cache_status) == is_kept
    r = ask(l, "/a")
    assert (r.body, r.told) == ((b"posted", HIT) if is_kept else (b"after", ("miss", "absent")))


# ---- slices: the record ---------------------------------------------------------------------------------------------------------


def test_a_head_is_answered_by_the_record(origin, larder):
    f = File(LARGE)
    l = serve(origin, larder, f, SLICED)
    get_range(l, 0, 99, LARGE)
    count = len(f.asked)
    r = ask(l, "/a", method="HEAD")
    assert r.status == 200 and r.get("Content-Length") == str(len(LARGE)) and r.told == HIT and len(f.asked) == count
    assert r.get("ETag") == '"1"' and "Content-Range" not in r.fields


def test_conditions_are_judged_by_the_record(origin, larder):
    f = File(LARGE)
    l = serve(origin, larder, f, SLICED)
    get_range(l, 0, 99, LARGE)
    count = len(f.asked)
    for more in ({}, {"Range": "bytes=0-9"}):
        r = ask(l, "/a", {"If-None-Match": '"1"', **more})
        assert (r.status, r.told) == (304, HIT) and len(f.asked) == count
    r = ask(l, "/a", {"Range": "bytes=0-9", "If-Range": '"1"'})
    assert (r.status, r.body, r.told) == (206, LARGE[:10], HIT)
    r = ask(l, "/a", {"Range": "bytes=0-9", "If-Range": '"0"'})
    assert (r.status, r.body) == (200, LARGE)


def test_a_304_makes_record_and_slices_fresh_again(origin, larder, clock):
    f = File(LARGE)
    l = serve(origin, larder, f, SLICED)
    get_range(l, 0, 99, LARGE)
    slices = l.slices_fetched
    clock.advance(601)
    r = get_range(l, 10, 19, LARGE)
    assert r.told == ("revalidated", "validated") and l.slices_fetched == slices
    assert get_range(l, 20, 29, LARGE).told == HIT


def test_several_ranges_of_a_large_file_go_through(origin, larder):
    f = File(LARGE)
    l = serve(origin, larder, f, SLICED)
    get_range(l, 0, 99, LARGE)
    r = ask(l, "/a", {"Range": "bytes=0-9,100-109"})
    assert r.told == ("pass", "range") and f.asked[-1] == "bytes=0-9,100-109"
    assert r.body == LARGE  # this origin does not do several


def test_followers_of_the_first_one_are_sliced_too(origin, larder):
    """Whoever waited for the head: for the whole, or for another part."""
    f = File(LARGE)
    go = threading.Event()
    f.turns = [lambda wire: f.tell(wire.wait(go))]
    l = serve(origin, larder, f, SLICED)
    asked = [{"Range": "bytes=0-9"}, {"Range": "bytes=1000000-1000009"}, {}, {"Range": "bytes=4194300-"}]
    clients = [l.client() for _ in asked]
    for at, (c, fields) in enumerate(zip(clients, asked)):
        c.request("/a", fields)
        l.wait_for(fill_joined=at)
    go.set()
    bodies = [c.reply() for c in clients]
    assert [r.whole for r in bodies] == [True] * 4
    assert [r.body for r in bodies] == [LARGE[:10], LARGE[1000000:1000010], LARGE, LARGE[4194300:]]
    assert f.asked.count(None) == 1


# ---- slices: who does not get them ----------------------------------------------------------------------------------------------


def test_an_origin_that_says_it_has_no_ranges(origin, larder):
    f = File(LARGE, **{"Accept-Ranges": "none"})
    l = serve(origin, larder, f, SLICED)
    for _ in range(2):
        get_range(l, 100_000, 100_099, LARGE)
    assert l.slices_fetched == 0


def test_an_origin_that_does_not_keep_its_word(origin, larder):
    """Accept-Ranges: bytes, and then the whole for each slice: the client's own request goes through."""
    f = File(LARGE)
    f.ignores_range = True
    l = serve(origin, larder, f, SLICED)
    for _ in range(2):
        r = ask(l, "/a", {"Range": "bytes=100000-100099"})
        assert r.status == 200 and r.body == LARGE and r.told[0] == "pass"
    assert l.slices_fetched == 0 and l.stats()["memory"]["objects"] == 0


def test_slices_off_passes_the_range_and_keeps_the_part(origin, larder):
    f = File(LARGE)
    l = serve(origin, larder, f, {**SLICED, "slice": "off"})
    r = get_range(l, 100_000, 100_099, LARGE)
    assert r.told == ("miss", "range") and f.asked == [None, "bytes=100000-100099"]
    assert get_range(l, 100_000, 100_099, LARGE).told == HIT
    get_range(l, 100_100, 100_199, LARGE)  # known to be large now
    assert f.asked[2:] == ["bytes=100100-100199"] and get_range(l, 100_050, 100_150, LARGE).told == HIT


def test_a_whole_that_can_be_stored_is(origin, larder):
    f = File(LARGE)
    l = serve(origin, larder, f, {**SLICED, "max_object": "8MiB"})
    assert ask(l, "/a").body == LARGE and f.asked == [None]
    assert get_range(l, 1_000_000, 1_000_099, LARGE).told == HIT and l.slices_fetched == 0


@pytest.mark.parametrize("status", [403, 404, 503])
def test_a_slice_that_is_an_error(origin, larder, status):
    f = File(LARGE)
    l = serve(origin, larder, f, SLICED)
    get_range(l, 0, 99, LARGE)
    f.turns = [reply("no", status=status)] * 4
    r = ask(l, "/a", {"Range": "bytes=1000000-1000009"})
    assert r.status in (status, 502)
    f.turns = []
    l.wait_for(exchanges_live=0, fills_live=0)
    get_range(l, 1_000_000, 1_000_009, LARGE)


# ---- slices: versions ---------------------------------------------------------------------------------------------------------


def test_a_change_before_the_first_byte_is_not_seen_by_the_client(origin, larder):
    f = File(LARGE)
    l = serve(origin, larder, f, SLICED)
    get_range(l, 0, 99, LARGE)
    f.becomes(LARGER, '"2"')
    get_range(l, 1_000_000, 1_000_099, LARGER)
    assert l.slices_healed >= 1
    get_range(l, 0, 99, LARGER)


def test_a_change_in_the_middle_cuts_the_client_off(origin, larder):
    f = File(LARGE)
    l = serve(origin, larder, f, SLICED)
    get_range(l, 0, 99, LARGE)
    f.becomes(LARGER, '"2"')
    with Client(l.address) as c:
        r = c.get("/a")
        assert r.status == 200 and r.ended == "reset" and r.body == LARGE[:SLICE]
    l.wait_for(exchanges_live=0, fills_live=0)
    assert l.outcome("fault") == 1 and l.reason("origin-changed") == 1 and l.slices_healed >= 1
    r = ask(l, "/a")
    assert (r.status, r.body) == (200, LARGER)


def test_a_file_that_became_small(origin, larder, clock):
    f = File(LARGE)
    l = serve(origin, larder, f, SLICED)
    get_range(l, 0, 99, LARGE)
    small = body_of(1000)
    f.becomes(small, '"2"')
    clock.advance(601)
    get_range(l, 10, 19, small)
    assert ask(l, "/a").body == small and ask(l, "/a").told == HIT


def test_a_slice_that_breaks_is_fetched_once_more(origin, larder):
    """The client goes on where it was; when it breaks again it is cut off."""
    f = File(LARGE)
    l = serve(origin, larder, f, SLICED)
    get_range(l, 0, 99, LARGE)

    def cut(wire):
        first, last = map(int, wire.request.get("Range").removeprefix("bytes=").split("-"))
        span = {"Content-Range": f"bytes {first}-{last}/{len(LARGE)}", "Content-Length": last + 1 - first}
        wire.head(206, {**FRESH, "ETag": '"1"', **span}).send(LARGE[first : first + 10_000]).reset()

    f.turns = [cut]
    get_range(l, SLICE, 3 * SLICE, LARGE)
    f.turns = [cut, cut]
    with Client(l.address) as c:
        r = c.get("/a", {"Range": f"bytes={5 * SLICE}-{6 * SLICE - 1}"})
        assert not r.whole and LARGE[5 * SLICE :].startswith(r.body)
    assert l.outcome("fault") == 1
    get_range(l, 5 * SLICE, 6 * SLICE - 1, LARGE)


@pytest.mark.parametrize("how", ["tag", "prefix", "host"])
def test_other_purges_take_slices_too(origin, larder, how):
    f = File(LARGE, **{"Cache-Tag": "films"})
    l = serve(origin, larder, f, SLICED)
    for first in (0, 1_000_000):
        get_range(l, first, first + 99, LARGE)
    asked = {"tag": {"tag": "films"}, "prefix": {"prefix": "http://site.test/"}, "host": {"host": "site.test"}}[how]
    status, text, _ = l.admin("POST", "/purge", asked)
    assert status == 200, text
    assert l.stats()["memory"]["objects"] == 0
    f.becomes(LARGER, '"2"')
    get_range(l, 0, 99, LARGER)


# ---- slices: pace and size -----------------------------------------------------------------------------------------------------


def test_a_whole_too_large_to_be_stored_goes_out_in_slices(origin, larder):
    f = File(body_of(24 * MIB))
    l = serve(origin, larder, f, {"memory": "128MiB", "max_object": "16MiB"})
    r = ask(l, "/a")
    assert (r.status, r.body) == (200, f.body) and l.slices_fetched == 24
    r = ask(l, "/a")
    assert (r.told, r.body) == (HIT, f.body) and l.slices_fetched == 24


def test_no_more_than_one_slice_ahead(origin, larder):
    """The origin gives no more than the client takes and the one behind it."""
    f = File(body_of(24 * MIB))
    l = serve(origin, larder, f, {"memory": "128MiB", "max_object": "16MiB"})
    with Client(l.address, receive_buffer=4096) as c:
        c.request("/a")
        head = c.head()
        fetched = until_quiet(lambda: l.slices_fetched)
        assert fetched < 12  # what the sockets hold of it, and one
        assert c.rest(head).body == f.body
    assert l.slices_fetched == 24


def test_a_client_that_leaves_a_sliced_file(origin, larder):
    f = File(body_of(24 * MIB))
    l = serve(origin, larder, f, {"memory": "128MiB", "max_object": "16MiB"})
    c = Client(l.address, receive_buffer=4096)
    c.request("/a")
    c.head()
    c.reset()
    l.wait_for(exchanges_live=0, fills_live=0)
    assert l.slices_fetched < 24


@pytest.mark.concurrency
def test_many_clients_over_a_file_that_changes(origin, larder):
    """Whatever happens, nobody gets bytes of two versions as one answer."""
    bodies = [body_of(2 * MIB + n)[n:] for n in range(6)]
    f = File(bodies[0], '"0"')
    l = serve(origin, larder, f, SLICED, workers=4)
    wrong, done = [], threading.Event()

    def some(seed):
        turn = 0
        while not done.is_set():
            turn += 1
            first = (seed * 7919 + turn * 104729) % (MIB + MIB // 2)
            last = first + 200_000
            with Client(l.address) as c:
                r = c.get("/a", {"Range": f"bytes={first}-{last}"})
                tag = int(r.get("ETag", '"9"').strip('"'))
                if r.status == 206 and r.whole and r.body != bodies[tag][first : last + 1]:
                    wrong.append((tag, first))
                if r.status not in (206, 502):
                    wrong.append(r.status)

    threads = [threading.Thread(target=some, args=(seed,)) for seed in range(6)]
    for t in threads:
        t.start()
    for n in range(1, 6):
        before = l.slices_fetched
        until(lambda: l.slices_fetched >= before + 8 or l.exchanges > 3000, "some more")
        f.becomes(bodies[n], f'"{n}"')
        l.purge("http://site.test/a") if n % 2 else None
    done.set()
    for t in threads:
        t.join()
    assert wrong == []


def test_only_if_cached_asks_nobody_for_slices(origin, larder):
    """RFC 9111 5.2.1.7."""
    f = File(LARGE)
    l = serve(origin, larder, f, {**SLICED, "honour_client_directives": True})
    get_range(l, 0, 99, LARGE)
    count = len(f.asked)
    only = {"Cache-Control": "only-if-cached"}
    assert get_range(l, 10, 19, LARGE, **only).told == HIT
    r = ask(l, "/a", {"Range": "bytes=10-1000000", **only})
    assert r.status == 504 and r.told == ("local", "only-if-cached") and len(f.asked) == count


def test_slices_that_never_fit_what_the_file_says_of_itself(origin, larder):
    """A tag on the whole and another on each slice: the client's own request goes through, and what it brings is a part."""
    f = File(LARGE)
    l = serve(origin, larder, f, SLICED)

    def other_tag(wire):
        f.tell(wire) if not wire.request.get("If-Range") else reply(LARGE[:SLICE], {**FRESH, "ETag": '"other"', "Content-Range": f"bytes 0-{SLICE - 1}/{len(LARGE)}"}, 206)(wire)

    f.turns = [other_tag] * 20
    r = get_range(l, 0, 99, LARGE)
    assert r.told == ("miss", "range") and l.slices_fetched == 0
    assert get_range(l, 0, 99, LARGE).told == HIT


def test_rules_see_the_whole_of_a_sliced_file(origin, larder):
    rule = {"match": {"status": 200}, "response": {"set": {"X-Rule": "seen"}}}
    f = File(LARGE)
    origin.on("/a", f)
    l = larder(origin, cache=SLICED, sites=[{"hosts": ["*"], "origin": "app", "rules": [rule]}])
    for _ in range(2):
        assert get_range(l, 0, 99, LARGE).get("X-Rule") == "seen"


def test_a_whole_larger_than_the_store_goes_through(origin, larder):
    """Its slices would push everything else out. A part of it comes in slices all the same."""
    f = File(body_of(24 * MIB))
    l = serve(origin, larder, f, {"memory": "32MiB", "max_object": "4MiB"})
    for _ in range(2):
        r = ask(l, "/a")
        assert r.told[0] == "pass" and r.body == f.body
        get_range(l, 9 * MIB, 9 * MIB + 99, f.body)
    assert l.slices_fetched == 1


def test_a_slice_is_fetched_to_its_end(origin, larder):
    """Although its client wanted only the beginning of it and has gone."""
    go = threading.Event()
    f = File(body_of(24 * MIB))

    def slow(wire):
        span = {"Content-Range": f"bytes 0-{MIB - 1}/{24 * MIB}", "Content-Length": MIB}
        wire.head(206, {**FRESH, "ETag": '"1"', **span}).send(f.body[:1000])
        wire.wait(go).send(f.body[1000:MIB])

    f.turns = [f.tell, slow]
    l = serve(origin, larder, f, {"memory": "128MiB"})
    get_range(l, 0, 99, f.body)
    l.wait_for(exchanges_live=0, fills_live=1)
    go.set()
    l.wait_for(fills_live=0)
    assert get_range(l, MIB - 100, MIB - 1, f.body).told == HIT and l.slices_fetched == 1
