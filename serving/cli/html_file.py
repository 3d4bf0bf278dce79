"""The file that a report is also written to as one page: checked before the work, put in place whole after it."""

from __future__ import annotations

import os
from pathlib import Path

from advisor.errors import Refused

__all__ = ["page_file", "write_page"]


def page_file(path: Path) -> Path:
    """The file to write a page to, in a folder where that can be done.

    Raises:
        Refused: no plain file can be written there.
    """
    target = path.expanduser().absolute()
    try:
        odd = target.is_symlink() or (target.exists() and not target.is_file())
        writable = target.parent.is_dir() and os.access(target.parent, os.W_OK)
    except OSError as error:
        limit = f"the system takes no such name: {error.strerror}"
        raise Refused("--html", str(path), limit, "Name a file in a folder of yours.") from error
    if odd or not writable:
        raise Refused("--html", str(path), "no plain file can be written there", "Name a file in a folder of yours.")
    return target


def write_page(target: Path, page: str) -> None:
    """Put the page in place whole; whoever has an older one open keeps reading it.

    Raises:
        Refused: it cannot be written after all.
    """
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        fresh.write_text(page, encoding="utf-8")
        fresh.replace(target)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise Refused("--html", str(target), f"it cannot be written ({error})", "Name another file.") from error
