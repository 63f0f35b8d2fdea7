#include "engine/comm/gloo/gloo_thread.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <exception>
#include <utility>

#include "base/error.h"

namespace ridgeline::engine {

GlooThread::GlooThread(std::shared_ptr<::gloo::transport::tcp::Device> device,
                       std::function<void(const std::string&)> failed)
    : device_(std::move(device)), failed_(std::move(failed)), event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_) ThrowErrno("cannot make an event to wake Gloo's thread");
  device_->registerDescriptor(event_.fd(), EPOLLIN, this);
}

GlooThread::~GlooThread() { device_->unregisterDescriptor(event_.fd(), this); }

void GlooThread::Ask(const Asked& asked) {
  const std::lock_guard lock(mutex_);
  asked_.push_back(asked);
  if (asked_.size() > 1 || begins_) return;  // it has been woken, or will look again
  const uint64_t one = 1;
  if (::write(event_.fd(), &one, sizeof one) != sizeof one) ThrowErrno("cannot wake Gloo's thread");
}

void GlooThread::Settle() {
  std::unique_lock lock(mutex_);
  settled_.wait(lock, [&] { return asked_.empty() && !begins_; });
}

void GlooThread::BeginAll() {
  uint64_t times = 0;
  [[maybe_unused]] const ssize_t read = ::read(event_.fd(), &times, sizeof times);
  std::unique_lock lock(mutex_);
  while (!asked_.empty()) {
    begins_ = true;
    std::swap(asked_, beginning_);
    lock.unlock();
    for (const Asked& asked : beginning_) Begin(asked);
    beginning_.clear();
    lock.lock();
  }
  begins_ = false;
  settled_.notify_all();
}

void GlooThread::Begin(const Asked& asked) {
  if (gave_up_) return;
  const Transfer& t = asked.transfer;
  const auto slot = static_cast<uint64_t>(t.slot);
  const auto offset = static_cast<size_t>(t.offset);
  const auto bytes = static_cast<size_t>(t.bytes);
  try {
    if (asked.sends) {
      t.buffer->send(t.peer, slot, offset, bytes);
    } else {
      t.buffer->recv(t.peer, slot, offset, bytes);
    }
  } catch (const std::exception& e) {
    gave_up_ = true;
    failed_(e.what());
  }
}

}  // namespace ridgeline::engine
