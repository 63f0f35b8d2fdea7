// Keeps the objects of one kind and label as the API server has them: lists them once, then takes changes only.
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
    std::function<void(const plugin::Json& object)> changed;  // an object was changed or added
    std::function<void(const plugin::Json& object)> deleted;  // an object's last state
    std::function<void()> listing;                            // what is known is void; all objects follow as `changed`
  };

  // `path` of the collection, `selector` of labels.
  Watch(Cluster& cluster, const plugin::Clock& clock, std::string path, const std::string& selector, Handler handler);

  // Reports everything that has come since. Throws Failure; kNotNow if the server does not answer.
  void Refresh();

 private:
  void List();
  void Open();
  // Returns false if the server has forgotten the version from which the watch goes on. Then a new list is needed.
  bool Take(const std::string& line);

  Cluster& cluster_;
  const plugin::Clock& clock_;
  std::string path_, selector_;
  Handler handler_;
  std::string version_;  // of what is known; empty: nothing is known
  std::unique_ptr<Stream> stream_;
  plugin::Clock::Time opened_;
};

}  // namespace ridgeline::kubernetes
