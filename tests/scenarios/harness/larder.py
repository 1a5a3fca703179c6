"""Larder under test: writes its configuration, starts it, asks its admin port, and at the end holds it to account."""
import contextlib
import http.client
import json
import os
import resource
import signal
import subprocess
import time
from pathlib import Path

from .client import Client
from .tools import BINARY, BOUND_S, cpu_s, free_port, read_proc, until, until_quiet

SANITIZERS = {
    "ASAN_OPTIONS": "detect_leaks=1:exitcode=99:quarantine_size_mb=8:detect_stack_use_after_return=0",
    "LSAN_OPTIONS": "exitcode=99",
    "UBSAN_OPTIONS": "print_stacktrace=1:exitcode=99",
    "TSAN_OPTIONS": "exitcode=99:second_deadlock_stack=1",
}
REPORTS = ("Sanitizer", "runtime error:", "CHECK failed", "check failed")
# All that may run on by itself once its clients have left: lingering closes, half-closed clients, idle origin connections.
SETTLE_S = 12


def is_file_origin(origin):
    return isinstance(origin, (str, Path))


class Larder:
    """serve -c FILE, on a port of its own. `origin` is an Origin, a real server, a list of them (several servers of one origin),
    or a directory. Keywords are configuration items: clients={"head_timeout": "2s"}; origin_items go to the origin.
    """

    def __init__(self, home, origin=None, clock=None, origin_items=None, descriptors=None, sites=None, origins=None, listen=None,
                 options=(), start=True, **items):
        self.home, self.clock = home, clock
        self.port, self.admin_port = free_port(), free_port()
        self.address = ("127.0.0.1", self.port)
        self.config_path, self.log_path = home / f"larder-{self.port}.yaml", home / f"access-{self.port}.log"
        self.config = {
            "workers": 2,
            "listen": listen or f"127.0.0.1:{self.port}",
            "admin": {"listen": f"127.0.0.1:{self.admin_port}"},
            "cache": {"memory": "64MiB"},
            "access_log": {"path": str(self.log_path), "format": "json"},
            "origins": origins or {"app": self._origin(origin, origin_items)},
        }
        if sites:
            self.config["sites"] = sites
        for name, value in items.items():
            if isinstance(value, dict) and isinstance(self.config.get(name), dict):
                self.config[name] = {**self.config[name], **value}
            else:
                self.config[name] = value
        self.descriptors, self.options = descriptors, list(options)
        self.clients, self.process = [], None
        self.write_config()
        if start:
            self.start()

    @staticmethod
    def _origin(origin, items):
        if is_file_origin(origin):
            return {"root": str(origin), **(items or {})}
        servers = origin if isinstance(origin, list) else [origin]
        return {"servers": [s.url for s in servers], **(items or {})}

    def write_config(self, text=None):
        self.config_path.write_text(text or json.dumps(self.config, indent=2))  # JSON is YAML

    # ---- life

    def start(self):
        env = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD",)}
        env.update({k: os.environ.get(k, v) for k, v in SANITIZERS.items()})
        if self.clock:
            env["LARDER_TEST_CLOCK"] = str(self.clock.path)
        self.stderr_path = self.home / f"larder-{self.port}.err"
        limit = (self.descriptors, self.descriptors)

        def lower_limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, limit)

        with open(self.stderr_path, "wb") as err:
            self.process = subprocess.Popen([BINARY, "serve", "-c", self.config_path, *self.options], stdin=subprocess.DEVNULL,
                                            stdout=err, stderr=err, env=env, cwd=self.home,
                                            preexec_fn=lower_limit if self.descriptors else None)
        until(lambda: "listens on" in self.stderr() or self.process.poll() is not None, "the line that says where it listens")
        assert self.process.poll() is None, f"Larder did not start:\n{self.stderr()}"
        self.descriptors_at_start = until_quiet(self.descriptor_count, rounds=8)  # its threads are still opening theirs

    def stderr(self):
        return self.stderr_path.read_text(errors="replace")

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def wait_exit(self):
        """The exit status, with the sanitizers' word that all was well."""
        status = self.process.wait(BOUND_S)
        err = self.stderr()
        assert not any(report in err for report in REPORTS), f"a report:\n{err}"
        return status

    def stop(self):
        if not self.process or self.process.poll() is not None:
            return
        self.close_clients()
        self.signal(signal.SIGTERM)
        assert self.wait_exit() == 0, self.stderr()

    # ---- clients

    def client(self, **more):
        c = Client(self.address, **more)
        self.clients.append(c)
        return c

    def ask(self, target, fields=None, method="GET", **more):
        """One request on a connection of its own; whole, or the scenario fails."""
        with Client(self.address) as c:
            reply = c.ask(target, fields, method, **more)
        assert reply.whole, reply
        return reply

    def get(self, target, fields=None, **more):
        return self.ask(target, fields, **more)

    def close_clients(self):
        for c in self.clients:
            c.close()
        self.clients.clear()

    # ---- the admin side

    def admin(self, method, path, body=None, fields=None):
        c = http.client.HTTPConnection("127.0.0.1", self.admin_port, timeout=BOUND_S)
        with contextlib.closing(c):
            text = json.dumps(body) if isinstance(body, (dict, list)) else body
            c.request(method, path, text, {"Connection": "close", **(fields or {})})
            r = c.getresponse()
            return r.status, r.read().decode(), dict(r.getheaders())

    def stats(self):
        status, text, _ = self.admin("GET", "/stats")
        assert status == 200, (status, text)
        stats = json.loads(text)
        requests, cache = stats["requests"], stats["cache"]
        return {**stats, "outcomes": requests["by_outcome"], "reasons": requests["by_reason"], "memory": {**cache, **cache["memory"]}}

    def __getattr__(self, name):
        """A counter by its name in base/stats.h: larder.fill_joined."""
        if name.startswith("_"):
            raise AttributeError(name)
        counters = self.stats()["counters"]
        if name not in counters:
            raise AttributeError(f"no counter {name}; there are {', '.join(sorted(counters))}")
        return counters[name]

    def wait_for(self, **counters):
        """Until these counters have these values: the barrier of most scenarios."""
        seen = {}

        def has_come():
            now = self.stats()["counters"]
            seen.update({name: now[name] for name in counters})
            return seen == counters

        try:
            until(has_come, str(counters))
        except AssertionError:
            raise AssertionError(f"wanted {counters}, it stays at {seen}") from None

    def within(self, seconds, condition, what):
        """Lets Larder's time pass, but no more than so much, until the condition holds."""
        passed = 0

        def step():
            nonlocal passed
            if condition():
                return True
            if passed < seconds:
                self.clock.advance(0.5)
                passed += 0.5
            return False

        until(step, f"{what}, within {seconds} s")

    def counted(self):
        """The stats, after the requests that have their answers were counted: that comes a moment after the answer's last byte."""
        end = time.monotonic() + 1
        while (stats := self.stats())["counters"]["exchanges_live"] > 0 and time.monotonic() < end:
            time.sleep(0.01)
        return stats

    def outcome(self, word):
        return self.counted()["outcomes"][word]

    def reason(self, word):
        return self.counted()["reasons"][word]

    def purge(self, url):
        """How many objects went."""
        status, text, _ = self.admin("POST", "/purge", {"url": url})
        assert status in (200, 404), (status, text)
        return json.loads(text)["purged"]

    def reload(self):
        return self.admin("POST", "/reload")

    def log(self):
        """The access log's lines so far, as objects."""
        return [json.loads(line) for line in self.log_path.read_text().splitlines()]

    # ---- the process

    def descriptor_count(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def cpu_s(self):
        return cpu_s(self.process.pid)

    def memory_bytes(self):
        """What it holds of the machine: its own pages, and those of its memory files, which no mapping shows."""
        status = dict(line.split(":", 1) for line in read_proc(self.process.pid, "status").splitlines() if ":" in line)
        held = 1024 * (int(status["RssAnon"].split()[0]) + int(status["RssShmem"].split()[0]))
        for fd in os.listdir(f"/proc/{self.process.pid}/fd"):
            with contextlib.suppress(OSError):
                path = f"/proc/{self.process.pid}/fd/{fd}"
                if "memfd:" in os.readlink(path):
                    held += os.stat(path).st_blocks * 512
        return held

    # ---- the account

    def settle(self):
        """Everybody has left: nothing may be under way any more, and every request must have had one end."""
        self.close_clients()
        live = ("exchanges_live", "fills_live", "followers_live", "client_open", "client_idle", "origin_open", "origin_idle")
        left, given = {}, 0.0

        def is_at_rest():
            nonlocal given
            counters = self.stats()["counters"]
            left.clear()
            left.update({name: counters[name] for name in live if counters[name] != 0})
            if left and self.clock and given < SETTLE_S:
                self.clock.advance(0.5)  # no further than that: a timeout must not tidy up what should have ended by itself
                given += 0.5
            return not left

        try:
            until(is_at_rest, "rest")
        except AssertionError:
            raise AssertionError(f"still there after all have left: {left}") from None
        # the admin side closes the connection of our last look a moment later
        until(lambda: self.descriptor_count() <= self.descriptors_at_start, "descriptors as at the start")
        stats = self.stats()
        for table in ("outcomes", "reasons"):
            total = sum(stats[table].values())
            assert total == stats["counters"]["exchanges"], f"{table} say {total}: {stats[table]}"
        assert stats["memory"]["filling_bytes"] == 0, stats["memory"]

        def is_within():
            memory = self.stats()["memory"]
            return memory["used_bytes"] <= memory["budget_bytes"]

        until(is_within, "memory within its budget")
