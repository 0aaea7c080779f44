"""`bitatoms` and `python -m bitatoms`: the command line."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from .system.libraries import pip_command


def main() -> None:
    """Run the command line, or print how to install its extra."""
    try:
        missing = [library for library in ("click", "rich") if find_spec(library) is None]
        if missing:
            sys.exit(f"the command line needs {' and '.join(missing)}; install it with {pip_command(*missing)}")
        from .cli.app import run

        run()
    except KeyboardInterrupt:  # during the imports, before a command runs
        sys.exit(130)


if __name__ == "__main__":
    main()
