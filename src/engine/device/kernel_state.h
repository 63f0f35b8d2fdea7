// Values that the kernels of any device prepare once, before the first step (a library's plan of a product, say).
#pragma once

#include <map>
#include <memory>
#include <mutex>

namespace ridgeline::engine {

class KernelState {
 public:
  virtual ~KernelState() = default;
};

// Values that kernels share: one per key, for as long as somebody holds it.
template <typename Key, typename Value>
class SharedCache {
 public:
  template <typename Make>
  std::shared_ptr<Value> Get(const Key& key, const Make& make) {
    const std::scoped_lock lock(mutex_);
    std::weak_ptr<Value>& entry = entries_[key];
    std::shared_ptr<Value> value = entry.lock();
    if (!value) entry = value = make();
    return value;
  }

 private:
  std::mutex mutex_;
  std::map<Key, std::weak_ptr<Value>> entries_;
};

}  // namespace ridgeline::engine
