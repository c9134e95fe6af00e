"""What the library says of its arguments, in the words of the command line."""

from __future__ import annotations

from typing import Final

_SPELLED: Final = (
    ("population=..., or allow_large_delta=True", "--population, or give --allow-large-delta"),
    ("lower it, or pass allow_large=True", "lower it, or give --allow-large-delta"),
    ("read it with hushsum.models.load_model", "use hushsum predict"),
    ("read it with hushsum.load", "use hushsum query"),
)
"""Remedies that name Python, and the commands or options that do the same."""


def in_options(sentence: str) -> str:
    """A sentence of the library whose remedy can be typed.

    >>> in_options("the file holds one released function, not a model; read it with hushsum.load")
    'the file holds one released function, not a model; use hushsum query'
    """
    for python, typed in _SPELLED:
        sentence = sentence.replace(python, typed)
    return sentence
