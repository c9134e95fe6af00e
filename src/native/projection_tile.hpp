// The register tile that projects dense records, for the families that hash the projections and those that take waves.
//
// Every projection is the chain acc = fma(weight[k], x[k], acc) over k = 0, 1, ... from its offset, in each lane alone:
// neither the tile nor the record's place in it can change a bit of the result.
#pragma once

#include "lanes.hpp"

namespace hushsum::HUSHSUM_CLONE {

namespace {

// Projections z[record][panel][lane] of `Records` records on term i of `Panels` neighbouring panels. Its own function,
// so that no constant of the steps after it takes a register from the tile.
template <std::size_t Records, std::size_t Panels>
__attribute__((noinline)) void project(const ProjectionParameters& plan, const float* __restrict records,
                                       std::size_t panel, std::size_t i, float* __restrict z) {
  const std::size_t dim = plan.dim, panel_size = plan.power * dim * panel_rows;
  const float* __restrict weights = plan.weights + panel * panel_size + i * dim * panel_rows;
  const float* __restrict offsets = plan.offsets + (panel * plan.power + i) * panel_rows;
  Floats sum[Records][Panels][tile_vectors];
  HUSHSUM_UNROLL
  for (std::size_t r = 0; r < Records; ++r) HUSHSUM_UNROLL
  for (std::size_t b = 0; b < Panels; ++b) HUSHSUM_UNROLL
  for (std::size_t v = 0; v < tile_vectors; ++v)
    sum[r][b][v] = load<Floats>(offsets + b * plan.power * panel_rows + v * lanes);
  for (std::size_t k = 0; k < dim; ++k) {
    Floats weight[Panels][tile_vectors];
    HUSHSUM_UNROLL
    for (std::size_t b = 0; b < Panels; ++b) HUSHSUM_UNROLL
    for (std::size_t v = 0; v < tile_vectors; ++v)
      weight[b][v] = load<Floats>(weights + b * panel_size + k * panel_rows + v * lanes);
    HUSHSUM_UNROLL
    for (std::size_t r = 0; r < Records; ++r) {
      const Floats x = spread(records[r * dim + k]);
      HUSHSUM_UNROLL
      for (std::size_t b = 0; b < Panels; ++b) HUSHSUM_UNROLL
      for (std::size_t v = 0; v < tile_vectors; ++v) sum[r][b][v] = fused(weight[b][v], x, sum[r][b][v]);
    }
  }
  HUSHSUM_UNROLL
  for (std::size_t r = 0; r < Records; ++r) HUSHSUM_UNROLL
  for (std::size_t b = 0; b < Panels; ++b) HUSHSUM_UNROLL
  for (std::size_t v = 0; v < tile_vectors; ++v) store(z + ((r * Panels + b) * tile_vectors + v) * lanes, sum[r][b][v]);
}

}  // namespace

}  // namespace hushsum::HUSHSUM_CLONE
