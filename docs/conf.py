"""How Sphinx builds the site: Markdown pages, one theme, nothing fetched from outside."""

project = "gpu-slice-advisor"
author = "The gpu-slice-advisor authors"
project_copyright = "The gpu-slice-advisor authors, Apache-2.0"

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "generators", "README.md"]
nitpicky = True

# Anchors down to the third heading, so that pages may point at one word of the glossary.
myst_heading_anchors = 3
# Links that leave the guide (to README.md, say) point into the repository, where they resolve.
myst_url_schemes = ("http", "https", "mailto")

html_theme = "furo"
html_title = "gpu-slice-advisor"
html_show_sourcelink = False
html_copy_source = False
