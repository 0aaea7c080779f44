"""Which members of classes the reference lists: those that bitatoms defines, not those of scikit-learn or Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.connect("autodoc-skip-member", skip_member)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def skip_member(app: Sphinx, kind: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Skip members that another package defines, and fields of named tuples, which the docstring of the class lists."""
    function = getattr(member, "fget", None) or getattr(member, "__func__", None) or member
    module = getattr(function, "__module__", None)
    is_foreign = callable(function) and not str(module).startswith("bitatoms")
    is_routing = name.startswith("set_") and name.endswith("_request")  # scikit-learn adds these methods
    if is_foreign or is_routing or type(member).__name__ == "_tuplegetter":
        return True
    return None
