"""A local S3 server (moto) for tests, with credentials in the environment as users have them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

SECRET = "secret-of-the-tests"
BUCKET = "town"


@contextmanager
def s3_server(patch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The filesystem of a server with one bucket; processes that are started meanwhile see it too."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    from pyarrow.fs import S3FileSystem

    server.start()
    try:
        host, port = server.get_host_and_port()
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": "tests",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }.items():
            patch.setenv(name, value)
        files = S3FileSystem(endpoint_override=f"http://{host}:{port}", allow_bucket_creation=True)
        files.create_dir(BUCKET)
        yield files
    finally:
        server.stop()
