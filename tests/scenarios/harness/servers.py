"""Real servers in front of which Larder stands: Debian's apache2 with mod_php, nginx, lighttpd, php-fpm behind nginx.

Each is started by hand from a configuration of its own in the scenario's directory, on its own port, and ended by its pid;
the system's own instances are never touched. Each keeps an access log, so that a scenario can ask what reached it.
"""
import glob
import os
import shutil
import socket
import subprocess
import zlib

from .client import Client
from .tools import BOUND_S, body_of, free_port, until

SIZES = {"44": 44, "1k": 1 << 10, "4k": 4 << 10, "16k": 16 << 10, "32k": 32 << 10, "128k": 128 << 10, "1m": 1 << 20, "5m": 5 << 20}
DOWNLOAD = 1 << 30
PAGE = "".join(f"<p>Paragraph {n} of a page that packs well.</p>\n" for n in range(400))
MARKS = {0: b"first", 123_456_789: b"middle", DOWNLOAD - 4: b"last"}  # in a file that is a hole otherwise


class Website:
    """The same site for all servers."""

    def __init__(self, home):
        self.root = home / "www"
        (self.root / "f").mkdir(parents=True)
        for name, size in SIZES.items():
            (self.root / "f" / name).write_bytes(body_of(size))
        (self.root / "page.html").write_text(PAGE)
        (self.root / "cookie.html").write_text("a page with a cookie")
        with open(self.root / "download.bin", "wb") as f:
            f.truncate(DOWNLOAD)
            for at, mark in MARKS.items():
                f.seek(at)
                f.write(mark)
        self._php()
        self._cgi()
        for path in [home, self.root, *self.root.rglob("*")]:
            path.chmod(0o755)
            os.utime(path, (1_700_000_000, 1_700_000_000))  # Apache's ETag is weak for a file that has just changed

    def _php(self):
        scripts = {
            "page": "header('Cache-Control: max-age=60'); echo 'made by PHP ', phpversion();",
            "form": "header('Cache-Control: no-store'); echo 'name=', $_POST['name'], ' length=', strlen(file_get_contents('php://input'));",
            "session": "session_save_path(sys_get_temp_dir()); session_start(); $_SESSION['n'] = ($_SESSION['n'] ?? 0) + 1; echo 'visit ', $_SESSION['n'];",
            "moved": "header('Location: /page.php', true, 301); header('Cache-Control: max-age=60');",
            "missing": "http_response_code(404); echo 'not here';",
            "stream": "header('Cache-Control: max-age=60'); for ($i = 0; $i < 20; $i++) { echo str_repeat(chr(65 + $i), 1000); flush(); }",
            "auth": "header('Cache-Control: max-age=60'); echo 'for ', $_SERVER['PHP_AUTH_USER'] ?? 'nobody';",
            "error": "http_response_code(500); echo 'broken';",
        }
        for name, code in scripts.items():
            (self.root / f"{name}.php").write_text(f"<?php {code}\n")

    def _cgi(self):
        (self.root / "form.cgi").write_text("#!/bin/sh\nbody=$(cat)\nprintf 'Content-Type: text/plain\\r\\nCache-Control: no-store\\r\\n\\r\\n'\n"
                                            "printf '%s length=%s' \"$body\" \"$CONTENT_LENGTH\"\n")

    @staticmethod
    def download_checksum():
        """Of the 1 GiB, without reading it: the hole is zeros."""
        total, at = 0, 0
        zeros = bytes(1 << 22)
        for start, mark in sorted(MARKS.items()):
            while at < start:
                n = min(len(zeros), start - at)
                total = zlib.crc32(zeros[:n], total)
                at += n
            mark = mark[: DOWNLOAD - at]
            total = zlib.crc32(mark, total)
            at += len(mark)
        return total


def need(program, package):
    found = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") if "/" not in program else next(iter(glob.glob(program)), None)
    assert found, f"{program} is not there: apt-get install {package}"
    return found


class Server:
    """One process in the foreground."""

    form_path, cookie_path = "/form.php", "/cookie.html"

    def __init__(self, home, website):
        self.home, self.website, self.port = home / type(self).__name__.lower(), website, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log_path = self.home / "access.log"
        self.home.mkdir()
        self.home.chmod(0o777)
        self.processes, self._looks = [], 0
        self.start()

    def run(self, *argv):
        with open(self.home / "output", "ab") as out:
            # a session of its own: Apache's SIGTERM goes to its whole process group
            p = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=self.home, start_new_session=True)
        self.processes.append(p)
        return p

    def wait_listening(self, *address):
        def is_there():
            assert all(p.poll() is None for p in self.processes), f"a server ended:\n{self.output()}"
            s = socket.socket(socket.AF_UNIX if len(address) == 1 else socket.AF_INET)
            with s:
                return s.connect_ex(address[0] if len(address) == 1 else address) == 0

        until(is_there, f"{address} listens")

    def output(self):
        return "\n".join(p.read_text(errors="replace")[-3000:] for p in self.home.iterdir() if p.is_file() and p.name in ("output", "error.log"))

    def stop(self):
        for p in reversed(self.processes):
            p.terminate()
        for p in self.processes:
            try:
                p.wait(BOUND_S)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()

    def count(self, path):
        """How many requests for this path reached the server. Looks after one of its own has shown up in the log."""
        self._looks += 1
        look = f"/look-{self._looks}"
        with Client(("127.0.0.1", self.port)) as c:
            assert c.get(look, {"Connection": "close"}).whole
        until(lambda: look in self.log_path.read_text(), "our own line in the server's log", bound_s=20)
        return sum(line.split(" ")[1].partition("?")[0] == path for line in self.log_path.read_text().splitlines())


MIME_TYPES = "text/html html\ntext/plain txt\napplication/octet-stream bin\n"


class Apache(Server):
    """mpm_prefork and mod_php, as Debian's apache2 with libapache2-mod-php has it."""

    def start(self):
        program = need("apache2", "apache2")
        php = need("/usr/lib/apache2/modules/libphp*.so", "libapache2-mod-php")
        modules = ["mpm_prefork", "authz_core", "mime", "dir", "alias", "deflate", "filter", "headers", "setenvif", "reqtimeout"]
        rights = "User www-data\nGroup www-data\n" if os.geteuid() == 0 else ""
        (self.home / "mime.types").write_text(MIME_TYPES)
        (self.home / "apache2.conf").write_text(
            f"ServerRoot {self.home}\nServerName site.test\nListen 127.0.0.1:{self.port}\nPidFile {self.home}/pid\nDefaultRuntimeDir {self.home}\n{rights}"
            + "".join(f"LoadModule {m}_module /usr/lib/apache2/modules/mod_{m}.so\n" for m in modules)
            + f"""LoadModule php_module {php}
TypesConfig {self.home}/mime.types
ErrorLog {self.home}/error.log
LogFormat "%r %>s" plain
CustomLog {self.log_path} plain
StartServers 4
MinSpareServers 2
MaxRequestWorkers 40
KeepAlive On
KeepAliveTimeout 5
MaxKeepAliveRequests 100
DocumentRoot {self.website.root}
<Directory {self.website.root}>
  Require all granted
</Directory>
<FilesMatch "\\.php$">
  SetHandler application/x-httpd-php
</FilesMatch>
<Location /f/>
  Header set Cache-Control "max-age=3600"
</Location>
<Location /page.html>
  SetOutputFilter DEFLATE
  Header set Cache-Control "max-age=60"
</Location>
<Location /cookie.html>
  Header set Set-Cookie "id=1"
  Header set Cache-Control "max-age=60"
</Location>
Redirect permanent /old http://site.test/page.html
""")
        self.run(program, "-f", self.home / "apache2.conf", "-DFOREGROUND")
        self.wait_listening("127.0.0.1", self.port)


class Nginx(Server):
    form_path = "/form"

    def start(self):
        user = "user www-data;" if os.geteuid() == 0 else ""
        self.echo_port = free_port()
        (self.home / "mime.types").write_text("types { text/html html; text/plain txt; }\n")
        (self.home / "nginx.conf").write_text(f"""{user} worker_processes 1; daemon off; pid {self.home}/pid; error_log {self.home}/error.log;
events {{ worker_connections 2000; }}
http {{
  include {self.home}/mime.types;
  log_format plain '$request $status';
  access_log {self.log_path} plain;
  sendfile on; keepalive_timeout 5s; gzip on; gzip_vary on; gzip_proxied any; gzip_min_length 100; default_type application/octet-stream;
  client_body_temp_path {self.home}/body; proxy_temp_path {self.home}/proxy; fastcgi_temp_path {self.home}/fastcgi; uwsgi_temp_path {self.home}/u; scgi_temp_path {self.home}/s;
  server {{
    listen 127.0.0.1:{self.port}; root {self.website.root};
    location /f/ {{ add_header Cache-Control max-age=3600; }}
    location = /page.html {{ add_header Cache-Control max-age=60; }}
    location = /cookie.html {{ add_header Set-Cookie id=1; add_header Cache-Control max-age=60; }}
    location = /old {{ return 301 http://site.test/page.html; }}
    {self.more_locations()}
  }}
  {self.more_servers()}
}}
""")
        self.run(need("nginx", "nginx"), "-c", self.home / "nginx.conf", "-e", self.home / "error.log")
        self.wait_listening("127.0.0.1", self.port)

    def more_locations(self):
        # proxied to itself, so that the whole body is read: `return` alone would leave it
        return f"""location = /form {{ add_header Cache-Control no-store; proxy_pass http://127.0.0.1:{self.echo_port};
      proxy_set_header X-Body $request_body; }}"""

    def more_servers(self):
        return f"""server {{ listen 127.0.0.1:{self.echo_port}; access_log off;
    location / {{ default_type text/plain; return 200 '$http_x_body length=$content_length'; }} }}"""


class Lighttpd(Server):
    """It says Vary only with what it has zipped; the plain page needs it as well, or it is right for everybody."""

    form_path = "/form.cgi"

    def start(self):
        rights = 'server.username = "www-data"\nserver.groupname = "www-data"\n' if os.geteuid() == 0 else ""
        (self.home / "lighttpd.conf").write_text(f"""server.document-root = "{self.website.root}"
server.port = {self.port}
server.bind = "127.0.0.1"
{rights}server.errorlog = "{self.home}/error.log"
server.modules = ( "mod_accesslog", "mod_setenv", "mod_redirect", "mod_deflate", "mod_cgi" )
accesslog.filename = "|exec cat >>{self.log_path}"
accesslog.format = "%r %>s"
server.max-keep-alive-idle = 5
mimetype.assign = ( ".html" => "text/html", "" => "application/octet-stream" )
deflate.mimetypes = ( "text/html" )
deflate.allowed-encodings = ( "gzip" )
cgi.assign = ( ".cgi" => "/bin/sh" )
static-file.exclude-extensions = ( ".cgi" )
url.redirect = ( "^/old$" => "http://site.test/page.html" )
$HTTP["url"] =~ "^/f/" {{ setenv.add-response-header = ( "Cache-Control" => "max-age=3600" ) }}
$HTTP["url"] == "/page.html" {{ setenv.add-response-header = ( "Cache-Control" => "max-age=60", "Vary" => "Accept-Encoding" ) }}
$HTTP["url"] == "/cookie.html" {{ setenv.add-response-header = ( "Set-Cookie" => "id=1", "Cache-Control" => "max-age=60" ) }}
""")
        self.run(need("lighttpd", "lighttpd"), "-D", "-f", self.home / "lighttpd.conf")
        self.wait_listening("127.0.0.1", self.port)


class PhpFpm(Nginx):
    """PHP through php-fpm's unix socket, behind nginx."""

    form_path = "/form.php"

    def start(self):
        program = need("/usr/sbin/php-fpm*", "php-fpm")
        self.socket_path = self.home / "fpm.sock"
        is_root = os.geteuid() == 0
        rights = "user = www-data\ngroup = www-data\nlisten.owner = www-data\nlisten.group = www-data\n" if is_root else ""
        (self.home / "fpm.conf").write_text(f"""[global]
pid = {self.home}/fpm.pid
error_log = {self.home}/fpm.log
daemonize = no
[site]
{rights}listen = {self.socket_path}
pm = static
pm.max_children = 4
""")
        self.run(program, "--nodaemonize", "--fpm-config", self.home / "fpm.conf")
        self.wait_listening(str(self.socket_path))
        super().start()

    def more_locations(self):
        fields = {"SCRIPT_FILENAME": "$document_root$fastcgi_script_name", "REQUEST_METHOD": "$request_method", "QUERY_STRING": "$query_string",
                  "CONTENT_TYPE": "$content_type", "CONTENT_LENGTH": "$content_length", "REQUEST_URI": "$request_uri", "SERVER_PROTOCOL": "$server_protocol"}
        return f"location ~ \\.php$ {{ fastcgi_pass unix:{self.socket_path}; {' '.join(f'fastcgi_param {k} {v};' for k, v in fields.items())} }}"

    def more_servers(self):
        return ""
