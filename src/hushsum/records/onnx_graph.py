"""What an ONNX file says before a library runs it: its operations, and where its weights are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hushsum.errors import UsageError

RANDOM: Final = frozenset(
    (
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
        "Multinomial",
        "Bernoulli",
        "Sampling",
        "GreedySearch",
        "BeamSearch",
        "WhisperBeamSearch",
        "BiasDropout",
        "BitmaskDropout",
    )
)
"""Operations that draw from a generator. It is one for all runs, so that a record's output would depend on
how many records came before it.
"""
DROPOUT: Final = "Dropout"
"""Draws in training alone; what it does is seen when a record is run twice."""
_DEEPEST: Final = 64
_MODEL_GRAPH, _MODEL_FUNCTION = 7, 25
_GRAPH_NODE, _GRAPH_TENSOR, _GRAPH_SPARSE = 1, 5, 15
_FUNCTION_NODE = 7
_NODE_TYPE, _NODE_ATTRIBUTE = 4, 5
_ATTRIBUTE_TENSORS, _ATTRIBUTE_GRAPHS = (5, 10), (6, 11)
_TENSOR_EXTERNAL = 13


def operations_of(content: bytes) -> set[str]:
    """The names of all operations of a model, also of those inside of others.

    Raises
    ------
    UsageError
        for bytes that are no such model, for weights in other files, which no digest of this one would cover,
        and for operations that draw random numbers.
    """
    found: set[str] = set()
    try:
        for field, part in _messages(memoryview(content)):
            if field == _MODEL_GRAPH:
                _graph(part, found, 0)
            elif field == _MODEL_FUNCTION:
                for inner, node in _messages(part):
                    if inner == _FUNCTION_NODE:
                        _node(node, found, 0)
    except UsageError:
        raise
    except (ValueError, IndexError):
        raise _refused("something else") from None
    if not found:
        raise _refused("something else")
    drawn = sorted(found & RANDOM)
    if drawn:
        raise UsageError(
            parameter="model",
            rule="must give one record the same output in every run",
            got=f"the random operation {drawn[0]}",
            remedy="export it without random nodes, for inference",
        )
    return found


def _graph(data: memoryview, found: set[str], depth: int) -> None:
    if depth > _DEEPEST:
        raise ValueError("depth")
    for field, part in _messages(data):
        if field == _GRAPH_NODE:
            _node(part, found, depth)
        elif field == _GRAPH_TENSOR:
            _tensor(part)
        elif field == _GRAPH_SPARSE:
            for _, inner in _messages(part):
                _tensor(inner)


def _node(data: memoryview, found: set[str], depth: int) -> None:
    for field, part in _messages(data):
        if field == _NODE_TYPE:
            found.add(bytes(part).decode())
        elif field == _NODE_ATTRIBUTE:
            for inner, value in _messages(part):
                if inner in _ATTRIBUTE_GRAPHS:
                    _graph(value, found, depth + 1)
                elif inner in _ATTRIBUTE_TENSORS:
                    _tensor(value)


def _tensor(data: memoryview) -> None:
    for field, _ in _fields(data):
        if field == _TENSOR_EXTERNAL:
            raise _refused("weights in other files")


def _messages(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    """The fields that have a length: texts and messages."""
    return ((field, part) for field, part in _fields(data) if part is not None)


def _fields(data: memoryview) -> Iterator[tuple[int, memoryview | None]]:
    """The fields of a protocol buffer; those of numbers without their value.

    Raises
    ------
    ValueError, IndexError
        where the bytes are none.
    """
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == 0:
            _, at = _varint(data, at)
            yield tag >> 3, None
        elif kind == 2:
            size, at = _varint(data, at)
            if size > len(data) - at:
                raise ValueError("size")
            yield tag >> 3, data[at : at + size]
            at += size
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
            if at > len(data):
                raise ValueError("size")
            yield tag >> 3, None
        else:
            raise ValueError("kind")


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("number")


def _refused(got: str) -> UsageError:
    return UsageError(
        parameter="model",
        rule="must be a model in the ONNX format",
        got=got,
        remedy="export it anew, with its weights inside",
    )
