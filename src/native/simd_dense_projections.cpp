// Random projections of dense records: a register tile of fused multiply-adds, then words, then cells.
#include "lanes.hpp"
#include "projection_tile.hpp"

namespace hushsum::HUSHSUM_CLONE {

namespace {

// The fold of a single floor in the rows of one vector.
struct FloorFold {
  HUSHSUM_INLINE_MEMBER FloorFold(const FoldParameters& plan, std::size_t row)
      : even(load<Longs>(plan.multipliers + row)),
        odd(load<Longs>(plan.multipliers + row + lanes / 2)),
        even_addend(load<Longs>(plan.addends + row)),
        odd_addend(load<Longs>(plan.addends + row + lanes / 2)),
        width(plan.width),
        scatter(plan.scattered) {}

  HUSHSUM_INLINE_MEMBER Uints cells(const float* z) const {
    Uints word = floor_words(load<Floats>(z));
    if (scatter) word = scattered(word);
    return cells_of_sums(even * even_lanes(word) + even_addend, odd * odd_lanes(word) + odd_addend, width);
  }

  Longs even, odd, even_addend, odd_addend;
  std::uint32_t width;
  bool scatter;
};

// Hashes the projections z of one tile into places, and hands the places of the tile before to `visit`, a record's and
// a vector's at a time: the hash keeps the vector units busy and the visits the load and store units, so that together
// they take little more than one.
template <bool Visit, class Visitor>
HUSHSUM_INLINE void hash_and_visit(const FoldParameters& plan, std::size_t panel, const float* z, std::uint32_t* places,
                                   const std::uint32_t* before, const Visitor& visit) {
  for (std::size_t v = 0; v < panel_rows; v += lanes) {
    const FloorFold fold(plan, panel * panel_rows + v);
    Uints row_start;
    for (std::size_t l = 0; l < lanes; ++l) row_start[l] = static_cast<std::uint32_t>((v + l) * plan.width);
    for (std::size_t r = 0; r < tile_records; ++r) {
      const std::size_t at = r * panel_rows + v;
      store(places + at, fold.cells(z + at) + row_start);
      if (Visit) visit(r, before + at);
    }
  }
}

// Runs over whole tiles of one panel; `visit(tile, record, places)` sees every record's places, `lanes` at a time, in
// order of tiles. Returns how many records were seen.
template <class Visitor>
HUSHSUM_INLINE std::size_t visit_tiles(const DenseParameters& plan, const float* records, std::size_t count,
                                       std::size_t panel, const Visitor& visit) {
  constexpr std::size_t size = tile_records * panel_rows;
  alignas(64) float z[size];
  alignas(64) std::uint32_t places[2][size];
  const std::size_t tiles = count / tile_records;
  for (std::size_t t = 0; t < tiles; ++t) {
    project<tile_records, 1>(plan, records + t * tile_records * plan.dim, panel, 0, z);
    if (t == 0)
      hash_and_visit<false>(plan.fold, panel, z, places[0], places[1], [](std::size_t, const std::uint32_t*) {});
    else
      hash_and_visit<true>(plan.fold, panel, z, places[t % 2], places[(t + 1) % 2],
                           [&](std::size_t r, const std::uint32_t* seen)
                               __attribute__((always_inline)) { visit(t - 1, r, seen); });
  }
  if (tiles > 0)
    for (std::size_t at = 0; at < size; at += lanes) visit(tiles - 1, at / panel_rows, places[(tiles + 1) % 2] + at);
  return tiles * tile_records;
}

// Cells of one tile; words has room for [word][record][panel][lane].
template <std::size_t Records, std::size_t Panels>
void tile(const DenseParameters& plan, const float* records, std::size_t panel, std::uint32_t* cells,
          std::size_t stride, std::uint32_t* words) {
  constexpr std::size_t size = Records * Panels * panel_rows;
  alignas(64) float z[size];
  if (plan.power == 1 && plan.words == Words::floors) {
    project<Records, Panels>(plan, records, panel, 0, z);
    for (std::size_t v = 0; v < Panels * panel_rows; v += lanes) {
      const FloorFold fold(plan.fold, panel * panel_rows + v);
      for (std::size_t r = 0; r < Records; ++r)
        store(cells + r * stride + v, fold.cells(z + r * Panels * panel_rows + v));
    }
    return;
  }
  for (std::size_t i = 0; i < plan.power; ++i) {
    project<Records, Panels>(plan, records, panel, i, z);
    if (plan.words == Words::floors) {
      for (std::size_t at = 0; at < size; at += lanes) store(words + i * size + at, floor_words(load<Floats>(z + at)));
    } else {
      std::uint32_t* to = words + i / 32 * size;
      for (std::size_t at = 0; at < size; at += lanes) {
        const Uints earlier = i % 32 == 0 ? Uints{} : load<Uints>(to + at);
        store(to + at, earlier | sign_bit(load<Floats>(z + at), i % 32));
      }
    }
  }
  for (std::size_t r = 0; r < Records; ++r)
    for (std::size_t b = 0; b < Panels; ++b)
      fold_words(plan.fold, panel + b, words + (r * Panels + b) * panel_rows, size,
                 cells + r * stride + b * panel_rows);
}

// A lone record has no other to hide the latency of its chain behind: run several panels side by side.
constexpr std::size_t lone_panels = 4, tail_records = 4;

}  // namespace

std::size_t dense_scratch(const DenseParameters& plan) {
  constexpr std::size_t most = tile_records > lone_panels ? tile_records : lone_panels;
  return plan.fold.words * most * panel_rows * sizeof(std::uint32_t);
}

void dense_cells(const DenseParameters& plan, const float* records, std::size_t count, std::size_t first_panel,
                 std::size_t panels, std::uint32_t* cells, std::size_t stride, void* scratch) {
  auto* words = static_cast<std::uint32_t*>(scratch);
  std::size_t r = 0;
  for (; r + tile_records <= count; r += tile_records)
    for (std::size_t b = 0; b < panels; ++b)
      tile<tile_records, 1>(plan, records + r * plan.dim, first_panel + b, cells + r * stride + b * panel_rows, stride,
                            words);
  for (; panels == 1 && r + tail_records <= count; r += tail_records)
    tile<tail_records, 1>(plan, records + r * plan.dim, first_panel, cells + r * stride, stride, words);
  for (; r < count; ++r) {
    std::size_t b = 0;
    for (; b + lone_panels <= panels; b += lone_panels)
      tile<1, lone_panels>(plan, records + r * plan.dim, first_panel + b, cells + r * stride + b * panel_rows, stride,
                           words);
    for (; b < panels; ++b)
      tile<1, 1>(plan, records + r * plan.dim, first_panel + b, cells + r * stride + b * panel_rows, stride, words);
  }
}

void dense_count(const DenseParameters& plan, const float* records, std::size_t count, std::size_t panel,
                 std::uint16_t* counters, void* scratch) {
  const std::size_t seen =
      visit_tiles(plan, records, count, panel,
                  [&](std::size_t, std::size_t, const std::uint32_t* places) __attribute__((always_inline)) {
                    HUSHSUM_UNROLL
                    for (std::size_t l = 0; l < lanes; ++l) ++counters[places[l]];
                  });
  alignas(64) std::uint32_t cells[panel_rows];
  for (std::size_t r = seen; r < count; ++r) {
    dense_cells(plan, records + r * plan.dim, 1, panel, 1, cells, panel_rows, scratch);
    for (std::size_t l = 0; l < panel_rows; ++l) ++counters[l * plan.fold.width + cells[l]];
  }
}

template <class Value>
void dense_total(const DenseParameters& plan, const float* records, std::size_t count, std::size_t panel,
                 const Value* table, std::int64_t* sums, void* scratch) {
  const std::size_t seen =
      visit_tiles(plan, records, count, panel,
                  [&](std::size_t tile, std::size_t r, const std::uint32_t* places) __attribute__((always_inline)) {
                    std::int64_t part[2] = {0, 0};
                    HUSHSUM_UNROLL
                    for (std::size_t l = 0; l < lanes; ++l) {
                      std::size_t place = places[l];
                      asm("" : "+r"(place));  // plain loads: gather instructions are slower on many processors
                      part[l % 2] += table[place];
                    }
                    sums[tile * tile_records + r] += part[0] + part[1];
                  });
  alignas(64) std::uint32_t cells[panel_rows];
  for (std::size_t r = seen; r < count; ++r) {
    dense_cells(plan, records + r * plan.dim, 1, panel, 1, cells, panel_rows, scratch);
    for (std::size_t l = 0; l < panel_rows; ++l) sums[r] += table[l * plan.fold.width + cells[l]];
  }
}

template void dense_total<std::int32_t>(const DenseParameters&, const float*, std::size_t, std::size_t,
                                        const std::int32_t*, std::int64_t*, void*);
template void dense_total<std::int64_t>(const DenseParameters&, const float*, std::size_t, std::size_t,
                                        const std::int64_t*, std::int64_t*, void*);

}  // namespace hushsum::HUSHSUM_CLONE
