"""Links in the repository, and their counterparts in the site.

A page is read in the repository, where a link leads to a file, and in the site, where some files are elsewhere and
others are not pages. The sources have the links of the repository.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES_FROM_ELSEWHERE = {
    "index.md": "README.md",
    "map.md": "docs/README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
}
PAGES_IN_SITE = {source: page for page, source in PAGES_FROM_ELSEWHERE.items()}
FENCE = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?P<image>!?)\[(?P<text>(?:[^\[\]]|\\[\[\]])*)\]\((?P<target>[^)\s]+)\)")


def in_site(markdown: str, page: str) -> str:
    """Return the text of a page with its links rewritten for the site.

    Arguments:
        markdown: the text.
        page: where it is in the site, as in `notes/engine.md`.
    """
    source = PAGES_FROM_ELSEWHERE.get(page, f"docs/{page}")
    parts = FENCE.split(markdown)
    parts[::2] = [LINK.sub(lambda match: _link(match, source, page), part) for part in parts[::2]]
    return "".join(parts)


def _link(match: re.Match[str], source: str, page: str) -> str:
    target, _, anchor = match["target"].partition("#")
    if not target or ":" in target:
        return match[0]
    aimed = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    if aimed in PAGES_IN_SITE:
        there = PAGES_IN_SITE[aimed]
    elif aimed == "docs":
        there = "map.md"
    elif aimed.startswith("docs/") and aimed.endswith(".md"):
        there = aimed.removeprefix("docs/")
    elif match["image"] and aimed.startswith("docs/"):
        there = aimed.removeprefix("docs/")
    elif (ROOT / aimed).exists():  # a file of the repository, which the site does not have
        return match["text"]
    else:
        return match[0]
    relative = posixpath.relpath(there, posixpath.dirname(page) or ".")
    return f"{match['image']}[{match['text']}]({relative}{'#' + anchor if anchor else ''})"
