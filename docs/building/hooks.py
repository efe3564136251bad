"""The hooks of MkDocs: pages from outside of `docs/`, links between them, and console sessions."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

log = logging.getLogger("mkdocs.hooks")
HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT)]
sys.path.append(str(ROOT / "tools"))

import blocks  # noqa: E402
import gallery  # noqa: E402
import links  # noqa: E402
import questions  # noqa: E402
import reference  # noqa: E402
from mkdocs.structure.files import File  # noqa: E402


def on_config(config: Any) -> Any:
    """Put the pages of the operators, and of the programs of the gallery, into the navigation."""
    for entry in config["nav"]:
        if "Gallery" in entry:
            entry["Gallery"] += gallery.navigation()
        if "Operators" in entry:
            entry["Operators"] += [
                {title: page} for page, title in reference.operator_navigation() if page != entry["Operators"][0]
            ]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages whose source is outside of `docs/`, and those generated from the code."""
    for page, source in links.PAGES_FROM_ELSEWHERE.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    for name in reference.missing():
        log.warning("%s is public, and not documented", name)
    for page, text in (reference.pages() | gallery.pages()).items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Rewrite links for the site, and draw pictures."""
    if page.file.src_uri.startswith(questions.EXPLAINING):
        page.meta.setdefault("search", {"boost": questions.BOOST})
    markdown = blocks.with_pictures(markdown, page.file.src_uri)
    return blocks.shown(links.in_site(markdown, page.file.src_uri))


def on_post_build(config: Any) -> None:
    """Check that the search index answers the questions of newcomers."""
    index = json.loads((Path(config["site_dir"]) / "search" / "search_index.json").read_text())
    sections = {}
    for entry in index["docs"]:
        page, _, anchor = entry["location"].partition("#")
        sections[f"{page.rstrip('/')}.md#{anchor}"] = entry["title"], entry["text"]
    for question in questions.unanswered(sections):
        log.warning("a search for %r does not find %s", question, questions.QUESTIONS[question])
