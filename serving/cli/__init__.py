"""The command line: one file a command; each parses, wires, calls and renders.

Results go to standard output, logs and progress to standard error. A command's module is imported
only when that command runs, so that ``gsa --help`` does not wait for the models' libraries.
"""

from __future__ import annotations

from serving.cli.root import main

__all__ = ["main"]
