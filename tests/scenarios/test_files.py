"""A directory as an origin (`root:`): which file answers, with which head, and nothing from outside it."""
import gzip
import os

import pytest

from harness.tools import body_of


@pytest.fixture
def root(home):
    path = home / "www"
    (path / "sub").mkdir(parents=True)
    (path / "bare").mkdir()
    (path / ".well-known").mkdir()
    files = {"index.html": b"<p>home", "sub/index.html": b"<p>sub", "a.txt": b"text", "style.css": b"p {}" * 500, "app.js": b"//" * 500, "pic.png": b"\x89PNG",
             "big.bin": body_of(3 << 20), "100k.bin": body_of(100_000), "empty.txt": b"", "with space.txt": b"space", "a%b.txt": b"percent", ".secret": b"no",
             ".well-known/token": b"yes", "no-ending": b"?", "bare/a.txt": b"bare"}
    for name, data in files.items():
        (path / name).write_bytes(data)
    (path / "style.css.gz").write_bytes(gzip.compress(files["style.css"], mtime=0))
    (path / "style.css.br").write_bytes(b"pretend brotli")
    (home / "outside.txt").write_text("outside")
    (path / "out.txt").symlink_to("../outside.txt")
    (path / "in.txt").symlink_to("a.txt")
    return path


TYPES = [("/", "text/html"), ("/a.txt", "text/plain"), ("/style.css", "text/css"), ("/app.js", "javascript"), ("/pic.png", "image/png"),
         ("/no-ending", "application/octet-stream"), ("/sub/", "text/html")]


def test_files_with_their_types_and_validators(larder, root):
    l = larder(root)
    for target, kind in TYPES:
        r = l.get(target)
        assert r.status == 200 and kind in r.get("Content-Type") and r.get("ETag") and r.get("Last-Modified"), target
        name = target[1:] + ("index.html" if target.endswith("/") else "")
        assert r.body == (root / name).read_bytes()
        assert l.get(target).verdict == "hit"
        assert l.get(target, {"If-None-Match": r.get("ETag")}).status == 304
        assert l.get(target, {"If-Modified-Since": r.get("Last-Modified")}).status == 304
        head = l.ask(target, method="HEAD")
        assert (head.status, head.get("Content-Length")) == (200, str(len(r.body)))


def test_names_as_they_are_written(larder, root):
    l = larder(root)
    for target, body in [("/with%20space.txt", b"space"), ("/a%25b.txt", b"percent"), ("/%61.txt", b"text"), ("/empty.txt", b""), ("/a.txt?x=1", b"text"),
                         ("/.well-known/token", b"yes"), ("/in.txt", b"text")]:
        assert l.get(target).body == body, target


OUTSIDE = ["/../outside.txt", "/%2e%2e/outside.txt", "/sub/../../outside.txt", "/sub/%2e%2e/%2e%2e/outside.txt", "/..%2foutside.txt", "/%2e%2e%2foutside.txt",
           "/sub/..%2f..%2foutside.txt", "//../outside.txt", "/.%2e/outside.txt", "/out.txt", "/a.txt%00.html", "/..%5coutside.txt", "/.secret", "/%2esecret",
           "/sub/..;/..;/outside.txt", "/%252e%252e/outside.txt", "/etc/passwd", "/%2fetc%2fpasswd"]


@pytest.mark.parametrize("target", OUTSIDE)
def test_no_way_out_of_the_root(larder, root, target):
    r = larder(root).get(target)
    assert r.status in (400, 403, 404) and b"outside" not in r.body.replace(b"outside.txt", b"")
    assert b"root:" not in r.body


def test_links_out_of_the_root_when_the_operator_allows_them(larder, root):
    assert larder(root, origin_items={"follow_symlinks": True}).get("/out.txt").body == b"outside"


def test_directories(larder, root):
    l = larder(root)
    r = l.get("/sub", {"Host": "site.test"})
    assert r.status == 301 and r.get("Location").endswith("/sub/")
    assert l.get("//evil.test/").get("Location") is None
    assert l.get("/bare/").status in (403, 404)  # no listing
    assert b"a.txt" not in l.get("/bare/").body
    assert l.get("/missing").status == 404 and l.get("/a.txt/").status == 404


def test_index_names(larder, root):
    assert larder(root, origin_items={"index": ["none.html", "a.txt"]}).get("/bare/").body == b"bare"


def test_only_reading(larder, root):
    l = larder(root)
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        r = l.ask("/a.txt", method=method, body=b"x")
        assert r.status == 405 and "GET" in r.get("Allow")
    assert (root / "a.txt").read_bytes() == b"text"


def test_precompressed_siblings(larder, root):
    l = larder(root)
    plain, zipped = (root / "style.css").read_bytes(), (root / "style.css.gz").read_bytes()
    rows = [({}, None, plain), ({"Accept-Encoding": "gzip"}, "gzip", zipped), ({"Accept-Encoding": "br, gzip"}, "br", b"pretend brotli"),
            ({"Accept-Encoding": "gzip;q=0"}, None, plain), ({"Accept-Encoding": "identity"}, None, plain)]
    tags = set()
    for _ in range(2):
        for fields, coding, body in rows:
            r = l.get("/style.css", fields)
            assert (r.get("Content-Encoding"), r.body) == (coding, body) and "accept-encoding" in r.get("Vary").lower()
            assert "text/css" in r.get("Content-Type")
            tags.add((coding, r.get("ETag")))
    assert len(tags) == 3 == len({tag for _, tag in tags})
    assert l.get("/a.txt", {"Accept-Encoding": "gzip"}).get("Vary") is None


def test_ranges_of_small_and_large_files(larder, root):
    l = larder(root)
    for name in ("100k.bin", "big.bin"):
        data = (root / name).read_bytes()
        assert l.get(f"/{name}").body == data
        r = l.get(f"/{name}", {"Range": "bytes=1000-1999"})
        assert (r.status, r.body) == (206, data[1000:2000]) and r.get("Content-Range") == f"bytes 1000-1999/{len(data)}"
        assert l.get(f"/{name}", {"Range": "bytes=-5"}).body == data[-5:]
    assert l.get("/100k.bin", {"Range": "bytes=200000-"}).status == 416


def test_a_changed_file_is_seen_after_check_interval(larder, root, clock):
    l = larder(root, origin_items={"check_interval": "10s"})
    assert l.get("/a.txt").body == b"text" and l.get("/a.txt").verdict == "hit"
    (root / "a.txt").write_bytes(b"new text")
    os.utime(root / "a.txt", (1, 1))
    assert l.get("/a.txt").body == b"text"
    clock.advance(11)
    assert l.get("/a.txt").body == b"new text"
    clock.advance(11)
    assert (l.get("/a.txt").verdict, l.get("/a.txt").body) == ("revalidated", b"new text")
    (root / "a.txt").unlink()
    clock.advance(11)
    assert l.get("/a.txt").status == 404


def test_a_client_that_leaves_in_mid_file(larder, root):
    (root / "big.bin").write_bytes(body_of(20 << 20))
    l = larder(root)
    c = l.client(receive_buffer=4096)
    c.request("/big.bin").read(1000)
    c.reset()
    l.wait_for(exchanges_live=0)
    assert l.outcome("aborted") == 1
