"""Install packages into this interpreter's environment with uv, or with pip where uv cannot be had.

``python requirements/install.py '.[dev]'``: the arguments are those of ``pip install``. Of the development
environment uv takes half the processor time of pip, which unpacks and compiles one package after the other.
Indexes, folders of wheels and certificates are those that pip is configured with, which uv does not read.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence

PIP = [sys.executable, "-m", "pip"]
UV = [sys.executable, "-m", "uv"]
SECTIONS = ("global", "install", ":env:")
OPTIONS = {"index-url": "--default-index", "extra-index-url": "--index", "find-links": "--find-links"}


def settings(lines: Sequence[str]) -> dict[str, list[str]]:
    """The values of each setting in the output of ``pip config list``; the environment overrides files.

    >>> settings(["global.find-links='/wheels'", ":env:.extra-index-url='https://a https://b'"])
    {'find-links': ['/wheels'], 'extra-index-url': ['https://a', 'https://b']}
    """
    found: dict[str, list[str]] = {}
    known = {section: [line for line in lines if line.startswith(f"{section}.")] for section in SECTIONS}
    for line in [each for section in SECTIONS for each in known[section]]:
        place, _, value = line.partition("=")
        found[place.rpartition(".")[2]] = " ".join(shlex.split(value)).split()
    return found


def options(configured: dict[str, list[str]]) -> Iterator[str]:
    """The same settings as options of uv.

    >>> list(options({"find-links": ["/wheels"], "timeout": ["60"]}))
    ['--find-links', '/wheels']
    """
    for name, option in OPTIONS.items():
        for value in configured.get(name, []):
            yield from (option, value)
    if configured.get("extra-index-url"):
        # pip takes the best version of all indexes; uv by default one of the first index that has any.
        yield "--index-strategy=unsafe-best-match"
    if configured.get("no-index", ["false"])[0].lower() in ("1", "true", "yes", "on"):
        yield "--no-index"


def by_uv(packages: list[str]) -> bool:
    """Whether uv is there, or could be installed, and has installed the packages."""
    if subprocess.run([*PIP, "install", "--quiet", "uv"], check=False).returncode:
        return False
    listed = subprocess.run([*PIP, "config", "list"], check=False, capture_output=True, text=True).stdout
    configured = settings(listed.splitlines())
    environment = dict(os.environ)
    if configured.get("cert"):
        environment.setdefault("SSL_CERT_FILE", configured["cert"][0])
    # The folder itself is built whenever this is called: the Makefile knows whether its sources changed.
    command = [*UV, "pip", "install", "--quiet", "--python", sys.executable, "--reinstall-package", "hushsum"]
    command += ["--refresh-package", "hushsum", *options(configured), *packages]
    return subprocess.run(command, check=False, env=environment).returncode == 0


def main(packages: list[str]) -> int:
    """Install by uv, else by pip."""
    if by_uv(packages):
        return 0
    print("uv is not available here, or failed: installing with pip", file=sys.stderr)
    return subprocess.run([*PIP, "install", "--quiet", *packages], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
