"""Release over time: a function that is kept up to date at every step, under one claim paid at the start."""

from hushsum.releases.stream_step import StepCovariance, StreamStep, step_covariance
from hushsum.streams.plan import StreamPlan
from hushsum.streams.start import plan_stream, stream
from hushsum.streams.state_file import open_stream
from hushsum.streams.stream import Stream

__all__ = [
    "StepCovariance",
    "Stream",
    "StreamPlan",
    "StreamStep",
    "open_stream",
    "plan_stream",
    "step_covariance",
    "stream",
]
