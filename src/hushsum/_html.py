"""Small pieces of HTML for notebooks: escaped, without scripts or styles from elsewhere."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape


def block(title: str, *parts: str) -> str:
    """A titled block of parts that are HTML already; ``title`` is text."""
    return f"<div><p><strong>{escape(title)}</strong></p>{''.join(parts)}</div>"


def paragraph(text: str) -> str:
    """A paragraph of text.

    >>> paragraph("a < b")
    '<p>a &lt; b</p>'
    """
    return f"<p>{escape(text)}</p>"


class Described:
    """A result that is shown as names and values: in a terminal, and as a table in notebooks."""

    def describe(self) -> list[tuple[str, str]]:
        """Names and values for people."""
        raise NotImplementedError

    def __str__(self) -> str:
        rows = self.describe()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)

    def _repr_html_(self) -> str:
        return block(type(self).__name__, facts(self.describe()))


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """A table of names and values, both text."""
    lines = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in rows
    )
    return f"<table><tbody>{lines}</tbody></table>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with a head, all of it text."""
    top = "".join(f"<th>{escape(name)}</th>" for name in head)
    lines = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{lines}</tbody></table>"


def picture(png: bytes, description: str) -> str:
    """A PNG picture inside the page; ``description`` is text for those who cannot see it."""
    data = base64.b64encode(png).decode("ascii")
    return f'<img alt="{escape(description)}" src="data:image/png;base64,{data}">'
