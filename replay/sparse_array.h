// A fixed-size array of zeros that takes memory only where it is touched.
//
// The arena keeps a word for every unit of an address range that is mostly never used; the pages of such
// an array come from the system on first touch and cost nothing before.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <utility>

namespace reprise::replay {

template <typename T>
class SparseArray {
 public:
  // `size` elements of zero bytes; data() is null when the address space was refused.
  explicit SparseArray(size_t size) : bytes_(size * sizeof(T)) {
    if (bytes_ == 0) return;
    void* p =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return;
    madvise(p, bytes_, MADV_DONTDUMP);  // a core dump would be as large as all of it
    data_ = static_cast<T*>(p);
  }
  SparseArray(SparseArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  SparseArray& operator=(SparseArray&&) = delete;
  ~SparseArray() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }

  bool ok() const { return data_ != nullptr; }
  T* data() { return data_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace reprise::replay
