// Cosines and sines of structured projections: the phase of row r is scale_r times output r of H S3 H S2 H S1 x.
//
// Lanes are records. A block of rows is transformed for some vectors of records, whose waves are then summed row by
// row.
#include "hadamard.hpp"
#include "lanes.hpp"
#include "cosine_sine.hpp"

namespace hushsum::HUSHSUM_CLONE {

namespace {

constexpr std::size_t most_vectors = 4;  // of records, between which the sums of a row stay in a register

// As many as stay in the first cache with the sums.
HUSHSUM_INLINE std::size_t vectors_at_once(const StructuredWaveParameters& plan) {
  return plan.size <= 128 ? most_vectors : 1;
}

// y[vector][row] of up to vectors * lanes records; zeros for records beyond `count`.
void transform_block(const StructuredWaveParameters& plan, const float* records, std::size_t count, std::size_t vectors,
                     std::size_t block, Floats* y) {
  const float* signs = plan.signs + block * 3 * plan.size;
  for (std::size_t v = 0; v < vectors; ++v) {
    const std::size_t first = v * lanes, left = count > first ? count - first : 0, live = left < lanes ? left : lanes;
    Floats* own = y + v * plan.size;
    load_records(plan.dim, plan.size, records + first * plan.dim, live, signs, own);
    transform(own, plan.size, plan.size);
    transform_signed(own, signs + plan.size, plan.size);
    transform_signed(own, signs + 2 * plan.size, plan.size);
  }
}

// Visits the products coefficient * wave of every row of some blocks: row(vector, products) and then
// close(vector, first_record, live).
template <std::size_t Vectors, class Row, class Close>
HUSHSUM_INLINE void visit_products(const StructuredWaveParameters& plan, std::size_t block, const float* coefficients,
                                   const Floats* y, const Row& row, const Close& close) {
  const float* scales = plan.scales + block * plan.size;
  Floats sums[Vectors] = {};
  for (std::size_t r = 0; r < plan.size; ++r) {
    const Floats scale = spread(scales[r]), of_cosine = spread(coefficients[r]),
                 of_sine = spread(coefficients[plan.size + r]);
    HUSHSUM_UNROLL
    for (std::size_t v = 0; v < Vectors; ++v) {
      const Wave wave(y[v * plan.size + r] * scale, 1.0);
      const Floats product = fused(of_cosine, wave.cosine(0.0f), of_sine * wave.sine(0.0f));
      row(v, product);
      sums[v] += product;
    }
  }
  for (std::size_t v = 0; v < Vectors; ++v) close(v, sums[v]);
}

template <std::size_t Vectors>
void add_rows(const StructuredWaveParameters& plan, std::size_t block, const Floats* y, Uints* cosines, Uints* sines) {
  const float* scales = plan.scales + block * plan.size;
  for (std::size_t r = 0; r < plan.size; ++r) {
    const Floats scale = spread(scales[r]);
    Uints cosine = cosines[r], sine = sines[r];
    HUSHSUM_UNROLL
    for (std::size_t v = 0; v < Vectors; ++v) {
      const Wave wave(y[v * plan.size + r] * scale, wave_amplitude);
      cosine += (Uints)wave.cosine(rounder);
      sine += (Uints)wave.sine(rounder);
    }
    cosines[r] = cosine;
    sines[r] = sine;
  }
}

template <std::size_t Vectors>
void read_block(const StructuredWaveParameters& plan, std::size_t block, const float* coefficients, const Floats* y,
                std::size_t live, double* answers) {
  visit_products<Vectors>(
      plan, block, coefficients, y, [](std::size_t, Floats) {},
      [&](std::size_t v, Floats sum) {
        for (std::size_t l = 0; l < lanes && v * lanes + l < live; ++l)
          answers[v * lanes + l] += static_cast<double>(sum[l]);
      });
}

// `by_row`: every row is a block of its own.
template <std::size_t Vectors>
void spread_block(const StructuredWaveParameters& plan, std::size_t block, bool by_row, bool whole,
                  const float* coefficients, const Floats* y, std::size_t live, BlockSums* sums) {
  Floats squares[Vectors] = {};
  visit_products<Vectors>(
      plan, block, coefficients, y, [&](std::size_t v, Floats product) { squares[v] += product * product; },
      [&](std::size_t v, Floats sum) {
        for (std::size_t l = 0; l < lanes && v * lanes + l < live; ++l) {
          BlockSums& own = sums[v * lanes + l];
          const double total = sum[l];
          if (!by_row && !whole) {
            own.block_sum += total;
            continue;
          }
          own.sum += total;
          own.squares += by_row ? static_cast<double>(squares[v][l]) : total * total;
        }
      });
}

}  // namespace

std::size_t structured_waves_scratch(const StructuredWaveParameters& plan) {
  return (vectors_at_once(plan) + 2) * plan.size * sizeof(Floats);
}

void add_structured_waves(const StructuredWaveParameters& plan, const float* records, std::size_t count,
                          std::size_t block, std::int32_t* sums, void* scratch) {
  const std::size_t vectors = vectors_at_once(plan), size = plan.size;
  auto* y = static_cast<Floats*>(scratch);
  auto* cosines = reinterpret_cast<Uints*>(y + vectors * size);
  Uints* sines = cosines + size;
  for (std::size_t r = 0; r < 2 * size; ++r) cosines[r] = Uints{};
  std::size_t visited = 0;
  for (std::size_t first = 0; first < count; first += vectors * lanes) {
    transform_block(plan, records + first * plan.dim, count - first, vectors, block, y);
    if (vectors == most_vectors) add_rows<most_vectors>(plan, block, y, cosines, sines);
    else add_rows<1>(plan, block, y, cosines, sines);
    visited += vectors * lanes;
  }
  // Modulo 2^32 the sum of the bits less those of the rounder is the sum of the integers, which fits. Lanes without a
  // record have the phase 0, whose cosine is the amplitude.
  const auto excess = static_cast<std::uint32_t>(visited) * rounder_bits;
  const auto idle = static_cast<std::uint32_t>(visited - count) * static_cast<std::uint32_t>(wave_amplitude);
  for (std::size_t r = 0; r < size; ++r) {
    std::uint32_t cosine = 0, sine = 0;
    for (std::size_t l = 0; l < lanes; ++l) {
      cosine += cosines[r][l];
      sine += sines[r][l];
    }
    sums[r] += static_cast<std::int32_t>(cosine - excess - idle);
    sums[size + r] += static_cast<std::int32_t>(sine - excess);
  }
}

void read_structured_waves(const StructuredWaveParameters& plan, const float* records, std::size_t count,
                           std::size_t block, const float* coefficients, double* answers, void* scratch) {
  auto* y = static_cast<Floats*>(scratch);
  for (std::size_t first = 0; first < count;) {
    const std::size_t left = count - first;
    const std::size_t vectors = vectors_at_once(plan) == most_vectors && left > lanes ? most_vectors : 1;
    transform_block(plan, records + first * plan.dim, left, vectors, block, y);
    if (vectors == most_vectors) read_block<most_vectors>(plan, block, coefficients, y, left, answers + first);
    else read_block<1>(plan, block, coefficients, y, left, answers + first);
    first += vectors * lanes;
  }
}

void spread_structured_waves(const StructuredWaveParameters& plan, const float* records, std::size_t count,
                             std::size_t block, bool by_row, bool whole, const float* coefficients, BlockSums* sums,
                             void* scratch) {
  auto* y = static_cast<Floats*>(scratch);
  for (std::size_t first = 0; first < count;) {
    const std::size_t left = count - first;
    const std::size_t vectors = vectors_at_once(plan) == most_vectors && left > lanes ? most_vectors : 1;
    transform_block(plan, records + first * plan.dim, left, vectors, block, y);
    if (vectors == most_vectors)
      spread_block<most_vectors>(plan, block, by_row, whole, coefficients, y, left, sums + first);
    else spread_block<1>(plan, block, by_row, whole, coefficients, y, left, sums + first);
    first += vectors * lanes;
  }
}

}  // namespace hushsum::HUSHSUM_CLONE
