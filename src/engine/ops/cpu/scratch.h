// Memory outside the slab that the kernels of one process share, because they run one after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace ridgeline::engine {

// Bytes on a page boundary, which grow when more are asked for; the contents are lost then.
class AlignedBuffer {
 public:
  std::byte* Reserve(int64_t bytes) {
    if (bytes > bytes_) {
      data_.reset();
      data_.reset(static_cast<std::byte*>(::operator new(static_cast<size_t>(bytes), kAlign)));
      bytes_ = bytes;
    }
    return data_.get();
  }
  std::byte* data() const { return data_.get(); }
  int64_t bytes() const { return bytes_; }

 private:
  static constexpr std::align_val_t kAlign{4096};
  struct Delete {
    void operator()(std::byte* p) const { ::operator delete(p, kAlign); }
  };
  std::unique_ptr<std::byte, Delete> data_;
  int64_t bytes_ = 0;
};

}  // namespace ridgeline::engine
