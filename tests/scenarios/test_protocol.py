"""HTTP/1 on both sides (RFC 9112, RFC 9110): what is taken, what is refused, and what the origin gets to see."""
import re
import shutil
import threading

import pytest

from harness.client import Client
from harness.larder import Larder
from harness.origin import Origin, reply, takes_body
from harness.tools import Clock, body_of, free_port, home_dir, until

FRESH = {"Cache-Control": "max-age=60"}
NO_STORE = {"Cache-Control": "no-store"}
END = "Host: site.test\r\n\r\n"


# ---- connections -------------------------------------------------------------------------------------------------------


def test_many_requests_on_one_connection(origin, larder):
    origin.on("/a", reply("page", FRESH))
    l = larder(origin)
    with l.client() as c:
        for n in range(100):
            r = c.get("/a")
            assert r.body == b"page" and r.verdict == ("stored" if n == 0 else "hit")
            assert r.get("Connection") is None
    l.wait_for(client_accepted=1, exchanges=100)


@pytest.mark.parametrize("target", ["/hit", "/pass"])
def test_http_1_0_with_and_without_keep_alive(origin, larder, target):
    """ab -k and ab: the first is kept and told so, the second is closed."""
    origin.on("/hit", reply("page", FRESH)).on("/pass", reply("page", NO_STORE))
    l = larder(origin)
    l.get(target)
    with l.client() as c:
        for _ in range(3):
            r = c.get(target, {"Connection": "Keep-Alive"}, version="HTTP/1.0")
            assert r.body == b"page" and r.framing == "length" and r.get("Connection").lower() == "keep-alive"
        r = c.get(target, version="HTTP/1.0")
        assert r.body == b"page" and r.get("Connection") == "close" and c.ends() == "fin"


def test_connection_close_is_honoured_and_said(origin, larder):
    origin.on("/a", reply("page", FRESH))
    l = larder(origin)
    with l.client() as c:
        r = c.get("/a", {"Connection": "close"})
        assert r.body == b"page" and r.get("Connection") == "close" and c.ends() == "fin"


def test_pipelined_requests_are_answered_in_order(origin, larder):
    """Hits, misses and passes mixed, in one packet, some behind a slow one."""
    slow = threading.Event()
    for n in range(40):
        origin.on(f"/{n}", reply(f"page {n}" * (1 + n * 30), FRESH if n % 3 else NO_STORE, barrier=slow if n == 7 else None))
    l = larder(origin)
    for n in range(0, 40, 2):
        if n != 7:
            l.get(f"/{n}")
    with l.client() as c:
        c.send("".join(f"GET /{n} HTTP/1.1\r\n{END}" for n in range(40)))
        for n in range(40):
            if n == 7:
                slow.set()
            r = c.reply()
            assert r.whole and r.body == (f"page {n}" * (1 + n * 30)).encode()
        assert c.is_open()


def test_a_hundred_pipelined_hits_all_come(origin, larder):
    origin.on("/a", reply("x" * 100, FRESH))
    l = larder(origin)
    l.get("/a")
    with l.client() as c:
        c.send(f"GET /a HTTP/1.1\r\n{END}" * 100)
        c.half_close()
        assert [c.reply().verdict for _ in range(100)] == ["hit"] * 100


def test_a_client_that_closes_its_half_still_gets_its_answer(origin, larder):
    go = threading.Event()
    origin.on("/a", reply("page", FRESH, barrier=go))
    l = larder(origin)
    with l.client() as c:
        c.request("/a").half_close()
        assert origin.first_request.wait(20)
        go.set()
        assert c.reply().body == b"page"


def test_heads_that_come_a_byte_at_a_time(origin, larder):
    origin.on("/a", reply("page", FRESH)).on("/form", reply("thanks"))
    l = larder(origin)
    get, post = f"GET /a HTTP/1.1\r\n{END}", "POST /form HTTP/1.1\r\nHost: site.test\r\nTransfer-Encoding: chunked\r\n\r\n5;x=1\r\nhello\r\n0\r\nT: x\r\n\r\n"
    with l.client() as c:
        for byte in get + post + get:
            c.send(byte)
        assert [c.reply().body for _ in range(3)] == [b"page", b"thanks", b"page"]
    assert origin.last("/form").body == b"hello"


def test_an_origins_head_and_body_that_come_a_byte_at_a_time(origin, larder):
    text = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;e\r\nde\r\n0\r\nX: y\r\n\r\n"

    def story(wire):
        for byte in text:
            wire.send(byte)

    origin.on("/a", story)
    l = larder(origin)
    assert l.get("/a").body == b"abcde"
    r = l.get("/a")
    assert (r.verdict, r.body, r.framing) == ("hit", b"abcde", "length")


def test_other_listeners(origin, larder, home):
    """IPv6 and a unix socket serve the same pages; the socket's file goes with the program."""
    origin.on("/a", reply("page", FRESH))
    path, port6 = str(home / "larder.sock"), free_port("::1")
    l = larder(origin, listen=[f"127.0.0.1:{free_port()}", f"[::1]:{port6}", f"unix:{path}"])
    verdicts = []
    for address in (("::1", port6), path):
        with Client(address) as c:
            verdicts.append(c.get("/a").verdict)
    assert verdicts == ["stored", "hit"]
    l.settle()
    l.stop()
    assert not (home / "larder.sock").exists()


def test_an_origin_on_a_unix_socket(origins, larder, home):
    o = origins(path=str(home / "app.sock"))
    o.on("/a", reply("page", FRESH))
    l = larder(o)
    assert l.get("/a").body == b"page"
    assert o.last().get("Host") == "site.test"


# ---- bodies ------------------------------------------------------------------------------------------------------------

SIZES = [0, 1, 4095, 4096, 65535, 65536, 300_000]


@pytest.mark.parametrize("how", ["length", "chunked", "close"])
@pytest.mark.parametrize("fields", [FRESH, NO_STORE], ids=["cacheable", "uncacheable"])
def test_bodies_of_all_framings_and_sizes(origin, larder, how, fields):
    for size in SIZES:
        origin.on(f"/{size}", reply(body_of(size), fields, chunked=how == "chunked", close=how == "close"))
    l = larder(origin)
    for size in SIZES:
        for version in ("HTTP/1.1", "HTTP/1.0", "HTTP/1.1"):
            r = l.get(f"/{size}", version=version)
            assert r.body == body_of(size) and (version == "HTTP/1.1" or r.framing != "chunked")


@pytest.mark.parametrize("size", [0, 1, 70_000, 3 << 20])
@pytest.mark.parametrize("chunked", [False, True])
def test_request_bodies_arrive_whole(origin, larder, size, chunked):
    origin.on("/form", reply("thanks"))
    l = larder(origin)
    body = body_of(size)
    if chunked:
        wire = b"".join(b"%x\r\n%s\r\n" % (len(body[at : at + 9999]), body[at : at + 9999]) for at in range(0, size, 9999)) + b"0\r\n\r\n"
        r = l.ask("/form", {"Transfer-Encoding": "chunked"}, "POST", body=wire)
    else:
        r = l.ask("/form", {"Content-Type": "text/plain"}, "POST", body=body)
    assert r.body == b"thanks" and origin.last().body == body
    got = origin.last()
    assert ("Content-Length" in got.fields) != ("Transfer-Encoding" in got.fields)


def test_expect_100_continue(origin, larder):
    """The client sends its body only after it was told to; one that is refused is never told."""
    origin.on("/form", reply("thanks"))
    l = larder(origin, clients={"max_body": "1KiB"})
    with l.client() as c:
        c.request("/form", {"Expect": "100-continue", "Content-Length": 5}, "POST")
        assert c._until(b"\r\n\r\n").startswith(b"HTTP/1.1 100")
        c.send("hello")
        r = c.reply()
        assert (r.status, r.body, r.interim) == (200, b"thanks", [])
    assert origin.last().body == b"hello" and origin.last().get("Expect") is None
    with l.client() as c:
        c.request("/form", {"Expect": "100-continue", "Content-Length": 5000}, "POST")
        r = c.reply()
        assert r.status == 413 and r.interim == []
    with l.client() as c:
        assert c.ask("/form", {"Expect": "a-miracle"}, "POST", body=b"x").status == 417


def test_an_answer_that_comes_before_the_requests_body(origin, larder):
    """An origin that refuses early is heard; the connection cannot be used again, and says so."""

    @takes_body
    def story(wire):
        reply("no room", status=413, fields=NO_STORE)(wire)
        wire.until_left()

    origin.on("/form", story)
    l = larder(origin)
    with l.client() as c:
        c.send("POST /form HTTP/1.1\r\nHost: site.test\r\nContent-Length: 1000000\r\n\r\nsome")
        r = c.reply()
        assert (r.status, r.body, r.get("Connection")) == (413, b"no room", "close")


def test_head_has_the_fields_of_get_and_no_body(origin, larder):
    origin.on("/a", reply("page", FRESH)).on("/never-got", reply("page", NO_STORE))
    l = larder(origin)
    with l.client() as c:
        r = c.ask("/never-got", method="HEAD")
        assert r.status == 200 and r.get("Content-Length") == "4"
        c.get("/a")
        r = c.ask("/a", method="HEAD")
        assert (r.verdict, r.get("Content-Length")) == ("hit", "4")
        assert c.get("/a").body == b"page"


@pytest.mark.parametrize("status", [204, 304, 301, 404, 500, 503, 599])
def test_statuses_pass_as_they_are(origin, larder, status):
    origin.on("/a", reply("" if status in (204, 304) else "text", {**NO_STORE, "Location": "/b", "X-Own": "kept"}, status))
    l = larder(origin)
    with l.client() as c:
        r = c.get("/a")
        assert r.status == status and r.get("X-Own") == "kept" and r.whole
        assert c.get("/a").status == status


def test_trailers_of_the_origin_do_not_end_the_body_early(origin, larder):
    def story(wire):
        wire.head(200, {**FRESH, "Transfer-Encoding": "chunked", "Trailer": "X-Sum"}).chunk("body").last_chunk("X-Sum: 1\r\nX-More: 2\r\n")

    origin.on("/a", story, reply("next"))
    l = larder(origin, workers=1)
    assert l.get("/a").body == b"body"
    assert l.get("/a").verdict == "hit"
    assert l.get("/a?2").body == b"next" and origin.connections == 1  # the connection was good for another request


@pytest.mark.parametrize("fields", [FRESH, NO_STORE], ids=["cacheable", "uncacheable"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_interim_answers_reach_1_1_clients_only(origin, larder, fields, method):
    def story(wire):
        wire.send("HTTP/1.1 103 Early Hints\r\nLink: </s.css>\r\n\r\n").send("HTTP/1.1 102 Processing\r\n\r\n")
        reply("page", fields)(wire)

    origin.on("*", story)
    l = larder(origin)
    r = l.ask("/new", method=method, body=b"x" if method == "POST" else None)
    assert r.body == b"page" and [i.status for i in r.interim] == [103, 102]
    assert r.interim[0].get("Link") == "</s.css>"
    r = l.ask("/old", method=method, body=b"x" if method == "POST" else None, version="HTTP/1.0")
    assert r.body == b"page" and r.interim == []


# ---- what the origin gets to see ---------------------------------------------------------------------------------------


def test_the_request_is_written_anew(origin, larder):
    origin.on("/a", reply("page", NO_STORE))
    l = larder(origin)
    l.get("/a?q=1%20x&r", {
        "Host": "Site.Test", "User-Agent": "u", "Cookie": "a=b", "Connection": "X-Private, keep-alive", "X-Private": "1", "Keep-Alive": "timeout=5",
        "Proxy-Connection": "x", "Proxy-Authorization": "secret", "TE": "trailers", "Upgrade": "websocket", "Proxy": "http://evil/",
        "X-Forwarded-For": "6.6.6.6", "X-Forwarded-Host": "evil", "X-Forwarded-Proto": "https", "Forwarded": "for=6.6.6.6",
        "X-Original-URL": "/admin", "X-Kept": "yes",
    })
    seen = origin.last()
    assert (seen.method, seen.target, seen.version) == ("GET", "/a?q=1%20x&r", "HTTP/1.1")
    assert seen.get("User-Agent") == "u" and seen.get("Cookie") == "a=b" and seen.get("X-Kept") == "yes"
    for dropped in ("X-Private", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "Upgrade", "Proxy", "X-Original-URL", "TE"):
        assert dropped not in seen.fields, dropped
    assert seen.fields.all("X-Forwarded-For") == ["127.0.0.1"]
    assert seen.fields.all("X-Forwarded-Proto") == ["http"] and seen.fields.all("X-Forwarded-Host") == ["site.test"]
    assert "Forwarded" not in seen.fields and seen.fields.all("Host") == ["site.test"]  # the canonical form, as in the key
    assert seen.fields.all("Via") == ["1.1 larder"]


def test_fields_that_connection_names_cannot_remove_ours(origin, larder):
    """RFC 9110 7.6.1: dropped first, ours added after."""
    origin.on("/a", reply("page", NO_STORE))
    l = larder(origin)
    l.get("/a", {"Connection": "close, X-Forwarded-For, Via, Host, Cache-Control", "Via": "1.1 other"})
    seen = origin.last()
    assert seen.get("X-Forwarded-For") == "127.0.0.1" and "1.1 larder" in seen.get("Via") and seen.get("Host") == "site.test"


def test_a_trusted_proxys_word_is_kept_and_added_to(origin, larder):
    origin.on("/a", reply("page", NO_STORE))
    l = larder(origin, clients={"trusted_proxies": ["127.0.0.0/8"], "send_forwarded": True})
    l.get("/a", {"X-Forwarded-For": "192.0.2.7", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "www.example.com"})
    seen = origin.last()
    assert seen.get("X-Forwarded-For") == "192.0.2.7, 127.0.0.1"
    assert seen.get("X-Forwarded-Proto") == "https" and seen.get("X-Forwarded-Host") == "www.example.com"
    assert "for=127.0.0.1" in ", ".join(seen.fields.all("Forwarded"))


def test_the_answer_is_written_anew(origin, larder):
    fields = [("Connection", "X-Secret, close"), ("X-Secret", "1"), ("Keep-Alive", "timeout=5"), ("Proxy-Authenticate", "x"), ("X-Kept", "yes"),
              ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), ("Trailer", "X"), ("Upgrade", "h2c"), ("Cache-Control", "no-store")]
    origin.on("/a", reply("page", fields))
    l = larder(origin)
    r = l.get("/a")
    for dropped in ("X-Secret", "Keep-Alive", "Upgrade", "Connection"):
        assert dropped not in r.fields, dropped
    assert r.fields.all("Set-Cookie") == ["a=1", "b=2"] and r.get("X-Kept") == "yes"
    assert r.fields.all("Via") == ["1.1 larder"] and re.fullmatch(r"\w{3}, .* GMT", r.get("Date"))


def test_absolute_form_names_the_host(origin, larder):
    origin.on("/a", reply("page", FRESH))
    l = larder(origin)
    l.get("http://Site.test/a?x", {"Host": "other.test"})
    assert (origin.last().target, origin.last().get("Host")) == ("/a?x", "site.test")
    assert l.get("/a?x").verdict == "hit"  # one key for both forms


def test_sites_by_host(origins, larder):
    served = {name: origins() for name in ("exact", "below", "rest")}
    for name, o in served.items():
        o.on("/", reply(name, FRESH))
    l = larder(origins={name: {"servers": [o.url]} for name, o in served.items()}, sites=[
        {"hosts": ["www.example.com"], "origin": "exact"}, {"hosts": ["*.example.com"], "origin": "below"}, {"hosts": ["*"], "origin": "rest"}])
    for host, name in [("www.example.com", "exact"), ("WWW.Example.COM.", "exact"), ("www.example.com:8080", "exact"), ("a.example.com", "below"),
                       ("a.b.example.com", "below"), ("example.com", "rest"), ("other", "rest"), ("[::1]", "rest")]:
        assert l.get("/", {"Host": host}).body == name.encode(), host


def test_a_host_that_no_site_serves(origin, larder):
    l = larder(origin, sites=[{"hosts": ["www.example.com"], "origin": "app"}])
    assert l.get("/", {"Host": "evil.test"}).status == 421
    assert l.reason("no-site") == 1 and origin.connections == 0


def test_hosts_do_not_share_pages(origin, larder):
    origin.on("/", lambda wire: reply(f"page of {wire.request.get('Host')}", FRESH)(wire))
    l = larder(origin)
    assert {l.get("/", {"Host": h}).body for h in ("a", "b", "a", "b")} == {b"page of a", b"page of b"}
    assert origin.count() == 2


def test_a_servers_own_host(origin, larder):
    origin.on("/", reply("page", NO_STORE))
    l = larder(origin, origin_items={"host": "backend.internal", "send_via": False})
    l.get("/")
    assert origin.last().get("Host") == "backend.internal" and "Via" not in origin.last().fields


# ---- what is refused (each row: RFC 9112's section, the bytes, the status) -----------------------------------------------

POST = "POST / HTTP/1.1\r\nHost: site.test\r\n"
CHUNKED = POST + "Transfer-Encoding: chunked\r\n"
LONG_LIST = "".join(f"X-{n}: y\r\n" for n in range(200))
REFUSED = [
    ("6.3 length and chunked", CHUNKED + "Content-Length: 5\r\n\r\n0\r\n\r\n", 400),
    ("6.3 differing lengths", POST + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 400),
    ("6.3 a list of lengths", POST + "Content-Length: 5, 6\r\n\r\nhello", 400),
    ("6.3 equal lengths twice", POST + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", 400),
    ("6.2 signed length", POST + "Content-Length: +5\r\n\r\nhello", 400),
    ("6.2 negative length", POST + "Content-Length: -1\r\n\r\n", 400),
    ("6.2 hex length", POST + "Content-Length: 0x5\r\n\r\nhello", 400),
    ("6.2 empty length", POST + "Content-Length: \r\n\r\n", 400),
    ("6.2 overflow", POST + "Content-Length: 18446744073709551617\r\n\r\nhello", 400),
    ("6.2 length with a space in it", POST + "Content-Length: 5 5\r\n\r\nhello", 400),
    ("6.1 unknown coding", POST + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
    ("6.1 a coding that looks like chunked", POST + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501),
    ("6.1 identity", POST + "Transfer-Encoding: identity\r\n\r\n", 501),
    ("6.3 chunked is not last", POST + "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", 400),
    ("6.1 HTTP/1.0 with a coding", CHUNKED.replace("1.1\r", "1.0\r") + "\r\n0\r\n\r\n", 400),
    ("6.1 a control byte before chunked", POST + "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", 400),
    ("5.1 white space before the colon", POST + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400),
    ("5.1 no name", POST + ": x\r\n\r\n", 400),
    ("5.1 no colon", POST + "just words\r\n\r\n", 400),
    ("5.1 a name with a bad byte", POST + "X(y): z\r\n\r\n", 400),
    ("5.2 folded line", POST + "X: y\r\n z\r\n\r\n", 400),
    ("2.2 white space before the first field", "GET / HTTP/1.1\r\n Host: site.test\r\n\r\n", 400),
    ("2.2 bare LF", "GET / HTTP/1.1\nHost: site.test\n\n", 400),
    ("2.2 bare LF in a field line", POST + "X: y\nTransfer-Encoding: chunked\r\n\r\n", 400),
    ("2.2 bare CR", POST + "X: y\rz\r\n\r\n", 400),
    ("5.5 NUL in a value", POST + "X: a\0b\r\n\r\n", 400),
    ("5.5 control byte in a value", POST + "X: a\x01b\r\n\r\n", 400),
    ("3.2 no Host", "GET / HTTP/1.1\r\n\r\n", 400),
    ("3.2 two Hosts", f"GET / HTTP/1.1\r\nHost: a\r\n{END}", 400),
    ("3.2 Host is a list", "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", 400),
    ("3.2 Host with a path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400),
    ("3.2 Host with user info", "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", 400),
    ("3.2 Host with a bad port", "GET / HTTP/1.1\r\nHost: a:99999\r\n\r\n", 400),
    ("3 no version", "GET /\r\n\r\n", 400),
    ("3 two spaces", f"GET  / HTTP/1.1\r\n{END}", 400),
    ("3 a space in the target", f"GET /a b HTTP/1.1\r\n{END}", 400),
    ("3.2 a target that is no path", f"GET a HTTP/1.1\r\n{END}", 400),
    ("3.2 a control byte in the target", f"GET /\x7f HTTP/1.1\r\n{END}", 400),
    ("2.3 lower case version", f"GET / http/1.1\r\n{END}", 400),
    ("2.3 HTTP/2.0", f"GET / HTTP/2.0\r\n{END}", 505),
    ("HTTP/2's preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    ("3.1 a method that never ends", f"{'G' * 200} / HTTP/1.1\r\n{END}", 501),
    ("9.3.6 CONNECT", f"CONNECT site.test:443 HTTP/1.1\r\n{END}", 501),
    ("3 a target too long", f"GET /{'a' * 9000} HTTP/1.1\r\n{END}", 414),
    ("5 too many fields", f"GET / HTTP/1.1\r\n{LONG_LIST}{END}", 431),
    ("5 a head too long", f"GET / HTTP/1.1\r\nX: {'a' * 40_000}\r\n{END}", 431),
    ("TLS on the plain port", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
]


@pytest.fixture(scope="module")
def hardened():
    """One Larder for all rows: a refusal must not hurt the next client."""
    home = home_dir()
    clock, origin = Clock(home / "clock"), Origin()
    origin.on("*", reply("fine", NO_STORE))
    l = Larder(home, origin, clock=clock)
    l.origin = origin
    yield l
    l.settle()
    l.stop()
    origin.close()
    shutil.rmtree(home)


def refused(larder):
    return larder.outcome("refused")


@pytest.mark.parametrize("data,status", [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused(hardened, data, status):
    """Answered with the right status, closed, counted, and not a byte of it, nor of what hides behind it, at the origin."""
    l = hardened
    before, connects, hidden_before = refused(l), l.origin_requests, l.origin.count("/hidden")
    hidden = f"GET /hidden HTTP/1.1\r\n{END}"
    with Client(l.address) as c:
        c.send(data + hidden)
        r = c.reply()
        assert r.status == status and r.whole and r.get("Connection") == "close"
        assert c.ends() in ("fin", "reset")
    until(lambda: refused(l) == before + 1, "one refusal counted")
    assert l.origin_requests == connects and l.origin.count("/hidden") == hidden_before


BAD_CHUNKS = ["0x5\r\nhello\r\n0\r\n\r\n", "+5\r\nhello\r\n0\r\n\r\n", "-1\r\n\r\n", "5 \x00\r\nhello\r\n0\r\n\r\n", "5\nhello\n0\n\n", "5\r\nhelloX\r\n0\r\n\r\n",
              "ffffffffffffffffff\r\n", "5;" + "e" * 20_000 + "\r\nhello\r\n0\r\n\r\n", "\r\nhello\r\n0\r\n\r\n", "g\r\n", "0\r\nBad Trailer: x\r\n\r\n",
              "0\r\n" + "T: x\r\n" * 5000 + "\r\n"]


@pytest.mark.parametrize("chunk", BAD_CHUNKS, ids=[repr(c[:12]) for c in BAD_CHUNKS])
def test_bad_chunks(hardened, chunk):
    """RFC 9112 7.1. The head is on its way to the origin by then; a whole request never gets there."""
    l = hardened
    count = l.origin.count()
    with Client(l.address) as c:
        c.send(CHUNKED + "\r\n" + chunk + f"GET /hidden HTTP/1.1\r\n{END}")
        r = c.reply()
        assert r.status == 400 and r.get("Connection") == "close"
        assert c.ends() in ("fin", "reset")
    assert l.origin.count() == count


ACCEPTED = [
    ("lower case chunked, odd case", POST + "Transfer-encoding: Chunked\r\n\r\nA\r\n0123456789\r\n0\r\n\r\n"),
    ("chunk extension", CHUNKED + '\r\n5;a=b;c="d"\r\nhello\r\n000\r\n\r\n'),
    ("a later minor version (RFC 9110 2.5)", f"GET / HTTP/1.7\r\n{END}"),
    ("an empty line first", f"\r\nGET / HTTP/1.1\r\n{END}"),
    ("no space after the colon", "GET / HTTP/1.1\r\nHost:site.test\r\n\r\n"),
    ("white space around a value", "GET / HTTP/1.1\r\nHost: \t site.test \t\r\n\r\n"),
    ("an empty value", f"GET / HTTP/1.1\r\nX:\r\n{END}"),
    ("latin-1 in a value", f"GET / HTTP/1.1\r\nX: caf\xe9\r\n{END}"),
    ("odd but legal path", f"GET /a//b/../%2e%2E/;x=1?y=[]|'\" HTTP/1.1\r\n{END}".replace('"', "")),
    ("an unknown method", f"BREW /pot HTTP/1.1\r\n{END}"),
    ("OPTIONS", f"OPTIONS /a HTTP/1.1\r\n{END}"),
    ("length with leading zeros", POST + "Content-Length: 005\r\n\r\nhello"),
]


@pytest.mark.parametrize("data", [row[1] for row in ACCEPTED], ids=[row[0] for row in ACCEPTED])
def test_accepted(hardened, data):
    with Client(hardened.address) as c:
        for _ in range(2):
            c.send(data)
            assert (c.reply().body, c.is_open()) == (b"fine", True)


def test_options_for_the_server_itself(hardened):
    count = hardened.origin.count()
    r = hardened.ask("*", method="OPTIONS")
    assert r.status == 200 and "GET" in r.get("Allow") and hardened.origin.count() == count


# ---- what an origin may not send ---------------------------------------------------------------------------------------

BAD_ANSWERS = {
    "length and chunked": "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npage\r\n0\r\n\r\n",
    "differing lengths": "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\npage",
    "unknown coding": "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\npage",
    "folded line": "HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 4\r\n\r\npage",
    "bare line feeds": "HTTP/1.1 200 OK\nContent-Length: 4\n\npage",
    "space before the colon": "HTTP/1.1 200 OK\r\nContent-Length : 4\r\n\r\npage",
    "no number": "HTTP/1.1 OK\r\nContent-Length: 4\r\n\r\npage",
    "switching protocols": "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\npage",
    "control byte": "HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 4\r\n\r\npage",
}


@pytest.mark.parametrize("name", BAD_ANSWERS)
def test_an_answer_with_framing_in_doubt_is_not_passed_on(origin, larder, name):
    origin.on("/a", lambda wire: wire.send(BAD_ANSWERS[name]).close(), reply("good", FRESH))
    l = larder(origin)
    assert l.get("/a").status == 502
    assert l.reason("origin-malformed") == 1
    r = l.get("/a")
    assert (r.body, r.verdict) == (b"good", "stored")


def test_bytes_behind_an_answer_belong_to_nobody(origin, larder):
    """An origin that sends more than it said: the connection is not used again, the surplus reaches no client."""
    origin.on("/a", lambda wire: wire.send("HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 4\r\n\r\npageHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"))
    origin.on("/b", reply("good", NO_STORE))
    l = larder(origin, workers=1)
    for _ in range(5):
        assert l.get("/a").body == b"page"
        assert l.get("/b").body == b"good"
