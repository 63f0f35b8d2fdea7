// The objects of one kind and label, kept as the API server has them: listed once, then only what changes.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/clock.h"
#include "kubernetes/cluster.h"

namespace ridgeline::kubernetes {

class Watch {
 public:
  struct Handler {
    std::function<void(const plugin::Json& object)> changed;  // or new
    std::function<void(const plugin::Json& object)> deleted;  // as it was at last
    std::function<void()> listing;  // what is known is void: all there is follows as `changed`
  };

  // `path` of the collection, `selector` of labels.
  Watch(Cluster& cluster, const plugin::Clock& clock, std::string path, const std::string& selector, Handler handler);

  // Tells of everything that has come since. Throws Failure: kNotNow where the server does not answer.
  void Refresh();

 private:
  void List();
  void Open();
  // False where the version it goes on from is forgotten, so that there must be a new list.
  bool Take(const std::string& line);

  Cluster& cluster_;
  const plugin::Clock& clock_;
  std::string path_, selector_;
  Handler handler_;
  std::string version_;  // of what is known; empty: nothing is
  std::unique_ptr<Stream> stream_;
  plugin::Clock::Time opened_;
};

}  // namespace ridgeline::kubernetes
