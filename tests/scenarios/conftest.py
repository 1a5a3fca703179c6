"""What every scenario gets: `origin`, `clock`, `larder(...)`. At its end each Larder must have come to rest, stop with status 0
and without a sanitizer's word.
"""
import resource
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("harness")
from harness.larder import Larder  # noqa: E402
from harness.origin import Origin  # noqa: E402
from harness.tools import BINARY, Clock, home_dir  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "concurrency: also run under ThreadSanitizer")
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def pytest_sessionstart(session):
    if not BINARY.exists():
        pytest.exit(f"{BINARY} is not built: cmake --preset debug && cmake --build --preset debug", returncode=3)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    setattr(item, f"report_{report.when}", report)


def has_passed(request):
    report = getattr(request.node, "report_call", None)
    return report is not None and report.passed


@pytest.fixture
def home(request):
    path = home_dir()
    yield path
    if has_passed(request):
        shutil.rmtree(path, ignore_errors=True)
    else:
        print(f"kept: {path}")


@pytest.fixture
def clock(home):
    c = Clock(home / "clock")
    yield c
    c.close()


@pytest.fixture
def origins(home):
    """Makes origins: origins() on a port, origins(path=...) on a unix socket."""
    made = []

    def make(**more):
        made.append(Origin(**more))
        return made[-1]

    yield make
    trouble = [t for o in made for t in o.trouble]
    for o in made:
        o.close()
    assert not trouble, "in the origin's story:\n" + "\n".join(trouble)


@pytest.fixture
def origin(origins):
    return origins()


@pytest.fixture
def larder(request, home, clock, origins):
    """Starts Larder: larder(origin, clients={"head_timeout": "2s"})."""
    started = []

    def start(origin=None, **more):
        started.append(Larder(home, origin, **{"clock": clock, **more}))
        return started[-1]

    yield start
    try:
        for each in started:
            if has_passed(request) and each.process and each.process.poll() is None:
                each.settle()
            each.stop()
    finally:
        for each in started:
            each.kill()
            if not has_passed(request) and each.process:
                print(f"--- {each.stderr_path}\n{each.stderr()[-6000:]}")
