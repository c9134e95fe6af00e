"""The committed stub says what the compiled module does."""

from __future__ import annotations

import ast

from tests.native_stub import STUB, generated


def test_the_stub_is_the_generated_one() -> None:
    """Compared as syntax trees: the layout may differ between versions of the generator."""
    assert ast.dump(ast.parse(STUB.read_text())) == ast.dump(ast.parse(generated())), (
        "the bindings changed; write the stub anew with `python -m tests.native_stub`"
    )
