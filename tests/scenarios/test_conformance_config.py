"""The configuration that the public cache suite is run with: it is the one that docs/conformance.md speaks of, and does what the
suite takes for granted. The suite itself is not here.
"""
import re
import subprocess

import pytest

from harness.origin import reply
from harness.told import ask, store
from harness.tools import BINARY, ROOT

CONFIG = ROOT / "tests/conformance/larder.yaml"
HIT = ("hit", "fresh")
MODIFIED = "Mon, 01 Jan 2024 00:00:00 GMT"
# what the suite's scripts count on, and where it stands instead while this runs
PLACES = {"127.0.0.1:8080": "listen", "127.0.0.1:6081": "admin", "http://127.0.0.1:8000": "origin"}


@pytest.fixture(params=[1, 4])
def suite(request, origin, larder):
    """Larder with the file as it is, but for its addresses, and with the workers that figures are given for."""
    l = larder(origin, start=False, options=("--workers", str(request.param)))
    text = CONFIG.read_text()
    new = {"listen": f"127.0.0.1:{l.port}", "admin": f"127.0.0.1:{l.admin_port}", "origin": origin.url}
    for place, name in PLACES.items():
        assert text.count(f'"{place}"') == 1, f"{name} is not {place}"
        text = text.replace(f'"{place}"', f'"{new[name]}"')
    l.write_config(text)
    l.start()
    return l


def test_it_is_good():
    done = subprocess.run([BINARY, "check", "-c", CONFIG], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "good" in done.stdout and done.stderr == ""


def test_each_item_says_why():
    """A line of its own before it, or behind it."""
    why = ""
    for line in CONFIG.read_text().splitlines():
        code, _, said = line.partition("#")
        why += said.strip()
        if re.match(r" *[\w_]+: +\S", code):
            assert why, f"why: {line}"
            why = ""


def test_the_page_names_it():
    assert "tests/conformance/larder.yaml" in (ROOT / "docs/conformance.md").read_text()


def test_clients_are_heard(suite, origin):
    origin.on("/a", reply("page", {"Cache-Control": "max-age=600", "ETag": '"1"'}), reply("", {"ETag": '"1"'}, 304))
    store(suite)
    assert ask(suite, "/a", {"Cache-Control": "no-cache"}).told[0] == "revalidated"
    assert ask(suite, "/b", {"Cache-Control": "only-if-cached"}).status == 504
    origin.on("/n", reply("page", {"Cache-Control": "max-age=600"}))
    assert "stored" not in ask(suite, "/n", {"Cache-Control": "no-store"}).cache_status
    assert ask(suite, "/a", {"Cache-Control": "nothing-to-see-here", "Pragma": "foo"}).told == HIT  # sent with each request


def test_lifetimes_are_the_answers_own(suite, origin, clock):
    origin.on("/plain", reply("page")).on("/tagged", reply("page", {"ETag": '"1"'}))
    origin.on("/guessed", reply("page", {"Last-Modified": MODIFIED}))
    origin.on("/old", reply("page", {"Cache-Control": "max-age=2", "ETag": '"1"'}), reply("trouble", status=503))
    assert [ask(suite, "/plain").told[0] for _ in range(2)] == ["pass"] * 2
    store(suite, "/tagged")
    assert ask(suite, "/tagged").told != HIT
    store(suite, "/guessed")
    assert ask(suite, "/guessed").told == HIT
    store(suite, "/old")
    clock.advance(3)
    assert ask(suite, "/old").status == 503  # no grace that nobody gave


def test_cookies_are_kept_with_their_answer(suite, origin):
    origin.on("/a", reply("page", {"Cache-Control": "max-age=600", "Set-Cookie": "a=b"}))
    store(suite)
    r = ask(suite, "/a")
    assert r.told == HIT and r.get("Set-Cookie") == "a=b"


def test_what_its_scripts_send_goes_through(suite, origin):
    """Its own configuration requests, and fields by which it tells its requests apart."""
    origin.on("/config/1", reply("", status=201)).on("/state/1", reply("[]", {"Content-Type": "application/json"}))
    origin.on("/test/1", reply("x", {"Cache-Control": "max-age=600"}))
    assert ask(suite, "/config/1", method="PUT", body=b"[]").status == 201
    assert [ask(suite, "/state/1").told[0] for _ in range(2)] == ["pass"] * 2
    own = {"Req-Num": "1", "Test-ID": "one", "Test-Name": "a name", "Authorization": "FOO"}
    ask(suite, "/test/1", own)
    assert all(origin.last().get(name) == value for name, value in own.items())
    for method in ("POST", "DELETE", "M-SEARCH"):
        ask(suite, "/test/1", own, method=method)
        assert origin.last().method == method
    assert origin.count("/test/1") == 4


def test_fields_come_back_unaltered(suite, origin):
    fields = [("Cache-Control", "max-age=600"), ("CDN-Cache-Control", "max-age=600"), ("X-Two", "a"), ("X-Two", "b"), ("Date", MODIFIED), ("Age", "1")]
    origin.on("/a", reply("page", [*fields, ("Expires", MODIFIED)]))
    for _ in range(2):
        r = ask(suite, "/a")
        assert (r.fields.all("X-Two"), r.get("CDN-Cache-Control"), r.get("Date"), r.get("Expires")) == (["a", "b"], "max-age=600", MODIFIED, MODIFIED)
