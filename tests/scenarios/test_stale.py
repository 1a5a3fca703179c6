"""stale-if-error (RFC 5861, 4) and stale answers while there is no origin (RFC 9111, 4.2.4): an error never costs a usable object,
and what the origin forbids to serve stale is an error.
"""
import contextlib
import socket
import threading

import pytest

from harness.client import Client
from harness.origin import reply
from harness.told import ask, store
from harness.tools import body_of

ETAG = {"ETag": '"1"'}
LEAVE = {**ETAG, "Cache-Control": "max-age=10, stale-if-error=600"}
BARE = {**ETAG, "Cache-Control": "max-age=10"}
DAY_S = 86400


def garbage(wire):
    wire.send("SSH-2.0-OpenSSH_9.2\r\n\r\n").close()


def silent(wire):
    wire.until_left()


# what the origin does, the reason, and the status of the error when nothing stale may be given
UNREACHABLE = {
    "refuses": (None, "origin-refused", 502),
    "closes": (lambda wire: wire.close(), "origin-closed", 502),
    "resets": (lambda wire: wire.reset(), "origin-closed", 502),
    "dies in its head": (lambda wire: wire.send("HTTP/1.1 200 OK\r\nContent-Le").close(), "origin-cut", 502),
    "says no HTTP": (garbage, "origin-malformed", 502),
    "says nothing": (silent, "origin-slow", 504),
}
ERRORS = {str(status): (reply("trouble", status=status), "origin-error", status) for status in (500, 502, 503, 504)}
ERRORS["503, said to be fresh"] = (reply("trouble", {"Cache-Control": "max-age=60"}, 503), "origin-error", 503)
FAULTS = {**UNREACHABLE, **ERRORS}
IN_TURN = {f: FAULTS[f] for f in sorted(FAULTS, key=lambda f: f == "refuses")}  # the origin is gone after that one


def start(larder, origin, **more):
    return larder(origin, origin_items={"first_byte_timeout": "2s"}, **more)


def fall_in_trouble(l, origin, clock, fault, fields=BARE, target="/a"):
    """A page that is stored and stale, and an origin that is in trouble from now on."""
    story = FAULTS[fault][0]
    origin.on(target, reply("old", fields), story or reply("never asked"))
    store(l, target)
    clock.advance(15)
    if story is None:
        origin.close()


def stale_in_front_of(origin, larder, clock, fault, fields=BARE, **more):
    l = start(larder, origin, **more)
    fall_in_trouble(l, origin, clock, fault, fields)
    return l


def ask_in_trouble(l, clock, fault, target="/a", fields=None, method="GET"):
    """One request, with the clock moved for an origin that says nothing."""
    if FAULTS[fault][0] is not silent:
        return ask(l, target, fields, method=method)
    before = l.counted()
    with Client(l.address) as c:
        c.request(target, fields, method)
        l.wait_for(exchanges=before["counters"]["exchanges"] + 1)
        l.within(2.5, lambda: l.exchanges_live == 0, "the origin's time is over")
        r = c.reply(method)
    after = l.stats()
    r.told = tuple(next(w for w in after[t] if after[t][w] != before[t][w]) for t in ("outcomes", "reasons"))
    return r


LEAVES = {"directive": (LEAVE, {}), "configuration": (BARE, {"stale_if_error": "10m", "stale_if_unreachable": "0s"})}


@pytest.mark.parametrize("fields,cache", LEAVES.values(), ids=LEAVES)
def test_the_old_page_stands_in(origin, origins, larder, clock, fields, cache):
    l = start(larder, origin, cache=cache)
    for number, (fault, (_, reason, status)) in enumerate(IN_TURN.items()):
        target = f"/{number}"
        fall_in_trouble(l, origin, clock, fault, fields, target)
        r = ask_in_trouble(l, clock, fault, target)
        assert (r.status, r.body, r.told) == (200, b"old", ("stale", reason)), fault
        said = r.cache_status
        assert said["fwd"] == "stale" and said["detail"] == reason and "hit" not in said and "stored" not in said, fault
        assert said.get("fwd-status") == (str(status) if fault in ERRORS else None), fault
        assert int(r.get("Age")) >= 15 and l.stale_served == number + 1, fault
        assert l.stats()["memory"]["objects"] == number + 1, fault  # neither evicted nor replaced
        back = origins(port=origin.port) if fault == "refuses" else origin
        back.on(target, reply("", fields, 304))
        clock.advance(3)
        r = ask(l, target)
        assert (r.body, r.told) == (b"old", ("revalidated", "validated")) and back.last().get("If-None-Match") == '"1"', fault
        assert ask(l, target).told == ("hit", "fresh"), fault


def test_no_answer_at_all_needs_nobodys_leave(origin, larder, clock):
    """RFC 9111 4.2.4: "unless it is disconnected"."""
    l = start(larder, origin)
    for number, fault in enumerate(f for f in IN_TURN if f in UNREACHABLE):
        fall_in_trouble(l, origin, clock, fault, BARE, f"/{number}")
        r = ask_in_trouble(l, clock, fault, f"/{number}")
        assert (r.status, r.body, r.told) == (200, b"old", ("stale", FAULTS[fault][1])), fault


def test_an_error_answer_needs_leave(origin, larder, clock):
    """Without it the error goes on to the client, and what is stored stays to be asked about."""
    l = start(larder, origin)
    for number, fault in enumerate(ERRORS):
        target = f"/{number}"
        fall_in_trouble(l, origin, clock, fault, BARE, target)
        r = ask(l, target)
        assert (r.status, r.body) == (FAULTS[fault][2], b"trouble") and r.told[0] not in ("stale", "hit"), fault
        if "fresh" in fault:
            continue  # it may be kept itself
        origin.on(target, reply("", BARE, 304))
        clock.advance(61)
        assert (ask(l, target).body, origin.last().get("If-None-Match")) == (b"old", '"1"'), fault


@pytest.mark.parametrize("window,default", [("1h", 3600), (None, DAY_S)])
def test_it_ends(origin, larder, clock, window, default):
    l = stale_in_front_of(origin, larder, clock, "refuses", cache={"stale_if_unreachable": window} if window else {})
    clock.advance(default - 20)
    assert ask(l, "/a").told == ("stale", "origin-refused")
    clock.advance(60)
    r = ask(l, "/a")
    assert (r.status, r.told) == (502, ("fault", "origin-refused")) and r.cache_status["fwd"] == "stale"


def test_the_window_of_the_answer_ends(origin, larder, clock):
    l = stale_in_front_of(origin, larder, clock, "503", {**ETAG, "Cache-Control": "max-age=10, stale-if-error=60"})
    assert ask(l, "/a").told == ("stale", "origin-error")
    clock.advance(50)
    assert ask(l, "/a").told == ("stale", "origin-error")
    clock.advance(20)
    assert ask(l, "/a").status == 503


def test_switched_off_it_is_an_error(origin, larder, clock):
    l = stale_in_front_of(origin, larder, clock, "closes", cache={"stale_if_unreachable": "0s"})
    assert ask(l, "/a").status == 502


FORBIDDING = ["max-age=10, must-revalidate", "max-age=10, proxy-revalidate", "s-maxage=10", "max-age=10, no-cache"]


@pytest.mark.parametrize("cache", [{}, {"stale_if_error": "10m"}], ids=["directive", "configuration"])
def test_what_may_not_be_served_stale_is_an_error(origin, origins, larder, clock, cache):
    """RFC 9111 5.2.2.2: an error rather than the stale answer; with an answer's bytes, not a cut connection."""
    l, number = start(larder, origin, cache=cache), 0
    for control in FORBIDDING:
        fields = {**ETAG, "Cache-Control": control + ("" if cache else ", stale-if-error=600")}
        for fault in ("resets", "says nothing", "503", "refuses"):
            number += 1
            fall_in_trouble(l, origin, clock, fault, fields, f"/{number}")
            r = ask_in_trouble(l, clock, fault, f"/{number}")
            assert r.status == FAULTS[fault][2] and r.body != b"old" and r.cache_status["fwd"] == "stale", (control, fault)
            if fault != "503":
                assert r.told == ("fault", FAULTS[fault][1]), (control, fault)
        origin = origins(port=origin.port)
        clock.advance(5)
    assert l.outcome("stale") == 0


@pytest.mark.concurrency
@pytest.mark.parametrize("fault", ["503", "says no HTTP", "dies in its head"])
def test_those_who_wait_for_the_same_fill_get_it_too(origin, larder, clock, fault):
    failing = threading.Event()
    origin.on("/a", reply("old", LEAVE), lambda wire: (wire.wait(failing), FAULTS[fault][0](wire)))
    l = larder(origin, workers=4)
    store(l)
    clock.advance(15)
    clients = [l.client() for _ in range(30)]
    for c in clients:
        c.request("/a")
    l.wait_for(fill_joined=29)
    failing.set()
    for c in clients:
        r = c.reply()
        assert r.whole and (r.status, r.body) == (200, b"old") and r.cache_status["fwd"] == "stale"
    assert l.outcome("stale") == 30 and l.reason(FAULTS[fault][1]) == 30


def test_a_failure_is_not_asked_for_again_at_once(origin, larder, clock):
    """The pauses of a failed refresh hold for those that a client waited for, too."""
    origin.on("/a", reply("old", LEAVE), reply("trouble", status=503))
    l = larder(origin)
    store(l)
    clock.advance(15)
    for pause in (1.2, 2.2, 0):
        assert ask(l, "/a").told == ("stale", "origin-error")
        clock.advance(pause)
    for _ in range(5):
        r = ask(l, "/a")
        assert (r.body, r.told) == (b"old", ("stale", "refresh-failed"))
        assert r.cache_status["hit"] is True and int(r.cache_status["ttl"]) < 0
    assert origin.count() == 4


@pytest.mark.parametrize("fault", ["resets", "503"])
@pytest.mark.parametrize("method,asked,status,body", [("HEAD", {}, 200, b""), ("GET", {"If-None-Match": '"1"'}, 304, b""),
                                                      ("GET", {"Range": "bytes=1-"}, 206, b"ld")])
def test_conditions_ranges_and_head_are_answered_from_what_stands_in(origin, larder, clock, fault, method, asked, status, body):
    l = stale_in_front_of(origin, larder, clock, fault, LEAVE)
    r = ask(l, "/a", asked, method=method)
    assert (r.status, r.body, r.told) == (status, body, ("stale", FAULTS[fault][1]))


def test_other_errors_are_answers(origin, larder, clock):
    """RFC 5861 4 names 500, 502, 503 and 504 alone; all others say what is there now."""
    l = larder(origin)
    for status in (403, 404, 410, 429, 501):
        origin.on(f"/{status}", reply("old", LEAVE), reply("no", status=status))
        store(l, f"/{status}")
        clock.advance(15)
        for _ in range(2):
            r = ask(l, f"/{status}")
            assert (r.status, r.body) == (status, b"no")


def test_a_body_cut_in_the_middle_cannot_be_undone(origin, larder, clock):
    """The head is out; the connection is cut, and the old page stands in for the next one."""
    page = body_of(300_000)

    def cut(wire):
        wire.head(200, {**LEAVE, "ETag": '"2"', "Content-Length": len(page)}).send(page[:100_000]).reset()

    origin.on("/a", reply("old", LEAVE), cut, reply("", LEAVE, 304))
    l = larder(origin)
    store(l)
    clock.advance(15)
    with Client(l.address) as c:
        assert not c.get("/a").whole
    clock.advance(3)
    r = ask(l, "/a")
    assert r.body == b"old" and r.told[0] in ("stale", "revalidated")


def test_while_a_refresh_is_allowed_behind_nobody_waits_for_the_error(origin, larder, clock):
    fields = {**ETAG, "Cache-Control": "max-age=10, stale-while-revalidate=30, stale-if-error=600"}
    origin.on("/a", reply("old", fields), reply("trouble", status=503))
    l = larder(origin)
    store(l)
    clock.advance(15)
    assert ask(l, "/a").told == ("stale", "refreshing")
    l.wait_for(refresh_failed=1)
    clock.advance(40)
    assert ask(l, "/a").told == ("stale", "origin-error")


@contextlib.contextmanager
def full_queue(port):
    """A listener that takes no connection more."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(0)
        with contextlib.suppress(TimeoutError):
            while True:
                s = stack.enter_context(socket.socket())
                s.settimeout(0.3)
                s.connect(("127.0.0.1", port))
        yield


def test_no_connection_in_time(origin, larder, clock):
    origin.on("/a", reply("old", LEAVE))
    l = larder(origin, origin_items={"connect_timeout": "2s"})
    store(l)
    clock.advance(15)
    origin.close()
    with full_queue(origin.port), Client(l.address) as c:
        c.request("/a")
        l.wait_for(exchanges=2)
        l.within(2.5, lambda: l.exchanges_live == 0, "the time for a connection is over")
        r = c.reply()
    assert (r.status, r.body) == (200, b"old") and r.cache_status["detail"] == "origin-connect-slow"
    assert l.reason("origin-connect-slow") == 1
