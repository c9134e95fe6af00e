"""Run a benchmark by its name: ``python -m benchmarks NAME [OPTIONS]``; without a name, list them all.

Raw results go to ``build/benchmarks``, tables to ``benchmarks/results``; see ``benchmarks.writer``.
"""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path

HERE = Path(__file__).parent
GROUPS = ("accuracy", "coverage", "plans", "speed", "service")


def benchmarks() -> dict[str, Path]:
    """The file of every benchmark by its name: those that can be run by themselves."""
    found = {path.stem: path for group in GROUPS for path in sorted((HERE / group).glob("*.py"))}
    runnable = {name: path for name, path in found.items() if 'if __name__ == "__main__"' in path.read_text()}
    return runnable | {"outside_audits": HERE / "outside_audits" / "run.py"}


def listing() -> str:
    """Name and first line of every benchmark, in its group."""
    lines, group = ["usage: python -m benchmarks NAME [OPTIONS]"], ""
    for name, path in benchmarks().items():
        if path.parent.name != group:
            group = path.parent.name
            lines += ["", f"{group}:"]
        title = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n")[0]
        lines.append(f"  {name:<22} {title}")
    return "\n".join(lines)


def main() -> int:
    """Run what the first argument names."""
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(listing())
        return 0
    known = benchmarks()
    if sys.argv[1] not in known:
        print(f"no benchmark has the name {sys.argv[1]!r}; python -m benchmarks lists them", file=sys.stderr)
        return 2
    path = known[sys.argv[1]]
    del sys.argv[0]
    runpy.run_module(f"benchmarks.{path.parent.name}.{path.stem}", run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
