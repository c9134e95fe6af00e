"""Transformations that are ONNX models, one record at a time, checked before a library runs them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import DataRefused, UsageError

from ._arrow import as_dense
from ._bounds import clipped_to_ball
from ._transform import check_radius

_DRAWING = """
    RandomNormal RandomNormalLike RandomUniform RandomUniformLike Multinomial Bernoulli Sampling GreedySearch
    BeamSearch WhisperBeamSearch BiasDropout BitmaskDropout
"""
# Operations that draw from a generator. It is one for all runs, so that a record's output would depend on how
# many records came before it.
RANDOM_OPERATIONS: Final = frozenset(_DRAWING.split())
# Draws in training alone; what it does is seen when a record is run twice.
DROPOUT: Final = "Dropout"
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
        raise _not_onnx() from None
    if not found:
        raise _not_onnx()
    drawn = sorted(found & RANDOM_OPERATIONS)
    if drawn:
        raise UsageError("model", _SAME, got=f"the random operation {drawn[0]}", remedy=_WITHOUT_RANDOM)
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
            raise _not_onnx("weights in other files")


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


def _not_onnx(got: str = "something else") -> UsageError:
    remedy = "export it anew, with its weights inside"
    return UsageError("model", "must be a model in the ONNX format", got=got, remedy=remedy)


_SAME: Final = "must give one record the same output in every run"
_WITHOUT_RANDOM: Final = "export it without random nodes, for inference"
MOST_BYTES: Final = 1 << 31
_DIGEST_MARK: Final = b"hushsum onnx transformation 1"


class OnnxTransform:
    """x ↦ a public model's output for x alone, shortened to ``radius``.

    It is slow: every record is a run of the model, on one thread. Where the model is linear, use
    :class:`hushsum.records.Transform`. Needs the package onnxruntime (the extra ``onnx``).

    Parameters
    ----------
    model : bytes, or a path
        In the ONNX format. Its weights must not depend on private records.
    radius : float
        Declared: longer outputs are shortened to it.
    output : str, optional
        The name of the output to take; by default the first. Its shape is (1, dim) or (dim,).

    Attributes
    ----------
    digest : str
        SHA-256 of the model, the output's name and the radius; ``hs.methods.monomials(…, transform=…)`` puts
        it into the fingerprint of a tally, so that only tallies of one model merge.
    columns : int or None
        Of a record, where the model has one input of a fixed width.

    Privacy
    -------
    A matrix product gives a row other last bits in another batch, position or thread. So the model is run on
    one record at a time, by a session with one thread, sequential execution and no memory patterns that
    depend on earlier runs; its output depends on that record alone. A model with random operations is
    refused: their generator runs on from record to record. So is one that gives the first record different
    outputs in two runs, or any record if it has an operation that may draw, and one with weights in other
    files, which the digest would not cover. An output that is not finite is refused, for the owner to see.
    One machine and one version of onnxruntime must transform all records of a tally: another may round
    differently.

    Examples
    --------
    ``hs.records.OnnxTransform("encoder.onnx", radius=1.0).apply(X)``: see *Classify embeddings*.
    """

    def __init__(self, model: bytes | str | Path, *, radius: float, output: str | None = None) -> None:
        check_radius("radius", radius, "output")
        content = bytes(model) if isinstance(model, bytes | bytearray) else _file(Path(model))
        self.radius = float(radius)
        self._every = DROPOUT in operations_of(content)
        self._session = _session(content)
        outputs = [each.name for each in self._session.get_outputs()]
        if output is not None and output not in outputs:
            raise UsageError("output", f"must be one of {', '.join(outputs)}", got=f"{output!r}")
        self.output = output or outputs[0]
        hashed = hashlib.sha256(_DIGEST_MARK)
        hashed.update(np.array([self.radius], "<f8").tobytes())
        hashed.update(self.output.encode() + b"\0")
        hashed.update(content)
        self.digest = hashed.hexdigest()
        inputs = self._session.get_inputs()
        if not inputs:
            remedy = "export it with the record as its input"
            raise UsageError("model", "must have an input", got="none", remedy=remedy)
        shape = inputs[0].shape if len(inputs) == 1 else []
        fixed = len(shape) == 2 and isinstance(shape[1], int)
        self.columns: int | None = shape[1] if fixed else None
        self._input: str = inputs[0].name

    def apply(self, rows: object) -> Floats:
        """The images of records of numbers, shape (n_records, dim); each depends on its record alone.

        Raises
        ------
        DataRefused
            for anything but rows of finite numbers, and for outputs that are not.
        """
        if self.columns is None:
            raise UsageError(
                "model",
                "must have one input of shape (records, columns) for rows of numbers",
                got="other inputs",
                remedy="call apply_inputs with the inputs of each record",
            )
        dense = as_dense(rows, dim=self.columns)
        return self.apply_inputs({self._input: row[None]} for row in dense)

    def apply_inputs(self, records: Iterable[Mapping[str, NDArray[Any]]]) -> Floats:
        """The images of records given as the model's inputs, by name: token numbers and masks, for instance.
        Each has a first axis of length 1.
        """
        images = [self._image(inputs) for inputs in records]
        if not images:
            return np.zeros((0, 0))
        if len({each.shape for each in images}) > 1:
            raise DataRefused(
                "model",
                "must give outputs of one length",
                got="several",
                remedy="take an output that is pooled over a record",
            )
        return clipped_to_ball(np.stack(images), self.radius)

    def _image(self, inputs: Mapping[str, NDArray[Any]]) -> Floats:
        image = self._run(inputs)
        if self._every or not self._checked:
            if not np.array_equal(image, self._run(inputs)):
                raise DataRefused("model", _SAME, got="different ones", remedy=_WITHOUT_RANDOM)
            self._checked = True
        return image

    _checked = False

    def _run(self, inputs: Mapping[str, NDArray[Any]]) -> Floats:
        image: Floats = np.zeros((0, 0, 0))
        # Where the model fails, its message may quote the record.
        with suppress(Exception):
            (found,) = self._session.run([self.output], dict(inputs))
            image = np.asarray(found, np.float64)
        if image.ndim == 2 and len(image) == 1:
            image = image[0]
        if image.ndim != 1 or not np.isfinite(image).all():
            raise DataRefused(
                "model",
                "must give finite outputs of shape (1, dim) or (dim,) for one record",
                got="another output",
                remedy="take another output, or export the model with pooling",
            )
        return image


def _file(path: Path) -> bytes:
    if not path.is_file() or path.stat().st_size > MOST_BYTES:
        got = "a larger one" if path.is_file() else "none"
        raise UsageError("model", "must be a file in the ONNX format of at most 2 GiB", got=got)
    return path.read_bytes()


def _session(content: bytes) -> Any:
    """A session whose answers do not depend on earlier ones."""
    try:
        import onnxruntime
    except ImportError:
        raise UsageError(
            "models in the ONNX format need the package onnxruntime", remedy="install hushsum[onnx]"
        ) from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.enable_mem_pattern = False
    options.use_deterministic_compute = True
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception:
        # What the library raises differs between versions; its text may contain paths.
        raise _not_onnx() from None
