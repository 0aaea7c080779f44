"""Configuration of the documentation site; `make docs` builds it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

from bitatoms import __version__  # noqa: E402

project = "bitatoms"
author = "the bitatoms developers"
copyright = author
version = release = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    # In docs/_extensions:
    "command_line",
    "links",
    "members",
]
exclude_patterns = ["gallery/*.ipynb", "gallery/*.py", "gallery/**/README.*"]
templates_path = ["_templates"]
nitpicky = True
default_role = "code"
highlight_language = "none"  # a code block without a language is text
smartquotes = False  # options begin with two dashes

# Pages. The anchors of headings are those of GitHub, so that links work in both places.
myst_enable_extensions = ["colon_fence", "attrs_inline"]
myst_heading_anchors = 4
suppress_warnings = ["config.cache"]  # functions in sphinx_gallery_conf

# Reference.
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# Gallery: examples that run when the site is built.
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1,
    "copyfile_regex": r"none",
    "capture_repr": (),  # print what is to be shown
    "reset_modules": ("matplotlib",),
    "parallel": True,  # as many examples at a time as Sphinx has processes
}

# Appearance. No page loads anything from another server.
html_theme = "pydata_sphinx_theme"
html_title = "bitatoms"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/logo.svg"
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "bitatoms", "image_light": "_static/logo.svg", "image_dark": "_static/logo.svg", "alt_text": ""},
    "header_links_before_dropdown": 8,
    "navbar_persistent": ["search-button"],
    "navbar_align": "left",
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
}
html_sidebars = {"index": [], "start": [], "which-tool": [], "changelog": []}
copybutton_exclude = ".linenos, .gp, .go"  # copy the code of examples, not their prompts and output

# `make linkcheck`. These sites refuse programs, or are often slow.
linkcheck_ignore = [r"https://doi\.org/", r"http://fimi\.uantwerpen\.be/"]
linkcheck_timeout = 20

if repository := os.environ.get("GITHUB_REPOSITORY"):  # in the workflow
    html_theme_options["icon_links"] = [
        {"name": "GitHub", "url": f"https://github.com/{repository}", "icon": "fa-brands fa-github"}
    ]
