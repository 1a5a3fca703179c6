"""The stories of a real site (issue's words: files of many sizes, redirect, 404, gzip with Vary, cookie, form, 1 GiB, ranges),
told once and run in front of each server. Every one ends in the server's own access log: hits did not reach it.
"""
import gzip
import shutil
import tempfile
import zlib
from pathlib import Path

import pytest

from .larder import Larder
from .servers import DOWNLOAD, PAGE, SIZES, Website
from .tools import Clock, body_of, home_dir

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class Site:
    """What the stories of one class share: the server, and one Larder in front of it."""

    server_class = None

    @pytest.fixture(scope="class")
    def server(self, request):
        home = home_dir()
        server = request.cls.server_class(home, Website(home))
        yield server
        server.stop()
        shutil.rmtree(home, ignore_errors=True)

    @pytest.fixture(scope="class")
    def larder(self, server):
        yield from self.one_larder(server)

    @pytest.fixture
    def ahead(self, server):
        """Another one, whose clock may be moved: a real server's Date does not follow, and all that it sends then looks old."""
        yield from self.one_larder(server)

    @staticmethod
    def one_larder(server):
        clock = Clock(Path(tempfile.mkdtemp(dir=server.home.parent)) / "clock")
        l = Larder(server.home.parent, server, clock=clock, cache={"memory": "128MiB", "default_ttl": {"404": "10s"}})
        yield l
        try:
            l.settle()
            l.stop()
        finally:
            l.kill()
            clock.close()

    @staticmethod
    def twice(larder, server, target, fields=None, count=1):
        """Two requests, of which `count` reach the server. Returns both replies."""
        before = server.count(target.partition("?")[0])
        replies = [larder.get(target, fields) for _ in range(2)]
        assert server.count(target.partition("?")[0]) - before == count, replies
        return replies


class StaticStories(Site):
    @pytest.mark.parametrize("name", SIZES)
    def test_a_file_is_fetched_once_and_every_byte_is_right(self, larder, server, name):
        first, second = self.twice(larder, server, f"/f/{name}")
        assert first.body == second.body == body_of(SIZES[name])
        assert (first.verdict, second.verdict) == ("stored", "hit")
        same = {"ETag", "Last-Modified", "Content-Type", "Cache-Control", "Content-Length", "Date"}
        assert {n: first.get(n) for n in same} == {n: second.get(n) for n in same}
        assert "Age" in second.fields and second.fields.all("Via") == ["1.1 larder"]

    def test_conditions_are_answered_for_the_server(self, larder, server):
        page = larder.get("/f/4k")
        before = server.count("/f/4k")
        assert larder.get("/f/4k", {"If-None-Match": page.get("ETag")}).status == 304
        assert larder.get("/f/4k", {"If-Modified-Since": page.get("Last-Modified")}).status == 304
        assert server.count("/f/4k") == before

    def test_a_stale_file_is_asked_about_not_fetched(self, ahead, server):
        body = ahead.get("/f/16k?stale").body
        ahead.clock.advance(3601)
        r = ahead.get("/f/16k?stale")
        assert (r.verdict, r.body) == ("revalidated", body)
        assert server.count("/f/16k") and "GET /f/16k?stale HTTP/1.1 304" in server.log_path.read_text()

    def test_ranges_are_cut_from_the_stored_file(self, larder, server):
        body = larder.get("/f/1m").body
        before = server.count("/f/1m")
        r = larder.get("/f/1m", {"Range": "bytes=100-199"})
        assert (r.status, r.body, r.get("Content-Range")) == (206, body[100:200], f"bytes 100-199/{len(body)}")
        assert larder.get("/f/1m", {"Range": "bytes=-7"}).body == body[-7:]
        assert larder.get("/f/1m", {"Range": f"bytes={len(body)}-"}).status == 416
        r = larder.get("/f/1m", {"Range": "bytes=0-0,-1"})
        assert r.status == 206 and r.get("Content-Type").startswith("multipart/byteranges")
        assert server.count("/f/1m") == before

    def test_a_redirect(self, larder, server):
        for r in self.twice(larder, server, "/old", count=2):
            assert r.status == 301 and r.get("Location") == "http://site.test/page.html"

    def test_a_404_is_kept_for_as_long_as_the_operator_says(self, larder, server):
        first, second = self.twice(larder, server, "/none")
        assert first.status == second.status == 404 and first.body == second.body and second.verdict == "hit"

    def test_a_page_that_is_zipped_for_who_takes_it(self, larder, server):
        before = server.count("/page.html")
        for _ in range(2):
            zipped = larder.get("/page.html", {"Accept-Encoding": "gzip, deflate, br"})
            plain = larder.get("/page.html")
            assert zipped.get("Content-Encoding") == "gzip" and gzip.decompress(zipped.body).decode() == PAGE
            assert "Content-Encoding" not in plain.fields and plain.body.decode() == PAGE
            assert "accept-encoding" in zipped.get("Vary").lower()
        assert zipped.verdict == plain.verdict == "hit" and server.count("/page.html") - before == 2

    def test_a_page_with_a_cookie_is_not_kept(self, larder, server):
        for r in self.twice(larder, server, server.cookie_path, count=2):
            assert r.get("Set-Cookie") == "id=1" and r.verdict == "passed"

    def test_a_form(self, larder, server):
        before = server.count(server.form_path)
        for name in ("eva", "adam"):
            r = larder.ask(server.form_path, FORM, "POST", body=f"name={name}".encode())
            assert r.status == 200 and f"name={name} length={5 + len(name)}" == r.body.decode()
        assert server.count(server.form_path) - before == 2

    def test_a_download_of_a_gib(self, larder, server):
        """Streams through: nothing of it is gathered, and every byte is right."""
        before, checksum, most = larder.memory_bytes(), 0, 0

        def take(piece):
            nonlocal checksum
            checksum = zlib.crc32(piece, checksum)

        r = larder.get("/download.bin", sink=take)
        most = larder.memory_bytes() - before
        assert r.length == DOWNLOAD and checksum == Website.download_checksum() and r.verdict == "passed"
        assert most < 40 << 20

    def test_a_part_of_the_download_comes_from_the_server(self, larder, server):
        r = larder.get("/download.bin", {"Range": "bytes=123456789-123456794"})
        assert (r.status, r.body, r.get("Content-Range")) == (206, b"middle", f"bytes 123456789-123456794/{DOWNLOAD}")

    def test_head(self, larder, server):
        r = larder.ask("/download.bin", method="HEAD")
        assert r.get("Content-Length") == str(DOWNLOAD)
        larder.get("/f/32k")
        before = server.count("/f/32k")
        assert larder.ask("/f/32k", method="HEAD").get("Content-Length") == str(SIZES["32k"])
        assert server.count("/f/32k") == before

    def test_a_hundred_requests_on_one_connection_reach_the_server_twice(self, larder, server):
        before = server.count("/f/1k"), server.count("/f/44")
        with larder.client() as c:
            for n in range(100):
                name = ("1k", "44")[n % 2]
                assert c.get(f"/f/{name}?hundred").body == body_of(SIZES[name])
        assert server.count("/f/1k") == before[0] + 1 and server.count("/f/44") >= before[1] + 1


class PhpStories(Site):
    def test_a_page_made_by_php_is_kept(self, larder, server):
        first, second = self.twice(larder, server, "/page.php")
        assert first.body == second.body and first.body.startswith(b"made by PHP") and second.verdict == "hit"

    def test_a_streamed_page(self, larder, server):
        first, second = self.twice(larder, server, "/stream.php")
        assert first.body == second.body == b"".join(bytes([65 + n]) * 1000 for n in range(20))
        assert second.get("Content-Length") == "20000"

    def test_sessions_stay_apart(self, larder, server):
        visitors = [larder.get("/session.php").get("Set-Cookie").partition(";")[0] for _ in range(2)]
        assert visitors[0] != visitors[1]
        for visit in (2, 3):
            for cookie in visitors:
                r = larder.get("/session.php", {"Cookie": cookie})
                assert r.body == f"visit {visit}".encode() and r.verdict == "passed"

    def test_a_php_form(self, larder, server):
        r = larder.ask("/form.php", FORM, "POST", body=b"name=" + b"x" * 100_000)
        assert r.body == b"name=" + b"x" * 100_000 + b" length=100005"

    def test_php_redirects_and_errors(self, larder, server):
        moved = self.twice(larder, server, "/moved.php")
        assert [(r.status, r.get("Location")) for r in moved] == [(301, "/page.php")] * 2
        assert [r.status for r in self.twice(larder, server, "/missing.php")] == [404] * 2
        assert [r.status for r in self.twice(larder, server, "/error.php", count=2)] == [500] * 2

    def test_authorized_pages_are_each_their_own(self, larder, server):
        replies = [larder.get("/auth.php", {"Authorization": f"Basic {token}"}).body for token in ("ZXZhOng=", "YWRhbTp4")]
        assert replies[0] != replies[1] or replies == [b"for nobody"] * 2
        assert larder.get("/auth.php").body == b"for nobody"
