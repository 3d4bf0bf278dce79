"""``python -m docs.generators [--check]``: write the reference pages, or say which are out of date."""

from __future__ import annotations

import argparse
import sys

from docs.generators.pages import stale, write


def main(arguments: list[str]) -> int:
    """Exit code 1 where ``--check`` finds a page out of date."""
    parser = argparse.ArgumentParser(
        prog="python -m docs.generators", description="Write docs/reference from the code."
    )
    parser.add_argument("--check", action="store_true", help="write nothing; say which pages are out of date")
    if parser.parse_args(arguments).check:
        found = stale()
        sys.stderr.writelines(f"out of date: docs/reference/{name}; run python -m docs.generators\n" for name in found)
        return 1 if found else 0
    sys.stdout.writelines(f"written: docs/reference/{name}\n" for name in write())
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
