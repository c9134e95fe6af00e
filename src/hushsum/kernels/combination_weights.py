"""Few weights of kernels whose combination is close to a target: programs and their solvers."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from hushsum._types import Floats
from hushsum.errors import UsageError

MOST_SUBSETS = 5000
_NEGLIGIBLE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class WeightProblem:
    """Find w with few entries, Σ|w| ≤ limit, so that values @ w is close to target."""

    values: Floats
    target: Floats
    most: int
    signed: bool
    limit: float

    def solve(self, method: str, seconds: float) -> tuple[Floats, bool]:
        """The weights, and whether they have the least maximal error."""
        number = self.values.shape[1]
        if method == "least-squares":
            return self._least_squares(), False
        if method == "exhaustive":
            return self._exhaustive(), True
        if method == "auto" or number <= self.most:
            weights, _ = self._program(list(range(number)))
            if np.count_nonzero(weights) <= self.most:
                return weights, True
        return self._mixed_integer(seconds)

    def _program(self, columns: list[int]) -> tuple[Floats, float]:
        """Weights of these columns with the least maximal error: a linear program; and that error."""
        from scipy.optimize import linprog

        values, matrix, bound = self._constraints(columns)
        cost = np.zeros(values + 1)
        cost[-1] = 1.0
        found = linprog(cost, A_ub=matrix, b_ub=bound, bounds=(0.0, None), method="highs")
        # Feasible, since all weights may be 0, and bounded, since the error is not negative.
        assert found.x is not None
        assert found.fun is not None
        return self._weights(found.x, columns), float(found.fun)

    def _constraints(self, columns: list[int]) -> tuple[int, Floats, Floats]:
        """Of the positive and, if allowed, the negative parts of weights, then of the maximal error."""
        chosen = self.values[:, columns]
        both = np.hstack((chosen, -chosen)) if self.signed else chosen
        ones = np.ones((len(both), 1))
        total = np.append(np.ones(both.shape[1]), 0.0)[np.newaxis]
        matrix = np.vstack((np.hstack((both, -ones)), np.hstack((-both, -ones)), total))
        return both.shape[1], matrix, np.concatenate((self.target, -self.target, [self.limit]))

    def _weights(self, solution: Floats, columns: list[int]) -> Floats:
        parts = solution[:-1]
        own = parts[: len(columns)] - parts[len(columns) :] if self.signed else parts
        weights = np.zeros(self.values.shape[1])
        weights[columns] = np.where(np.abs(own) > _NEGLIGIBLE, own, 0.0)
        return weights

    def _exhaustive(self) -> Floats:
        number = self.values.shape[1]
        size = min(self.most, number)
        if math.comb(number, size) > MOST_SUBSETS:
            raise UsageError(
                parameter="components",
                rule=f"must have at most {MOST_SUBSETS} subsets for an exhaustive search",
                got=math.comb(number, size),
                remedy="give fewer, or use another method",
            )
        # Smaller subsets are among these, with weights of 0.
        subsets = map(list, itertools.combinations(range(number), size))
        return min((self._program(each) for each in subsets), key=lambda found: found[1])[0]

    def _mixed_integer(self, seconds: float) -> tuple[Floats, bool]:
        from scipy.optimize import Bounds, LinearConstraint, milp

        number = self.values.shape[1]
        every = list(range(number))
        parts, matrix, bound = self._constraints(every)
        # Variables: parts of weights, the maximal error, and a switch for each component.
        switched = np.zeros((number, parts + 1 + number))
        for place in every:
            switched[place, place] = 1.0
            if self.signed:
                switched[place, number + place] = 1.0
            switched[place, parts + 1 + place] = -self.limit
        chosen = np.concatenate((np.zeros(parts + 1), np.ones(number)))[np.newaxis]
        rows = np.vstack((np.hstack((matrix, np.zeros((len(matrix), number)))), switched, chosen))
        upper = np.concatenate((bound, np.zeros(number), [self.most]))
        cost = np.zeros(parts + 1 + number)
        cost[parts] = 1.0
        found = milp(
            cost,
            constraints=LinearConstraint(rows, -np.inf, upper),
            integrality=np.concatenate((np.zeros(parts + 1), np.ones(number))),
            bounds=Bounds(0.0, np.concatenate((np.full(parts + 1, np.inf), np.ones(number)))),
            options={"time_limit": seconds},
        )
        if found.x is None:
            return self._least_squares(), False
        used = [place for place in every if found.x[parts + 1 + place] > 0.5]
        # The switches are exact only up to a tolerance: the weights are found again without them.
        return self._program(used)[0], bool(found.status == 0)

    def _least_squares(self) -> Floats:
        left = list(range(self.values.shape[1]))
        while True:
            weights = self._bounded_squares(left)
            used = [place for place in left if weights[place] != 0.0]
            if len(used) <= self.most:
                return weights
            effect = np.abs(weights[used]) * np.sqrt(np.mean(self.values[:, used] ** 2, axis=0))
            left = [place for place in used if place != used[int(effect.argmin())]]

    def _bounded_squares(self, columns: list[int]) -> Floats:
        """Non-negative least squares, with a price for Σ|w| that keeps it within the limit."""
        from scipy.optimize import nnls

        chosen = self.values[:, columns]
        both = np.hstack((chosen, -chosen)) if self.signed else chosen
        low, high = 0.0, 1e3
        price = low
        for _ in range(30):
            # The square of a price times the sum of all parts is one more equation.
            rows = np.vstack((both, np.full((1, both.shape[1]), price)))
            parts, _ = nnls(rows, np.append(self.target, 0.0), maxiter=50 * both.shape[1])
            if parts.sum() <= self.limit:
                high = price
                if price == 0.0 or high - low < 1e-3 * high:
                    break
            else:
                low = price
            price = math.sqrt(max(low, 1e-6) * high)
        parts = parts if parts.sum() <= self.limit else parts * (self.limit / parts.sum())
        return self._weights(np.append(parts, 0.0), columns)
