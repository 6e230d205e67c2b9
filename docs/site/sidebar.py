"""The side bar of the pages that no table of contents holds: that of their folder's index, which is marked in it.

The theme lays the whole table of contents out anew for each page, which for some 700 such pages is half the time of a
build. All of a folder have the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from sphinx.environment.adapters.toctree import global_toctree_for_doc

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.builders.html import StandaloneHTMLBuilder

BEFORE_THEME = 400  # a theme's own handlers have 500
HERE = 'href="#"'


def connect(app: Sphinx) -> None:
    """Let the pages of a folder share one side bar."""
    laid_out: dict[str, str] = {}

    def shared(app: Sphinx, page: str, _template: str, context: dict[str, Any], _doctree: object) -> None:
        folder, _, name = page.rpartition("/")
        index = f"{folder}/index"
        held = {each for pages in app.env.toctree_includes.values() for each in pages}
        if page in held or index not in held or name == "index":
            return

        def toctree(**options: Any) -> str:
            if folder not in laid_out:
                tree = global_toctree_for_doc(app.env, index, app.builder, tags=app.tags, **options)
                fragment = cast("StandaloneHTMLBuilder", app.builder).render_partial(tree)["fragment"]
                laid_out[folder] = fragment.replace(HERE, 'href="index.html"')
            return laid_out[folder]

        context["toctree"] = toctree

    app.connect("html-page-context", shared, priority=BEFORE_THEME)
