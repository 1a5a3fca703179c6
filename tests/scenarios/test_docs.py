"""What the manual shows is run: the boxes of docs/caching.md (its third paragraph says how they read) and the purges of docs/purge.md.
docs/explain.md is run by test_explain.py, docs/rules.md by tests/unit/config/test_rules_manual.c.
"""
import json
import re
import shlex
import subprocess
from email.utils import formatdate
from time import time

import pytest
import yaml

from harness.origin import reply
from harness.told import ask
from harness.tools import BINARY, ROOT

CACHING = (ROOT / "docs/caching.md").read_text()
PURGE = (ROOT / "docs/purge.md").read_text()
BOXES = re.findall(r"^```example\n(.*?)^```", CACHING, re.M | re.S)
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def lines_of(box):
    rows = [line.split(None, 1) for line in box.splitlines()]
    assert {word for word, _ in rows} <= {"config", "ask", "origin", "after"}, box
    return {word: [rest for w, rest in rows if w == word] for word in ("config", "ask", "origin", "after")}


def field(line):
    name, value = line.split(": ", 1)
    ago = re.fullmatch(r"(\d+) s ago", value)
    return name, formatdate(time() - int(ago[1]), usegmt=True) if ago else value


def answers(given):
    """With these fields; 304 to a request that has its own tag."""

    def story(wire):
        fields = [field(line) for line in given]
        tag = dict(fields).get("ETag")
        is_same = tag is not None and wire.request.get("If-None-Match") == tag
        reply(b"" if is_same else b"page", fields, 304 if is_same else 200)(wire)

    return story


def test_there_are_boxes():
    assert len(BOXES) >= 12 and PURGE.count("curl -d") >= 8


@pytest.mark.parametrize("box", BOXES, ids=range(len(BOXES)))
def test_a_box_of_caching(origin, larder, clock, box):
    rows = lines_of(box)
    items = yaml.safe_load("\n".join(rows["config"])) if rows["config"] else {}
    l = larder(origin, cache=items or {})
    origin.on("/a", answers(rows["origin"]))
    now = 0
    for line in rows["after"]:
        when, outcome = line.split("s ", 1)
        words = [word.strip() for word in outcome.split(";")]
        clock.advance(float(when) - now)
        now = float(when)
        r = ask(l, "/a", dict(field(line) for line in rows["ask"]))
        assert r.told[0] == words[0], (box, line, r)
        for word in words[1:]:
            name, seconds = word.split()
            seen = r.get("Age") if name == "age" else r.cache_status["ttl"]
            assert abs(int(seen) - int(seconds)) <= 2, (box, line, r)


def test_each_purge_by_curl_is_understood(origin, larder):
    l = larder(origin)
    for body in re.findall(r"curl (?:-\w+ )*-d '(\{.*?\})'", PURGE):
        status, said = purge(l, body)
        assert status in (200, 404) and set(said) >= {"mode", "how", "objects", "keys", "fills"}, (body, status, said)


def purge(l, body):
    status, text, _ = l.admin("POST", "/purge", body)
    return status, json.loads(text)


def test_each_purge_by_command_is_understood(origin, larder):
    l = larder(origin)
    rows = re.findall(r"^\| [^|]+ \| `([^`]+)` \| `(\{[^`]+\})` \|$", PURGE, re.M)
    assert len(rows) == 7
    for arguments, body in rows:
        command = [str(BINARY), "purge", "--admin", f"127.0.0.1:{l.admin_port}", "--json", *shlex.split(arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        assert done.returncode in (0, 1), (command, done.stderr)
        assert json.loads(done.stdout)["mode"] == purge(l, body)[1]["mode"]
