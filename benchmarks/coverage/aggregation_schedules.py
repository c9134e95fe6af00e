"""Secure aggregation against many random schedules: no wrong sum, no opened single table.

    python -m benchmarks aggregation_schedules --schedules 100000

Half of the schedules are faults (delays, losses, duplicates, crashes of either side) with an honest server,
half are servers that lie about survivors and collude with sites; see `tests/aggregation_schedules.py`. The
seeds are consecutive, so a finding can be repeated. Stops after ``--seconds`` of processor time, and
continues from the results next time. That faults in the machines are found is tested in
`tests/property/test_aggregation_schedules.py`.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import Counter
from pathlib import Path

from benchmarks.writer import Results
from tests.aggregation_schedules import honest_schedule, lying_schedule, repeated_checks_once

_REPORTED = 500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    results = Results("aggregation_schedules", arguments.output)
    known = results.read({})
    done, before = known.get("schedules", 0), known.get("cpu_seconds", 0.0)
    ended = Counter(known.get("ended", {}))
    begun = time.process_time()
    while done < arguments.schedules and time.process_time() - begun < arguments.seconds:
        seed = done + 1
        # A broken protocol raises, and ends this with the seed.
        with repeated_checks_once():
            if seed % 2:
                ended["faults, " + honest_schedule(seed)] += 1
            else:
                opened = lying_schedule(seed)
                ended["lies, some shares revealed" if opened else "lies, nothing revealed"] += 1
        done += 1
        if done % _REPORTED == 0 or done == arguments.schedules:
            seconds = round(before + time.process_time() - begun, 1)
            found = {
                "schedules": done,
                "broken": 0,
                "cpu_seconds": seconds,
                "ended": dict(sorted(ended.items())),
            }
            print(json.dumps(found), flush=True)
            results.write(found)


if __name__ == "__main__":
    main()
