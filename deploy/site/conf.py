"""Sphinx's configuration of the documentation."""

from __future__ import annotations

project = "Coincide"
extensions = ["myst_parser", "deploy.site.extension"]
# Anchors of headings are those of the usual viewers of Markdown.
myst_heading_anchors = 6
# A reference that cannot be resolved is a warning, and every warning fails the build.
nitpicky = True
# Blocks without a mark show output.
highlight_language = "none"

html_theme = "furo"
html_title = "Coincide"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
