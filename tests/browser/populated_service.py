"""A service with something to see: people, datasets, functions of every shape."""

from __future__ import annotations

import io
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
import numpy as np

import hushsum as hs
from hushsum.client import RemoteDataset
from tests.e2e.service_process import ADMIN, ServiceProcess


def table(columns: Sequence[str], rows: Any) -> io.BytesIO:
    lines = [",".join(columns), *(",".join(f"{each}" for each in row) for row in rows), ""]
    return io.BytesIO("\n".join(lines).encode())


@dataclass
class World:
    """A running service.

    Its functions: ``heights`` (one column), ``height and weight`` (two), ``colours`` (three, without bounds),
    ``growth curve`` (a Gaussian process), ``who earns more`` (a support vector machine), ``ages exactly`` (a
    density that answers a limited number of questions).
    """

    place: ServiceProcess
    tokens: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.url = self.place.url
        admin = hs.connect(self.url, ADMIN)
        self.tokens = {"admin": ADMIN}
        for name, role in (("olga", "owner"), ("anna", "analyst"), ("otto", "owner")):
            self.tokens[name] = admin.create_account(name, role)
        self.olga = hs.connect(self.url, self.tokens["olga"])
        random = np.random.default_rng(0)
        self._sums(random)
        self._models(random)

    def _sums(self, random: np.random.Generator) -> None:
        tall = np.concatenate([random.normal(163, 6, 1600), random.normal(177, 7, 1400)]).round(1)
        heights = self.olga.create_dataset("heights", epsilon=2.0)
        grid: dict[str, Any] = {"kernel": "gaussian", "method": "grid"}
        upload = heights.upload(table(["height_cm"], tall[:, None]), format="csv")
        tally = heights.tally(upload, columns=["height_cm"], bandwidth=2.0, bounds=[[120, 220]], **grid)
        heights.grant(heights.release(tally, "heights", epsilon=0.5), "anna")
        heights.release(tally, "heights once more", epsilon=0.75)

        body = self.olga.create_dataset("body", epsilon=1.0)
        heavy = ((tall - 100) * 0.9 + random.normal(0, 9, len(tall))).round(1)
        upload = body.upload(table(["height_cm", "weight_kg"], np.column_stack([tall, heavy])), format="csv")
        bounds = [[120, 220], [30, 150]]
        columns = ["height_cm", "weight_kg"]
        tally = body.tally(upload, columns=columns, bandwidth=5.0, bounds=bounds, **grid)
        body.grant(body.release(tally, "height and weight", epsilon=1.0), "anna", download=True)

        paints = self.olga.create_dataset("paints", epsilon=3.0)
        colours = np.clip(random.normal([140, 110, 90], [40, 35, 30], (4000, 3)), 0, 255).round(0)
        upload = paints.upload(table(["red", "green", "blue"], colours), format="csv")
        tally = paints.tally(
            upload, columns=["red", "green", "blue"], kernel="euclidean", bandwidth=60.0, rows=150, width=200
        )
        paints.release(tally, "colours", epsilon=2.0)

    def _models(self, random: np.random.Generator) -> None:
        data = self.olga.create_dataset("study", epsilon=16.0, delta=1e-4, relation="replace")
        age = random.uniform(0, 80, 6000)
        height = 120 + 45 * np.tanh((age - 12) / 9) - 0.1 * age + random.normal(0, 6, 6000)
        self.fit(
            data,
            table(["age_years", "height_cm"], np.column_stack([age, height]).round(1)),
            name="growth curve",
            model="gaussian-process",
            columns=["age_years"],
            target="height_cm",
            bounds=[[0, 80]],
            settings={"target_bounds": [50, 200], "bandwidth": 10.0, "noise": 1.0},
        )
        low, high = random.normal([32, 30], 9, (2500, 2)), random.normal([55, 52], 9, (2500, 2))
        rows = [(*each, "no") for each in low.round(1)] + [(*each, "yes") for each in high.round(1)]
        self.fit(
            data,
            table(["age", "hours", "earns_more"], rows),
            name="who earns more",
            model="kernel-svc",
            columns=["age", "hours"],
            target="earns_more",
            classes=["no", "yes"],
            bounds=[[0, 90], [0, 90]],
            settings={"bandwidth": 25.0, "features": 48},
        )

        self.fit(
            data,
            table(["age"], random.normal(45, 9, (800, 1)).round(1)),
            name="ages exactly",
            model="density",
            mode="exact",
            most_questions=200,
            columns=["age"],
            bounds=[[0, 90]],
            settings={"bandwidth": 5.0, "method": "functional"},
        )

    def fit(self, data: RemoteDataset, records: io.BytesIO, **requested: Any) -> None:
        """Release a model, as the page does it."""
        upload = data.upload(records, format="csv")
        terms = {"upload": upload, "epsilon": 4.0, "delta": 1e-6, **requested}
        path = f"/datasets/{data.id}/models"
        claim = self.ask("olga", "POST", f"{path}/claims", terms)
        job = self.ask("olga", "POST", path, {**terms, "confirm": claim["confirm"]})
        data.wait(job["id"])

    def ask(self, who: str, method: str, path: str, body: Any = None) -> Any:
        headers = {"authorization": f"Bearer {self.tokens[who]}", "idempotency-key": secrets.token_hex(8)}
        answer = httpx.request(method, self.url + path, json=body, headers=headers, timeout=60.0)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None
