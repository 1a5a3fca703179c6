"""Signals: SIGHUP and /reload put a new configuration in force without touching what runs, SIGTERM drains, SIGUSR1 reopens logs."""
import re
import shutil
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from harness.client import Client
from harness.origin import reply
from harness.tools import body_of, until

FRESH = {"Cache-Control": "max-age=600"}


def change(larder, **items):
    larder.config.update(items)
    larder.write_config()


def by_signal(larder):
    larder.signal(signal.SIGHUP)


def by_request(larder):
    larder.reload()


@pytest.mark.parametrize("reload", [by_signal, by_request])
def test_a_good_file_takes_effect_and_what_is_stored_stays(origin, larder, reload):
    origin.on("/a", reply("page")).on("/stored", reply("page", FRESH))
    l = larder(origin)
    l.get("/stored")
    with l.client() as c:
        assert [c.get("/a").verdict for _ in range(2)] == ["passed", "passed"]
        change(l, cache={"memory": "64MiB", "default_ttl": {"200": "1m"}})
        reload(l)
        l.wait_for(reloads=1)
        l.clock.advance(11)  # cache.remember_uncacheable
        assert [c.get("/a").verdict for _ in range(2)] == ["stored", "hit"]
    assert l.get("/stored").verdict == "hit"


@pytest.mark.parametrize("reload", [by_signal, by_request])
def test_a_bad_file_leaves_the_old_one_in_force_and_says_why(origin, larder, reload):
    origin.on("/a", reply("page", FRESH))
    l = larder(origin)
    l.write_config("cache:\n  memroy: 1GiB\n")
    reload(l)
    l.wait_for(reloads=0, reloads_refused=1)
    until(lambda: re.search(rf"{re.escape(l.config_path.name)}:2:3: .*memroy", l.stderr()), "the log's line")
    assert l.get("/a").status == 200
    status, text, _ = l.reload()
    assert status >= 400 and "memroy" in text and "cache.memory" in text


def test_items_that_want_a_restart_are_named(origin, larder):
    l = larder(origin)
    change(l, workers=1)
    status, text, _ = l.reload()
    assert status == 200 and "workers" in text and "restart" in text


def test_origins_can_be_changed_while_requests_run(origins, larder):
    old, new = origins(), origins()
    go = threading.Event()
    old.on("/slow", reply("from the old", {"Cache-Control": "no-store"}, barrier=go)).on("/a", reply("old", {"Cache-Control": "no-store"}))
    new.on("*", reply("new", {"Cache-Control": "no-store"}))
    l = larder(old)
    slow = l.client()
    slow.request("/slow")
    assert old.first_request.wait(20)
    change(l, origins={"app": {"servers": [new.url]}})
    by_signal(l)
    l.wait_for(reloads=1)
    until(lambda: l.get("/a").body == b"new", "all workers ask the new one")
    go.set()
    assert slow.reply().body == b"from the old"


@pytest.mark.concurrency
def test_reloads_under_load_lose_no_request(origin, larder):
    origin.on("/hit", reply(body_of(5000), FRESH)).on("/pass", reply("pass", {"Cache-Control": "no-store"}))
    l = larder(origin)
    l.get("/hit")
    failed, asked, stop = [], [0] * 6, threading.Event()

    def ask(number):
        with Client(l.address) as c:
            while not stop.is_set():
                r = c.get("/pass" if number % 3 == 0 else "/hit")
                asked[number] += 1
                if r.status != 200 or not r.whole:
                    failed.append(r)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(6)]
    for t in threads:
        t.start()
    for n in range(1, 21):
        change(l, cache={"memory": "64MiB", "default_ttl": {"200": f"{n}m"}})
        (by_signal if n % 2 else by_request)(l)
        l.wait_for(reloads=n)
        floor = sum(asked)
        until(lambda: sum(asked) > floor + 20 or failed, "requests between reloads")
    stop.set()
    for t in threads:
        t.join()
    assert failed == []


@pytest.mark.skipif(not shutil.which("wrk"), reason="wrk is not installed")
def test_reloads_under_wrk_lose_no_request(origin, larder):
    origin.on("/hit", reply(body_of(5000), FRESH))
    l = larder(origin)
    l.get("/hit")
    wrk = subprocess.Popen(["wrk", "-t1", "-c50", "-d3s", f"http://127.0.0.1:{l.port}/hit", "-H", "Host: site.test"], stdout=subprocess.PIPE, text=True)
    n = 0
    while wrk.poll() is None:
        change(l, log_level="info" if n % 2 else "warn")
        status, text, _ = l.reload()
        assert status == 200, text
        n += 1
    out = wrk.stdout.read()
    assert n > 5 and "Socket errors" not in out and "Non-2xx" not in out, out


# ---- SIGTERM -------------------------------------------------------------------------------------------------------------


def refuses(larder):
    try:
        socket.create_connection(larder.address, 5).close()
    except ConnectionRefusedError:
        return True
    return False


def test_sigterm_finishes_what_runs_and_accepts_no_more(origin, larder):
    half, rest = threading.Event(), threading.Event()
    page = body_of(200_000)

    def story(wire):
        wire.head(200, {"Cache-Control": "no-store", "Content-Length": len(page)}).send(page[:1000])
        half.set()
        wire.wait(rest).send(page[1000:])

    origin.on("/slow", story).on("/a", reply("a", FRESH))
    l = larder(origin)
    idle, busy = l.client(), l.client()
    idle.get("/a")
    busy.request("/slow")
    assert half.wait(20)
    l.signal(signal.SIGTERM)
    assert idle.ends() == "fin"
    until(lambda: refuses(l), "no more connections")
    assert l.process.poll() is None
    rest.set()
    r = busy.reply()
    assert r.body == page and busy.ends() == "fin"
    assert l.wait_exit() == 0


def test_a_client_that_connected_just_before_the_drain_is_answered(origin, larder):
    origin.on("/a", reply("page", FRESH))
    l = larder(origin)
    fresh = l.client()
    until(lambda: l.stats()["counters"]["client_open"] == 1, "accepted")
    l.signal(signal.SIGTERM)
    until(lambda: refuses(l), "no more connections")
    r = fresh.get("/a")
    assert r.body == b"page" and r.get("Connection") == "close" and fresh.ends() == "fin"
    assert l.wait_exit() == 0


def test_what_does_not_end_within_shutdown_timeout_is_cut(origin, larder):
    half = threading.Event()

    def story(wire):
        wire.head(200, {"Cache-Control": "max-age=60", "Content-Length": 100}).send("half")
        half.set()
        wire.until_left()

    origin.on("/slow", story)
    l = larder(origin, shutdown_timeout="1s", origin_items={"between_bytes_timeout": "1h"})
    c = l.client()
    c.request("/slow")
    assert half.wait(20)
    l.signal(signal.SIGTERM)
    assert not c.reply().whole and l.wait_exit() == 0


def listeners_on(port):
    rows = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return sum(row.split()[1].endswith(f":{port:04X}") and row.split()[3] == "0A" for row in rows)


def test_a_second_program_can_take_the_port_while_the_first_drains(origin, larder):
    """The restart that loses nobody."""
    go = threading.Event()
    origin.on("/slow", reply("slow", {"Cache-Control": "no-store"}, barrier=go)).on("/a", reply("a", FRESH))
    old = larder(origin)
    busy = old.client()
    busy.request("/slow")
    assert origin.first_request.wait(20)
    new = larder(origin, listen=f"127.0.0.1:{old.port}")
    old.signal(signal.SIGTERM)
    until(lambda: listeners_on(old.port) == new.config["workers"], "the old one listens no more")
    with Client(old.address) as c:
        assert c.get("/a").body == b"a"
    go.set()
    assert busy.reply().body == b"slow" and old.wait_exit() == 0
    assert new.process.poll() is None


# ---- logs ----------------------------------------------------------------------------------------------------------------


def test_sigusr1_reopens_the_access_log(origin, larder):
    """logrotate: what was written goes to the moved file, what comes to a new one, no line twice or lost."""
    origin.on("*", reply("a", FRESH))
    l = larder(origin)
    l.get("/before")
    until(lambda: len(l.log()) == 1, "the line")
    moved = l.log_path.with_suffix(".1")
    l.log_path.rename(moved)
    l.signal(signal.SIGUSR1)
    until(l.log_path.exists, "a new file")
    l.get("/after")
    until(lambda: len(l.log()) == 1, "the line in the new file")
    assert "/after" in l.log_path.read_text() and "/before" in moved.read_text() and "/after" not in moved.read_text()
    l.wait_for(log_written=2, log_dropped=0)


def test_the_access_log_says_what_the_counters_say(origin, larder):
    origin.on("/a", reply("page", FRESH)).on("/form", reply("thanks", {"Cache-Control": "no-store"}))
    l = larder(origin, workers=1)  # lines of several workers may change places
    l.get("/a", {"User-Agent": 'quote"and\\slash', "Referer": "http://x/"})
    l.get("/a")
    l.ask("/form", method="POST", body=b"x")
    with l.client() as c:
        c.send("GET / HTTP/9.9\r\n\r\n").reply()
    until(lambda: len(l.log()) == 4, "four lines")
    lines = l.log()
    outcomes = [line["outcome"] for line in lines]
    assert outcomes == ["miss", "hit", "pass", "refused"]
    assert [line["status"] for line in lines] == [200, 200, 200, 505]
    assert 'quote"and\\slash' in lines[0].values()
    for word in set(outcomes):
        assert l.outcome(word) == outcomes.count(word)


def test_combined_log(origin, larder):
    origin.on("/a", reply("page", FRESH))
    l = larder(origin, access_log={"format": "combined"})
    l.get("/a", {"User-Agent": "u", "Referer": "http://r/"})
    line = until(lambda: l.log_path.read_text(), "the line")
    assert re.fullmatch(r'127\.0\.0\.1 - - \[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] "GET /a HTTP/1\.1" 200 4 "http://r/" "u"\n', line)


def test_what_wants_a_restart_is_said_as_long_as_it_is_so(origin, larder):
    l = larder(origin, cache={"memory": "64MiB"})
    change(l, cache={"memory": "96MiB"})
    for _ in range(2):
        assert "64MiB stays in force" in str(l.admin("POST", "/reload"))
    change(l, cache={"memory": "64MiB"})
    assert "memory" not in str(l.admin("POST", "/reload"))
