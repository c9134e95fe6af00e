"""Release over time: a function that is kept up to date at every step, under one claim paid at the start."""

from hushsum.releases import StepCovariance, StreamStep, step_covariance

from ._stream import (
    FILES_IN_TIME,
    PreparedStream,
    Stream,
    StreamFile,
    StreamPlan,
    StreamRequest,
    open_stream,
    plan_stream,
    prepare_stream,
    stream,
)

__all__ = [
    "FILES_IN_TIME", "PreparedStream", "StepCovariance", "Stream", "StreamFile", "StreamPlan",
    "StreamRequest", "StreamStep", "open_stream", "plan_stream", "prepare_stream", "step_covariance",
    "stream",
]  # fmt: skip
