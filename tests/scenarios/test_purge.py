"""Getting the old one out: by URL, host, prefix, pattern, tag, or all of it; hard, soft and dry; on the admin port, by command, and
by the PURGE method.
"""
import json
import re
import subprocess
import threading

import pytest

from harness.origin import reply
from harness.told import ask, store
from harness.tools import BINARY, ROOT

FRESH = {"Cache-Control": "max-age=600"}
SWR = {"ETag": '"1"', "Cache-Control": "max-age=600, stale-while-revalidate=600"}
ANSWER = {"mode", "how", "objects", "keys", "fills", "bytes", "purged"}


def purge(larder, **body):
    """The status, and what the answer says."""
    status, text, _ = larder.admin("POST", "/purge", body)
    answer = json.loads(text)
    if status in (200, 404):
        assert set(answer) == ANSWER and (status == 200) == (answer["objects"] + answer["fills"] > 0), answer
    return status, answer


def counts(larder, **body):
    status, answer = purge(larder, **body)
    assert status in (200, 404), answer
    return answer["objects"], answer["keys"]


PAGES = {  # what each is tagged with
    ("site.test", "/"): "home",
    ("site.test", "/blog"): "blog, list",
    ("site.test", "/blog/1"): "blog, post-1",
    ("site.test", "/blog/1?page=2"): "blog, post-1",
    ("site.test", "/blogger"): "",
    ("site.test:8080", "/blog"): "blog, list",
    ("other.test", "/a.css"): "",
    ("other.test", "/css/a.css?v=1"): "",
}


@pytest.fixture
def filled(origin, larder):
    def page(wire):
        key = (wire.request.get("Host"), wire.request.target)
        tags = {"Cache-Tag": PAGES[key]} if PAGES[key] else {}
        reply(f"{key}", {**FRESH, **tags})(wire)

    origin.on("*", page)
    l = larder(origin)
    for host, target in PAGES:
        assert l.get(target, {"Host": host}).verdict == "stored"
    return l


MODES = [
    ({"url": "http://SITE.test/blog"}, {"site.test/blog"}),
    ({"url": "/blog/1?page=2", "host": "site.test"}, {"site.test/blog/1?page=2"}),
    ({"url": "http://site.test/nothing"}, set()),
    ({"host": "site.test"}, {"site.test/", "site.test/blog", "site.test/blog/1", "site.test/blog/1?page=2", "site.test/blogger", "site.test:8080/blog"}),
    ({"host": "Site.test:8080"}, {"site.test:8080/blog"}),
    ({"prefix": "http://site.test/blog"}, {"site.test/blog", "site.test/blog/1", "site.test/blog/1?page=2", "site.test/blogger"}),
    ({"prefix": "/blog/", "host": "site.test"}, {"site.test/blog/1", "site.test/blog/1?page=2"}),
    ({"prefix": "http://other.test"}, {"other.test/a.css", "other.test/css/a.css?v=1"}),
    ({"glob": "*.test/*.css"}, {"other.test/a.css"}),
    ({"glob": "**.css**"}, {"other.test/a.css", "other.test/css/a.css?v=1"}),
    ({"glob": "http://Site.test/blog/*"}, {"site.test/blog/1", "site.test/blog/1?page=2"}),
    ({"tag": "post-1"}, {"site.test/blog/1", "site.test/blog/1?page=2"}),
    ({"tags": ["home", "list", "blog"]}, {"site.test/", "site.test/blog", "site.test:8080/blog", "site.test/blog/1", "site.test/blog/1?page=2"}),
    ({"everything": True}, {host + target for host, target in PAGES}),
]


@pytest.mark.parametrize("body,gone", MODES, ids=lambda v: json.dumps(v) if isinstance(v, dict) else "")
def test_each_mode_takes_what_it_says(filled, body, gone):
    assert counts(filled, **body, dry_run=True) == (len(gone), len(gone))
    assert filled.stats()["cache"]["objects"] == len(PAGES)
    assert counts(filled, **body) == (len(gone), len(gone))
    filled.wait_for(purges=1, purged=len(gone))
    assert filled.stats()["cache"]["objects"] == len(PAGES) - len(gone)
    for host, target in PAGES:
        assert (filled.get(target, {"Host": host}).verdict == "stored") == (host + target in gone), (host, target)


def test_wrong_bodies_purge_nothing(filled):
    for body, words in [
        ({}, ["url, host, prefix, glob, tag, tags, everything"]),
        ({"url": "http://site.test/", "tag": "home"}, ["one of", "at a time"]),
        ({"everything": True, "sotf": True}, ["sotf", "unknown", "soft"]),
        ({"everything": True, "soft": "yes"}, ["soft", "true or false"]),
        ({"everything": True, "soft": True, "dry_run": True}, ["soft", "dry_run"]),
        ({"everything": False}, ["everything", "true"]),
        ({"tags": "home"}, ["tags", "list"]),
        ({"tag": ""}, ["tag", "not empty"]),
        ({"prefix": "blog"}, ["prefix", "http://host/path"]),
        ({"glob": "site.test"}, ["glob", "'/'"]),
        ({"host": "site.test/blog"}, ["host", "www.example.com"]),
        ({"tag": "home", "host": "site.test"}, ["host", "path"]),
    ]:
        status, answer = purge(filled, **body)
        assert status == 400, body
        assert all(word in answer["error"] for word in words), answer
    assert filled.stats()["cache"]["objects"] == len(PAGES)
    filled.wait_for(purges=0)


def test_what_rules_do_to_the_key_does_not_hide_it(origin, larder):
    """Fields and cookies in the key: all of them are the URL's. The path in lower case: so is a purge's."""
    origin.on("*", lambda wire: reply(wire.request.get("Cookie", "none"), {**FRESH, "Cache-Tag": "t"})(wire))
    rules = [{"match": {"path": "/**"}, "key": {"ignore_case": True, "cookies": ["theme"]}}]
    l = larder(origin, sites=[{"hosts": ["*"], "origin": "app", "rules": rules}])

    def fill():
        for target in ("/Page", "/Page/1", "/other"):
            for theme in ("dark", "light"):
                assert l.get(target, {"Cookie": f"theme={theme}"}).verdict == "stored"
        assert l.get("/pAGE", {"Cookie": "theme=dark"}).verdict == "hit"

    fill()
    for body, gone in [({"url": "http://site.test/PAGE"}, 2), ({"prefix": "http://site.test/PAGE"}, 4), ({"glob": "site.test/page/*"}, 2),
                       ({"host": "site.test"}, 6), ({"tag": "t"}, 6)]:
        assert counts(l, **body) == (gone, gone), body
        counts(l, everything=True)
        fill()


# ---- fetches under way -----------------------------------------------------------------------------------------------------


AGAINST = [{"url": "http://site.test/a"}, {"host": "site.test"}, {"prefix": "http://site.test/"}, {"glob": "*/a"}, {"tag": "t"},
           {"tags": ["u", "t"]}, {"everything": True}]


@pytest.mark.concurrency
@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
@pytest.mark.parametrize("has_head", [True, False], ids=["after its head", "before its head"])
@pytest.mark.parametrize("body", AGAINST, ids=json.dumps)
def test_a_purge_beats_a_fetch_under_way(origin, larder, body, has_head, soft):
    """Delivered, not stored; by tag as well, when the tags came after the purge."""
    reached, rest = threading.Event(), threading.Event()

    def story(wire):
        if has_head:
            wire.head(200, {**FRESH, "Cache-Tag": "t", "Content-Length": 8}).send("old ")
        reached.set()
        wire.wait(rest)
        if not has_head:
            wire.head(200, {**FRESH, "Cache-Tag": "t", "Content-Length": 8}).send("old ")
        wire.send("page")

    origin.on("/a", story, reply("new page", {**FRESH, "Cache-Tag": "t"}))
    l = larder(origin)
    c = l.client()
    c.request("/a")
    assert reached.wait(20)
    head = c.head() if has_head else None
    status, answer = purge(l, **body, soft=soft)
    if has_head or "tag" not in str(body):
        assert (status, answer["fills"], answer["objects"]) == (200, 1, 0)
    rest.set()
    assert c.rest(head or c.head()).body == b"old page"
    l.wait_for(fills_live=0)
    assert (l.get("/a").body, l.get("/a").verdict) == (b"new page", "hit")


@pytest.mark.concurrency
@pytest.mark.parametrize("body", AGAINST, ids=json.dumps)
def test_a_purge_beats_a_revalidation_under_way(origin, larder, clock, body):
    """A 304 of before the purge does not bring the old page back."""
    asked, rest = threading.Event(), threading.Event()
    fields = {"ETag": '"1"', "Cache-Control": "max-age=10", "Cache-Tag": "t"}

    def confirm(wire):
        asked.set()
        wire.wait(rest)
        reply("", fields, 304)(wire)

    origin.on("/a", reply("old page", fields), confirm, reply("new page", {**fields, "ETag": '"2"'}))
    l = larder(origin)
    l.get("/a")
    clock.advance(15)
    c = l.client()
    c.request("/a")
    assert asked.wait(20)
    assert purge(l, **body)[1]["fills"] == 1
    rest.set()
    assert c.reply().body == b"old page"
    l.wait_for(fills_live=0)
    assert l.get("/a").body == b"new page"


# ---- soft ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", AGAINST, ids=json.dumps)
def test_a_soft_purge_serves_the_old_while_it_is_refreshed(origin, larder, clock, body):
    go = threading.Event()
    tagged = {**SWR, "Cache-Tag": "t"}
    origin.on("/a", reply("old", tagged), lambda wire: (wire.wait(go), reply("new", {**tagged, "ETag": '"2"'})(wire)))
    l = larder(origin)
    store(l)
    clock.advance(5)
    assert counts(l, **body, soft=True) == (1, 1)
    r = ask(l, "/a")
    assert (r.body, r.told[0]) == (b"old", "stale")
    assert ask(l, "/a").body == b"old"
    go.set()
    l.wait_for(refresh_done=1, fills_live=0)
    assert ask(l, "/a").body == b"new" and origin.count() == 2
    l.wait_for(purges=1, purged=1)


def test_a_soft_purge_without_a_window_asks_first(origin, larder, clock):
    """No stale-while-revalidate: the next request waits for the origin, which may say 304; then it is fresh again."""
    fields = {**FRESH, "ETag": '"1"'}
    origin.on("/a", reply("page", fields), reply("", fields, 304))
    l = larder(origin)
    store(l)
    assert counts(l, url="http://site.test/a", soft=True) == (1, 1)
    assert ask(l, "/a").told[0] == "revalidated"
    assert ask(l, "/a").told == ("hit", "fresh") and origin.count() == 2


# ---- the command -----------------------------------------------------------------------------------------------------------


def test_the_command_says_what_it_did(filled):
    def run(*arguments):
        done = subprocess.run([BINARY, "purge", *arguments, "--admin", f"127.0.0.1:{filled.admin_port}"], capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout or done.stderr

    assert run("--dry-run", "--host", "site.test") == (0, "6 objects would be purged\n")
    assert run("--soft", "--prefix", "http://site.test/blog/") == (0, "2 objects made stale\n")
    assert run("--tag", "home") == (0, "1 object purged\n")
    assert run("--tag", "home", "--tag", "none") == (1, "0 objects purged\n")
    assert run("/blog", "--host", "site.test:8080") == (0, "1 object purged\n")
    status, text = run("--json", "--glob", "other.test/*.css")
    assert status == 0 and json.loads(text)["objects"] == 1
    assert run("--everything") == (0, "5 objects purged\n")
    status, text = run("--glob", "other.test")
    assert status == 1 and "glob: a pattern is for host and path" in text
    assert run()[0] == 2 and run("--surprise")[0] == 2


# ---- the PURGE method ------------------------------------------------------------------------------------------------------


def test_the_purge_method_is_for_those_on_the_list(origin, larder):
    origin.on("/a", lambda wire: reply("page", {**FRESH, "Vary": "X-Kind"})(wire))
    l = larder(origin, cache={"purge_from": ["127.0.0.0/8"]})
    for kind in "12":
        l.get("/a", {"X-Kind": kind})
    r = ask(l, "/a", method="PURGE")
    assert (r.status, r.told) == (200, ("local", "purge-asked")) and b"2" in r.body
    assert ask(l, "/a", method="PURGE").status == 404
    assert origin.count() == 2  # never sent on
    l.wait_for(purges=2, purged=2)


def test_the_purge_method_can_be_soft(origin, larder):
    origin.on("/a", reply("page", {**FRESH, "ETag": '"1"'}), reply("", {**FRESH, "ETag": '"1"'}, 304))
    l = larder(origin, cache={"purge_from": ["127.0.0.0/8"]})
    l.get("/a")
    assert ask(l, "/a", {"Larder-Purge": "soft"}, method="PURGE").status == 200
    assert ask(l, "/a").told[0] == "revalidated"


def test_the_purge_method_is_off_by_default(origin, larder):
    origin.on("/a", reply("page", FRESH))
    for cache in ({}, {"purge_from": ["192.0.2.0/24"]}):
        l = larder(origin, cache=cache)
        l.get("/a")
        assert l.ask("/a", method="PURGE").status == 405
        assert l.get("/a").verdict == "hit"


# ---- the manual ------------------------------------------------------------------------------------------------------------


def examples():
    """The commands of docs/purge.md that talk to the admin port, and what the page says that they answer."""
    text = (ROOT / "docs/purge.md").read_text()
    return re.findall(r"^    curl -d '(\{.*\})' http://127\.0\.0\.1:6081/purge$", text, re.M)


def test_the_manuals_examples_are_understood(origin, larder):
    l = larder(origin)
    assert len(examples()) >= 9
    for body in examples():
        status, text, _ = l.admin("POST", "/purge", body)
        assert status == 404 and json.loads(text)["objects"] == 0, (body, text)
