"""`larder explain` and POST /explain: what they say is what a request then ends in, and asking changes nothing."""
import json
import re
import shlex
import subprocess
import threading

import pytest

from harness.client import Client
from harness.origin import reply
from harness.told import ask
from harness.tools import BINARY, ROOT, until

FRESH = {"Cache-Control": "max-age=60"}
DAY = "Mon, 01 Jan 2024 00:00:00 GMT"


def with_etag(fields):
    """Answers 304 to whoever has it."""
    def story(wire):
        has_it = wire.request.get("If-None-Match") == '"1"'
        reply(b"" if has_it else b"page", {**fields, "ETag": '"1"'}, 304 if has_it else 200)(wire)

    return story


def explain(larder, target, fields=None, method="GET", **more):
    body = {"url": f"http://site.test{target}", "method": method, "headers": fields or {}, "client": "127.0.0.1", **more}
    if target == "*":  # it has no place in a URL
        body |= {"url": "*", "headers": {"Host": "site.test"}}
    status, text, _ = larder.admin("POST", "/explain", body)
    assert status == 200, text
    return json.loads(text)


def verdict(said):
    """(outcome, reason): after the origin was asked, when it was."""
    end = said.get("fetch", said["verdict"])
    end = end if "outcome" in end else said["verdict"]
    return end["outcome"], end["reason"]


def run(larder, *arguments):
    return subprocess.run([BINARY, "explain", "--admin", f"127.0.0.1:{larder.admin_port}", *arguments], capture_output=True,
                          text=True, timeout=60)


# ---- it agrees with what then happens ----------------------------------------------------------------------------------


class Town:
    """One Larder in front of one origin with pages of every fate."""

    def __init__(self, larder, origin, clock, **more):
        self.clock, self.origin = clock, origin
        pages = {
            "/fresh": reply("page", FRESH),
            "/checked": with_etag({"Cache-Control": "max-age=10"}),
            "/changed": reply("page", {"Cache-Control": "max-age=10"}),
            "/behind": with_etag({"Cache-Control": "max-age=10, stale-while-revalidate=600"}),
            "/no-cache": with_etag({"Cache-Control": "no-cache"}),
            "/no-store": reply("page", {"Cache-Control": "no-store"}),
            "/private": reply("page", {"Cache-Control": "private, max-age=60"}),
            "/cookie": reply("page", {**FRESH, "Set-Cookie": "id=1"}),
            "/nothing": reply("page"),
            "/language": reply("page", {**FRESH, "Vary": "Accept-Language"}),
            "/star": reply("page", {**FRESH, "Vary": "*"}),
            "/guess": reply("page", {"Last-Modified": DAY}),
            "/error": reply("broken", status=503),
            "/gone": reply("gone", FRESH, 410),
            "/form": reply("done"),
            "/large": reply(b"x" * 4000, FRESH),
            "/sie": [reply("page", {"Cache-Control": "max-age=10, stale-if-error=600"}), reply("broken", status=500)],
        }
        for path, story in pages.items():
            origin.on(path, *(story if isinstance(story, list) else [story]))
        self.larder = larder(origin, cache={"max_object": "2KiB", **more.pop("cache", {})}, **more)

    def get(self, *targets, **more):
        for target in targets:
            ask(self.larder, target, **more)

    def counters(self):
        """All but connections, which close a moment after, and what the log's own thread counts when it comes to it."""
        return {name: n for name, n in self.larder.counted()["counters"].items()
                if not name.startswith("log_") and not name.endswith(("_open", "_idle"))}

    def agree(self, target, fields=None, method="GET", fetch=False, **more):
        """Explains, asks, and gives back what both said."""
        before = self.counters(), len(self.origin.requests)
        said = explain(self.larder, target, fields, method, **({"fetch": True} if fetch else {}))
        after = self.counters(), len(self.origin.requests)
        assert after[1] - before[1] == (1 if fetch else 0), "explain asked the origin"
        assert after[0] == before[0], "explain changed a counter"
        told = ask(self.larder, target, fields, method=method, **more).told
        assert told == verdict(said), (target, fields, method, said)
        return told


def test_twenty_fates(larder, origin, clock):
    town = Town(larder, origin, clock)
    seen = []

    def agree(*args, **more):
        seen.append(town.agree(*args, **more))

    agree("/fresh", method="HEAD", fetch=True)  # of a HEAD nothing is stored
    agree("/fresh", fetch=True)  # miss (absent)
    agree("/fresh")  # hit
    agree("/fresh", method="HEAD")
    agree("/fresh?x=1", fetch=True)  # another key
    agree("/fresh", {"Range": "bytes=0-1"})
    agree("/fresh", {"If-None-Match": '"x"'})
    agree("/fresh", {"If-Match": '"x"'})  # pass (precondition)
    agree("/fresh", {"Content-Length": "2"}, body=b"ab")  # pass (request-body)
    agree("/form", method="POST", body=b"x")  # pass (method)
    agree("/form", method="BREW")
    agree("/no-store", fetch=True)  # pass: nothing of it is stored
    agree("/no-store")  # pass (uncacheable)
    agree("/private", fetch=True)
    agree("/cookie", fetch=True)
    agree("/nothing", fetch=True)
    agree("/star", fetch=True)
    agree("/large", fetch=True)
    agree("/error", fetch=True)
    agree("/guess", fetch=True)
    agree("/guess")
    agree("/gone", {"Range": "bytes=0-1"}, fetch=True)
    agree("/gone")
    agree("/language", {"Accept-Language": "de"}, fetch=True)
    agree("/language", {"Accept-Language": "de"})
    agree("/language", {"Accept-Language": "en"}, fetch=True)  # miss (other-variant)
    agree("/language", {"Accept-Language": "DE "})  # the same, in another spelling or not
    agree("/no-cache", fetch=True)
    agree("/no-cache", fetch=True)  # revalidated
    agree("/a..b", {"Expect": "200-ok"})  # refused
    agree("*", method="OPTIONS")
    agree("/fresh", {"Max-Forwards": "0"}, method="TRACE")
    town.get("/checked", "/changed", "/behind", "/sie")
    clock.advance(11)
    agree("/checked", fetch=True)  # revalidated
    agree("/checked")  # hit again
    agree("/changed", fetch=True)  # miss (expired)
    agree("/behind")  # stale (refreshing)
    until(lambda: town.larder.refresh_done == 1, "the refresh")
    agree("/behind")  # hit
    agree("/sie", fetch=True)  # stale (origin-error)
    agree("/sie")  # stale (refresh-failed): the pause
    clock.advance(700)
    agree("/behind", fetch=True)
    town.larder.admin("POST", "/purge", {"url": "http://site.test/behind", "soft": True})
    agree("/behind")  # stale (refreshing)
    town.larder.admin("POST", "/purge", {"url": "http://site.test/fresh"})
    agree("/fresh", fetch=True)  # miss again
    assert {outcome for outcome, _ in seen} >= {"hit", "revalidated", "stale", "miss", "pass", "local", "refused"}
    assert {reason for _, reason in seen} >= {
        "fresh", "validated", "refreshing", "refresh-failed", "absent", "other-variant", "expired", "method", "uncacheable",
        "request-body", "precondition", "origin-error", "bad-request", "answered"}
    assert len(seen) > 40


def test_what_clients_ask_for_when_it_is_honoured(larder, origin, clock):
    town = Town(larder, origin, clock, cache={"honour_client_directives": True})
    town.get("/fresh", "/changed")
    assert town.agree("/fresh", {"Cache-Control": "no-cache"}, fetch=True) == ("miss", "client-asked")
    assert town.agree("/fresh", {"Cache-Control": "only-if-cached"}) == ("hit", "fresh")
    assert town.agree("/guess", {"Cache-Control": "only-if-cached"}) == ("local", "only-if-cached")
    assert town.agree("/guess", {"Cache-Control": "no-store"}, fetch=True)[0] == "pass"
    clock.advance(15)
    assert town.agree("/changed", {"Cache-Control": "max-stale=60"}) == ("stale", "max-stale")
    assert town.agree("/fresh", {"Cache-Control": "max-age=5"}, fetch=True) == ("miss", "client-asked")


@pytest.mark.parametrize("cache", [{}, {"range_whole": "1KiB", "slice": "64KiB"}, {"range_whole": "1KiB", "slice": "off"}],
                         ids=["whole", "slices", "parts"])
def test_ranges(larder, origin, clock, cache):
    body = bytes(range(256)) * 4096

    def story(wire):
        fields = {**FRESH, "ETag": '"1"'}
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", wire.request.get("Range", ""))
        if not asked:
            return reply(body, fields)(wire)
        first, last = int(asked[1]), min(int(asked[2]), len(body) - 1)
        return reply(body[first:last + 1], {**fields, "Content-Range": f"bytes {first}-{last}/{len(body)}"}, 206)(wire)

    origin.on("/file", story)
    town = Town(larder, origin, clock, cache={**cache, "max_object": "4MiB"})
    for asked, fetch in (("0-99", True), ("0-99", False), ("10-20", False)):
        told = town.agree("/file", {"Range": f"bytes={asked}"}, fetch=fetch)
        assert told[0] == ("miss" if fetch else "hit")
    told = town.agree("/file", {"Range": "bytes=10-20"}, method="HEAD", fetch=cache.get("slice") == "off")
    said = explain(town.larder, "/file")
    assert said["stored"][0].get("sliced", False) is (cache.get("slice") == "64KiB")
    assert said["stored"][0].get("part") == ("0-99 of 1048576" if cache.get("slice") == "off" else None)
    town.agree("/file", fetch=cache.get("slice") == "off")
    town.agree("/file")


def test_a_fill_under_way_is_seen(larder, origin, clock):
    go = threading.Event()
    town = Town(larder, origin, clock)
    origin.on("/slow", reply("page", FRESH, barrier=go))
    with Client(town.larder.address) as first:
        first.request("/slow")
        until(lambda: origin.count("/slow") == 1, "the first one's fetch")
        said = explain(town.larder, "/slow")
        assert verdict(said) == ("collapsed", "absent") and said["fill"] == {"readers": 1}
        with Client(town.larder.address) as second:
            second.request("/slow")
            until(lambda: town.larder.fill_joined == 1, "the second one")
            assert explain(town.larder, "/slow")["fill"] == {"readers": 2}
            go.set()
            assert first.reply().body == b"page" and second.reply().body == b"page"
    assert explain(town.larder, "/slow")["fill"] is None
    assert town.larder.outcome("collapsed") == 1


def test_when_the_origin_is_away(larder, origin, clock):
    town = Town(larder, origin, clock)
    town.get("/changed")
    clock.advance(11)
    origin.close()
    said = explain(town.larder, "/guess", fetch=True)
    assert verdict(said) == ("fault", "origin-refused") and said["fetch"]["why"] == "the origin refused the connection"
    assert ask(town.larder, "/guess").told == ("fault", "origin-refused")
    assert verdict(explain(town.larder, "/changed", fetch=True)) == ("stale", "origin-refused")
    assert ask(town.larder, "/changed").told == ("stale", "origin-refused")
    assert verdict(explain(town.larder, "/changed")) == ("stale", "refresh-failed")
    assert ask(town.larder, "/changed").told == ("stale", "refresh-failed")


def test_a_directory(larder, home, clock):
    (home / "site").mkdir()
    (home / "site/a.txt").write_text("file")
    l = larder(home / "site")
    assert verdict(explain(l, "/a.txt")) == ask(l, "/a.txt").told == ("miss", "absent")
    assert verdict(explain(l, "/a.txt")) == ask(l, "/a.txt").told == ("hit", "fresh")
    assert verdict(explain(l, "/a.txt", method="POST")) == ask(l, "/a.txt", method="POST", body=b"x").told
    clock.advance(5)
    said = explain(l, "/a.txt", fetch=True)
    assert said["verdict"]["outcome"] == "miss" and "revalidated, if the file has not changed" in said["verdict"]["or"]
    assert said["fetch"]["asked"] is False and "directory" in said["fetch"]["why"]
    assert ask(l, "/a.txt").told == ("revalidated", "validated")


# ---- what it says ------------------------------------------------------------------------------------------------------


def test_clocks_are_sums(larder, origin, clock):
    origin.on("/aged", reply("page", {"Cache-Control": "max-age=60, stale-if-error=20", "Age": "3"}))
    origin.on("/dated", lambda wire: reply("page", {**FRESH, "Date": clock.date(-30)})(wire))
    origin.on("/must", reply("page", {"Cache-Control": "max-age=10, must-revalidate", "ETag": '"1"'}))
    l = larder(origin)
    for target in ("/aged", "/dated", "/must"):
        ask(l, target)
    clock.advance(28)
    clocks = explain(l, "/aged")["stored"][0]["clocks"]
    assert "age 31 = 28 in the store + 3 on arrival (Age 3 + delay 0)" in clocks
    assert "fresh for 29 more of 60 s (max-age)" in clocks
    assert "stale-if-error: served when the origin fails until age 80" in clocks
    assert re.match(r"age 5[89] = 28 in the store \+ 3[01] on arrival \(now - Date\)", explain(l, "/dated")["stored"][0]["clocks"][0])
    clocks = explain(l, "/must")["stored"][0]["clocks"]
    assert "stale for 18 s: the lifetime was 10 s (max-age)" in clocks
    assert "never served stale: must-revalidate, proxy-revalidate or s-maxage" in clocks
    l.admin("POST", "/purge", {"url": "http://site.test/aged", "soft": True})
    clock.advance(2)
    assert "made stale by a soft purge 2 s ago: counts as age 62" in explain(l, "/aged")["stored"][0]["clocks"]


def test_variants_are_told_apart(larder, origin):
    origin.on("/a", reply("page", {**FRESH, "Vary": "Accept-Language, X-Kind"}))
    l = larder(origin)
    ask(l, "/a", {"Accept-Language": "de"})
    ask(l, "/a", {"Accept-Language": "en", "X-Kind": "1"})
    said = explain(l, "/a", {"Accept-Language": "en", "X-Kind": "1"})
    assert said["variant"] == [{"field": "accept-language", "value": "en"}, {"field": "x-kind", "value": "1"}]
    assert [o["selected"] for o in said["stored"]] == [True, False]
    assert said["stored"][1]["selecting"] == [{"field": "accept-language", "value": "de"}, {"field": "x-kind", "value": None}]
    said = explain(l, "/a")
    assert said["verdict"]["reason"] == "other-variant" and not any(o["selected"] for o in said["stored"])


def test_looking_does_not_count_as_use(larder, origin):
    """An object that is only explained is evicted as if nobody had looked."""
    origin.on("*", reply(b"x" * 60_000, FRESH))
    l = larder(origin, cache={"memory": "16MiB"})
    ask(l, "/looked-at")
    for n in range(400):
        l.get(f"/{n}")
        explain(l, "/looked-at")
    assert explain(l, "/looked-at")["stored"] == []


def test_what_would_be_stored(larder, origin):
    origin.on("/a", reply("page", {"CDN-Cache-Control": "max-age=600", "Cache-Control": "no-store", "Cache-Tag": "news, front",
                                   "Vary": "Accept-Encoding", "Connection": "X-Hop", "X-Hop": "1"}))
    l = larder(origin)
    said = explain(l, "/a", {"Accept-Encoding": "gzip"}, fetch=True)["fetch"]
    assert said["stored"] and said["lifetime_s"] == 600 and said["control_from"] == "CDN-Cache-Control"
    assert said["tags"] == ["news", "front"] and said["selecting"] == [{"field": "accept-encoding", "value": "gzip"}]
    assert {"X-Hop", "Connection", "Cache-Tag"} <= set(said["fields_not_stored"])
    asked = origin.last("/a")
    assert asked.get("Host") == "site.test" and asked.get("X-Forwarded-For") == "127.0.0.1" and asked.get("Connection") == "close"
    assert explain(l, "/a")["stored"] == []


def test_an_origin_that_does_not_answer(larder, origin):
    origin.on("/cut", lambda wire: wire.close()).on("/junk", lambda wire: wire.send("HTTP/9 ???\r\n\r\n").close())
    go = threading.Event()
    origin.on("/slow", lambda wire: wire.wait(go).head(200, {"Content-Length": "0"}))
    l = larder(origin)
    assert explain(l, "/cut", fetch=True)["fetch"]["error"] == "origin-closed"
    assert explain(l, "/junk", fetch=True)["fetch"]["error"] == "origin-malformed"
    results = []
    waiting = [threading.Thread(target=lambda: results.append(explain(l, "/slow", fetch=True)["fetch"])) for _ in range(4)]
    for t in waiting:
        t.start()
    until(lambda: origin.count("/slow") == 4, "four at once")
    said = explain(l, "/slow", fetch=True)["fetch"]
    assert said["asked"] is False and "already" in said["why"]
    assert l.admin("GET", "/healthz")[0] == 200  # nobody waits for them
    go.set()
    for t in waiting:
        t.join()
    assert [r["status"] for r in results] == [200] * 4


def test_a_stop_waits_for_no_origin(larder, origin):
    go = threading.Event()
    origin.on("/slow", lambda wire: wire.wait(go))
    l = larder(origin)
    asking = subprocess.Popen([BINARY, "explain", "--admin", f"127.0.0.1:{l.admin_port}", "http://site.test/slow", "--fetch"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until(lambda: origin.count("/slow") == 1, "the question")
    l.stop()
    _, err = asking.communicate(timeout=60)
    assert asking.returncode == 2 and err.startswith("larder: ")
    go.set()


def test_one_who_asks_may_leave(larder, origin):
    go = threading.Event()
    origin.on("/slow", lambda wire: wire.wait(go).head(200, {"Content-Length": "0"}))
    l = larder(origin)

    def ask_and_leave():
        before = origin.count("/slow")
        asking = subprocess.Popen([BINARY, "explain", "--admin", f"127.0.0.1:{l.admin_port}", "http://site.test/slow", "--fetch"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(lambda: origin.count("/slow") == before + 1, "the question")
        asking.kill()
        asking.wait()

    ask_and_leave()
    go.set()
    assert explain(l, "/slow", fetch=True)["fetch"]["status"] == 200
    go.clear()
    ask_and_leave()
    l.stop()  # one is still under way, for nobody
    go.set()


def test_a_unix_socket(larder, home, origins):
    o = origins(path=str(home / "origin.sock"))
    o.on("/a", reply("page", FRESH))
    l = larder(o)
    said = explain(l, "/a", fetch=True)["fetch"]
    assert said["status"] == 200 and said["stored"] and said["server"].startswith("unix:")


# ---- the command ---------------------------------------------------------------------------------------------------------


def test_the_command_says_it_in_words(larder, origin, clock):
    origin.on("/a", reply("page", {"Cache-Control": "max-age=60", "Vary": "Accept-Language"}))
    l = larder(origin)
    ask(l, "/a", {"Accept-Language": "de"})
    clock.advance(31)
    done = run(l, "http://site.test/a", "-H", "Accept-Language: de")
    assert done.returncode == 0 and done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0] == "GET http://site.test/a" and lines[1] == "hit (fresh): a fresh object is stored"
    for line in ("key       site.test/a, in site *", "variant   accept-language: de",
                 "          fresh for 29 more of 60 s (max-age)"):
        assert line in lines, done.stdout
    assert json.loads(run(l, "http://site.test/a", "--json").stdout)["verdict"]["reason"] == "other-variant"
    done = run(l, "--fetch", "-X", "HEAD", "http://site.test/a")
    assert done.returncode == 0 and "answered 200" in done.stdout
    assert run(l, "http://127.0.0.1:1/a", "-HHost: site.test", "-H", "Accept-Language: de").stdout.splitlines()[1].startswith("hit")


@pytest.mark.parametrize("arguments,status,words", [
    ([], 2, ["usage:"]),
    (["http://site.test/", "extra"], 2, ['cannot use "extra"']),
    (["http://site.test/", "--header"], 2, ["cannot use"]),
    (["http://site.test/", "-H", "no field"], 2, ["Name: value"]),
    (["site.test/a"], 1, ["http://host/path"]),
    (["/a"], 1, ["Host"]),
    (["http:///a"], 1, ["the host is missing"]),
    (["http://site.test/a b"], 1, ["%20"]),
    (["http://site.test/", "--client", "nowhere"], 1, ["client", "IP address"]),
    (["http://site.test/", "-X", "A B"], 1, ["method"]),
    (["http://site.test/", "-H", "A: b\nC: d"], 1, ["headers"]),
])
def test_wrong_questions(larder, origin, arguments, status, words):
    done = run(larder(origin), *arguments)
    assert done.returncode == status and done.stdout == ""
    for word in words:
        assert word in done.stderr, done.stderr


def test_refusals_are_explained_as_well(larder, origin):
    l = larder(origin, sites=[{"hosts": ["www.site.test", "*.wild.test"], "origin": "app"}])
    said = explain(l, "/a")
    assert said["verdict"]["reason"] == "no-site" and said["hosts"] == ["www.site.test", "*.wild.test"]
    assert "none; there are www.site.test, *.wild.test" in run(l, "http://site.test/a").stdout
    assert "by \"*.wild.test\"" in run(l, "http://a.wild.test/").stdout
    assert ask(l, "/a").told == ("refused", "no-site")
    for url, fields, status in (("/a" + "b" * 9000, {}, 414), ("/\x7f", {}, None), ("/a", {"X y": "1"}, 400), ("/a", {"A": "b" * 40000}, 431)):
        body = {"url": f"http://www.site.test{url}", "headers": fields}
        got, text, _ = l.admin("POST", "/explain", body)
        said = json.loads(text)
        if status is None:
            assert got == 400 or said["verdict"]["outcome"] == "refused"
            continue
        assert (got, said["verdict"]["reason"], said["verdict"]["status"]) == (200, "bad-request" if status == 400 else "too-large", status)


@pytest.mark.parametrize("body,words", [
    ("", "JSON"), ("{", "JSON"), ("[]", "JSON object"), ('{"url": 1}', "url"), ("{}", "url"), ('{"url": ""}', "url"),
    ('{"url": "http://a/", "urls": "x"}', "urls"), ('{"url": "http://a/", "method": 1}', "method"),
    ('{"url": "http://a/", "headers": "x"}', "headers"), ('{"url": "http://a/", "headers": {"a": 1}}', "headers"),
    ('{"url": "http://a/", "headers": [1]}', "headers"), ('{"url": "http://a/", "client": 7}', "client"),
    ('{"url": "http://a/", "fetch": "yes"}', "fetch"), ('{"url": "http://a/\\u0000b"}', "url"),
])
def test_malformed_bodies(larder, origin, body, words):
    status, text, _ = larder(origin).admin("POST", "/explain", body)
    assert status == 400 and words in json.loads(text)["error"]


def test_get_is_not_for_this(larder, origin):
    status, _, fields = larder(origin).admin("GET", "/explain")
    assert status == 405 and fields["Allow"] == "POST"


# ---- rules ---------------------------------------------------------------------------------------------------------------

RULES = [
    {"name": "analytics", "key": {"ignore": ["utm_*", "gclid"], "sort": True}, "cookies": {"drop": ["_ga*"]}},
    {"name": "pictures", "match": {"path": "/static/**"}, "cache": {"ttl": "1d", "ignore": "set-cookie"}},
    {"match": {"path": "/api/**"}, "cache": "bypass"},
    {"match": {"path": "/old/**"}, "redirect": {"to": "https://$host/new$path", "status": 301}},
    {"match": {"path": "/secret/**", "not": {"client": "127.0.0.0/8"}}, "deny": 403},
    {"match": {"path": "/robots.txt"}, "answer": {"body": "none", "type": "text/plain"}},
    {"match": {"path": "/lang/**"}, "key": {"cookies": ["lang"], "fields": ["X-Country"]}},
    {"match": {"path": "/moved/**"}, "rewrite": {"path": "/here"}, "request": {"set": {"X-Was": "$path"}, "remove": ["X-Secret"]}},
    {"match": {"path": "/once/**"}, "cache": "no_store"},
    {"match": {"status": 404}, "cache": {"ttl": "5s"}},
    {"match": {"path": "/static/**"}, "response": {"set": {"X-By": "larder"}}, "tags": ["static"]},
]


@pytest.fixture
def ruled(larder, origin, clock):
    page = reply("page", FRESH)
    for path in ("/api/x", "/secret/x", "/lang/x", "/here", "/once/x", "/plain"):
        origin.on(path, page)
    origin.on("/static/a.png", reply("page", {"Set-Cookie": "id=1"})).on("/lost", reply("none", status=404))
    return Town(larder, origin, clock, sites=[{"hosts": ["site.test"], "origin": "app", "rules": RULES}])


def test_rules_are_named_with_what_they_do(ruled):
    said = explain(ruled.larder, "/static/a.png?utm_source=mail&b=2&a=1", {"Cookie": "a=1; _ga=2"}, fetch=True)
    assert [(r["name"], r["summary"]) for r in said["rules"]][:2] == [
        ("analytics", said["rules"][0]["summary"]), ("pictures", "path /static/**: ttl 1d, ignore set-cookie")]
    assert all(re.search(r"larder-\d+\.yaml:\d+$", r["where"]) for r in said["rules"]) and len(said["rules"]) == 3
    assert said["key"]["url"] == "site.test/static/a.png?a=1&b=2"
    assert said["dropped_from_key"] == [{"parameter": "utm_source=mail", "by": said["rules"][0]["where"]}]
    assert said["request_edits"] == [{"field": "Cookie", "before": "a=1; _ga=2", "after": "a=1"}]
    assert said["response_fields"] == ["X-By: larder"]
    assert said["fetch"]["lifetime_s"] == 86400 and said["fetch"]["lifetime_rule"] == said["rules"][1]["where"]
    assert said["fetch"]["tags"] == ["static"] and "Set-Cookie" in said["fetch"]["fields_not_stored"]
    said = explain(ruled.larder, "/moved/x?y", {"X-Secret": "s"})
    assert said["rewritten"] == "/here?y" and said["key"]["url"] == "site.test/here?y"
    assert {(e["field"], e["before"], e["after"]) for e in said["request_edits"]} == {("X-Was", None, "/moved/x"), ("X-Secret", "s", None)}
    said = explain(ruled.larder, "/lang/x", {"Cookie": "lang=de; b=c", "X-Country": "DE"})
    assert sorted(said["key"]["extra"]) == ["cookie:lang=de", "x-country=DE"]
    said = explain(ruled.larder, "/old/x")
    assert said["answer"]["status"] == 301 and said["answer"]["location"] == "https://site.test/new/old/x"
    assert said["rules"][-1]["where"] in said["verdict"]["change"][0]


def test_fates_that_rules_decide(ruled, clock):
    seen = [ruled.agree(*args, **more) for args, more in [
        (("/api/x",), {}),
        (("/old/x",), {}),
        (("/robots.txt",), {}),
        (("/secret/x",), {"fetch": True}),
        (("/static/a.png",), {"fetch": True}),
        (("/static/a.png?utm_campaign=x",), {}),
        (("/once/x",), {}),
        (("/once/x",), {}),
        (("/lang/x", {"Cookie": "lang=de"}), {"fetch": True}),
        (("/lang/x", {"Cookie": "lang=de"}), {}),
        (("/lang/x", {"Cookie": "lang=en"}), {"fetch": True}),
        (("/moved/x",), {"fetch": True}),
        (("/here",), {}),
        (("/lost",), {"fetch": True}),
        (("/lost",), {}),
    ]]
    assert seen[:3] == [("pass", "bypass"), ("local", "rule"), ("local", "rule")] and seen[5] == ("hit", "fresh")
    assert seen[6][0] == "pass" and seen[12] == seen[14] == ("hit", "fresh")
    clock.advance(6)
    assert ruled.agree("/lost", fetch=True)[0] == "miss"
    stored = explain(ruled.larder, "/lang/x")["stored"]
    assert sorted(o["key_extra"] for o in stored) == [["x-country", "cookie:lang=de"], ["x-country", "cookie:lang=en"]] and not any(o["same_key"] for o in stored)
    body = {"url": "http://site.test/secret/x", "client": "10.0.0.1"}
    assert json.loads(ruled.larder.admin("POST", "/explain", body)[1])["verdict"]["status"] == 403


@pytest.mark.parametrize("trusted", [["127.0.0.1"], ["10.0.0.0/8"]])
def test_what_proxies_say_is_believed_as_of_requests(larder, origin, clock, trusted):
    rules = [{"match": {"client": "192.0.2.0/24"}, "deny": 403}, {"match": {"scheme": "https"}, "key": {"fields": ["X-Forwarded-Proto"]}}]
    origin.on("*", reply("page", {**FRESH, "Vary": "X-Forwarded-Host"}))
    town = Town(larder, origin, clock, sites=[{"hosts": ["*"], "origin": "app", "rules": rules}], clients={"trusted_proxies": trusted})
    believed = trusted == ["127.0.0.1"]
    told = town.agree("/a", {"X-Forwarded-For": "192.0.2.7"}, **({} if believed else {"fetch": True}))
    assert told == (("local", "rule") if believed else ("miss", "absent"))
    assert town.agree("/b", {"X-Forwarded-Proto": "https"}, fetch=True) == ("miss", "absent")
    assert town.agree("/b", {"X-Forwarded-Host": "a.test"}, fetch=believed)[0] == ("miss" if believed else "hit")
    said = explain(town.larder, "/b", {"X-Forwarded-Proto": "https"})
    assert said["key"]["extra"] == (["x-forwarded-proto=https"] if believed else [])


# ---- the manual ----------------------------------------------------------------------------------------------------------


def examples():
    """The configuration and the conversation of docs/explain.md: commands, and what they print."""
    blocks, block = [], []
    for line in (ROOT / "docs/explain.md").read_text().splitlines() + ["."]:
        if line.startswith("    ") or (not line and block):
            block.append(line[4:])
        elif block:
            blocks.append("\n".join(block).rstrip())
            block = []
    config = next(b for b in blocks if b.startswith("origins:"))
    return config, [part for b in blocks if b.startswith("$ ") for part in re.split(r"^\$ ", b, flags=re.M)[1:]]


def plain(text):
    text = re.sub(r"\S*larder[-\d]*\.yaml", "larder.yaml", text)
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:8000", text)
    return re.sub(r"after \d+ ms", "after 2 ms", text).rstrip()


def test_the_examples_of_the_manual(larder, origin, clock):
    """A long line may be broken in the manual: white space is one space."""
    config, commands = examples()
    origin.on("/news/7", reply("news", {"Cache-Control": "max-age=60, stale-while-revalidate=30", "Age": "3", "Vary": "Accept-Language"}))
    origin.on("/account", reply("yours", {"Cache-Control": "private, max-age=60"}))
    l = larder(origin, start=False)
    assert "http://127.0.0.1:8000" in config
    l.write_config(config.replace("http://127.0.0.1:8000", origin.url) +
                   f"\nlisten: 127.0.0.1:{l.port}\nadmin: {{ listen: \"127.0.0.1:{l.admin_port}\" }}\ncache: {{ memory: 64MiB }}\n")
    l.start()
    ran = 0
    for command in commands:
        words, _, output = command.partition("\n")
        name, *arguments = shlex.split(words)
        if name == "sleep":
            clock.advance(int(arguments[0]))
        elif name == "curl":
            fields = dict(a.split(": ", 1) for a in arguments[1:] if a != "-H")
            host, slash, path = arguments[0].removeprefix("http://").partition("/")
            l.get(slash + path, {"Host": host, **fields})
        else:
            assert (name, arguments[0]) == ("larder", "explain")
            done = run(l, *arguments[1:])
            assert done.returncode == 0, done.stderr
            assert plain(done.stdout).split() == plain(output).split(), done.stdout
            ran += 1
    assert ran >= 4
