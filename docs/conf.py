"""The documentation: `make docs` builds it into docs/_build/html, to be read from the disk without a network."""

project = "icebench"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
html_theme = "furo"
html_title = "icebench"
html_show_copyright = False
exclude_patterns = ["_build"]
suppress_warnings = ["myst.xref_missing"]  # design pages name files of the repository

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

autodoc_default_options = {"members": True, "inherited-members": True, "member-order": "bysource"}
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
napoleon_use_rtype = False
default_role = "py:obj"
"""A single backtick in a docstring is a name: a link where the reference has it, and code where not."""
python_display_short_literal_types = True
