// Which of a job's nodes are at a point. Each but the first says so, as long as it is, by a file with its name in the
// point's folder, where the nodes share that. A node that fails takes its ranks with it, and to theirs on other nodes
// that looks as if the trainer had crashed there; but nobody is left who would take the file away.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace ridgeline {

// Of the node that calls it, by the name that its scheduler has for it. Throws Error(kInfrastructure) where it cannot
// be written.
void TakePart(const std::filesystem::path& point_dir, int64_t node, const std::string& name);

// For the first node, when the point has failed on it: waits until all others have ended their part, which they do
// within moments, or `wait_ns` have passed, or `give_up` says so. Then, the name of a node that has not; nothing where
// none is left, or where they share no folder.
std::optional<std::string> NodeThatIsGone(const std::filesystem::path& point_dir, int64_t nodes, int64_t wait_ns,
                                          const std::function<bool()>& give_up);

}  // namespace ridgeline
