"""Larder in front of lighttpd."""
from harness.servers import Lighttpd
from harness.site_stories import StaticStories


class TestLighttpd(StaticStories):
    server_class = Lighttpd
