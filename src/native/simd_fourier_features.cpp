// Cosines and sines of dense random projections, rounded to integers and summed: the build of Fourier features.
#include "lanes.hpp"
#include "projection_tile.hpp"
#include "cosine_sine.hpp"

namespace hushsum::HUSHSUM_CLONE {

namespace {

template <std::size_t Records>
HUSHSUM_INLINE void add_tile(const float* z, Uints (&cosines)[tile_vectors], Uints (&sines)[tile_vectors]) {
  HUSHSUM_UNROLL
  for (std::size_t v = 0; v < tile_vectors; ++v) {
    Uints cosine = cosines[v], sine = sines[v];
    for (std::size_t r = 0; r < Records; ++r) {
      const Wave wave(load<Floats>(z + r * panel_rows + v * lanes), wave_amplitude);
      cosine += (Uints)wave.cosine(rounder);
      sine += (Uints)wave.sine(rounder);
    }
    cosines[v] = cosine;
    sines[v] = sine;
  }
}

template <std::size_t Records>
HUSHSUM_INLINE void write_tile(const float* z, float* waves, std::size_t stride) {
  for (std::size_t r = 0; r < Records; ++r)
    for (std::size_t v = 0; v < panel_rows; v += lanes) {
      const Wave wave(load<Floats>(z + r * panel_rows + v), 1.0);
      const Floats cosine = wave.cosine(0.0f), sine = wave.sine(0.0f);
      for (std::size_t l = 0; l < lanes; ++l) {
        waves[r * stride + 2 * (v + l)] = cosine[l];
        waves[r * stride + 2 * (v + l) + 1] = sine[l];
      }
    }
}

template <std::size_t Records>
HUSHSUM_INLINE void read_tile(const float* z, const float* coefficients, Floats (&sums)[Records]) {
  HUSHSUM_UNROLL
  for (std::size_t v = 0; v < panel_rows; v += lanes) {
    const Floats of_cosine = load<Floats>(coefficients + v), of_sine = load<Floats>(coefficients + panel_rows + v);
    for (std::size_t r = 0; r < Records; ++r) {
      const Wave wave(load<Floats>(z + r * panel_rows + v), 1.0);
      sums[r] = fused(of_cosine, wave.cosine(0.0f), fused(of_sine, wave.sine(0.0f), sums[r]));
    }
  }
}

HUSHSUM_INLINE void close_block(BlockSums& sums) {
  sums.sum += sums.block_sum;
  sums.squares += sums.block_sum * sums.block_sum;
  sums.block_sum = 0.0;
}

// Adds the products of `count` rows from `row` on, in double precision, eight sums beside each other.
HUSHSUM_INLINE void add_rows(const float* products, std::size_t row, std::size_t count, std::size_t block,
                             BlockSums& sums) {
  constexpr std::size_t parts = 8;
  double total[parts] = {}, squares[parts] = {};
  if (block == 1) {
    std::size_t i = 0;
    for (; i + parts <= count; i += parts)
      for (std::size_t p = 0; p < parts; ++p) {
        const double product = products[i + p];
        total[p] += product;
        squares[p] += product * product;
      }
    for (std::size_t p = 0; i < count; ++i, ++p) {
      const double product = products[i];
      total[p] += product;
      squares[p] += product * product;
    }
    for (std::size_t p = 0; p < parts; ++p) {
      sums.sum += total[p];
      sums.squares += squares[p];
    }
    return;
  }
  if (block < 2 * parts) {
    std::size_t left = block - row % block;
    for (std::size_t i = 0; i < count; ++i) {
      sums.block_sum += static_cast<double>(products[i]);
      if (--left > 0) continue;
      close_block(sums);
      left = block;
    }
    return;
  }
  for (std::size_t start = 0; start < count;) {
    const std::size_t left = block - (row + start) % block, here = count - start < left ? count - start : left;
    std::size_t i = 0;
    double part[parts] = {};
    for (; i + parts <= here; i += parts)
      for (std::size_t p = 0; p < parts; ++p) part[p] += static_cast<double>(products[start + i + p]);
    for (std::size_t p = 0; i < here; ++i, ++p) part[p] += static_cast<double>(products[start + i]);
    for (std::size_t p = 0; p < parts; ++p) sums.block_sum += part[p];
    if (here == left) close_block(sums);
    start += here;
  }
}

template <std::size_t Records>
void spread_records(const ProjectionParameters& plan, const float* records, std::size_t panel, std::size_t panels,
                    std::size_t rows, std::size_t block, const float* coefficients, BlockSums* sums) {
  alignas(64) float z[Records * panel_rows];
  for (std::size_t b = 0; b < panels; ++b) {
    project<Records, 1>(plan, records, panel + b, 0, z);
    const float* of_cosine = coefficients + b * 2 * panel_rows;
    HUSHSUM_UNROLL
    for (std::size_t v = 0; v < panel_rows; v += lanes)
      for (std::size_t r = 0; r < Records; ++r) {
        float* at = z + r * panel_rows + v;
        const Wave wave(load<Floats>(at), 1.0);
        store(at, fused(load<Floats>(of_cosine + v), wave.cosine(0.0f),
                        load<Floats>(of_cosine + panel_rows + v) * wave.sine(0.0f)));
      }
    const std::size_t row = (panel + b) * panel_rows, count = rows - row < panel_rows ? rows - row : panel_rows;
    for (std::size_t r = 0; r < Records; ++r) add_rows(z + r * panel_rows, row, count, block, sums[r]);
  }
}

template <std::size_t Records>
void read_records(const ProjectionParameters& plan, const float* records, std::size_t panel, std::size_t panels,
                  const float* coefficients, double* answers) {
  alignas(64) float z[Records * panel_rows];
  Floats sums[Records] = {};
  for (std::size_t b = 0; b < panels; ++b) {
    project<Records, 1>(plan, records, panel + b, 0, z);
    read_tile<Records>(z, coefficients + b * 2 * panel_rows, sums);
  }
  for (std::size_t r = 0; r < Records; ++r)
    for (std::size_t l = 0; l < lanes; ++l) answers[r] += static_cast<double>(sums[r][l]);
}

}  // namespace

void add_waves(const ProjectionParameters& plan, const float* records, std::size_t count, std::size_t panel,
               std::int32_t* sums) {
  alignas(64) float z[tile_records * panel_rows];
  Uints cosines[tile_vectors] = {}, sines[tile_vectors] = {};
  std::size_t r = 0;
  for (; r + tile_records <= count; r += tile_records) {
    project<tile_records, 1>(plan, records + r * plan.dim, panel, 0, z);
    add_tile<tile_records>(z, cosines, sines);
  }
  for (; r < count; ++r) {
    project<1, 1>(plan, records + r * plan.dim, panel, 0, z);
    add_tile<1>(z, cosines, sines);
  }
  // Modulo 2^32 the sum of the bits less those of the rounder is the sum of the integers, which fits.
  const Uints excess = Uints{} + static_cast<std::uint32_t>(count) * rounder_bits;
  HUSHSUM_UNROLL
  for (std::size_t v = 0; v < tile_vectors; ++v) {
    store(sums + v * lanes, load<Uints>(sums + v * lanes) + (cosines[v] - excess));
    store(sums + panel_rows + v * lanes, load<Uints>(sums + panel_rows + v * lanes) + (sines[v] - excess));
  }
}

void write_waves(const ProjectionParameters& plan, const float* records, std::size_t count, std::size_t panel,
                 float* waves, std::size_t stride) {
  alignas(64) float z[tile_records * panel_rows];
  std::size_t r = 0;
  for (; r + tile_records <= count; r += tile_records) {
    project<tile_records, 1>(plan, records + r * plan.dim, panel, 0, z);
    write_tile<tile_records>(z, waves + r * stride, stride);
  }
  for (; r < count; ++r) {
    project<1, 1>(plan, records + r * plan.dim, panel, 0, z);
    write_tile<1>(z, waves + r * stride, stride);
  }
}

void read_waves(const ProjectionParameters& plan, const float* records, std::size_t count, std::size_t panel,
                std::size_t panels, const float* coefficients, double* answers) {
  std::size_t r = 0;
  for (; r + tile_records <= count; r += tile_records)
    read_records<tile_records>(plan, records + r * plan.dim, panel, panels, coefficients, answers + r);
  for (; r < count; ++r) read_records<1>(plan, records + r * plan.dim, panel, panels, coefficients, answers + r);
}

void spread_waves(const ProjectionParameters& plan, const float* records, std::size_t count, std::size_t panel,
                  std::size_t panels, std::size_t rows, std::size_t block, const float* coefficients, BlockSums* sums) {
  std::size_t r = 0;
  for (; r + tile_records <= count; r += tile_records)
    spread_records<tile_records>(plan, records + r * plan.dim, panel, panels, rows, block, coefficients, sums + r);
  for (; r < count; ++r)
    spread_records<1>(plan, records + r * plan.dim, panel, panels, rows, block, coefficients, sums + r);
}

}  // namespace hushsum::HUSHSUM_CLONE
