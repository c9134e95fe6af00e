// The hash families of the sketch. A hasher packs its parameters once for the loops of the chosen clone and never
// changes; binding it to records gives the Batch that the loops run over.
#pragma once

#include <cstddef>
#include <cstdint>

#include "arrays.hpp"
#include "batch.hpp"
#include "packed_parameters.hpp"

namespace hushsum {

enum class Order { panels, rows };

// Multiply-shift parameters, in panels for vectors of rows or row by row for vectors of records.
class Fold {
 public:
  Fold(const std::uint64_t* multipliers, const std::uint64_t* addends, std::size_t rows, std::size_t words,
       std::size_t width, bool fold, bool scattered, Order order, std::size_t panel_rows);
  FoldParameters plan() const;

 private:
  Buffer<std::uint64_t> multipliers_, addends_;
  std::size_t words_;
  std::uint32_t width_;
  bool fold_, scattered_;
};

// Cells that are floors or signs of random projections (Datar et al. 2004; Charikar 2002).
class ProjectionHasher {
 public:
  ProjectionHasher(const Array& weights, const Array& offsets, const Array& multipliers, const Array& addends,
                   std::int64_t width, bool signs, bool fold, bool scattered);
  class Bound;
  Bound bind(const Array& records) const;
  Bound bind(const float* records, std::size_t count) const;
  std::size_t rows, dim, width;

 private:
  std::size_t power_;
  Fold fold_;
  Buffer<float> weights_, offsets_;
  Words words_;
};

class ProjectionHasher::Bound : public Batch {
 public:
  void cells(std::size_t, std::size_t, std::size_t, std::size_t, std::uint32_t*, std::size_t, void*) const override;
  bool count_narrow(std::size_t, std::size_t, std::size_t, std::uint16_t*, void*) const override;
  bool total(std::size_t, std::size_t, std::size_t, const std::int32_t*, std::int64_t*, void*) const override;
  bool total(std::size_t, std::size_t, std::size_t, const std::int64_t*, std::int64_t*, void*) const override;
  bool one_floor() const { return plan.power == 1 && plan.words == Words::floors; }
  DenseParameters plan;
  const float* records;
};

// The same with projections from three Hadamard-sign rounds, for high dimension.
class StructuredHasher {
 public:
  StructuredHasher(const Array& signs, std::int64_t dim, std::int64_t rows, std::int64_t power, float scale,
                   const Array& offsets, const Array& multipliers, const Array& addends, std::int64_t width,
                   bool sign_mode, bool fold, std::int64_t block_rows, bool scattered);
  class Bound;
  Bound bind(const Array& records) const;
  Bound bind(const float* records, std::size_t count) const;
  std::size_t rows, dim, width;

 private:
  std::size_t power_, size_, block_rows_;
  Fold fold_;
  Buffer<float> signs_, offsets_;
  float scale_;
  Words words_;
};

class StructuredHasher::Bound : public Batch {
 public:
  void cells(std::size_t, std::size_t, std::size_t, std::size_t, std::uint32_t*, std::size_t, void*) const override;
  StructuredParameters plan;
  const float* records;
};

// Min-wise hashes of sets of integers (Broder 1997).
class MinHasher {
 public:
  MinHasher(const Array& mixers, const Array& shifts, std::uint64_t salt, const Array& multipliers,
            const Array& addends, std::int64_t width, bool scattered);
  class Bound;
  Bound bind(const Array& values, const Array& indptr) const;
  Bound bind(const std::int64_t* values, std::size_t size, const std::int64_t* indptr, std::size_t sets) const;
  std::size_t rows, width;

 private:
  std::size_t power_;
  Fold fold_;
  Buffer<std::uint32_t> mixers_, shifts_;
  std::uint64_t salt_;
};

class MinHasher::Bound : public Batch {
 public:
  Bound(std::size_t values, std::size_t ends) : mixed(values), starts(ends) {}
  void cells(std::size_t, std::size_t, std::size_t, std::size_t, std::uint32_t*, std::size_t, void*) const override;
  MinParameters plan;
  Buffer<std::uint32_t> mixed;
  Buffer<std::int64_t> starts;  // a copy: checked bounds must hold while other Python threads run
};

// Sampled coordinates of code vectors (Indyk and Motwani 1998).
class CodeHasher {
 public:
  CodeHasher(const Array& columns, const Array& multipliers, const Array& addends, std::int64_t width, bool scattered);
  class Bound;
  Bound bind(const Array& records) const;
  std::size_t rows, width;

 private:
  std::size_t power_, needed_columns_;
  Fold fold_;
  Buffer<std::int32_t> columns_;
};

class CodeHasher::Bound : public Batch {
 public:
  void cells(std::size_t, std::size_t, std::size_t, std::size_t, std::uint32_t*, std::size_t, void*) const override;
  CodeParameters plan;
  const std::int32_t* records;
};

}  // namespace hushsum
