// Graphs of cuDNN's backend API, and plans that compute them. Uses only the API, because its header of C++ wrappers
// takes a minute to compile.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/device/cuda/cudnn.h"

namespace ridgeline::engine {

// A descriptor of the backend: created, given attributes, finalized. Copies share it.
class CudnnDescriptor {
 public:
  CudnnDescriptor(const Cudnn& cudnn, cudnnBackendDescriptorType_t type);

  CudnnDescriptor& Set(cudnnBackendAttributeName_t name, int64_t value);
  CudnnDescriptor& Set(cudnnBackendAttributeName_t name, bool value);
  CudnnDescriptor& Set(cudnnBackendAttributeName_t name, cudnnDataType_t value);
  CudnnDescriptor& Set(cudnnBackendAttributeName_t name, cudnnPointwiseMode_t value);
  CudnnDescriptor& Set(cudnnBackendAttributeName_t name, cudnnReduceTensorOp_t value);
  CudnnDescriptor& Set(cudnnBackendAttributeName_t name, cudnnBackendHeurMode_t value);
  CudnnDescriptor& Set(cudnnBackendAttributeName_t name, cudnnHandle_t value);
  CudnnDescriptor& Set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value);
  CudnnDescriptor& Set(cudnnBackendAttributeName_t name, std::string_view text);
  CudnnDescriptor& Set(cudnnBackendAttributeName_t name, std::span<const int64_t> values);
  CudnnDescriptor& Set(cudnnBackendAttributeName_t name, std::span<void* const> pointers);
  CudnnDescriptor& Set(cudnnBackendAttributeName_t name, const std::vector<CudnnDescriptor>& values);
  CudnnDescriptor& Finalize();
  // Returns the status, for requests that cuDNN may refuse.
  cudnnStatus_t TryToFinalize();

  int64_t Int(cudnnBackendAttributeName_t name) const;
  std::string Text(cudnnBackendAttributeName_t name) const;
  bool HasNote(cudnnBackendNumericalNote_t note) const;  // for an engine
  // At most `most` descriptors, all of one type.
  std::vector<CudnnDescriptor> Descriptors(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
                                           int64_t most) const;
  cudnnBackendDescriptor_t raw() const { return raw_.get(); }
  const Cudnn& cudnn() const { return *cudnn_; }

 private:
  CudnnDescriptor& SetRaw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, size_t count,
                          const void* values);

  const Cudnn* cudnn_;
  std::shared_ptr<void> raw_;
};

using CudnnDims = std::array<int64_t, 4>;
// Strides without gaps; the last dimension is contiguous.
constexpr CudnnDims CudnnPacked(const CudnnDims& d) { return {d[1] * d[2] * d[3], d[2] * d[3], d[3], 1}; }

struct CudnnTensor {
  CudnnDescriptor descriptor;
  CudnnDims dims, strides;
};

// Operations in order. Tensors between them are virtual and take no memory.
class CudnnGraph {
 public:
  explicit CudnnGraph(const Cudnn& cudnn) : cudnn_(cudnn) {}

  // A tensor in memory, whose rows are at multiples of 16 bytes, with its number in CudnnPlan::Run.
  CudnnTensor Stored(int64_t id, cudnnDataType_t type, const CudnnDims& dims, const CudnnDims& strides);
  // A single fp32 number in the host's memory.
  CudnnTensor Scalar(int64_t id);
  CudnnTensor Virtual(cudnnDataType_t type, const CudnnDims& dims) { return Virtual(type, dims, CudnnPacked(dims)); }
  CudnnTensor Virtual(cudnnDataType_t type, const CudnnDims& dims, const CudnnDims& strides);

  // c = a b, over the last two dimensions, summed in fp32.
  void Matmul(const CudnnTensor& a, const CudnnTensor& b, const CudnnTensor& c);
  // y = mode(x), in fp32.
  void Unary(cudnnPointwiseMode_t mode, const CudnnTensor& x, const CudnnTensor& y);
  CudnnTensor Unary(cudnnPointwiseMode_t mode, const CudnnTensor& x);
  // y = mode(x, b), in fp32.
  void Binary(cudnnPointwiseMode_t mode, const CudnnTensor& x, const CudnnTensor& b, const CudnnTensor& y);
  CudnnTensor Binary(cudnnPointwiseMode_t mode, const CudnnTensor& x, const CudnnTensor& b,
                     cudnnDataType_t type = CUDNN_DATA_FLOAT);
  // Reduces the dimensions in which y has size 1, or a smaller size than x.
  void Reduce(cudnnReduceTensorOp_t mode, const CudnnTensor& x, const CudnnTensor& y);
  // The last two dimensions exchanged.
  CudnnTensor Transposed(const CudnnTensor& x, cudnnDataType_t type);
  // x if its row is at least its column, otherwise `otherwise`.
  CudnnTensor LowerTriangle(const CudnnTensor& x, const CudnnTensor& otherwise);

  const std::vector<CudnnDescriptor>& operations() const { return operations_; }
  const Cudnn& cudnn() const { return cudnn_; }

 private:
  CudnnTensor Add(int64_t id, cudnnDataType_t type, const CudnnDims& dims, const CudnnDims& strides, bool is_virtual,
                  bool by_value);
  // An index along one dimension, for every element of x.
  CudnnTensor Index(const CudnnTensor& x, int64_t axis);
  CudnnDescriptor Math(cudnnPointwiseMode_t mode, cudnnDataType_t type = CUDNN_DATA_FLOAT) const;

  const Cudnn& cudnn_;
  std::vector<CudnnDescriptor> operations_;
  int64_t next_virtual_ = 1000;
};

// The device of a plan: either a real one, by its handle, or one described in cuDNN's JSON
// (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION). The latter's plans report their requirements and cannot run.
class CudnnDevice {
 public:
  explicit CudnnDevice(cudnnHandle_t handle) : handle_(handle) {}
  CudnnDevice(const Cudnn& cudnn, std::string_view json);

  // In cuDNN's JSON.
  std::string Describe(const Cudnn& cudnn) const;

 private:
  friend class CudnnPlan;
  cudnnHandle_t handle_ = nullptr;
  std::optional<CudnnDescriptor> described_;
};

class CudnnPlan {
 public:
  struct Needs {
    int64_t most_workspace_bytes = 0;
    bool repeats = false;  // required: cuDNN does not note that the engine's results differ from run to run
    size_t most_plans = 1;
  };
  // The first of cuDNN's proposals that can be built and meet the needs. None if cuDNN has none; `why` gives its reason
  // for each that it refused. A plan takes seconds if kernels are compiled. Throws as CheckCudnn if there is none
  // because the machine fails, rather than because cuDNN refuses the graph: other kernels instead would be slower, and
  // nobody would know why.
  static std::vector<CudnnPlan> Make(const CudnnGraph& graph, const CudnnDevice& device, const Needs& needs,
                                     std::string& why);

  int64_t workspace_bytes() const { return workspace_bytes_; }
  int64_t engine() const { return engine_; }  // cuDNN's number of the engine
  bool repeats() const { return repeats_; }   // as in Needs
  // data[i] is the tensor ids[i]. Queued on the handle's stream. Scalars are read at once.
  void Run(cudnnHandle_t handle, std::span<const int64_t> ids, std::span<void* const> data, void* workspace) const;

 private:
  CudnnPlan(CudnnDescriptor plan, const CudnnDescriptor& engine);

  CudnnDescriptor plan_;
  int64_t workspace_bytes_;
  int64_t engine_;
  bool repeats_;
};

}  // namespace ridgeline::engine
