"""Larder in front of Debian's apache2 with mod_php."""
from harness.servers import Apache
from harness.site_stories import StaticStories, PhpStories


class TestApache(StaticStories, PhpStories):
    server_class = Apache
