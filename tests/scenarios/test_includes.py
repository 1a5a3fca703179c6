"""The house's floors: base < config < cache < proxy and admin. Includes point down only, and name the floor they reach into."""
import re

import pytest

from harness.tools import ROOT

MAY_SEE = {
    "base": {"base"},
    "config": {"base", "config"},
    "cache": {"base", "config", "cache"},
    "proxy": {"base", "config", "cache", "proxy"},
    "admin": {"base", "config", "cache", "admin"},
}
BOTH_SIDES = "proxy/main.c"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
SOURCES = sorted(p.relative_to(ROOT) for floor in MAY_SEE for p in (ROOT / floor).glob("**/*.[ch]"))


def includes(path):
    return INCLUDE.findall((ROOT / path).read_text())


def test_there_is_something_to_look_at():
    assert len(SOURCES) > 50 and {p.parts[0] for p in SOURCES} == set(MAY_SEE)


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_includes_point_down(path):
    floor = path.parts[0]
    for name in includes(path):
        there, slash, _ = name.partition("/")
        assert slash and (ROOT / name).exists(), f'{path}: "{name}" does not name floor and file'
        allowed = MAY_SEE[floor] | ({"admin"} if str(path) == BOTH_SIDES else set())
        assert there in allowed, f"{path} includes {name}: {floor} does not see {there}"
        if name.endswith("_internal.h"):
            assert there == floor, f"{path} includes {name}: that is {there}'s own"


def test_only_main_sees_both_sides():
    seers = [str(p) for p in SOURCES if {"proxy", "admin"} <= {p.parts[0]} | {n.partition("/")[0] for n in includes(p)}]
    assert seers == [BOTH_SIDES]


def test_every_header_is_guarded_by_its_path():
    for path in SOURCES:
        if path.suffix == ".h":
            guard = re.sub(r"\W", "_", str(path)).upper()
            assert f"#ifndef {guard}\n#define {guard}\n" in (ROOT / path).read_text(), path


def test_files_are_not_too_long():
    """style.md's picture: half of the files under 400 lines, none above 800."""
    lengths = {str(p): len((ROOT / p).read_text().splitlines()) for p in SOURCES}
    assert {p: n for p, n in lengths.items() if n > 800} == {}
    assert sorted(lengths.values())[len(lengths) // 2] < 400
