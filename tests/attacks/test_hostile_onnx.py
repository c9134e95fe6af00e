"""ONNX files that would make records depend on each other, read other files, or quote a record."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import DataRefused, UsageError
from hushsum.records import operations_of

FLOAT, INT64 = 1, 7


def message(*fields: tuple[int, bytes | int]) -> bytes:
    """A protocol buffer, of texts and messages and of numbers."""
    found = b""
    for field, value in fields:
        number = isinstance(value, int)
        found += varint(field << 3 | (0 if number else 2))
        found += varint(value) if isinstance(value, int) else varint(len(value)) + value
    return found


def varint(value: int) -> bytes:
    found = b""
    while value > 0x7F:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])


def port(name: bytes, kind: int, *shape: int) -> bytes:
    sizes = message(*((1, message((1, each))) for each in shape))
    return message((1, name), (2, message((1, message((1, kind), (2, sizes))))))


def node(operation: bytes, inputs: list[bytes], output: bytes, *attributes: bytes) -> bytes:
    named = [(1, each) for each in inputs]
    return message(*named, (2, output), (4, operation), *((5, each) for each in attributes))


def model(nodes: list[bytes], tensors: tuple[bytes, ...] = (), kind: int = FLOAT) -> bytes:
    graph = message(
        *((1, each) for each in nodes),
        (2, b"g"),
        *((5, each) for each in tensors),
        (11, port(b"x", kind, 1, 2)),
        (12, port(b"y", FLOAT, 1, 2)),
    )
    return message((1, 8), (7, graph), (8, message((1, b""), (2, 17))))


TENSOR = message((1, 2), (2, FLOAT), (8, b"w"), (9, np.ones(2, "<f4").tobytes()))


def test_random_operations_are_found_inside_of_others() -> None:
    drawing = node(b"RandomUniformLike", [b"x"], b"y")
    inner = message((1, drawing), (2, b"inner"))
    branch = node(b"If", [b"c"], b"y", message((1, b"then_branch"), (6, inner), (20, 5)))
    for each in (drawing, branch):
        with pytest.raises(UsageError, match="random operation RandomUniformLike"):
            operations_of(model([node(b"Identity", [b"x"], b"z"), each]))
    function = message((1, b"f"), (7, drawing))
    with pytest.raises(UsageError, match="random operation"):
        operations_of(model([node(b"f", [b"x"], b"y")]) + message((25, function)))


def test_weights_in_other_files_are_refused() -> None:
    place = message((1, b"location"), (2, b"/etc/hostname"))
    outside = message((1, 2), (2, FLOAT), (8, b"w"), (13, place), (14, 1))
    with pytest.raises(UsageError, match="weights in other files"):
        operations_of(model([node(b"Add", [b"x", b"w"], b"y")], (outside,)))
    constant = node(b"Constant", [], b"w", message((1, b"value"), (5, outside), (20, 4)))
    with pytest.raises(UsageError, match="weights in other files"):
        operations_of(model([constant, node(b"Add", [b"x", b"w"], b"y")]))


def test_nested_graphs_do_not_exhaust_the_stack() -> None:
    graph = message((1, node(b"Identity", [b"x"], b"y")))
    for _ in range(500):
        graph = message((1, node(b"If", [b"c"], b"y", message((6, graph)))))
    with pytest.raises(UsageError, match="must be a model in the ONNX format"):
        operations_of(message((7, graph)))


@pytest.mark.parametrize("content", [b"", b"\xff" * 20, b"\x3a\xff\xff\xff\xff\x0f", b"\x3a\x00", b"{}"])
def test_other_bytes_are_refused(content: bytes) -> None:
    with pytest.raises(UsageError, match="must be a model in the ONNX format"):
        operations_of(content)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="model must be a file in the ONNX format"):
        hs.records.OnnxTransform(tmp_path / "none.onnx", radius=1.0)


class TestWithRuntime:
    """Where onnxruntime is installed."""

    @pytest.fixture(autouse=True)
    def _runtime(self) -> None:
        pytest.importorskip("onnxruntime")

    def test_a_failing_model_quotes_no_record(self) -> None:
        gather = model(
            [
                node(b"Cast", [b"x"], b"i", message((1, b"to"), (3, INT64), (20, 2))),
                node(b"Gather", [b"w", b"i"], b"y"),
            ],
            (TENSOR,),
        )
        transform = hs.records.OnnxTransform(gather, radius=1.0)
        np.testing.assert_allclose(transform.apply([[0.0, 1.0]]), [[0.5**0.5] * 2])
        with pytest.raises(DataRefused) as refused:
            transform.apply([[0.0, 31415926.0]])
        assert "31415" not in str(refused.value)
        assert refused.value.__cause__ is None
        assert refused.value.__context__ is None

    def test_a_model_that_may_draw_is_run_twice_for_every_record(self) -> None:
        training = message((2, 9), (8, b"t"), (9, b"\x01"))
        half = message((2, FLOAT), (8, b"r"), (9, np.array(0.5, "<f4").tobytes()))
        dropout = model([node(b"Dropout", [b"x", b"r", b"t"], b"y")], (half, training))
        rows = np.zeros((40, 2), np.float32)
        # The first records hide what is drawn: a dropped zero is a zero.
        rows[20:] = 1.0
        with pytest.raises(DataRefused, match="the same output in every run"):
            hs.records.OnnxTransform(dropout, radius=1.0).apply(rows)
