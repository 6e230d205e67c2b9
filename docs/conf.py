"""How the site is built: `make docs` lays its pages out and calls Sphinx with this file."""

from __future__ import annotations

from importlib.metadata import version as version_of

project = "stabtree"
author = "the stabtree authors"
project_copyright = author
version = release = version_of("stabtree")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton", "sphinx_design"]
exclude_patterns = ["_static"]
nitpicky = True
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 3
autodoc_typehints = "description"
autodoc_member_order = "bysource"
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True

html_theme = "furo"
html_title = "stabtree"
html_static_path = ["_static"]
html_css_files = ["site.css", "failures.css"]
html_show_sourcelink = False
