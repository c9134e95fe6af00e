"""Models in the ONNX format as transformations: one record at a time, on one thread, clipped to a ball."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import DataRefused, UsageError
from hushsum.records.native_batch import as_dense
from hushsum.records.norm_clipping import clipped_to_ball
from hushsum.records.onnx_graph import DROPOUT, operations_of

MOST_BYTES: Final = 1 << 31
_DIGEST_MARK: Final = b"hushsum onnx transformation 1"


class OnnxTransform:
    """x ↦ a public model's output for x alone, shortened to ``radius``.

    It is slow: every record is a run of the model, on one thread. Where the model is linear, use
    :class:`hushsum.Transform`. Needs the package onnxruntime (the extra ``onnx``).

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
        SHA-256 of the model, the output's name and the radius; ``hs.monomials(…, transform=…)`` puts it into
        the fingerprint of a tally, so that only tallies of one model merge.
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
    ``hs.OnnxTransform("encoder.onnx", radius=1.0).apply(X)``: see *Classify embeddings*.
    """

    def __init__(self, model: bytes | str | Path, *, radius: float, output: str | None = None) -> None:
        if not 1e-15 <= radius <= 1e15:
            raise UsageError(
                parameter="radius",
                rule="must be from 1e-15 to 1e15",
                got=f"{radius:g}",
                remedy="give the length that no output exceeds",
            )
        content = bytes(model) if isinstance(model, bytes | bytearray) else _file(Path(model))
        self.radius = float(radius)
        self._every = DROPOUT in operations_of(content)
        self._session = _session(content)
        outputs = [each.name for each in self._session.get_outputs()]
        if output is not None and output not in outputs:
            raise UsageError(
                parameter="output",
                rule=f"must be one of {', '.join(outputs)}",
                got=f"{output!r}",
                remedy="choose one, or leave it out",
            )
        self.output = output or outputs[0]
        hashed = hashlib.sha256(_DIGEST_MARK)
        hashed.update(np.array([self.radius], "<f8").tobytes())
        hashed.update(self.output.encode() + b"\0")
        hashed.update(content)
        self.digest = hashed.hexdigest()
        inputs = self._session.get_inputs()
        if not inputs:
            raise UsageError(
                parameter="model",
                rule="must have an input",
                got="none",
                remedy="export it with the record as its input",
            )
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
                parameter="model",
                rule="must have one input of shape (records, columns) for rows of numbers",
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
                parameter="model",
                rule="must give outputs of one length",
                got="several",
                remedy="take an output that is pooled over a record",
            )
        return clipped_to_ball(np.stack(images), self.radius)

    def _image(self, inputs: Mapping[str, NDArray[Any]]) -> Floats:
        image = self._run(inputs)
        if self._every or not self._checked:
            if not np.array_equal(image, self._run(inputs)):
                raise DataRefused(
                    parameter="model",
                    rule="must give one record the same output in every run",
                    got="different ones",
                    remedy="export it without random nodes, for inference",
                )
            self._checked = True
        return image

    _checked = False

    def _run(self, inputs: Mapping[str, NDArray[Any]]) -> Floats:
        image = self._output(inputs)
        if (
            image is None
            or image.ndim not in (1, 2)
            or (image.ndim == 2 and len(image) != 1)
            or not np.isfinite(image).all()
        ):
            raise DataRefused(
                parameter="model",
                rule="must give finite outputs of shape (1, dim) or (dim,) for one record",
                got="another output",
                remedy="take another output, or export the model with pooling",
            )
        return image.ravel()

    def _output(self, inputs: Mapping[str, NDArray[Any]]) -> Floats | None:
        """The output as numbers; None where the model fails, since its message may quote the record."""
        try:
            (found,) = self._session.run([self.output], dict(inputs))
            return np.asarray(found, np.float64)
        except Exception:
            return None


def _file(path: Path) -> bytes:
    if not path.is_file() or path.stat().st_size > MOST_BYTES:
        raise UsageError(
            parameter="model",
            rule="must be a file in the ONNX format of at most 2 GiB",
            got="none" if not path.is_file() else "a larger one",
            remedy="check the path",
        )
    return path.read_bytes()


def _session(content: bytes) -> Any:
    """A session whose answers do not depend on earlier ones."""
    try:
        import onnxruntime
    except ImportError:
        raise UsageError(
            rule="models in the ONNX format need the package onnxruntime", remedy="install hushsum[onnx]"
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
        raise UsageError(
            parameter="model",
            rule="must be a model in the ONNX format",
            got="something else",
            remedy="export it anew, with its weights inside",
        ) from None
