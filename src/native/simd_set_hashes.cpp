// Min-wise hashes of sets, and sampled coordinates of code vectors.
#include "lanes.hpp"

namespace hushsum::HUSHSUM_CLONE {

// The finaliser of SplitMix64 (Steele, Lea and Flood 2014), a bijection; its upper half is the value's label.
void mix_values(const std::int64_t* values, std::size_t count, std::uint64_t salt, std::uint32_t* mixed) {
  for (std::size_t j = 0; j < count; ++j) {
    std::uint64_t x = static_cast<std::uint64_t>(values[j]) ^ salt;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    mixed[j] = static_cast<std::uint32_t>((x ^ (x >> 31)) >> 32);
  }
}

std::size_t min_scratch(const MinParameters& plan) { return plan.fold.words * panel_rows * sizeof(std::uint32_t); }

void min_cells(const MinParameters& plan, const std::uint32_t* mixed, const std::int64_t* starts, std::size_t count,
               std::size_t first_panel, std::size_t panels, std::uint32_t* cells, std::size_t stride, void* scratch) {
  auto* words = static_cast<std::uint32_t*>(scratch);
  for (std::size_t j = 0; j < count; ++j) {
    const std::uint32_t* from = mixed + starts[j];
    const std::size_t size = static_cast<std::size_t>(starts[j + 1] - starts[j]);
    std::uint32_t* empty = words + plan.power * panel_rows;
    for (std::size_t l = 0; l < panel_rows; ++l) empty[l] = size == 0;
    for (std::size_t b = 0; b < panels; ++b) {
      const std::size_t panel = first_panel + b;
      for (std::size_t i = 0; i < plan.power; ++i) {
        const std::size_t at = (panel * plan.power + i) * panel_rows;
        Uints mixer[tile_vectors], shift[tile_vectors], least[tile_vectors];
        for (std::size_t v = 0; v < tile_vectors; ++v) {
          mixer[v] = load<Uints>(plan.mixers + at + v * lanes);
          shift[v] = load<Uints>(plan.shifts + at + v * lanes);
          least[v] = size == 0 ? Uints{} : ~Uints{};
        }
        for (std::size_t e = 0; e < size; ++e) {
          HUSHSUM_UNROLL
          for (std::size_t v = 0; v < tile_vectors; ++v) {
            const Uints value = mixer[v] * from[e] + shift[v];
            least[v] = value < least[v] ? value : least[v];
          }
        }
        for (std::size_t v = 0; v < tile_vectors; ++v) store(words + i * panel_rows + v * lanes, least[v]);
      }
      // The last word is zero but for the empty set.
      fold_words(plan.fold, panel, words, panel_rows, cells + j * stride + b * panel_rows,
                 size == 0 ? plan.fold.words : plan.power);
    }
  }
}

std::size_t code_scratch(const CodeParameters& plan) { return plan.power * panel_rows * sizeof(std::uint32_t); }

void code_cells(const CodeParameters& plan, const std::int32_t* records, std::size_t count, std::size_t first_panel,
                std::size_t panels, std::uint32_t* cells, std::size_t stride, void* scratch) {
  auto* words = static_cast<std::uint32_t*>(scratch);
  for (std::size_t b = 0; b < panels; ++b) {
    const std::int32_t* columns = plan.columns + (first_panel + b) * plan.power * panel_rows;
    for (std::size_t j = 0; j < count; ++j) {
      const std::int32_t* record = records + j * plan.dim;
      for (std::size_t at = 0; at < plan.power * panel_rows; ++at) {
        std::ptrdiff_t column = columns[at];
        asm("" : "+r"(column));  // keeps plain loads: gather instructions are slower on many processors
        words[at] = static_cast<std::uint32_t>(record[column]);
      }
      fold_words(plan.fold, first_panel + b, words, panel_rows, cells + j * stride + b * panel_rows);
    }
  }
}

}  // namespace hushsum::HUSHSUM_CLONE
