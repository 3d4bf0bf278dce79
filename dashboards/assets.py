"""Scripts and styles, from this package and from the installed Plotly; nothing is ever fetched from outside."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from advisor.errors import Defect

__all__ = ["STYLE_HASHES", "Asset", "Assets"]

STYLE_HASHES = (
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='",
    "'sha256-ji27qzEtxXZW+7dun6UwjHXJ18e6WAin1VvNtkzIE/o='",
)
"""The two style elements that Plotly's script adds, for a policy that forbids every other inline style.

The first is empty and filled rule by rule; the second is for maps, which no page draws, so that a later
Plotly with another one loses nothing but a line in the browser's console.
"""

_FOLDER = Path(__file__).parent / "static"
_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
_PLOTLY = "plotly.min.js"
_LARGE = 100_000


@dataclass(frozen=True)
class Asset:
    """One file: where it lies, and under which address browsers may keep it for ever."""

    name: str
    path: Path

    @cached_property
    def content(self) -> bytes:
        """The bytes, read once."""
        return self.path.read_bytes()

    @cached_property
    def digest(self) -> str:
        """Short digest of the bytes: a changed file has another address."""
        return hashlib.sha256(self.content).hexdigest()[:12]

    @cached_property
    def compressed(self) -> bytes | None:
        """The bytes under gzip, None where that is not worth it."""
        return gzip.compress(self.content, compresslevel=6, mtime=0) if len(self.content) > _LARGE else None

    @property
    def media_type(self) -> str:
        """The content type by the file's ending."""
        return _TYPES[self.path.suffix]

    @property
    def url(self) -> str:
        """The address that pages name."""
        return f"/static/{self.name}?v={self.digest}"


class Assets:
    """Every file that pages may name."""

    def __init__(self) -> None:
        """Find the files of this package and Plotly's script.

        Raises:
            Defect: Plotly is installed without its script.
        """
        own = [Asset(path.name, path) for path in sorted(_FOLDER.iterdir()) if path.suffix in _TYPES]
        self._by_name = {asset.name: asset for asset in [*own, Asset(_PLOTLY, _plotly_script())]}

    def get(self, name: str) -> Asset | None:
        """The file of that name."""
        return self._by_name.get(name)

    def url(self, name: str) -> str:
        """The address of a file that a template names; an unknown name is a mistake in the template."""
        return self._by_name[name].url

    def text(self, name: str) -> str:
        """The file itself, to stand inside an element of a page that must do without others.

        Raises:
            Defect: it holds what would end the element, or hide its end.
        """
        text = self._by_name[name].content.decode("utf-8")
        if any(end in text.lower() for end in ("</script", "</style", "<!--")):
            raise Defect(f"{name} cannot stand inside a page: it holds the end of an element")
        return text


def _plotly_script() -> Path:
    # The package is located, not imported: importing it would cost the server a second and 60 MB.
    spec = importlib.util.find_spec("plotly")
    if spec is None or spec.origin is None:
        raise Defect("the plotly package is not installed, so charts have no script")
    script = Path(spec.origin).parent / "package_data" / _PLOTLY
    if not script.is_file():
        raise Defect(f"the installed plotly package holds no {_PLOTLY}")
    return script
