"""The presets before a site that behaves as WordPress with WooCommerce does: PHP behind a real Apache, and visitors of many kinds in mixed
order. Nobody ever sees another's name, and what is for everybody is fetched once.
"""
import random
import shutil
import threading

import pytest

from harness.larder import Larder
from harness.servers import Apache, Website
from harness.tools import home_dir

COMMON = """<?php
function who() { foreach ($_COOKIE as $k => $v) if (preg_match('/^wordpress_logged_in_/', $k)) return $v; return null; }
function page($title) {
    echo "<h1>$title</h1> made ", uniqid('', true), ' ';
    $who = who();
    if ($who !== null) { header('Cache-Control: max-age=600'); echo "Howdy, $who "; } # a plugin that means well
    foreach ($_COOKIE as $k => $v) {
        if (strpos($k, 'comment_author_') === 0) echo "as $v ";
        if (strpos($k, 'wp-postpass_') === 0) echo "opened by $v ";
        if (strpos($k, 'wp_woocommerce_session_') === 0) echo "cart of $v ";
    }
}
"""
SCRIPTS = {
    "index": "page('post ' . ($_GET['p'] ?? 'none') . ' search ' . ($_GET['s'] ?? 'none'));",
    "wp-login": "if ($_SERVER['REQUEST_METHOD'] == 'POST') { setcookie('wordpress_logged_in_0123', $_POST['log'], 0, '/'); header('Location: /wp-admin/index.php', true, 302); }"
                " else { setcookie('wordpress_test_cookie', 'WP'); page('login'); }",
    "wp-admin/index": "if (who() === null) { header('Location: /wp-login.php', true, 302); exit; } page('dashboard');",
    "wp-comments-post": "setcookie('comment_author_0123', $_POST['author'], 0, '/'); header('Location: /index.php?p=' . $_POST['p'], true, 302);",
    "session": "session_save_path(sys_get_temp_dir()); session_start(); page('session ' . session_id());",
    "cart/index": "page('cart');",
    "product/hat": "if (isset($_GET['add-to-cart'])) setcookie('wp_woocommerce_session_0123', 'shopper', 0, '/'); page('hat');",
}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
TRACKING = ["utm_source=mail", "utm_campaign=x", "gclid=123", "fbclid=abc", "mc_cid=9", "_gl=1"]
ANALYTICS = ["_ga=GA1.2.3", "_gid=4", "_fbp=fb.1.2", "_hjid=5", "wordpress_test_cookie=WP"]
OWN = {
    "alice": "wordpress_logged_in_0123=alice", "bob": "wordpress_logged_in_0123=bob", "carol": "comment_author_0123=carol",
    "dave": "wp-postpass_0123=dave", "erin": "wp_woocommerce_session_0123=erin",
}
PAGES = ["/index.php", "/index.php?p=1", "/index.php?p=2", "/index.php?s=hat", "/product/hat.php"]


@pytest.fixture(scope="module")
def site():
    home = home_dir()
    website = Website(home)
    for name, code in SCRIPTS.items():
        path = website.root / f"{name}.php"
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(COMMON + code + "\n")
        path.parent.chmod(0o755)
        path.chmod(0o755)
    (website.root / "wp-content").mkdir(mode=0o755)
    (website.root / "wp-content").chmod(0o755)
    (website.root / "wp-content/style.css").write_text("body {}")
    (website.root / "wp-content/style.css").chmod(0o644)
    server = Apache(home, website)
    yield server
    server.stop()
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def shop(site):
    sites = [{"hosts": ["*"], "origin": "app", "presets": ["wordpress", "woocommerce"]}]
    l = Larder(site.home, site, sites=sites, workers=4)
    yield l
    try:
        l.settle()
        l.stop()
    finally:
        l.kill()


def names_in(body):
    return {name for name in [*OWN, "shopper"] if name.encode() in body}


def decorated(page, chance):
    """As a campaign's link has it: parameters that mean nothing to the page, before and behind its own."""
    path, mark, query = page.partition("?")
    more = chance.sample(TRACKING, chance.randrange(4))
    at = chance.randrange(len(more) + 1)
    parts = [*more[:at], *([query] if mark else []), *more[at:]]
    cookies = chance.sample(ANALYTICS, chance.randrange(len(ANALYTICS)))
    return path + ("?" + "&".join(parts) if parts else ""), cookies


def visit(shop, page, who, chance):
    target, cookies = decorated(page, chance)
    own = [OWN[who]] if who else []
    fields = {"Cookie": "; ".join([*cookies, *own])} if cookies or own else {}
    return shop.ask(target, fields)


def test_what_is_for_everybody_is_made_once(shop):
    chance = random.Random(1)
    for page in PAGES:
        bodies = {visit(shop, page, None, chance).body for _ in range(12)}
        assert len(bodies) == 1 and names_in(bodies.pop()) == set(), page


def test_nobody_sees_anothers_page(shop):
    chance = random.Random(2)
    kept = {}
    seen = set()
    for _ in range(300):
        page, who = chance.choice(PAGES), chance.choice([None, None, *OWN])
        r = visit(shop, page, who, chance)
        assert r.status == 200 and names_in(r.body) == ({who} if who else set()), (page, who, r.body)
        if who:
            assert r.body not in seen and r.verdict == "passed", "his own, and a new one each time"
            seen.add(r.body)
        else:
            assert kept.setdefault(page, r.body) == r.body, page


@pytest.mark.concurrency
def test_nor_when_all_come_at_once(shop):
    wrong = []

    def comes(who, seed):
        chance = random.Random(seed)
        try:
            for _ in range(40):
                page = chance.choice(PAGES)
                r = visit(shop, page, who, chance)
                if r.status != 200 or names_in(r.body) != ({who} if who else set()):
                    wrong.append((who, page, r.body))
        except Exception as e:  # noqa: BLE001: told by the test, not by its thread
            wrong.append((who, repr(e)))

    threads = [threading.Thread(target=comes, args=(who, seed)) for seed, who in enumerate([None, None, None, *OWN])]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_logging_in_and_out(shop):
    before = shop.ask("/index.php?p=7")
    assert names_in(before.body) == set()
    assert shop.ask("/wp-admin/index.php").get("Location") == "/wp-login.php"
    form = shop.ask("/wp-login.php")
    assert form.verdict == "passed" and "wordpress_test_cookie" in form.get("Set-Cookie")
    done = shop.ask("/wp-login.php", FORM, method="POST", body=b"log=alice")
    cookie = done.get("Set-Cookie").partition(";")[0]
    assert (done.status, cookie) == (302, "wordpress_logged_in_0123=alice")
    assert b"Howdy, alice" in shop.ask("/wp-admin/index.php", {"Cookie": cookie}).body
    assert b"Howdy, alice" in shop.ask("/index.php?p=7", {"Cookie": cookie}).body
    assert shop.ask("/index.php?p=7").body == before.body, "logged out again"
    assert shop.ask("/wp-admin/index.php").status == 302


def test_a_comment_shows_at_once(shop):
    before = shop.ask("/index.php?p=8").body
    assert shop.ask("/index.php?p=8").body == before
    r = shop.ask("/wp-comments-post.php", FORM, method="POST", body=b"author=carol&p=8")
    assert (r.status, r.get("Location")) == (302, "/index.php?p=8")
    after = shop.ask("/index.php?p=8").body  # Location names the page that was changed (RFC 9111 4.4)
    assert after != before and names_in(after) == set()


def test_what_is_never_kept(shop):
    for target in ["/cart/index.php", "/product/hat.php?add-to-cart=1", "/session.php", "/wp-login.php", "/index.php?p=1&preview=true"]:
        a, b = shop.ask(target), shop.ask(target)
        assert a.body != b.body and (a.verdict, b.verdict) == ("passed", "passed"), target


def test_assets_are_kept_for_all(shop, site):
    before = site.count("/wp-content/style.css")
    for who in [None, *OWN]:
        fields = {"Cookie": OWN[who]} if who else {}
        assert shop.ask("/wp-content/style.css?ver=1", fields).body == b"body {}"
    assert site.count("/wp-content/style.css") == before + 1


# ---- the other presets: a page for everybody, what makes it one's own, and what is never kept --------------------------

OTHERS = {
    "drupal": ("/node/1", "SSESSabc=alice", "/user/login"),
    "magento": ("/hat.html", None, "/checkout/cart"),
    "aspnet": ("/Default.aspx", ".ASPXAUTH=alice", None),
}


@pytest.mark.parametrize("preset", OTHERS)
def test_other_applications(origin, larder, preset):
    page, known, never = OTHERS[preset]
    serial = iter(range(1000))

    def story(wire):
        wire_body = f"{next(serial)} {wire.request.get('Cookie', '')}".encode()
        wire.head(200, {"Cache-Control": "max-age=60", "Content-Length": len(wire_body)})
        wire.send(wire_body)

    origin.on("*", story)
    l = larder(origin, sites=[{"hosts": ["*"], "origin": "app", "presets": [preset]}])
    first = l.ask(page).body
    assert l.ask(page + "?utm_source=x&gclid=1", {"Cookie": "_ga=1"}).body == first
    if known:
        own = l.ask(page, {"Cookie": known}).body
        assert own != first and b"alice" in own and l.ask(page).body == first
    if never:
        assert l.ask(never).body != l.ask(never).body
