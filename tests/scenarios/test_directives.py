"""What Cache-Control asks for: requests' directives, which count only when the operator says so, and of the answers' directives
those that are about single fields, users and statuses (RFC 9111 5.2).
"""
import pytest

from harness.origin import reply
from harness.told import ask, store

FRESH = {"Cache-Control": "max-age=60", "ETag": '"1"'}
HONOUR = {"honour_client_directives": True}
HIT, ASKED, OLD, TAKEN = ("hit", "fresh"), ("miss", "client-asked"), ("miss", "expired"), ("stale", "max-stale")

# RFC 9111 5.2.1: what is stored, its age, what the client says, and what then happens
HONOURED = [
    ("5.2.1.4 no-cache", "max-age=60", 10, {"Cache-Control": "no-cache"}, ASKED),
    ("5.2.1.4 NO-CACHE, in any case", "max-age=60", 10, {"Cache-Control": "x, No-Cache"}, ASKED),
    ("5.2.1.1 max-age=0", "max-age=60", 10, {"Cache-Control": "max-age=0"}, ASKED),
    ("5.2.1.1 max-age below the age", "max-age=60", 20, {"Cache-Control": "max-age=10"}, ASKED),
    ("5.2.1.1 max-age above the age", "max-age=60", 10, {"Cache-Control": "max-age=40"}, HIT),
    ("5.2.1.3 min-fresh that it has", "max-age=60", 10, {"Cache-Control": "min-fresh=30"}, HIT),
    ("5.2.1.3 min-fresh that it has not", "max-age=60", 10, {"Cache-Control": "min-fresh=55"}, ASKED),
    ("5.2.1.2 max-stale", "max-age=60", 1000, {"Cache-Control": "max-stale"}, TAKEN),
    ("5.2.1.2 max-stale enough", "max-age=60", 70, {"Cache-Control": "max-stale=60"}, TAKEN),
    ("5.2.1.2 max-stale not enough", "max-age=60", 90, {"Cache-Control": "max-stale=10"}, OLD),
    ("5.2.1.2 max-stale, fresh", "max-age=60", 10, {"Cache-Control": "max-stale=10"}, HIT),
    ("5.2.2.2 max-stale, but must-revalidate", "max-age=60, must-revalidate", 70, {"Cache-Control": "max-stale"}, OLD),
    ("5.2.2.8 max-stale, but proxy-revalidate", "max-age=60, proxy-revalidate", 70, {"Cache-Control": "max-stale"}, OLD),
    ("5.2.2.10 max-stale, but s-maxage", "s-maxage=60", 70, {"Cache-Control": "max-stale"}, OLD),
    ("5.2.2.4 max-stale, but no-cache", "max-age=60, no-cache", 10, {"Cache-Control": "max-stale"}, ("miss", "must-ask")),
    ("5.2.1.5 no-store says nothing about what is stored", "max-age=60", 10, {"Cache-Control": "no-store"}, HIT),
    ("5.4 Pragma: no-cache", "max-age=60", 10, {"Pragma": "no-cache"}, ASKED),
    ("5.4 Pragma beside Cache-Control", "max-age=60", 10, {"Pragma": "no-cache", "Cache-Control": "max-age=40"}, HIT),
    ("5.2.3 unknown directives", "max-age=60", 10, {"Cache-Control": "nothing-to-see-here, x=\"no-cache\"", "Pragma": "foo"}, HIT),
    ("5.2.1.7 only-if-cached, fresh", "max-age=60", 10, {"Cache-Control": "only-if-cached"}, HIT),
    ("5.2.1.7 only-if-cached with max-stale", "max-age=60", 70, {"Cache-Control": "only-if-cached, max-stale"}, TAKEN),
]


def answers(origin, l, clock):
    """Each row with a page of its own, stored and grown old: (row, answer)."""
    for number, row in enumerate(HONOURED):
        _, control, age, asked, _ = row
        target, fields = f"/{number}", {"Cache-Control": control, "ETag": '"1"'}
        origin.on(target, reply("old", fields), reply("new", {**fields, "ETag": '"2"'}))
        store(l, target)
        clock.advance(age)
        yield row, ask(l, target, asked)


def test_honoured(origin, larder, clock):
    for (name, _, _, _, told), r in answers(origin, larder(origin, cache=HONOUR), clock):
        is_old = told[0] in ("hit", "stale")
        assert r.told == told and r.body == (b"old" if is_old else b"new"), name
        if told == TAKEN:
            assert r.cache_status["hit"] is True and int(r.cache_status["ttl"]) < 0, name
        if told == ASKED:
            assert r.cache_status["fwd"] == "request" and origin.last().get("If-None-Match") == '"1"', name


def test_ignored_by_default(origin, larder, clock):
    for (name, control, age, _, _), r in answers(origin, larder(origin), clock):
        is_fresh = age < 60 and "no-cache" not in control
        assert r.told == (HIT if is_fresh else ("miss", "must-ask" if "no-cache" in control else "expired")), name


def test_a_validated_answer_is_what_no_cache_asks_for(origin, larder):
    origin.on("/a", reply("page", FRESH), reply("", FRESH, 304))
    l = larder(origin, cache=HONOUR)
    store(l)
    r = ask(l, "/a", {"Cache-Control": "no-cache"})
    assert r.body == b"page" and r.told[0] == "revalidated" and origin.last().get("If-None-Match") == '"1"'
    assert r.cache_status["fwd-status"] == "304"


ABSENT, STALE, VARIANT = "nothing stored", "stale", "another variant"


@pytest.mark.parametrize("what", [ABSENT, STALE, VARIANT])
def test_only_if_cached_never_asks_the_origin(origin, larder, clock, what):
    origin.on("/a", reply("page", {**FRESH, "Vary": "X-Kind"}))
    l = larder(origin, cache=HONOUR)
    if what != ABSENT:
        store(l)
    if what == STALE:
        clock.advance(61)
    asked = origin.count()
    r = ask(l, "/a", {"Cache-Control": "only-if-cached", **({"X-Kind": "1"} if what == VARIANT else {})})
    assert r.status == 504 and r.told[1] == "only-if-cached" and origin.count() == asked
    assert "hit" not in r.cache_status and "fwd" not in r.cache_status
    assert ask(l, "/a", {"X-Kind": "2"}).status == 200  # nobody else is concerned


def test_only_if_cached_is_the_clients_wish_and_ignored_by_default(origin, larder):
    origin.on("/a", reply("page", FRESH))
    l = larder(origin)
    assert ask(l, "/a", {"Cache-Control": "only-if-cached"}).status == 200


def test_no_store_of_a_request(origin, larder):
    """RFC 9111 5.2.1.5: what it brings is not stored; what is stored already may be used."""
    origin.on("/a", reply("page", FRESH))
    l = larder(origin, cache=HONOUR)
    for number in range(2):
        r = ask(l, "/a", {"Cache-Control": "no-store"})
        assert r.body == b"page" and "stored" not in r.cache_status and origin.count() == number + 1
    assert l.stats()["memory"]["objects"] == 0
    assert "stored" in ask(l, "/a").cache_status
    assert ask(l, "/a", {"Cache-Control": "no-store"}).told == HIT


@pytest.mark.parametrize("is_honoured", [True, False])
def test_stale_if_error_of_a_request(origin, larder, clock, is_honoured):
    """RFC 5861 4: a client may bring its own leave."""
    origin.on("/a", reply("old", FRESH), reply("trouble", status=503))
    l = larder(origin, cache={"honour_client_directives": is_honoured})
    store(l)
    clock.advance(70)
    r = ask(l, "/a", {"Cache-Control": "stale-if-error=600"})
    assert (r.status, r.body) == ((200, b"old") if is_honoured else (503, b"trouble"))


# ---- answers -----------------------------------------------------------------------------------------------------------

# RFC 9111 5.2.2.4, 5.2.2.7: the directive, and the fields that only the one who asked gets
QUALIFIED = [
    ('max-age=60, private="x-secret"', {"X-Secret"}),
    ('max-age=60, private="X-SECRET , x-other"', {"X-Secret", "X-Other"}),
    ('max-age=60, no-cache="x-secret"', {"X-Secret"}),
    ('max-age=60, no-cache="x-secret", private="x-other"', {"X-Secret", "X-Other"}),
    ('max-age=60, private="set-cookie"', {"Set-Cookie"}),
    ('max-age=60, no-cache="Set-Cookie"', {"Set-Cookie"}),
    ('max-age=60, private="x-absent"', set()),
]


def test_named_fields_are_for_the_one_who_asked(origin, larder, clock):
    l = larder(origin)
    for number, (control, named) in enumerate(QUALIFIED):
        target, own = f"/{number}", {"X-Secret": "eva's", "X-Other": "eva's", "X-Open": "all's"}
        if "Set-Cookie" in named:
            own["Set-Cookie"] = "id=eva"
        fields = {"ETag": '"1"', "Cache-Control": control, **own}
        origin.on(target, reply("page", fields), reply("", fields, 304))
        r = store(l, target)
        assert {n for n in own if n in r.fields} == set(own), control
        for told in (HIT, ("revalidated", "validated"), HIT):  # a 304 may bring them again
            r = ask(l, target)
            assert r.told == told and r.body == b"page", control
            if told == HIT:
                assert {n for n in own if n in r.fields} == set(own) - named, control
                clock.advance(61)


def test_private_without_a_list_is_not_stored(origin, larder):
    l = larder(origin)
    for number, control in enumerate(["private", 'private=""', "private, max-age=60", 'max-age=60, private="x", private']):
        origin.on(f"/{number}", reply("page", {"Cache-Control": control, "ETag": '"1"'}))
        for _ in range(2):
            assert "stored" not in ask(l, f"/{number}").cache_status, control
    assert l.stats()["memory"]["objects"] == 0


def test_no_cache_without_a_list_is_always_asked_about(origin, larder):
    fields = {"Cache-Control": 'max-age=60, no-cache="x", no-cache', "ETag": '"1"'}
    origin.on("/a", reply("page", fields), reply("", fields, 304))
    l = larder(origin)
    store(l)
    assert ask(l, "/a").told == ("revalidated", "validated")


# the answer's fields, and whether it may be given to all when the operator shares cookies, says so, and at his risk
SHARED_COOKIES = [({"Cache-Control": "max-age=60"}, True), ({"Cache-Control": "s-maxage=60"}, True), ({"Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}, False),
                  ({"Cache-Control": "public", "Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}, False), ({"Cache-Control": "private, max-age=60"}, False)]


@pytest.mark.parametrize("dares", [False, True])
def test_cookies_are_shared_only_when_the_operator_dares(origin, larder, dares):
    l = larder(origin, cache={"unsafe_share_set_cookie": dares})
    for number, (fields, is_shared) in enumerate(SHARED_COOKIES):
        origin.on(f"/{number}", lambda wire, fields=fields: reply("page", {**fields, "Set-Cookie": f"id={wire.origin.count()}"})(wire))
        first, second = ask(l, f"/{number}"), ask(l, f"/{number}")
        is_hit = second.told == HIT
        assert is_hit == (is_shared and dares), fields
        assert (second.get("Set-Cookie") == first.get("Set-Cookie")) == is_hit, fields


MUST_UNDERSTAND = [(200, "must-understand, no-store, max-age=60", True), (200, "no-store, max-age=60", False), (404, "must-understand, no-store, max-age=60", True),
                   (299, "must-understand, no-store, max-age=60", False), (299, "must-understand, max-age=60", False), (299, "max-age=60", True)]


def test_must_understand(origin, larder):
    """RFC 9111 5.2.2.3."""
    l = larder(origin)
    for number, (status, control, is_stored) in enumerate(MUST_UNDERSTAND):
        origin.on(f"/{number}", reply("page", {"Cache-Control": control}, status))
        ask(l, f"/{number}")
        assert (ask(l, f"/{number}").told == HIT) == is_stored, (status, control)


VARY_ALL = [[("Vary", "*")], [("vary", " * ")], [("Vary", "Accept, *")], [("Vary", "*, Accept")], [("Vary", "Accept"), ("Vary", "*")], [("Vary", "*"), ("Vary", "*")],
            [("Vary", "Accept,,*")], [("Vary", "Accept,\t*")]]


def test_vary_on_everything_in_any_spelling(origin, larder):
    """RFC 9111 4.1."""
    l = larder(origin)
    for number, vary in enumerate(VARY_ALL):
        origin.on(f"/{number}", reply("page", [("Cache-Control", "max-age=60"), *vary]))
        for _ in range(3):
            assert ask(l, f"/{number}").told[0] == "pass", vary
        assert origin.count(f"/{number}") == 3


@pytest.mark.parametrize("is_first", [True, False])
def test_authorization(origin, larder, is_first):
    """RFC 9111 3.5: what says that it may be shared is, whoever came first."""
    l = larder(origin)
    eva = {"Authorization": "Basic eva"}
    for number, control in enumerate(["max-age=60, public", "s-maxage=60", "max-age=60, must-revalidate"]):
        origin.on(f"/{number}", reply("page", {"Cache-Control": control}))
        store(l, f"/{number}", eva if is_first else {})
        assert ask(l, f"/{number}", {} if is_first else eva).told == HIT, control


def test_what_an_answer_says_in_pragma_or_immutable_changes_nothing(origin, larder, clock):
    """RFC 9111 5.4, RFC 8246 2: immutable does not lengthen a lifetime."""
    origin.on("/a", reply("page", {"Cache-Control": "max-age=60, immutable", "Pragma": "no-cache"}))
    l = larder(origin)
    store(l)
    assert ask(l, "/a").told == HIT
    clock.advance(61)
    assert ask(l, "/a").told == ("miss", "expired")
