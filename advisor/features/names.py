"""What stays the same when a person runs the same work again: a name without its numbers, dates and hashes."""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["template_of"]

_BETWEEN = re.compile(r"[\W_]+")
_DIGITS = re.compile(r"\d+")
_HASH = re.compile(r"(?=.*\d)[0-9a-f]{6,}")
# Kubernetes ends generated names with letters that spell no words: five for a pod, up to ten for a replica set.
_GENERATED = re.compile(r"[bcdfghjklmnpqrstvwxz2456789]{5}|(?=.*\d)[bcdfghjklmnpqrstvwxz2456789]{8,10}")
_SOMETHING = "#"


@lru_cache(maxsize=65_536)
def template_of(name: str) -> str | None:
    """``name`` in lower case with numbers, dates and hashes as ``#``; None where nothing else is in it.

    >>> template_of("Train-BERT-2024-01-05-a8f3e2c9")
    'train-bert-#'
    >>> template_of("llama-eval-run17-x7k2p")
    'llama-eval-run#-#'
    """
    words = [word for word in _BETWEEN.split(name.lower()) if word]
    shown = [_shown(word, last=place == len(words) - 1 and place > 0) for place, word in enumerate(words)]
    kept = [word for place, word in enumerate(shown) if word != _SOMETHING or shown[place - 1 : place] != [_SOMETHING]]
    return "-".join(kept) if any(word != _SOMETHING for word in kept) else None


def _shown(word: str, *, last: bool) -> str:
    if _HASH.fullmatch(word) or (last and _GENERATED.fullmatch(word)):
        return _SOMETHING
    return _DIGITS.sub(_SOMETHING, word)
