// Integers in as many bits as they need: Rice codes of their distance from a centre (Rice 1979; Golomb 1966).
//
// Blocks of 4096 integers, the last one shorter. A block is one byte k, then codes from the lowest bit of each byte to
// the highest, then zeros up to a whole byte. The distance d from the centre is first made a natural number z: 2d if
// d >= 0, else -2d - 1. With q = z >> k below 31 its code is q zeros, a one, and the k lower bits of z; else 31
// zeros, a one, and all 64 bits of z. Every sequence of integers has one code for each choice of k.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hushsum {

template <class T>
std::vector<std::uint8_t> rice_encode(const T* values, std::size_t count, std::int64_t centre);

// False unless the bytes are the code of exactly `count` values that fit the type.
template <class T>
bool rice_decode(const std::uint8_t* bytes, std::size_t size, T* values, std::size_t count, std::int64_t centre);

}  // namespace hushsum
