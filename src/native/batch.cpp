#include <algorithm>
#include <limits>
#include <vector>

#include "batch.hpp"
#include "byte_counter_table.hpp"
#include "dispatch.hpp"
#include "packed_table.hpp"
#include "threads.hpp"

namespace hushsum {

namespace {

constexpr std::size_t block_records = 480;                // hashed, then counted; whole tiles of 12 or 6 records
constexpr std::size_t turned_records = 96;                // hashed, then transposed in the first-level cache; likewise
constexpr std::size_t chunk_bytes = 4u << 20;             // records that every panel visits before the next are fetched
constexpr std::size_t narrow_bytes = 512u << 10;          // 16-bit counters of a panel that stay in the cache
constexpr std::size_t by_row_bytes = 32u << 20;           // cells kept back while a table beyond the cache is counted
constexpr std::size_t byte_row_bytes = 32u << 20;         // the same where the table is one of bytes
constexpr std::size_t narrow_most = 130 * block_records;  // fits 16 bits

// The cells of some records in one panel, as [block of records][row][record of the block]: short rows keep what is
// written in the first-level cache, where rows of a power of two would fall into few of its sets.
class CellsByRow {
 public:
  CellsByRow(const Batch& batch, std::size_t most)
      : batch_(batch),
        pitch_(batch.panel_rows),
        cells_(std::min(turned_records, most) * pitch_),
        scratch_(batch.scratch_bytes),
        by_row_bytes_((most + block_records - 1) / block_records * block_records * pitch_ * sizeof(std::uint32_t),
                      true),
        by_row_(static_cast<std::uint32_t*>(by_row_bytes_.data())) {}

  void hash(Range records, std::size_t panel) {
    records_ = records.end - records.begin;
    const std::size_t rows = std::min(pitch_, batch_.rows - panel * pitch_);
    for (std::size_t at = 0; at < records_; at += block_records) {
      std::uint32_t* const block = by_row_ + at * pitch_;
      const std::size_t in_block = std::min(block_records, records_ - at);
      for (std::size_t j = 0; j < in_block; j += turned_records) {
        const std::size_t many = std::min(turned_records, in_block - j);
        batch_.cells(records.begin + at + j, many, panel, 1, cells_.data(), pitch_, scratch_.data());
        simd_loops().transpose_cells(cells_.data(), many, pitch_, rows, block + j, block_records);
      }
    }
  }

  // Calls add(cells, count) for all cells of a row.
  template <class Add>
  void visit(std::size_t row, const Add& add) const {
    for (std::size_t at = 0; at < records_; at += block_records) {
      const std::uint32_t* from = by_row_ + at * pitch_ + row * block_records;
      // The next block is far away in memory, where the processor does not expect it.
      if (at + block_records < records_)
        for (std::size_t i = 0; i < block_records; i += 16) __builtin_prefetch(from + block_records * pitch_ + i);
      add(from, std::min(block_records, records_ - at));
    }
  }

 private:
  const Batch& batch_;
  std::size_t pitch_, records_ = 0;
  Buffer<std::uint32_t> cells_;
  Buffer<unsigned char> scratch_;
  LazyBytes by_row_bytes_;
  std::uint32_t* by_row_;
};

// The ways to add a panel's cells to its counters, by what fits which cache.
enum class Way { narrow, wide, by_row };

class Counting {
 public:
  Counting(const Batch& batch, std::int64_t* counters, std::int64_t step)
      : batch_(batch), loops_(simd_loops()), counters_(counters), step_(step) {
    const std::size_t width = batch.width;
    chunk_ = std::clamp<std::size_t>(chunk_bytes / batch.record_bytes, 1024, narrow_most);
    const std::size_t together = std::min(chunk_, batch.count);
    if (batch.panel_rows * width * sizeof(std::uint16_t) <= narrow_bytes) {
      way_ = 2 * together >= width ? Way::narrow : Way::wide;
    } else {
      const std::size_t most = by_row_bytes / (batch.panel_rows * sizeof(std::uint32_t));
      way_ = 8 * std::min(most, batch.count) >= width ? Way::by_row : Way::wide;
      if (way_ == Way::by_row) chunk_ = most;
    }
    chunk_ = std::max<std::size_t>(1, std::min(chunk_, batch.count));
  }

  struct Workspace {
    Buffer<std::uint32_t> cells;
    Buffer<unsigned char> scratch;
    Buffer<std::uint16_t> narrow;
    Buffer<std::uint8_t> narrow_row;
    CellsByRow by_row;
  };

  Workspace workspace() const {
    const std::size_t width = batch_.width, pitch = batch_.panel_rows;
    return {Buffer<std::uint32_t>(std::min(block_records, chunk_) * pitch), Buffer<unsigned char>(batch_.scratch_bytes),
            Buffer<std::uint16_t>(way_ == Way::narrow ? pitch * width : 0),
            Buffer<std::uint8_t>(way_ == Way::by_row ? width : 0),
            CellsByRow(batch_, way_ == Way::by_row ? chunk_ : 0)};
  }

  void run(Range panels, Workspace& space) const {
    auto& [cells, scratch, narrow, narrow_row, by_row] = space;
    const std::size_t width = batch_.width, pitch = batch_.panel_rows;
    const std::size_t held = std::min(block_records, chunk_);
    for (std::size_t first = 0; first < batch_.count; first += chunk_) {
      const std::size_t last = std::min(batch_.count, first + chunk_);
      for (std::size_t panel = panels.begin; panel < panels.end; ++panel) {
        const std::size_t rows = std::min(pitch, batch_.rows - panel * pitch);
        std::int64_t* counters = counters_ + panel * pitch * width;
        if (way_ == Way::by_row) {
          by_row.hash({first, last}, panel);
          std::uint8_t* const bytes = narrow_row.data();
          for (std::size_t row = 0; row < rows; ++row) {
            std::int64_t* to = counters + row * width;
            by_row.visit(row, [&](const std::uint32_t* from, std::size_t many) {
              loops_.add_row(from, many, step_, bytes, to);
            });
            loops_.flush_row(bytes, width, step_, to);
          }
          continue;
        }
        for (std::size_t at = first; at < last; at += held) {
          const std::size_t many = std::min(held, last - at);
          if (way_ == Way::narrow && batch_.count_narrow(at, many, panel, narrow.data(), scratch.data())) continue;
          batch_.cells(at, many, panel, 1, cells.data(), pitch, scratch.data());
          if (way_ == Way::narrow) loops_.add_narrow(cells.data(), many, pitch, rows, width, narrow.data());
          else loops_.add_wide(cells.data(), many, pitch, rows, width, step_, counters);
        }
        if (way_ == Way::narrow) {
          loops_.flush_narrow(narrow.data(), rows * width, step_, counters);
          std::fill(narrow.data() + rows * width, narrow.data() + pitch * width, std::uint16_t{0});  // padding's counts
        }
      }
    }
  }

 private:
  const Batch& batch_;
  const SimdLoops& loops_;
  std::int64_t* counters_;
  std::int64_t step_;
  std::size_t chunk_;
  Way way_;
};

void gather(const std::uint32_t* cells, std::size_t count, std::size_t stride, std::size_t first_row, std::size_t rows,
            std::size_t width, const std::int32_t* table, std::size_t block, Moments* moments) {
  simd_loops().gather32(cells, count, stride, first_row, rows, width, table, block, moments);
}

void gather(const std::uint32_t* cells, std::size_t count, std::size_t stride, std::size_t first_row, std::size_t rows,
            std::size_t width, const std::int64_t* table, std::size_t block, Moments* moments) {
  simd_loops().gather64(cells, count, stride, first_row, rows, width, table, block, moments);
}

// The cells of one record in some rows of a packed table are fetched ahead, because most of them are in no cache; but
// not far ahead: the addresses of 2,000 pages do not fit the processor's tables, and would be looked up twice.
constexpr std::size_t fetched_rows = 256;  // a multiple of the rows that gather adds at a time

void prepare(const std::uint32_t* cells, std::size_t first, std::size_t last, std::size_t width, PackedRows table) {
  for (std::size_t row = first; row < last; ++row) table.table->prepare(table.first_cell + row * width + cells[row]);
}

template <class Visit>
void visit_fetched(const std::uint32_t* cells, std::size_t count, std::size_t stride, std::size_t rows,
                   std::size_t width, PackedRows table, const Visit& visit) {
  std::int64_t values[fetched_rows];
  for (std::size_t j = 0; j < count; ++j, cells += stride) {
    prepare(cells, 0, std::min(fetched_rows, rows), width, table);
    for (std::size_t row = 0; row < rows; row += fetched_rows) {
      const std::size_t next = std::min(row + fetched_rows, rows);
      prepare(cells, next, std::min(next + fetched_rows, rows), width, table);
      for (std::size_t i = row; i < next; ++i)
        values[i - row] = table.table->read(table.first_cell + i * width + cells[i]);
      visit(j, row, next - row, values);
    }
  }
}

constexpr std::uint32_t first_cells[fetched_rows] = {};

void gather(const std::uint32_t* cells, std::size_t count, std::size_t stride, std::size_t first_row, std::size_t rows,
            std::size_t width, PackedRows table, std::size_t block, Moments* moments) {
  visit_fetched(cells, count, stride, rows, width, table,
                [&](std::size_t j, std::size_t row, std::size_t many, const std::int64_t* values) {
                  simd_loops().gather64(first_cells, 1, 0, first_row + row, many, 1, values, block, moments + j);
                });
}

// Weighting a block's mean with its size s makes sum s (mean - overall)^2 / ((blocks - 1) rows) the usual estimate
// when all blocks are equal, and unbiased for independent rows when the last one is shorter.
void finish(const Moments& of, std::size_t rows, std::size_t block, double& mean, double& variance) {
  double sum = 0, squares = 0;
  for (std::size_t l = 0; l < 8; ++l) {
    sum += of.sum[l];
    squares += of.squares[l];
  }
  const std::size_t rest = rows % block;
  if (rest != 0) {
    sum += of.block_sum;
    squares += of.block_sum * of.block_sum / static_cast<double>(rest);
  }
  const std::size_t blocks = rows / block + (rest != 0);
  const double many = static_cast<double>(rows);
  mean = (of.origin * many + sum) / many;
  variance = blocks < 2 ? std::numeric_limits<double>::quiet_NaN()
                        : std::max(0.0, squares - sum * sum / many) / (static_cast<double>(blocks - 1) * many);
}

void total(const std::uint32_t* cells, std::size_t count, std::size_t stride, std::size_t first_row, std::size_t rows,
           std::size_t width, const std::int32_t* table, std::int64_t* sums) {
  simd_loops().total32(cells, count, stride, first_row, rows, width, table, sums);
}

void total(const std::uint32_t* cells, std::size_t count, std::size_t stride, std::size_t first_row, std::size_t rows,
           std::size_t width, const std::int64_t* table, std::int64_t* sums) {
  simd_loops().total64(cells, count, stride, first_row, rows, width, table, sums);
}

void total(const std::uint32_t* cells, std::size_t count, std::size_t stride, std::size_t first_row, std::size_t rows,
           std::size_t width, PackedRows table, std::int64_t* sums) {
  visit_fetched(cells, count, stride, rows, width, table,
                [&](std::size_t j, std::size_t row, std::size_t many, const std::int64_t* values) {
                  simd_loops().total64(first_cells, 1, 0, first_row + row, many, 1, values, sums + j);
                });
}

// Whether the family has a loop of its own for a whole panel, which it has for arrays alone.
template <class Value>
bool total_panel(const Batch& batch, std::size_t first, std::size_t many, std::size_t panel, const Value* table,
                 std::int64_t* sums, void* scratch) {
  return batch.total(first, many, panel, table, sums, scratch);
}

bool total_panel(const Batch&, std::size_t, std::size_t, std::size_t, PackedRows, std::int64_t*, void*) {
  return false;
}

// Hashes every record on the first `rows` rows and hands the cells to `visit`, some records and rows at a time, with
// one State per record that starts with row 0; `done` gets each state after the last row. `whole` may take some records
// through a whole panel at once, and says whether it did.
template <class State, class Whole, class Visit, class Done>
void read_rows(const Batch& batch, std::size_t rows, std::size_t threads, const Whole& whole, const Visit& visit,
               const Done& done) {
  if (batch.count == 0) return;
  const std::size_t pitch = batch.panel_rows, panels = (rows + pitch - 1) / pitch;
  // Few queries: hash each on all panels at once, which hides latency. Many: panel by panel, whose counters then stay
  // in the cache.
  constexpr std::size_t few = 8;
  const bool lone = batch.count <= few;
  const std::size_t held = lone ? 1 : std::min<std::size_t>(24, batch.count);
  const std::size_t chunk = lone ? 1 : std::min(block_records, batch.count);
  const std::size_t together = lone ? panels : 1, stride = together * pitch;
  struct Workspace {
    Buffer<std::uint32_t> cells;
    Buffer<unsigned char> scratch;
    Buffer<State> states;
  };
  const std::size_t many = useful_threads(batch.count, batch.count * rows, threads);
  std::vector<Workspace> spaces;
  spaces.reserve(many);
  for (std::size_t t = 0; t < many; ++t)
    spaces.push_back(
        {Buffer<std::uint32_t>(held * stride), Buffer<unsigned char>(batch.scratch_bytes), Buffer<State>(chunk)});
  run_parallel(batch.count, many, [&](Range records, std::size_t t) {
    auto& [cells, scratch, states] = spaces[t];
    for (std::size_t first = records.begin; first < records.end; first += chunk) {
      const std::size_t last = std::min(records.end, first + chunk);
      for (std::size_t panel = 0; panel < panels; panel += together) {
        const std::size_t row = panel * pitch, here = std::min(stride, rows - row);
        if (!lone && here == pitch && whole(first, last - first, panel, states.data(), scratch.data())) continue;
        for (std::size_t at = first; at < last; at += held) {
          const std::size_t some = std::min(held, last - at);
          batch.cells(at, some, panel, together, cells.data(), stride, scratch.data());
          visit(cells.data(), some, stride, row, here, states.data() + (at - first));
        }
      }
      for (std::size_t at = first; at < last; ++at) done(states[at - first], at);
    }
  });
}

}  // namespace

void count_batch(const Batch& batch, std::int64_t* counters, std::int64_t step, std::size_t threads) {
  if (batch.count == 0) return;
  const Counting counting(batch, counters, step);
  const std::size_t many = useful_threads(batch.panels(), batch.count * batch.rows, threads);
  std::vector<Counting::Workspace> spaces;
  spaces.reserve(many);
  for (std::size_t t = 0; t < many; ++t) spaces.push_back(counting.workspace());
  run_parallel(batch.panels(), many, [&](Range panels, std::size_t t) { counting.run(panels, spaces[t]); });
}

void count_batch(const Batch& batch, CounterTable& table, std::int64_t step, std::size_t threads) {
  if (batch.count == 0) return;
  const std::size_t pitch = batch.panel_rows, row_bytes = pitch * sizeof(std::uint32_t);
  const std::size_t chunk = std::min(batch.count, std::max(block_records, byte_row_bytes / row_bytes));
  const std::size_t many = useful_threads(batch.panels(), batch.count * batch.rows, threads);
  std::vector<CellsByRow> spaces;
  spaces.reserve(many);
  for (std::size_t t = 0; t < many; ++t) spaces.emplace_back(batch, chunk);
  run_parallel(batch.panels(), many, [&](Range panels, std::size_t t) {
    std::uint32_t carried[block_records];
    for (std::size_t first = 0; first < batch.count; first += chunk)
      for (std::size_t panel = panels.begin; panel < panels.end; ++panel) {
        spaces[t].hash({first, std::min(batch.count, first + chunk)}, panel);
        const std::size_t rows = std::min(pitch, batch.rows - panel * pitch);
        for (std::size_t l = 0; l < rows; ++l) {
          const std::size_t row = panel * pitch + l;
          spaces[t].visit(l, [&](const std::uint32_t* from, std::size_t count) {
            const std::size_t carries = simd_loops().add_bytes(from, count, step, table.low(row), carried);
            for (std::size_t i = 0; i < carries; ++i) table.carry(row, carried[i], step);
          });
        }
      }
  });
}

void write_cells(const Batch& batch, std::size_t rows, std::int32_t* to) {
  const std::size_t pitch = batch.panel_rows, panels = (rows + pitch - 1) / pitch;
  const std::size_t held = std::min<std::size_t>(block_records, std::max<std::size_t>(1, batch.count));
  Buffer<std::uint32_t> cells(held * pitch);
  Buffer<unsigned char> scratch(batch.scratch_bytes);
  for (std::size_t first = 0; first < batch.count; first += held) {
    const std::size_t many = std::min(held, batch.count - first);
    for (std::size_t panel = 0; panel < panels; ++panel) {
      batch.cells(first, many, panel, 1, cells.data(), pitch, scratch.data());
      const std::size_t here = std::min(pitch, rows - panel * pitch);
      for (std::size_t j = 0; j < many; ++j)
        for (std::size_t l = 0; l < here; ++l)
          to[(first + j) * rows + panel * pitch + l] = static_cast<std::int32_t>(cells[j * pitch + l]);
    }
  }
}

template <class Table>
void read_batch(const Batch& batch, Table table, std::size_t rows, std::size_t block, std::size_t threads, double* mean,
                double* variance) {
  read_rows<Moments>(
      batch, rows, threads, [](std::size_t, std::size_t, std::size_t, Moments*, void*) { return false; },
      [&](const std::uint32_t* cells, std::size_t count, std::size_t stride, std::size_t row, std::size_t many,
          Moments* moments) {
        gather(cells, count, stride, row, many, batch.width, table + row * batch.width, block, moments);
      },
      [&](const Moments& moments, std::size_t at) { finish(moments, rows, block, mean[at], variance[at]); });
}

template <class Table>
void mean_batch(const Batch& batch, Table table, std::size_t rows, std::size_t threads, double scale, double shift,
                double* mean) {
  read_rows<std::int64_t>(
      batch, rows, threads,
      [&](std::size_t first, std::size_t many, std::size_t panel, std::int64_t* sums, void* scratch) {
        if (panel == 0) std::fill_n(sums, many, 0);
        return total_panel(batch, first, many, panel, table + panel * batch.panel_rows * batch.width, sums, scratch);
      },
      [&](const std::uint32_t* cells, std::size_t count, std::size_t stride, std::size_t row, std::size_t many,
          std::int64_t* sums) { total(cells, count, stride, row, many, batch.width, table + row * batch.width, sums); },
      [&](std::int64_t sum, std::size_t at) {
        mean[at] = static_cast<double>(sum) / static_cast<double>(rows) * scale + shift;
      });
}

template void mean_batch(const Batch&, const std::int32_t*, std::size_t, std::size_t, double, double, double*);
template void mean_batch(const Batch&, const std::int64_t*, std::size_t, std::size_t, double, double, double*);
template void mean_batch(const Batch&, PackedRows, std::size_t, std::size_t, double, double, double*);
template void read_batch(const Batch&, const std::int32_t*, std::size_t, std::size_t, std::size_t, double*, double*);
template void read_batch(const Batch&, const std::int64_t*, std::size_t, std::size_t, std::size_t, double*, double*);
template void read_batch(const Batch&, PackedRows, std::size_t, std::size_t, std::size_t, double*, double*);

}  // namespace hushsum
