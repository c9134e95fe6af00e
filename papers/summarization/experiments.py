"""What is compared: greedy, uniform sampling, the sound rules, h2, and the published protocol."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from papers.provenance import made_by
from papers.summarization.data import Setting
from papers.summarization.exact_greedy import exact_greedy
from papers.summarization.network import accuracy as network_accuracy
from papers.summarization.published import (
    Iteration,
    MarginalSums,
    PublishedParameters,
    UnsoundRule,
    published_auction,
)

from hushsum._types import Floats, Integers
from hushsum.parties.summarization import Hashes, SummaryFeatures, greedy_choice, split_budget, summarize

DELTA = 1e-5
PUBLISHED_WIDTH = 140
H2_ROUNDS, H2_ITERATIONS, H2_VALIDATION_SHARE = 10, 140, 0.6
"""Table 1's d for the iterations; the rounds of the fresh rule, and the default's share."""

Row = dict[str, Any]


class Comparison:
    """One setting under one seed, with what all methods share.

    ``largest`` is the largest summary that will be needed of greedy, which is run once.
    """

    def __init__(self, setting: Setting, seed: int, features: int, *, largest: int = 0) -> None:
        self.setting, self.seed, self.features, self.largest = setting, seed, features, largest
        self.points = np.concatenate(list(setting.owners.values()))
        self.labels = np.concatenate(list(setting.labels.values()))
        self.map = SummaryFeatures(self.points.shape[1], setting.bandwidth, features, seed)
        self._within = _mean(setting.validation, setting.validation, setting.bandwidth)
        self._greedy: Integers = np.empty(0, np.int64)
        self._exact_greedy: Integers = np.empty(0, np.int64)

    def cell(self, method: str, size: int, epsilon: float | None) -> Row:
        """One line of results."""
        references = {
            "greedy": self.greedy,
            "greedy_exact": self.greedy_exact,
            "uniform": self.uniform,
            "published": self.published,
            "published_batches": self.published_batches,
        }
        if method in references:
            return references[method](size)
        assert epsilon is not None
        if method == "h2":
            return self.calibrated_h2(size, epsilon)
        return self.private(size, epsilon, method)

    def discrepancy(self, points: Floats) -> float:
        """MMD² against the validation set, with the exact kernel."""
        width = self.setting.bandwidth
        return (
            self._within + _mean(points, points, width) - 2.0 * _mean(points, self.setting.validation, width)
        )

    def accuracy(self, points: Floats, labels: Integers) -> float:
        """The consumer's model: a small network on images, a linear SVM on the census."""
        test, truth = self.setting.test, self.setting.test_labels
        if self.setting.name.startswith("mnist"):
            return network_accuracy(points, labels, test, truth, seed=self.seed)
        if len(np.unique(labels)) == 1:
            return float((truth == labels[0]).mean())
        from sklearn.svm import LinearSVC

        return float(LinearSVC(C=0.1, dual=False).fit(points, labels).score(test, truth))

    def row(self, method: str, size: int, points: Floats, labels: Integers, **more: Any) -> Row:
        """One line of results."""
        return {
            "setting": self.setting.name,
            "seed": self.seed,
            "method": method,
            "size": size,
            "mmd2": self.discrepancy(points),
            "accuracy": self.accuracy(points, labels),
            "version": made_by("papers.summarization.experiments"),
            **more,
        }

    def greedy(self, size: int) -> Row:
        """The reference without privacy, with the features that the private rules have; its summaries are
        prefixes of each other.
        """
        if len(self._greedy) < size:
            hashes = self.map.hashes(self.points)
            target = self.map.hashes(self.setting.validation).mean(axis=0)
            self._greedy = greedy_choice(hashes, target, max(size, self.largest), unit=self.map.unit)
        part = self._greedy[:size]
        return self.row("greedy", size, self.points[part], self.labels[part])

    def greedy_exact(self, size: int) -> Row:
        """The same with the exact kernel, as Kim et al. have it."""
        if len(self._exact_greedy) < size:
            self._exact_greedy = exact_greedy(
                self.points, self.setting.validation, max(size, self.largest), self.setting.bandwidth
            )
        part = self._exact_greedy[:size]
        return self.row("greedy_exact", size, self.points[part], self.labels[part])

    def uniform(self, size: int) -> Row:
        """An equal number from every owner."""
        rng = np.random.default_rng(self.seed + 1000)
        points, labels = [], []
        for name, records in self.setting.owners.items():
            part = rng.choice(len(records), size // len(self.setting.owners), replace=False)
            points.append(records[part])
            labels.append(self.setting.labels[name][part])
        return self.row("uniform", size, np.concatenate(points), np.concatenate(labels))

    def private(self, size: int, epsilon: float, rule: str) -> Row:
        """A whole run; the claim covers every message and the validation set."""
        began = time.process_time()
        summary = summarize(
            self.setting.owners,
            self.setting.validation,
            size,
            bandwidth=self.setting.bandwidth,
            epsilon=epsilon,
            delta=DELTA,
            features=self.features,
            seed=self.seed,
            rule=rule,
            extra=self.setting.labels,
        )
        spent = time.process_time() - began
        return self.row(
            rule,
            size,
            summary.points,
            summary.extra[:, 0].astype(np.int64),
            epsilon=epsilon,
            seen=summary.seen,
            paper_epsilon=PublishedParameters().composed(size)[0],
            cpu_seconds=spent,
        )

    def calibrated_h2(self, size: int, epsilon: float) -> Row:
        """The fresh rule with h2, correctly calibrated, in place of Gaussian noise."""
        published = self._published_map()
        of_owners, of_validation = split_budget(epsilon, DELTA, H2_VALIDATION_SHARE)
        rng = np.random.default_rng(self.seed)
        vectors: Hashes = published.hashes(self.points)
        scale = 1.0 / (published.unit * (published.features / 2.0) ** 0.5)
        own = published.hashes(self.setting.validation) / scale
        start = MarginalSums(published.width, 64)
        # The validation set's count is public here, and its neighbours replace a record.
        target = start.improve(
            start.round(own, rng).sum(axis=0),
            len(own),
            H2_ITERATIONS,
            Iteration.for_rho(of_validation / H2_ITERATIONS),
        )
        each = Iteration.for_rho(of_owners / ((H2_ROUNDS - 1) * H2_ITERATIONS))
        marginals = MarginalSums(published.width, 64)
        free = np.ones(len(vectors), np.bool_)
        chosen: Integers = np.empty(0, np.int64)
        places: Integers = np.zeros(published.width, np.int64)
        seen = np.zeros(len(vectors), np.bool_)
        owner = np.repeat(np.arange(len(self.setting.owners)), [len(r) for r in self.setting.owners.values()])
        batch = size // H2_ROUNDS
        for number in range(H2_ROUNDS):
            mean = np.zeros_like(target)
            if number:
                mean = marginals.improve(places, len(chosen), H2_ITERATIONS, each)
            gains = np.where(free, vectors @ (target - mean), -np.inf)
            for k in range(len(self.setting.owners)):
                mine = np.flatnonzero((owner == k) & ~seen)
                seen[mine[np.argsort(-gains[mine])[:batch]]] = True
            taken = np.argsort(-np.where(seen, gains, -np.inf))[:batch]
            free[taken] = False
            chosen = np.concatenate([chosen, taken])
            places = places + marginals.round(vectors[taken] / scale, rng).sum(axis=0)
        pool = np.flatnonzero(seen)
        # The last choice, from what was sent, is made like that of the other rules.
        exact = self.map.hashes(self.setting.validation).mean(axis=0)
        final = pool[greedy_choice(self.map.hashes(self.points[pool]), exact, size, unit=self.map.unit)]
        in_run = self.discrepancy(self.points[chosen])
        return self.row(
            "h2", size, self.points[final], self.labels[final], epsilon=epsilon, seen=len(pool), in_run=in_run
        )

    def _published_map(self) -> SummaryFeatures:
        dim, bandwidth = self.points.shape[1], self.setting.bandwidth
        return SummaryFeatures(dim, bandwidth, PUBLISHED_WIDTH, self.seed, paired=False)

    def published_batches(self, size: int) -> Row:
        """The paper's protocol in batches of a fiftieth of the summary, which run sooner."""
        return self.published(size, max(1, size // 50), name="published_batches")

    def published(
        self, size: int, at_once: int = 1, auction_epsilon: float = 1.0, name: str = "published"
    ) -> Row:
        """The paper's protocol at its own parameters, with ``at_once`` points per round; it claims nothing.

        The paper's experiments do not say their ε_auc. It decides how many points are sent, not which one
        wins: the highest bid is always requested.
        """
        features = self._published_map()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnsoundRule)
            run = published_auction(
                list(self.setting.owners.values()),
                self.setting.validation,
                features,
                size,
                seed_points=self.setting.seed_points,
                parameters=PublishedParameters(auction_epsilon=auction_epsilon),
                rounds_at_once=at_once,
                seed=self.seed,
            )
        tables = list(self.setting.owners.values())
        names = list(self.setting.labels.values())
        points = np.array([tables[k][i] for k, i in zip(run.owners, run.places, strict=True)])
        labels = np.array([names[k][i] for k, i in zip(run.owners, run.places, strict=True)])
        return self.row(name, size, points, labels, seen=run.seen, paper_epsilon=run.paper_epsilon)


def _mean(left: Floats, right: Floats, bandwidth: float) -> float:
    """The mean kernel value over all pairs, in blocks of products."""
    a, b = left.astype(np.float32), right.astype(np.float32)
    squares = (a * a).sum(axis=1)
    total = 0.0
    for start in range(0, len(b), 512):
        part = b[start : start + 512]
        distance = squares[:, None] + (part * part).sum(axis=1)[None] - 2.0 * (a @ part.T)
        total += float(np.exp(np.maximum(distance, 0.0) * (-0.5 / bandwidth**2)).sum(dtype=np.float64))
    return total / (len(a) * len(b))
