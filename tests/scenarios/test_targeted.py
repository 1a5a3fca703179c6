"""Which field speaks to this cache: targeted ones (RFC 9213), then Surrogate-Control, then Cache-Control and Expires."""
import pytest

from harness.origin import reply
from harness.told import ask, store

HIT = ("hit", "fresh")
NOT_STORED = 0


def assert_lifetime(l, target, seconds, what):
    """By what Larder says of the second answer."""
    ask(l, target)
    r = ask(l, target)
    said = int(r.cache_status["ttl"]) if r.told == HIT else NOT_STORED
    assert seconds - 5 <= said <= seconds and (said == 0) == (seconds == 0), (what, said)


# fields of the answer, and for how long it is fresh; numbers are seconds from now
TARGETED = [
    ("longer than Cache-Control", {"CDN-Cache-Control": "max-age=600", "Cache-Control": "max-age=10"}, 600),
    ("shorter than Cache-Control", {"CDN-Cache-Control": "max-age=10", "Cache-Control": "max-age=600"}, 10),
    ("over no-store", {"CDN-Cache-Control": "max-age=600", "Cache-Control": "no-store"}, 600),
    ("over private", {"CDN-Cache-Control": "max-age=600", "Cache-Control": "private"}, 600),
    ("over no-cache", {"CDN-Cache-Control": "max-age=600", "Cache-Control": "no-cache"}, 600),
    ("over s-maxage", {"CDN-Cache-Control": "max-age=600", "Cache-Control": "s-maxage=10"}, 600),
    ("no-store", {"CDN-Cache-Control": "no-store", "Cache-Control": "max-age=600"}, 0),
    ("private", {"CDN-Cache-Control": "private, max-age=600", "Cache-Control": "max-age=600"}, 0),
    ("s-maxage", {"CDN-Cache-Control": "s-maxage=600, max-age=10", "Cache-Control": "max-age=10"}, 600),
    ("over Expires", {"CDN-Cache-Control": "max-age=600", "Expires": 10}, 600),
    ("Expires does not count", {"CDN-Cache-Control": "must-revalidate", "Expires": 600}, 0),
    ("max-age=0", {"CDN-Cache-Control": "max-age=0", "Cache-Control": "max-age=600"}, 0),
    # structured fields (RFC 8941 3.2, 4.2.2): what does not read counts as absent
    ("empty", {"CDN-Cache-Control": "", "Cache-Control": "max-age=600"}, 600),
    ("an upper case key", {"CDN-Cache-Control": "Max-Age=10", "Cache-Control": "max-age=600"}, 600),
    ("a comma too many", {"CDN-Cache-Control": "max-age=10,", "Cache-Control": "max-age=600"}, 600),
    ("a sign that is none", {"CDN-Cache-Control": "max-age=10, &", "Cache-Control": "max-age=600"}, 600),
    ("a semicolon for a comma", {"CDN-Cache-Control": "max-age=10; no-store", "Cache-Control": "max-age=600"}, 10),
    ("a space around =", {"CDN-Cache-Control": "max-age = 10", "Cache-Control": "max-age=600"}, 600),
    ("an open quote", {"CDN-Cache-Control": 'max-age=10, x="', "Cache-Control": "max-age=600"}, 600),
    ("parameters", {"CDN-Cache-Control": "max-age=600;a=b;c", "Cache-Control": "max-age=10"}, 600),
    ("unknown directives", {"CDN-Cache-Control": 'max-age=600, foo="bar", baz=(1 2)', "Cache-Control": "max-age=10"}, 600),
    ("of two the last", {"CDN-Cache-Control": "max-age=10, max-age=600", "Cache-Control": "max-age=10"}, 600),
]


def test_cdn_cache_control(origin, larder, clock):
    l = larder(origin)
    for number, (what, fields, seconds) in enumerate(TARGETED):
        origin.on(f"/{number}", reply("page", {n: clock.date(v) if isinstance(v, int) else v for n, v in fields.items()}))
        assert_lifetime(l, f"/{number}", seconds, what)


def test_several_lines_are_one_dictionary(origin, larder):
    origin.on("/a", reply("page", [("CDN-Cache-Control", "foo"), ("Cache-Control", "max-age=10"), ("CDN-Cache-Control", "max-age=600")]))
    assert_lifetime(larder(origin), "/a", 600, "lines")


def test_it_brings_its_own_windows(origin, larder, clock):
    fields = {"CDN-Cache-Control": "max-age=10, stale-while-revalidate=600", "Cache-Control": "max-age=10, must-revalidate", "ETag": '"1"'}
    origin.on("/a", reply("page", fields), reply("", fields, 304))
    l = larder(origin)
    store(l)
    clock.advance(15)
    assert ask(l, "/a").told == ("stale", "refreshing")
    l.wait_for(refresh_done=1, fills_live=0)


def test_clients_get_it(origin, larder):
    """RFC 9213 3.1: caches behind us may be meant, too."""
    origin.on("/a", reply("page", {"CDN-Cache-Control": "max-age=600, x", "Cache-Control": "no-store"}))
    l = larder(origin)
    for _ in range(2):
        r = ask(l, "/a")
        assert (r.get("CDN-Cache-Control"), r.get("Cache-Control")) == ("max-age=600, x", "no-store")
    assert r.told == HIT


OWN = ["Larder-Cache-Control", "CDN-Cache-Control"]
CHOSEN = [
    (OWN, {"CDN-Cache-Control": "max-age=20", "Larder-Cache-Control": "max-age=600", "Cache-Control": "max-age=10"}, 600),
    (OWN, {"CDN-Cache-Control": "max-age=600", "Cache-Control": "max-age=10"}, 600),
    (OWN, {"Larder-Cache-Control": "max-age=", "CDN-Cache-Control": "max-age=600"}, 600),
    (OWN[:1], {"CDN-Cache-Control": "max-age=20", "Cache-Control": "max-age=600"}, 600),
    ([], {"CDN-Cache-Control": "max-age=20", "Cache-Control": "max-age=600"}, 600),
]


@pytest.mark.parametrize("names,fields,seconds", CHOSEN)
def test_the_operator_says_which_fields_count(origin, larder, names, fields, seconds):
    origin.on("/a", reply("page", fields))
    assert_lifetime(larder(origin, cache={"targeted_fields": names}), "/a", seconds, names)


SURROGATES = [
    ({"Surrogate-Control": "max-age=600", "Cache-Control": "max-age=10"}, 600),
    ({"Surrogate-Control": "max-age=600", "Cache-Control": "private, no-store"}, 600),
    ({"Surrogate-Control": "no-store", "Cache-Control": "max-age=600"}, 0),
    ({"Surrogate-Control": 'content="ESI/1.0", max-age=600', "Cache-Control": "max-age=10"}, 600),
    ({"Surrogate-Control": "max-age=20", "CDN-Cache-Control": "max-age=600"}, 600),
    ({"Surrogate-Control": "max-age=600", "Expires": "0"}, 600),
]


def test_surrogate_control_counts_and_stays_here(origin, larder):
    l = larder(origin)
    for number, (fields, seconds) in enumerate(SURROGATES):
        origin.on(f"/{number}", reply("page", fields))
        for _ in range(2):
            r = ask(l, f"/{number}")
            assert "Surrogate-Control" not in r.fields and r.get("Cache-Control") == fields.get("Cache-Control"), fields
        assert_lifetime(l, f"/{number}", seconds, fields)


def test_surrogate_control_stays_here_on_answers_that_pass_too(origin, larder):
    origin.on("/a", reply("page", {"Surrogate-Control": "max-age=600"}))
    r = ask(larder(origin), "/a", method="POST", body=b"x")
    assert r.told == ("pass", "method") and "Surrogate-Control" not in r.fields
