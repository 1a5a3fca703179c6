"""Larder in front of PHP through php-fpm behind nginx."""
from harness.servers import PhpFpm
from harness.site_stories import PhpStories, StaticStories


class TestPhpFpm(PhpStories, StaticStories):
    server_class = PhpFpm
