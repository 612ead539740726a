"""Hooks of the site (mkdocs.yml).

Pages link to files of the repository outside docs/, which a site does not have: such a link becomes the plain name of
the file, and one to a file that does not exist is an error.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

_ROOT = Path(__file__).resolve().parents[1]
_DOCS = _ROOT / "docs"
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(((?!https?:|mailto:|#)[^)#\s]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Takes links to files that are not pages out of a page."""
    folder = (_DOCS / page.file.src_uri).parent

    def rewritten(match: re.Match[str]) -> str:
        words, target = match[1], (folder / match[2]).resolve()
        if target.is_relative_to(_DOCS):
            return match[0]
        if not target.exists():
            raise PluginError(f"{page.file.src_uri} links to {match[2]}, which does not exist.")
        name = target.relative_to(_ROOT).as_posix()
        return words if words.strip("`") == name else f'<span title="{name}">{words}</span>'

    return _LINK.sub(rewritten, markdown)
