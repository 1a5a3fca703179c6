"""The command line: messages that a person can act on, and commands that say what they did."""
import os
import re
import signal
import socket
import subprocess

import pytest

from harness.client import Client
from harness.origin import reply
from harness.tools import BINARY, ROOT, free_port, until

SITE = "origins:\n  app: { servers: [\"http://127.0.0.1:8000\"] }\n"


def run(*arguments, **more):
    return subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=60, **more)


# ten wrong files: what is in them, where the mistake is, and what the message must name
WRONG = {
    "a misspelt item": (SITE + "cache:\n  memroy: 1GiB\n", (4, 3), ["cache.memroy", "did you mean", "cache.memory"]),
    "a size without its unit": (SITE + "cache: { memory: 512 }\n", (3, 18), ["cache.memory", "512", "16MiB"]),
    "below the least": (SITE + "cache: { memory: 1MiB }\n", (3, 18), ["cache.memory", "1MiB", "16MiB", "4TiB"]),
    "a duration that is none": (SITE + "clients:\n  idle_timeout: soon\n", (4, 17), ["clients.idle_timeout", "soon"]),
    "an origin that is not there": (SITE + "sites:\n  - { hosts: [\"*\"], origin: ap }\n", (4, 29), ["ap", "app"]),
    "servers and root at once": ("origins:\n  app: { servers: [\"http://a\"], root: /var/www }\n", (2, None), ["origins.app"]),
    "an https server": ("origins:\n  app: { servers: [\"https://a\"] }\n", (2, None), ["origins.app.servers", "https://a"]),
    "a host twice": (SITE + "sites:\n  - { hosts: [a.test], origin: app }\n  - { hosts: [A.test], origin: app }\n", (5, None), ["a.test"]),
    "an open admin port without a token": (SITE + "admin: { listen: \"0.0.0.0:6081\" }\n", (3, None), ["admin.token"]),
    "not YAML": (SITE + "cache: { memory: 1GiB\nlisten: [\n", (4, None), []),
    "an item twice": (SITE + "workers: 1\nworkers: 2\n", (4, 1), ["workers"]),
    "a tab": ("origins:\n\tapp: x\n", (2, None), []),
    "a log format with an unknown field": (SITE + "access_log: { format: \"{client} {stauts}\" }\n", (None, None), ["access_log.format", "stauts"]),
}


@pytest.mark.parametrize("name", WRONG)
def test_check_says_what_is_wrong_and_where(home, name):
    text, (line, column), words = WRONG[name]
    path = home / "larder.yaml"
    path.write_text(text)
    done = run("check", "-c", path)
    assert done.returncode != 0 and done.stdout == ""
    assert len(done.stderr.splitlines()) >= 1
    if line:
        assert re.search(rf"^{re.escape(str(path))}:{line}:{column or '[0-9]+'}: ", done.stderr, re.M), done.stderr
    for word in words:
        assert word in done.stderr, done.stderr


def test_all_mistakes_are_told_in_the_order_of_the_file(home):
    path = home / "larder.yaml"
    path.write_text("workers: many\nlisten: nowhere:port\ncache: { memory: big, max_objekt: 1KiB }\n" + SITE + "log_level: loud\n")
    lines = run("check", "-c", path).stderr.splitlines()
    assert len(lines) == 5 and [int(re.search(r":(\d+):\d+: ", l)[1]) for l in lines] == [1, 2, 3, 3, 6]


@pytest.mark.parametrize("path", [ROOT / "packaging/larder.yaml", "written"])
def test_good_files_are_called_good(home, path):
    if path == "written":
        path = home / "larder.yaml"
        path.write_text(SITE)
    done = run("check", "-c", path)
    assert done.returncode == 0 and "good" in done.stdout and done.stderr == ""


def test_a_file_that_is_not_there(home):
    done = run("check", "-c", home / "none.yaml")
    assert done.returncode != 0 and "none.yaml" in done.stderr and "No such file" in done.stderr


def test_config_lists_every_item_with_its_default():
    done = run("config", "--defaults")
    assert done.returncode == 0
    table = re.findall(r'^    \{ "([\w.*]+)", CONFIG_', (ROOT / "config/items.c").read_text(), re.M)
    assert len(table) > 40
    shown = set(done.stdout.splitlines())
    for item in table:
        assert item.replace("origins.*", "origins.NAME").replace("sites.*", "sites[]").replace("rules.*", "rules[]").replace(
            "tests.*", "tests[]"
        ) in shown, item
    for word in ("512MiB", "127.0.0.1:6081", "65s"):
        assert word in done.stdout


def test_config_shows_a_files_values_and_hides_secrets(home):
    path = home / "larder.yaml"
    path.write_text(SITE + "admin: { token: open-sesame }\ncache: { memory: 1GiB }\n")
    done = run("config", "-c", path)
    assert done.returncode == 0 and "1GiB" in done.stdout and "open-sesame" not in done.stdout + done.stderr
    shown = home / "shown.yaml"
    shown.write_text(done.stdout.replace('"***"', "x").replace("***", "x"))
    assert run("check", "-c", shown).returncode == 0, "what config prints is a configuration again"


def test_version_and_help():
    version = re.search(r"VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text().replace("VERSION 3.22", ""))[1]
    assert run("version").stdout == f"larder {version}\n"
    done = run("--help")
    assert done.returncode == 0 and "larder serve" in done.stdout
    for arguments in ([], ["sreve"], ["serve"], ["serve", "--what"], ["serve", "--origin"]):
        done = run(*arguments)
        assert done.returncode == 2 and done.stderr and done.stdout == "", arguments


def test_stat_purge_and_reload_speak_to_the_admin_port(origin, larder):
    origin.on("/a", reply("page", {"Cache-Control": "max-age=60"}))
    l = larder(origin)
    l.get("/a")
    l.get("/a")
    at = ["--admin", f"127.0.0.1:{l.admin_port}"]
    done = run("stat", *at)
    assert done.returncode == 0 and "hit" in done.stdout, done.stderr
    done = run("purge", *at, "http://site.test/a")
    assert done.returncode == 0 and "1" in done.stdout
    assert l.get("/a").verdict == "stored"
    done = run("reload", *at)
    assert done.returncode == 0
    l.wait_for(reloads=1)
    l.write_config("nonsense: 1\n")
    done = run("reload", *at)
    assert done.returncode != 0 and "nonsense" in done.stderr + done.stdout


def test_stat_when_nobody_is_there():
    done = run("stat", "--admin", f"127.0.0.1:{free_port()}")
    assert done.returncode != 0 and "refused" in done.stderr.lower()


@pytest.fixture
def served(home):
    """serve with options instead of a file."""
    started = []

    def serve(*arguments):
        port, admin = free_port(), free_port()
        err = open(home / "err", "wb+")
        p = subprocess.Popen([BINARY, "serve", "--listen", f"127.0.0.1:{port}", "--admin", f"127.0.0.1:{admin}", *map(str, arguments)], stderr=err)
        started.append(p)
        until(lambda: b"listens on" in (home / "err").read_bytes() or p.poll() is not None, "the line")
        assert p.poll() is None, (home / "err").read_text()
        return p, ("127.0.0.1", port), home / "err"

    yield serve
    for p in started:
        if p.poll() is None:
            p.kill()
        p.wait()


def test_no_file_is_needed(served, home, origin):
    (home / "index.html").write_text("from the directory")
    origin.on("/", reply("from the origin", {"Cache-Control": "max-age=60"}))
    for arguments, body in ((["--root", home], b"from the directory"), (["--origin", origin.url, "--workers", 1, "--memory", "32MiB"], b"from the origin")):
        p, address, err = served(*arguments)
        with Client(address) as c:
            assert c.get("/").body == body and c.get("/").verdict == "hit"
        lines = err.read_text().splitlines()
        assert len(lines) == 1 and str(address[1]) in lines[0] and "admin" in lines[0], lines
        p.send_signal(signal.SIGTERM)
        assert p.wait(30) == 0


def test_a_port_that_is_taken(home, origin):
    done = run("serve", "--listen", f"127.0.0.1:{origin.port}", "--root", home, "--admin", "off")
    assert done.returncode == 1 and str(origin.port) in done.stderr and "in use" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to drop")
def test_rights_are_dropped_after_binding(origin, larder):
    """A privileged port, then nobody's rights."""
    origin.on("/a", reply("page", {"Cache-Control": "max-age=60"}))
    l = larder(origin, user="nobody", access_log="off", listen=["127.0.0.1:81"])
    status = dict(line.split(":", 1) for line in open(f"/proc/{l.process.pid}/status") if ":" in line)
    assert "0" not in status["Uid"].split() and "0" not in status["Gid"].split()
    with Client(("127.0.0.1", 81)) as c:
        assert c.get("/a").body == b"page"


def test_systemd_is_told(home, origin, larder, monkeypatch):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(str(home / "notify"))
        s.settimeout(20)
        monkeypatch.setenv("NOTIFY_SOCKET", str(home / "notify"))
        l = larder(origin)
        assert b"READY=1" in s.recv(500)
        l.settle()
        l.stop()
        assert b"STOPPING=1" in s.recv(500)
