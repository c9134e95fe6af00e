#include "hashers.hpp"

#include <algorithm>
#include <limits>

#include "dispatch.hpp"

namespace hushsum {

namespace {

std::size_t positive(std::int64_t value, const char* name) {
  require(value >= 1, std::string(name) + " must be at least 1, got " + std::to_string(value));
  return static_cast<std::size_t>(value);
}

std::size_t axis(const Array& array, const char* name, std::size_t ndim, std::size_t which) {
  require(array.ndim() == ndim,
          std::string(name) + " must have " + std::to_string(ndim) + " axes, got " + std::to_string(array.ndim()));
  const std::size_t size = array.shape(which);
  require(size >= 1, std::string(name) + " must not be empty");
  return size;
}

std::size_t words_of(std::size_t power, bool signs) { return signs ? (power + 31) / 32 : power; }

void check_fold(bool signs, bool fold, std::size_t power, std::size_t width) {
  require(fold || signs, "fold must be true for floors: a floor is not bounded by the width");
  require(fold || (power < 31 && (std::size_t{1} << power) <= width),
          "fold must be true unless 2^power <= width, got power " + std::to_string(power) + " and width " +
              std::to_string(width));
}

// values[row][i][...rest] into panels: [panel][i][...rest][lane], padded with zeros.
template <class T>
void pack(const T* values, std::size_t rows, std::size_t terms, std::size_t rest, std::size_t panel_rows, T* packed) {
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t i = 0; i < terms * rest; ++i)
      packed[((r / panel_rows) * terms * rest + i) * panel_rows + r % panel_rows] = values[r * terms * rest + i];
}

std::size_t padded(std::size_t rows, std::size_t panel_rows) {
  return (rows + panel_rows - 1) / panel_rows * panel_rows;
}

template <class Bound, class Hasher>
void describe(Bound& batch, const Hasher& hasher, std::size_t count, std::size_t panel_rows, std::size_t record_bytes) {
  batch.count = count;
  batch.rows = hasher.rows;
  batch.width = hasher.width;
  batch.panel_rows = panel_rows;
  batch.record_bytes = std::max<std::size_t>(1, record_bytes);
}

}  // namespace

Fold::Fold(const std::uint64_t* multipliers, const std::uint64_t* addends, std::size_t rows, std::size_t words,
           std::size_t width, bool fold, bool scattered, Order order, std::size_t panel_rows)
    : multipliers_(padded(rows, panel_rows) * words),
      addends_(padded(rows, panel_rows)),
      words_(words),
      width_(static_cast<std::uint32_t>(width)),
      fold_(fold),
      scattered_(scattered) {
  require(width <= std::numeric_limits<std::int32_t>::max(), "width must be below 2^31");
  const std::size_t lanes = simd_loops().lanes;
  for (std::size_t r = 0; r < rows; ++r) {
    if (order == Order::rows) {
      addends_[r] = addends[r];
      std::copy(multipliers + r * words, multipliers + (r + 1) * words, multipliers_.data() + r * words);
      continue;
    }
    const std::size_t panel = r / panel_rows, row = r % panel_rows, lane = row % lanes;
    const std::size_t place = row - lane + (lane % 2) * (lanes / 2) + lane / 2;
    addends_[panel * panel_rows + place] = addends[r];
    for (std::size_t i = 0; i < words; ++i)
      multipliers_[(panel * words + i) * panel_rows + place] = multipliers[r * words + i];
  }
}

FoldParameters Fold::plan() const {
  return {.multipliers = multipliers_.data(),
          .addends = addends_.data(),
          .words = words_,
          .width = width_,
          .fold = fold_,
          .scattered = scattered_};
}

ProjectionHasher::ProjectionHasher(const Array& weights, const Array& offsets, const Array& multipliers,
                                   const Array& addends, std::int64_t width_, bool signs, bool fold, bool scattered)
    : rows(axis(weights, "weights", 3, 0)),
      dim(axis(weights, "weights", 3, 2)),
      width(positive(width_, "width")),
      power_(axis(weights, "weights", 3, 1)),
      fold_(checked<std::uint64_t>(multipliers, "multipliers", {rows, words_of(power_, signs)}),
            checked<std::uint64_t>(addends, "addends", {rows}), rows, words_of(power_, signs), width, fold, scattered,
            Order::panels, simd_loops().panel_rows),
      weights_(padded(rows, simd_loops().panel_rows) * power_ * dim),
      offsets_(padded(rows, simd_loops().panel_rows) * power_),
      words_(signs ? Words::signs : Words::floors) {
  check_fold(signs, fold, power_, width);
  const std::size_t lanes = simd_loops().panel_rows;
  pack(checked<float>(weights, "weights", {rows, power_, dim}), rows, power_, dim, lanes, weights_.data());
  pack(checked<float>(offsets, "offsets", {rows, power_}), rows, power_, 1, lanes, offsets_.data());
}

ProjectionHasher::Bound ProjectionHasher::bind(const Array& records) const {
  return bind(checked<float>(records, "records", {any_size, dim}), records.shape(0));
}

ProjectionHasher::Bound ProjectionHasher::bind(const float* records, std::size_t count) const {
  Bound batch;
  batch.records = records;
  batch.plan = {
      {.weights = weights_.data(), .offsets = offsets_.data(), .power = power_, .dim = dim}, fold_.plan(), words_};
  describe(batch, *this, count, simd_loops().panel_rows, dim * sizeof(float));
  batch.scratch_bytes = simd_loops().dense_scratch(batch.plan);
  return batch;
}

void ProjectionHasher::Bound::cells(std::size_t first, std::size_t many, std::size_t first_panel,
                                    std::size_t many_panels, std::uint32_t* cells, std::size_t stride,
                                    void* scratch) const {
  simd_loops().dense_cells(plan, records + first * plan.dim, many, first_panel, many_panels, cells, stride, scratch);
}

bool ProjectionHasher::Bound::count_narrow(std::size_t first, std::size_t many, std::size_t panel,
                                           std::uint16_t* counters, void* scratch) const {
  if (!one_floor()) return false;
  simd_loops().dense_count(plan, records + first * plan.dim, many, panel, counters, scratch);
  return true;
}

// Places in a panel's table are 32-bit numbers.
constexpr std::uint32_t widest_total = 1u << 26;

bool ProjectionHasher::Bound::total(std::size_t first, std::size_t many, std::size_t panel, const std::int32_t* table,
                                    std::int64_t* sums, void* scratch) const {
  if (!one_floor() || plan.fold.width > widest_total) return false;
  simd_loops().dense_total32(plan, records + first * plan.dim, many, panel, table, sums, scratch);
  return true;
}

bool ProjectionHasher::Bound::total(std::size_t first, std::size_t many, std::size_t panel, const std::int64_t* table,
                                    std::int64_t* sums, void* scratch) const {
  if (!one_floor() || plan.fold.width > widest_total) return false;
  simd_loops().dense_total64(plan, records + first * plan.dim, many, panel, table, sums, scratch);
  return true;
}

StructuredHasher::StructuredHasher(const Array& signs, std::int64_t dim_, std::int64_t rows_, std::int64_t power,
                                   float scale, const Array& offsets, const Array& multipliers, const Array& addends,
                                   std::int64_t width_, bool sign_mode, bool fold, std::int64_t block_rows,
                                   bool scattered)
    : rows(positive(rows_, "rows")),
      dim(positive(dim_, "dim")),
      width(positive(width_, "width")),
      power_(positive(power, "power")),
      size_(axis(signs, "signs", 3, 2)),
      block_rows_(positive(block_rows, "block_rows")),
      fold_(checked<std::uint64_t>(multipliers, "multipliers", {rows, words_of(power_, sign_mode)}),
            checked<std::uint64_t>(addends, "addends", {rows}), rows, words_of(power_, sign_mode), width, fold,
            scattered, Order::rows, block_rows_),
      signs_(padded(rows, block_rows_) / block_rows_ * 3 * size_),
      offsets_(padded(rows, block_rows_) * power_),
      scale_(scale),
      words_(sign_mode ? Words::signs : Words::floors) {
  check_fold(sign_mode, fold, power_, width);
  require((size_ & (size_ - 1)) == 0 && size_ >= dim,
          "signs must have a last axis that is a power of two and at least dim, got " + std::to_string(size_));
  require(block_rows_ <= size_ / power_, "block_rows * power must be at most " + std::to_string(size_));
  const std::size_t blocks = padded(rows, block_rows_) / block_rows_;
  const std::int8_t* given = checked<std::int8_t>(signs, "signs", {blocks, 3, size_});
  for (std::size_t i = 0; i < signs_.size(); ++i) {
    require(given[i] == 1 || given[i] == -1, "signs must be +1 or -1");
    signs_[i] = given[i];
  }
  const float* shifts = checked<float>(offsets, "offsets", {rows, power_});
  std::copy(shifts, shifts + rows * power_, offsets_.data());
}

StructuredHasher::Bound StructuredHasher::bind(const Array& records) const {
  return bind(checked<float>(records, "records", {any_size, dim}), records.shape(0));
}

StructuredHasher::Bound StructuredHasher::bind(const float* records, std::size_t count) const {
  Bound batch;
  batch.records = records;
  batch.plan = {.fold = fold_.plan(),
                .signs = signs_.data(),
                .offsets = offsets_.data(),
                .scale = scale_,
                .size = size_,
                .dim = dim,
                .power = power_,
                .block_rows = block_rows_,
                .words = words_};
  describe(batch, *this, count, block_rows_, dim * sizeof(float));
  batch.scratch_bytes = simd_loops().structured_scratch(batch.plan);
  return batch;
}

void StructuredHasher::Bound::cells(std::size_t first, std::size_t many, std::size_t first_panel,
                                    std::size_t many_panels, std::uint32_t* cells, std::size_t stride,
                                    void* scratch) const {
  for (std::size_t b = 0; b < many_panels; ++b)
    simd_loops().structured_cells(plan, records + first * plan.dim, many, first_panel + b, cells + b * panel_rows,
                                  stride, scratch);
}

MinHasher::MinHasher(const Array& mixers, const Array& shifts, std::uint64_t salt, const Array& multipliers,
                     const Array& addends, std::int64_t width_, bool scattered)
    : rows(axis(mixers, "mixers", 2, 0)),
      width(positive(width_, "width")),
      power_(axis(mixers, "mixers", 2, 1)),
      fold_(checked<std::uint64_t>(multipliers, "multipliers", {rows, power_ + 1}),
            checked<std::uint64_t>(addends, "addends", {rows}), rows, power_ + 1, width, true, scattered, Order::panels,
            simd_loops().panel_rows),
      mixers_(padded(rows, simd_loops().panel_rows) * power_),
      shifts_(padded(rows, simd_loops().panel_rows) * power_),
      salt_(salt) {
  const std::size_t lanes = simd_loops().panel_rows;
  const std::uint32_t* given = checked<std::uint32_t>(mixers, "mixers", {rows, power_});
  for (std::size_t i = 0; i < rows * power_; ++i) require(given[i] % 2 == 1, "mixers must be odd");
  pack(given, rows, power_, 1, lanes, mixers_.data());
  pack(checked<std::uint32_t>(shifts, "shifts", {rows, power_}), rows, power_, 1, lanes, shifts_.data());
}

MinHasher::Bound MinHasher::bind(const Array& values, const Array& indptr) const {
  const std::int64_t* given = checked<std::int64_t>(values, "values", {any_size});
  const std::int64_t* ends = checked<std::int64_t>(indptr, "indptr", {any_size});
  require(indptr.shape(0) >= 1, "indptr must not be empty");
  return bind(given, values.shape(0), ends, indptr.shape(0) - 1);
}

MinHasher::Bound MinHasher::bind(const std::int64_t* given, std::size_t size, const std::int64_t* ends,
                                 std::size_t sets) const {
  Bound batch(size, sets + 1);
  std::copy(ends, ends + sets + 1, batch.starts.data());
  require(batch.starts[0] == 0 && batch.starts[sets] == static_cast<std::int64_t>(size),
          "indptr must start at 0 and end at the number of values");
  for (std::size_t j = 0; j < sets; ++j) require(batch.starts[j] <= batch.starts[j + 1], "indptr must not decrease");
  simd_loops().mix_values(given, size, salt_, batch.mixed.data());
  batch.plan = {.fold = fold_.plan(), .mixers = mixers_.data(), .shifts = shifts_.data(), .power = power_};
  describe(batch, *this, sets, simd_loops().panel_rows, sets == 0 ? 1 : size * sizeof(std::uint32_t) / sets);
  batch.scratch_bytes = simd_loops().min_scratch(batch.plan);
  return batch;
}

void MinHasher::Bound::cells(std::size_t first, std::size_t many, std::size_t first_panel, std::size_t many_panels,
                             std::uint32_t* cells, std::size_t stride, void* scratch) const {
  simd_loops().min_cells(plan, mixed.data(), starts.data() + first, many, first_panel, many_panels, cells, stride,
                         scratch);
}

CodeHasher::CodeHasher(const Array& columns, const Array& multipliers, const Array& addends, std::int64_t width_,
                       bool scattered)
    : rows(axis(columns, "columns", 2, 0)),
      width(positive(width_, "width")),
      power_(axis(columns, "columns", 2, 1)),
      needed_columns_(0),
      fold_(checked<std::uint64_t>(multipliers, "multipliers", {rows, power_}),
            checked<std::uint64_t>(addends, "addends", {rows}), rows, power_, width, true, scattered, Order::panels,
            simd_loops().panel_rows),
      columns_(padded(rows, simd_loops().panel_rows) * power_) {
  const std::int32_t* given = checked<std::int32_t>(columns, "columns", {rows, power_});
  for (std::size_t i = 0; i < rows * power_; ++i) {
    require(given[i] >= 0, "columns must not be negative");
    needed_columns_ = std::max(needed_columns_, static_cast<std::size_t>(given[i]) + 1);
  }
  pack(given, rows, power_, 1, simd_loops().panel_rows, columns_.data());
}

CodeHasher::Bound CodeHasher::bind(const Array& records) const {
  Bound batch;
  batch.records = checked<std::int32_t>(records, "records", {any_size, any_size});
  const std::size_t dim = records.shape(1);
  require(dim >= needed_columns_,
          "records must have at least " + std::to_string(needed_columns_) + " columns, got " + std::to_string(dim));
  batch.plan = {.fold = fold_.plan(), .columns = columns_.data(), .power = power_, .dim = dim};
  describe(batch, *this, records.shape(0), simd_loops().panel_rows, dim * sizeof(std::int32_t));
  batch.scratch_bytes = simd_loops().code_scratch(batch.plan);
  return batch;
}

void CodeHasher::Bound::cells(std::size_t first, std::size_t many, std::size_t first_panel, std::size_t many_panels,
                              std::uint32_t* cells, std::size_t stride, void* scratch) const {
  simd_loops().code_cells(plan, records + first * plan.dim, many, first_panel, many_panels, cells, stride, scratch);
}

}  // namespace hushsum
