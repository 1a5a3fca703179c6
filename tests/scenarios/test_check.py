"""`larder check` runs the tests of rules; `larder config --preset` shows what a preset's rules are."""
import subprocess

import pytest

from harness.tools import BINARY

SITE = """origins: { app: { servers: [ "http://127.0.0.1:8000" ] } }
sites:
  - hosts: [ "*" ]
    origin: app
    rules:
      - { match: { path: "/static/**" }, cache: { ttl: 1d } }
    tests:
      - { request: { url: "http://a.test/static/a.css" }, expect: { ttl: %s } }
      - { request: { url: "http://a.test/" }, response: { fields: { Cache-Control: no-store } }, expect: { stored: false } }
"""


def run(*arguments):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=60)


def test_rules_that_do_what_their_tests_say(home):
    path = home / "larder.yaml"
    path.write_text(SITE % "1d")
    done = run("check", "-c", path)
    assert done.returncode == 0 and done.stdout.splitlines()[0] == "2 rule tests passed" and "good" in done.stdout


def test_a_rule_that_does_not(home):
    path = home / "larder.yaml"
    path.write_text(SITE % "2d")
    done = run("check", "-c", path)
    assert done.returncode == 1 and "good" not in done.stdout
    assert f"{path}:8: " in done.stderr and "1 of 2 rule tests failed" in done.stderr.splitlines()


def test_without_tests_nothing_is_said_of_them(home):
    path = home / "larder.yaml"
    path.write_text(SITE.partition("    tests:")[0])
    done = run("check", "-c", path)
    assert done.returncode == 0 and "rule test" not in done.stdout + done.stderr


def test_presets_are_shown():
    done = run("config", "--preset", "nosuch")
    assert done.returncode == 2 and done.stdout == ""
    names = done.stderr.rpartition("there are ")[2].split()
    assert "wordpress" in names
    for name in names:
        shown = run("config", "--preset", name)
        assert shown.returncode == 0 and "match" in shown.stdout
