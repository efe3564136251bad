"""The site: every page is in its navigation, and links lead where they led in the repository."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BUILDING = ROOT / "docs" / "building"


@pytest.fixture(autouse=True)
def building(monkeypatch):
    """The modules that make the site, imported as its hook imports them."""
    monkeypatch.syspath_prepend(str(BUILDING))
    yield
    for path in BUILDING.glob("*.py"):
        sys.modules.pop(path.stem, None)


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")} - {"README.md"}
    assert pages - set(re.findall(r"([\w/.-]+\.md)", navigation)) == set()


@pytest.mark.parametrize(
    "page, text, expected",
    [
        ("notes/engine.md", "[a](scalars.md#x)", "[a](scalars.md#x)"),
        ("notes/engine.md", "[a](../../README.md)", "[a](../index.md)"),
        ("notes/engine.md", "[a](../README.md)", "[a](../map.md)"),
        ("notes/engine.md", "[a](../../viewgrad/errors.py)", "a"),
        ("index.md", "[a](docs/notes/engine.md#b)", "[a](notes/engine.md#b)"),
        ("index.md", "[Note \\[b\\]](docs/notes/engine.md)", "[Note \\[b\\]](notes/engine.md)"),
        ("index.md", "[a](https://numpy.org)", "[a](https://numpy.org)"),
        ("index.md", "```python\nx[0](docs/notes/engine.md)\n```", "```python\nx[0](docs/notes/engine.md)\n```"),
        ("index.md", "[a](docs/none.md)", "[a](none.md)"),
    ],
)
def test_links(page, text, expected):
    import links

    assert links.in_site(text, page) == expected
