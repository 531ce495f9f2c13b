"""The command ``metricboost``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command; without its extra packages, say how to get them."""
    try:
        from ._app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich", "pandas", "pyarrow"):
            raise
        sys.exit(f'The command needs {error.name}: pip install "metricboost[cli]"')
    app()
