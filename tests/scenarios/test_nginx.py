"""Larder in front of nginx."""
from harness.servers import Nginx
from harness.site_stories import StaticStories


class TestNginx(StaticStories):
    server_class = Nginx
