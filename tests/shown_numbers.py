"""Whether a text shows a number: on its own, not by chance inside a digest, an address or a longer number."""

from __future__ import annotations

import re


def shows_number(text: str, number: int) -> bool:
    """Whether ``number`` stands in ``text``, with or without separators of thousands or a fraction of zeros.

    Digits inside of other words are not it: names of temporary folders, digests, base64, times of day and
    digits after a decimal point contain every short number now and then.
    """
    spellings = "|".join(re.escape(each) for each in (str(number), f"{number:,}", f"{number:_}"))
    return re.search(rf"(?<![\w.+/])(?:{spellings})(?:\.0+)?(?![\w+/]|\.\d)", text) is not None
