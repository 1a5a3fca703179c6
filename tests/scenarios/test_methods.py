"""Methods other than GET and HEAD: what is answered here, what is refused, what goes through (RFC 9110 9.3, 7.6.2); the public
PURGE; and interim answers, which are nobody's to keep (RFC 9110 15.2).
"""
import re

import pytest

from harness.client import Client
from harness.origin import reply
from harness.told import ask, store

FRESH = {"Cache-Control": "max-age=60"}
HIT, LOCAL, PASSED = ("hit", "fresh"), ("local", "answered"), ("pass", "method")


def test_options_of_the_server_is_answered_here(origin, larder):
    r = ask(larder(origin), "*", method="OPTIONS")
    assert r.status in (200, 204) and r.told == LOCAL and origin.count() == 0
    assert "GET" in r.get("Allow", "") and "hit" not in r.cache_status and "fwd" not in r.cache_status


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE"])
def test_max_forwards_counts_down(origin, larder, method):
    """RFC 9110 7.6.2; and none is made up (9.3.7)."""
    origin.on("/a", reply("of the origin"))
    l, huge = larder(origin), "99999999999999999999999"
    for received, sent in [("1", "0"), ("7", "6"), ("010", "9"), (None, None), (huge, None)]:
        r = ask(l, "/a", {"Max-Forwards": received} if received else {}, method=method)
        assert (r.body, r.told) == (b"of the origin", PASSED) and r.cache_status["fwd"] == "method"
        assert origin.last().method == method and len(origin.last().fields.all("Max-Forwards")) == (received is not None)
        if received == huge:
            assert 1 <= int(origin.last().get("Max-Forwards")) < int(huge)
        else:
            assert origin.last().get("Max-Forwards") == sent


def test_options_that_may_go_no_further_is_answered_here(origin, larder):
    l = larder(origin)
    for zero in ("0", "000"):
        r = ask(l, "/a", {"Max-Forwards": zero}, method="OPTIONS")
        assert r.status in (200, 204) and r.told == LOCAL and origin.count() == 0 and "Allow" in r.fields


SENSITIVE = {"Cookie": "id=eva", "Authorization": "Basic eva", "Proxy-Authorization": "Basic eva"}


def test_trace_that_may_go_no_further_is_shown_what_came(origin, larder):
    """RFC 9110 9.3.8: without what is likely to be secret."""
    r = ask(larder(origin), "/a?b=1", {"Max-Forwards": "0", "X-Own": "yes", "Via": "1.1 before", **SENSITIVE}, method="TRACE")
    assert (r.status, r.told) == (200, LOCAL) and r.get("Content-Type") == "message/http" and origin.count() == 0
    line, *fields = r.body.decode().split("\r\n")
    assert line == "TRACE /a?b=1 HTTP/1.1"
    shown = {f.partition(":")[0].lower(): f.partition(":")[2].strip() for f in fields if f}
    assert shown["x-own"] == "yes" and shown["via"] == "1.1 before" and shown["host"] == "site.test" and shown["max-forwards"] == "0"
    assert not {n.lower() for n in SENSITIVE} & shown.keys() and "eva" not in r.body.decode()
    assert "no-store" in r.get("Cache-Control", "no-store")


def test_the_answer_to_trace_and_options_is_never_stored(origin, larder):
    for method in ("OPTIONS", "TRACE"):
        origin.on("/a", reply("of the method", FRESH), reply("of GET", FRESH))
        l = larder(origin)
        ask(l, "/a", method=method)
        assert ask(l, "/a").body == b"of GET"


def test_max_forwards_of_other_methods_is_none_of_our_business(origin, larder):
    origin.on("/a", reply("page", {"Cache-Control": "no-store"}))
    l = larder(origin)
    for method in ("GET", "POST"):
        assert ask(l, "/a", {"Max-Forwards": "0"}, method=method).body == b"page"
    assert origin.count() == 2


@pytest.mark.parametrize("target", ["site.test:443", "other.test:80"])
def test_connect_is_refused(origin, larder, target):
    l = larder(origin)
    with Client(l.address) as c:
        r = c.ask(target, {"Host": target}, method="CONNECT")
    assert r.status == 501 and origin.count() == 0
    assert l.outcome("refused") == 1


def test_unknown_methods_go_through_untouched(origin, larder):
    l = larder(origin)
    for method in ("M-SEARCH", "PROPFIND", "REPORT", "BREW", "get", "X"):
        target = f"/{method}"
        origin.on(target, reply("page", FRESH), reply("done", FRESH, 200), reply("new", FRESH))
        store(l, target)
        r = ask(l, target, {"X-Own": "yes"}, method=method, body=b"<query/>")
        assert (r.body, r.told) == (b"done", PASSED) and "stored" not in r.cache_status, method
        asked = origin.last()
        assert (asked.method, asked.body, asked.get("X-Own")) == (method, b"<query/>", "yes")
        r = ask(l, target)
        assert (r.body, r.told) == (b"new", ("miss", "absent")), method  # RFC 9111 4.4: what is not known to be safe changes things


def test_answers_to_unsafe_methods_are_not_stored_nor_taken_from_the_store(origin, larder):
    origin.on("/a", lambda wire: reply(f"answer {wire.origin.count()}", FRESH)(wire))
    l = larder(origin)
    for number, method in enumerate(3 * ["POST", "PUT", "PATCH", "DELETE"]):
        r = ask(l, "/a", method=method, body=b"x")
        assert (r.body, r.told) == (b"answer %d" % (number + 1), PASSED)
    assert l.stats()["memory"]["objects"] == 0


# ---- PURGE -------------------------------------------------------------------------------------------------------------

HERE = {"purge_from": ["127.0.0.1/32", "::1/128"]}


def purge(l, target, fields=None, **more):
    r = ask(l, target, fields, method="PURGE", **more)
    assert r.told[1] == "purge-asked" and "fwd" not in r.cache_status
    return r


def numbers_in(r):
    return [int(n) for n in re.findall(rb"\b\d+\b", r.body)]


def test_purge_from_where_it_is_allowed(origin, larder):
    origin.on("/a", lambda wire: reply(wire.request.get("X-Kind", ""), {**FRESH, "Vary": "X-Kind"})(wire)).on("/b", reply("b", FRESH))
    l = larder(origin, cache=HERE)
    for kind in "123":
        store(l, "/a", {"X-Kind": kind})
    store(l, "/a?x")
    store(l, "/b")
    r = purge(l, "/a")
    assert r.status == 200 and 3 in numbers_in(r)
    assert purge(l, "/a").status == 404
    assert ask(l, "/a", {"X-Kind": "1"}).told == ("miss", "absent")
    assert ask(l, "/b").told == ask(l, "/a?x").told == HIT
    assert purge(l, "/b", {"Host": "other.test"}).status == 404 and ask(l, "/b").told == HIT
    assert all(r.method == "GET" for r in origin.requests)
    l.wait_for(purged=3)


@pytest.mark.parametrize("cache", [{}, {"purge_from": ["10.0.0.0/8", "127.0.0.2/32"]}], ids=["nobody", "others"])
def test_nobody_else_may_purge(origin, larder, cache):
    origin.on("/a", reply("page", FRESH))
    l = larder(origin, cache=cache)
    store(l)
    for fields in ({}, {"X-Forwarded-For": "10.0.0.1", "Forwarded": "for=10.0.0.1"}):
        r = purge(l, "/a", fields)
        assert r.status == 405 and "PURGE" not in r.get("Allow", "GET")
    assert ask(l, "/a").told == HIT and origin.count() == 1 and l.purged == 0


def test_the_address_that_counts_is_the_connections(origin, larder):
    origin.on("/a", reply("page", FRESH))
    l = larder(origin, cache={"purge_from": ["127.0.0.2/32"]})
    for address, status in (("127.0.0.1", 405), ("127.0.0.2", 200), ("127.0.0.3", 405)):
        store(l)
        with Client(l.address, source=address) as c:
            assert c.ask("/a", method="PURGE").status == status
        l.purge("http://site.test/a")


# ---- interim answers -----------------------------------------------------------------------------------------------------


def with_interims(*statuses, fields=None, body="page"):
    def story(wire):
        for status in statuses:
            wire.head(status, {"Link": f"</{status}.css>", "X-Interim": str(status), "Cache-Control": "max-age=600"})
        reply(body, fields or FRESH)(wire)

    return story


@pytest.mark.parametrize("fields", [FRESH, {"Cache-Control": "no-store"}], ids=["stored", "passed"])
def test_interim_answers_are_forwarded_and_never_stored(origin, larder, fields):
    l = larder(origin)
    for number, statuses in enumerate([(103,), (102,), (103, 103), (102, 103), (100,), (199,)]):
        target = f"/{number}"
        origin.on(target, with_interims(*statuses, fields=fields))
        r = ask(l, target)
        passed_on = [s for s in statuses if s != 100]  # 100 is what a sender of Expect waits for, and nobody here does
        assert [i.status for i in r.interim if i.status != 100] == passed_on, statuses
        assert all(i.get("X-Interim") == str(i.status) for i in r.interim if i.status != 100), statuses
        assert (r.status, r.body) == (200, b"page") and "X-Interim" not in r.fields and "Link" not in r.fields, statuses
        if fields is FRESH:
            r = ask(l, target)
            assert r.told == HIT and r.interim == [] and "Link" not in r.fields and r.get("Cache-Control") == "max-age=60", statuses


def test_old_clients_get_no_interim_answers(origin, larder):
    """RFC 9110 15.2: HTTP/1.0 knows none."""
    origin.on("/a", with_interims(103, fields={"Cache-Control": "no-store"}))
    with Client(larder(origin).address) as c:
        r = c.ask("/a", {"Connection": "close"}, version="HTTP/1.0")
    assert r.status == 200 and r.interim == [] and r.body == b"page"


def test_an_interim_answer_before_a_304_is_not_the_304(origin, larder, clock):
    origin.on("/a", reply("page", {**FRESH, "ETag": '"1"'}), lambda wire: wire.head(103, {"X-Own": "interim"}).head(304, {**FRESH, "ETag": '"1"', "X-Own": "final"}))
    l = larder(origin)
    store(l)
    clock.advance(61)
    r = ask(l, "/a")
    assert (r.told, r.body, r.get("X-Own")) == (("revalidated", "validated"), b"page", "final")
