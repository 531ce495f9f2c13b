"""The command ``metricboost``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command. If a package of the extra "cli" is missing, say how to install it."""
    try:
        from .app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich", "pandas", "pyarrow"):
            raise
        sys.exit(f'The command needs {error.name}: pip install "metricboost[cli]"')
    app()
