"""The stub of the compiled module, generated from its bindings.

``python -m tests.native_stub`` writes it anew.
"""

from __future__ import annotations

from pathlib import Path

from nanobind.stubgen import StubGen

from hushsum import _native

STUB = Path(__file__).resolve().parents[1] / "src" / "hushsum" / "_native.pyi"


def generated() -> str:
    """What the bindings say of themselves."""
    for each in vars(_native).values():
        # Copying an object leaves it in its class.
        if isinstance(each, type) and "__slotnames__" in vars(each):
            delattr(each, "__slotnames__")
    generator = StubGen(_native)
    generator.put(_native)
    text: str = generator.get()
    return text


if __name__ == "__main__":
    STUB.write_text(generated())
