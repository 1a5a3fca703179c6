"""The operator's side: figures that add up, metrics that a Prometheus takes, purge, health, configuration; and who may ask."""
import json
import math
import re
import shutil
import socket
import subprocess
import urllib.request

import pytest

from harness.origin import reply
from harness.tools import ROOT, free_port, until

FRESH = {"Cache-Control": "max-age=600"}


@pytest.fixture
def busy(origin, larder):
    """One of each: a miss, two hits, a pass, a fault, a refusal."""
    origin.on("/a", reply("page", FRESH)).on("/form", reply("thanks")).on("/dies", lambda wire: wire.close())
    l = larder(origin)
    for _ in range(3):
        l.get("/a")
    l.ask("/form", method="POST", body=b"x")
    l.get("/dies")
    with l.client() as c:
        c.send("nonsense\r\n\r\n").reply()
    l.wait_for(exchanges=6, exchanges_live=0)
    return l


def table_of(name):
    """The rows of a table of the C sources: the counters' and words' one place."""
    stats, verdict = (ROOT / "base" / f for f in ("stats.h", "verdict.h"))
    if name == "STATS":
        text = stats.read_text()
        return re.findall(r"^    X\((\w+),\s+(COUNTER|GAUGE)", text, re.M)
    text = verdict.read_text()
    block = text[text.index(f"#define {name}(X)") :]
    return re.findall(r'^    X\(\w+,\s+"([\w-]+)"', block[: block.index("\nenum")], re.M)


def test_every_counter_is_in_the_stats_and_they_add_up(busy):
    stats = busy.stats()
    assert set(stats["counters"]) == {name for name, _ in table_of("STATS")}
    assert set(stats["outcomes"]) == set(table_of("OUTCOMES")) and set(stats["reasons"]) == set(table_of("REASONS"))
    assert {w: n for w, n in stats["outcomes"].items() if n} == {"miss": 1, "hit": 2, "pass": 1, "fault": 1, "refused": 1}
    assert sum(stats["reasons"].values()) == stats["counters"]["exchanges"] == 6
    memory = stats["memory"]
    assert memory["objects"] == 1
    parts = ("body_memory_bytes", "body_file_bytes", "head_bytes", "index_bytes", "filling_bytes", "other_bytes")
    assert sum(memory[part] for part in parts) == memory["used_bytes"] <= memory["budget_bytes"]


SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? (\S+)\Z')


def samples_of(text):
    """Reads the text format strictly: HELP and TYPE before a family's samples, which stand together, none twice."""
    kinds, helped, seen, closed, samples = {}, set(), set(), set(), {}
    current = None
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# "):
            word, name, rest = line[2:].split(" ", 2)
            assert word in ("HELP", "TYPE") and name not in seen, line
            if word == "HELP":
                assert name not in helped and rest
                helped.add(name)
            else:
                assert rest in ("counter", "gauge", "histogram", "summary") and name not in kinds
                kinds[name] = rest
            continue
        m = SAMPLE.match(line)
        assert m, f"not a sample: {line!r}"
        family = next(f for f in (m[1], re.sub("_(bucket|sum|count)$", "", m[1])) if f in kinds)
        assert family in helped and family not in closed, line
        if family != current:
            closed |= {current}
            current = family
        seen.add(family)
        key = (m[1], m[2] or "")
        assert key not in samples, f"twice: {key}"
        samples[key] = float(m[3])
        assert not math.isnan(samples[key])
        assert kinds[family] != "counter" or m[1].endswith("_total"), m[1]
    assert seen == set(kinds), f"without samples: {set(kinds) - seen}"
    return samples


def test_metrics_are_well_formed_and_say_what_the_stats_say(busy):
    status, text, fields = busy.admin("GET", "/metrics")
    assert status == 200 and fields["Content-Type"].startswith("text/plain")
    samples = samples_of(text)
    names = {name for name, _ in samples}
    for name, kind in table_of("STATS"):
        name = re.sub("_us$", "_seconds", name) + ("_total" if kind == "COUNTER" else "")  # Prometheus's base units
        assert f"larder_{name}" in names
    assert 6.0 in samples.values()


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")
def test_promtool_has_nothing_to_say(busy):
    _, text, _ = busy.admin("GET", "/metrics")
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr + done.stdout == "", done.stderr + done.stdout


@pytest.mark.skipif(not shutil.which("prometheus"), reason="prometheus is not installed")
def test_a_real_prometheus_scrapes_it(busy, home):
    port = free_port()
    (home / "prometheus.yml").write_text(json.dumps({
        "global": {"scrape_interval": "1s"},
        "scrape_configs": [{"job_name": "larder", "static_configs": [{"targets": [f"127.0.0.1:{busy.admin_port}"]}]}]}))
    with open(home / "prometheus.log", "wb") as log:
        p = subprocess.Popen(["prometheus", f"--config.file={home}/prometheus.yml", f"--storage.tsdb.path={home}/tsdb",
                              f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
    try:
        def target():
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/targets", timeout=5) as r:
                    active = json.load(r)["data"]["activeTargets"]
            except OSError:
                return None
            return active[0] if active and active[0]["health"] != "unknown" else None

        t = until(target, "a scrape")
        assert t["health"] == "up" and t["lastError"] == ""
    finally:
        p.terminate()
        p.wait(20)


def test_health_and_pages(busy):
    assert busy.admin("GET", "/healthz")[0] == 200
    status, page, fields = busy.admin("GET", "/")
    assert status == 200 and fields["Content-Type"].startswith("text/html") and "larder" in page.lower()
    status, text, _ = busy.admin("GET", "/config")
    assert status == 200 and "64MiB" in text and str(busy.port) in text
    assert busy.admin("GET", "/nothing")[0] == 404
    assert busy.admin("GET", "/purge")[0] == 405 and busy.admin("POST", "/stats", "")[0] == 405


def test_purge_says_what_it_cannot_do(busy):
    for body in ("", "{", "[]", "{}", '{"url": 1}', '{"url": "not a url"}', '{"url": "http://site.test/a", "surprise": 1}', "x" * 100_000):
        status, text, _ = busy.admin("POST", "/purge", body)
        assert 400 <= status < 500 and text, body[:40]
    assert busy.get("/a").verdict == "hit"
    busy.wait_for(purged=0)


def test_a_token_is_asked_for_when_one_is_set(origin, larder):
    origin.on("/a", reply("page", FRESH))
    l = larder(origin, admin={"token": "open-sesame"}, start=False)
    right = {"Authorization": "Bearer open-sesame"}
    plain = l.admin
    l.admin = lambda method, path, body=None, fields=None: plain(method, path, body, right if fields is None else fields)
    l.start()
    for fields in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic open-sesame"}, {"Authorization": "Bearer open-sesame2"}):
        for method, path in (("GET", "/stats"), ("GET", "/metrics"), ("GET", "/config"), ("POST", "/purge"), ("POST", "/reload"), ("GET", "/")):
            assert plain(method, path, "", fields)[0] == 401, (path, fields)
    assert l.stats()["counters"]["reloads"] == 0
    assert "open-sesame" not in l.admin("GET", "/config")[1]


def test_a_page_from_elsewhere_cannot_use_the_admin_port(busy):
    """A browser on the operator's machine: other origins' forms and rebound names must not reach it."""
    for fields in ({"Origin": "http://evil.test"}, {"Host": "evil.test"}, {"Sec-Fetch-Site": "cross-site"}):
        assert busy.admin("POST", "/purge", {"url": "http://site.test/a"}, fields)[0] in (401, 403, 421), fields
    busy.wait_for(purged=0)


def test_admin_off(origin, larder):
    l = larder(origin, admin="off", start=False)
    l.descriptor_count = lambda: 0
    l.settle = lambda: None
    l.start()
    origin.on("/a", reply("page", FRESH))
    assert [l.get("/a").verdict for _ in range(2)] == ["stored", "hit"]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", l.admin_port), 5)


def test_figures_do_not_stop_anybody(busy):
    """Hundreds of looks at every page while requests run."""
    with busy.client() as c:
        for n in range(60):
            assert busy.admin("GET", ("/stats", "/metrics", "/")[n % 3])[0] == 200
            assert c.get("/a").verdict == "hit"
