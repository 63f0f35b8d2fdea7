// The part of cuDNN's backend that attention uses. Descriptors store their settings. A plan computes its graph's
// operations one after another by their definitions. A value between two operations is rounded to its type and takes no
// memory. This fake accepts any graph, so it does not show that real cuDNN supports one.
#include "cuda_on_cpu/cudnn.h"

#include <cudnn_graph.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "cuda_on_cpu/machine.h"

namespace {

struct Descriptor;
using Shared = std::shared_ptr<Descriptor>;

struct Attribute {
  cudnnBackendAttributeType_t type;
  std::vector<std::byte> bytes;
  std::vector<Shared> descriptors;
};
struct Descriptor {
  cudnnBackendDescriptorType_t type;
  std::map<int, Attribute> attributes;
  bool finalized = false;
  bool fails = false;  // a proposal that cannot be built
  int64_t number = 0;  // of a proposal, and of its engine

  template <typename T>
  T Get(cudnnBackendAttributeName_t name, size_t index = 0) const {
    T value;
    std::memcpy(&value, attributes.at(name).bytes.data() + index * sizeof(T), sizeof(T));
    return value;
  }
  const Descriptor& Of(cudnnBackendAttributeName_t name) const { return *attributes.at(name).descriptors.at(0); }
};
Shared& Of(cudnnBackendDescriptor_t raw) { return *static_cast<Shared*>(raw); }

cuda_on_cpu::CudnnOptions options;
int64_t plans_built = 0;
int64_t plans_run = 0;

size_t BytesOf(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
      return 1;
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
      return 8;
    default:
      return 4;  // enumerators
  }
}

using Index = std::array<int64_t, 4>;

// Says where an operation finds a tensor's numbers: in memory, or here.
struct Tensor {
  explicit Tensor(const Descriptor& d)
      : id(d.Get<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID)),
        type(d.Get<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE)),
        is_virtual(d.Get<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL)) {
    for (size_t i = 0; i < 4; ++i) {
      dims[i] = d.Get<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS, i);
      strides[i] = d.Get<int64_t>(CUDNN_ATTR_TENSOR_STRIDES, i);
    }
  }
  int64_t id;
  cudnnDataType_t type;
  bool is_virtual;
  Index dims, strides;
};

class Evaluation {
 public:
  explicit Evaluation(std::map<int64_t, void*> data, std::map<int64_t, float> scalars)
      : data_(std::move(data)), scalars_(std::move(scalars)) {}

  void Run(const Descriptor& op) {
    switch (op.type) {
      case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
        return Matmul(Of(op, CUDNN_ATTR_OPERATION_MATMUL_ADESC), Of(op, CUDNN_ATTR_OPERATION_MATMUL_BDESC),
                      Of(op, CUDNN_ATTR_OPERATION_MATMUL_CDESC));
      case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        return Pointwise(op);
      case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
        return Reduce(op);
      default:
        return Transpose(Of(op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC), Of(op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC));
    }
  }

 private:
  static Tensor Of(const Descriptor& op, cudnnBackendAttributeName_t name) { return Tensor(op.Of(name)); }

  template <typename Fn>
  static void ForEach(const Index& dims, const Fn& fn) {
    Index i{};
    for (i[0] = 0; i[0] < dims[0]; ++i[0]) {
      for (i[1] = 0; i[1] < dims[1]; ++i[1]) {
        for (i[2] = 0; i[2] < dims[2]; ++i[2]) {
          for (i[3] = 0; i[3] < dims[3]; ++i[3]) fn(i);
        }
      }
    }
  }
  // Dimensions of 1 are repeated.
  float Load(const Tensor& t, const Index& at) const {
    if (const auto scalar = scalars_.find(t.id); scalar != scalars_.end()) return scalar->second;
    int64_t offset = 0;
    int64_t dense = 0;
    for (size_t i = 0; i < 4; ++i) {
      const int64_t index = t.dims[i] == 1 ? 0 : at[i];
      offset += index * t.strides[i];
      dense = dense * t.dims[i] + index;
    }
    if (t.is_virtual) return virtual_.at(t.id).at(static_cast<size_t>(dense));
    const void* data = data_.at(t.id);
    switch (t.type) {
      case CUDNN_DATA_BFLOAT16:
        return static_cast<const __nv_bfloat16*>(data)[offset];
      case CUDNN_DATA_HALF:
        return static_cast<const __half*>(data)[offset];
      default:
        return static_cast<const float*>(data)[offset];
    }
  }
  void Store(const Tensor& t, const Index& at, float value) {
    if (t.type == CUDNN_DATA_BFLOAT16) value = __bfloat162float(__float2bfloat16_rn(value));
    if (t.type == CUDNN_DATA_HALF) value = __half2float(__float2half_rn(value));
    int64_t offset = 0;
    int64_t dense = 0;
    for (size_t i = 0; i < 4; ++i) {
      offset += at[i] * t.strides[i];
      dense = dense * t.dims[i] + at[i];
    }
    if (t.is_virtual) {
      std::vector<float>& values = virtual_[t.id];
      values.resize(static_cast<size_t>(t.dims[0] * t.dims[1] * t.dims[2] * t.dims[3]));
      values[static_cast<size_t>(dense)] = value;
      return;
    }
    void* data = data_.at(t.id);
    switch (t.type) {
      case CUDNN_DATA_BFLOAT16:
        static_cast<__nv_bfloat16*>(data)[offset] = __float2bfloat16_rn(value);
        break;
      case CUDNN_DATA_HALF:
        static_cast<__half*>(data)[offset] = __float2half_rn(value);
        break;
      default:
        static_cast<float*>(data)[offset] = value;
    }
  }

  // Consecutive heads of the operand with more heads share a head of the other.
  void Matmul(const Tensor& a, const Tensor& b, const Tensor& c) {
    const int64_t heads = c.dims[1];
    ForEach(c.dims, [&](const Index& at) {
      double sum = 0;
      for (int64_t k = 0; k < a.dims[3]; ++k) {
        sum += double{Load(a, {at[0], at[1] / (heads / a.dims[1]), at[2], k})} *
               Load(b, {at[0], at[1] / (heads / b.dims[1]), k, at[3]});
      }
      // The blocks of a product whose result is stored in fp32 add to what lies there.
      const bool adds = !c.is_virtual && c.type == CUDNN_DATA_FLOAT;
      Store(c, at, static_cast<float>(adds ? sum + Load(c, at) : sum));
    });
  }
  void Pointwise(const Descriptor& op) {
    const Descriptor& math = op.Of(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    const auto mode = math.Get<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
    const Tensor x = Of(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
    const Tensor y = Of(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    const auto second = [&](const Index& at) { return Load(Of(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC), at); };
    ForEach(y.dims, [&](const Index& at) {
      if (mode == CUDNN_POINTWISE_GEN_INDEX) {
        const auto axis = static_cast<size_t>(math.Get<int64_t>(CUDNN_ATTR_POINTWISE_AXIS));
        return Store(y, at, static_cast<float>(at[axis]));
      }
      const float value = Load(x, at);
      switch (mode) {
        case CUDNN_POINTWISE_ADD:
          return Store(y, at, value + second(at));
        case CUDNN_POINTWISE_SUB:
          return Store(y, at, value - second(at));
        case CUDNN_POINTWISE_MUL:
          return Store(y, at, value * second(at));
        case CUDNN_POINTWISE_DIV:
          return Store(y, at, value / second(at));
        case CUDNN_POINTWISE_CMP_GE:
          return Store(y, at, value >= second(at) ? 1 : 0);
        case CUDNN_POINTWISE_BINARY_SELECT:
          return Store(y, at, Load(Of(op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC), at) != 0 ? value : second(at));
        case CUDNN_POINTWISE_EXP:
          return Store(y, at, std::exp(value));
        case CUDNN_POINTWISE_LOG:
          return Store(y, at, std::log(value));
        default:  // CUDNN_POINTWISE_IDENTITY
          return Store(y, at, value);
      }
    });
  }
  // y is coarser than x. Each element of y reduces the elements of x that map to it.
  void Reduce(const Descriptor& op) {
    const auto mode =
        op.Of(CUDNN_ATTR_OPERATION_REDUCTION_DESC).Get<cudnnReduceTensorOp_t>(CUDNN_ATTR_REDUCTION_OPERATOR);
    const Tensor x = Of(op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
    const Tensor y = Of(op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
    Index each;
    for (size_t i = 0; i < 4; ++i) each[i] = x.dims[i] / y.dims[i];
    ForEach(y.dims, [&](const Index& at) {
      double sum = 0;
      float largest = -std::numeric_limits<float>::infinity();
      ForEach(each, [&](const Index& inner) {
        Index from;
        for (size_t i = 0; i < 4; ++i) from[i] = at[i] * each[i] + inner[i];
        const float value = Load(x, from);
        sum += value;
        largest = std::max(largest, value);
      });
      Store(y, at, mode == CUDNN_REDUCE_TENSOR_MAX ? largest : static_cast<float>(sum));
    });
  }
  void Transpose(const Tensor& x, const Tensor& y) {
    ForEach(y.dims, [&](const Index& at) { Store(y, at, Load(x, {at[0], at[1], at[3], at[2]})); });
  }

  std::map<int64_t, void*> data_;
  std::map<int64_t, float> scalars_;
  std::map<int64_t, std::vector<float>> virtual_;
};

}  // namespace

namespace cuda_on_cpu {

void ResetCudnn(const CudnnOptions& new_options) {
  options = new_options;
  plans_built = plans_run = 0;
}
int64_t CudnnPlansBuilt() { return plans_built; }
int64_t CudnnPlansRun() { return plans_run; }

}  // namespace cuda_on_cpu

struct cudnnContext {
  cudaStream_t stream = nullptr;
};

extern "C" {

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = new cudnnContext;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
size_t cudnnGetVersion() { return CUDNN_VERSION; }
const char* cudnnGetErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_SUCCESS ? "CUDNN_STATUS_SUCCESS" : "a status of the fake";
}
void cudnnGetLastErrorString(char* message, size_t size) {
  if (size > 0) message[0] = '\0';
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* descriptor) {
  *descriptor = new Shared(std::make_shared<Descriptor>(Descriptor{type, {}}));
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  delete static_cast<Shared*>(descriptor);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  if (Of(descriptor)->finalized) return CUDNN_STATUS_BAD_PARAM;
  Attribute attribute{type, {}, {}};
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    for (int64_t i = 0; i < count; ++i) {
      const Shared& value = Of(static_cast<const cudnnBackendDescriptor_t*>(values)[i]);
      if (!value->finalized) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
      attribute.descriptors.push_back(value);
    }
  } else {
    const auto* bytes = static_cast<const std::byte*>(values);
    attribute.bytes.assign(bytes, bytes + static_cast<size_t>(count) * BytesOf(type));
  }
  Of(descriptor)->attributes[name] = std::move(attribute);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  Descriptor& d = *Of(descriptor);
  if (d.finalized) return CUDNN_STATUS_BAD_PARAM;
  if (d.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
    if (d.Of(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).fails) return CUDNN_STATUS_NOT_SUPPORTED;
    ++plans_built;
  }
  d.finalized = true;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t room, int64_t* count, void* values) {
  const Descriptor& d = *Of(descriptor);
  if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS && type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    *count = options.proposals;
    for (int64_t i = 0; i < std::min(room, *count); ++i) {
      Descriptor& proposal = *Of(static_cast<cudnnBackendDescriptor_t*>(values)[i]);
      proposal.attributes = d.attributes;
      proposal.finalized = true;
      proposal.fails = options.first_fails && i == 0;
      proposal.number = i;
    }
    return CUDNN_STATUS_SUCCESS;
  }
  if (name == CUDNN_ATTR_ENGINECFG_ENGINE && type == CUDNN_TYPE_BACKEND_DESCRIPTOR && room == 1) {
    *count = 1;
    Descriptor& engine = *Of(*static_cast<cudnnBackendDescriptor_t*>(values));
    engine.finalized = true;
    engine.number = d.number;
    return CUDNN_STATUS_SUCCESS;
  }
  if (name == CUDNN_ATTR_ENGINE_GLOBAL_INDEX && type == CUDNN_TYPE_INT64 && room == 1) {
    *count = 1;
    *static_cast<int64_t*>(values) = d.number;
    return CUDNN_STATUS_SUCCESS;
  }
  if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE && type == CUDNN_TYPE_NUMERICAL_NOTE && room >= 2) {
    auto* notes = static_cast<cudnnBackendNumericalNote_t*>(values);
    notes[0] = CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    *count = 1;
    if (options.first_is_nondeterministic && d.number == 0) notes[(*count)++] = CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
    return CUDNN_STATUS_SUCCESS;
  }
  if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE && type == CUDNN_TYPE_INT64 && room == 1) {
    *count = 1;
    *static_cast<int64_t*>(values) = options.workspace_bytes;
    return CUDNN_STATUS_SUCCESS;
  }
  if (name == CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION && type == CUDNN_TYPE_CHAR) {
    cudaDeviceProp properties;
    cudaGetDeviceProperties(&properties, 0);
    const std::string json = std::string("{\"deviceName\":\"") + properties.name +
                             "\",\"multiProcessorCount\":" + std::to_string(properties.multiProcessorCount) + "}";
    *count = static_cast<int64_t>(json.size());
    if (room > 0) std::memcpy(values, json.data(), std::min(json.size(), static_cast<size_t>(room)));
    return CUDNN_STATUS_SUCCESS;
  }
  return CUDNN_STATUS_NOT_SUPPORTED;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t variant_pack) {
  const Descriptor& pack = *Of(variant_pack);
  const Descriptor& config = Of(plan)->Of(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const std::vector<Shared> operations =
      config.Of(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH).attributes.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).descriptors;
  std::map<int64_t, void*> data;
  const size_t count = pack.attributes.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS).bytes.size() / sizeof(int64_t);
  for (size_t i = 0; i < count; ++i) {
    data[pack.Get<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, i)] =
        pack.Get<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, i);
  }
  std::map<int64_t, float> scalars;
  for (const Shared& operation : operations) {
    for (const auto& [name, attribute] : operation->attributes) {
      for (const Shared& tensor : attribute.descriptors) {
        if (tensor->type != CUDNN_BACKEND_TENSOR_DESCRIPTOR || tensor->Get<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL))
          continue;
        const auto id = tensor->Get<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
        if (data.count(id) == 0) return CUDNN_STATUS_BAD_PARAM;
        const bool by_value = tensor->Get<bool>(CUDNN_ATTR_TENSOR_IS_BY_VALUE);
        if (by_value) scalars[id] = *static_cast<const float*>(data[id]);
        if (!by_value && reinterpret_cast<uintptr_t>(data[id]) % 16 != 0) {
          return CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER;
        }
      }
    }
  }
  auto* workspace = pack.Get<std::byte*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  ++plans_run;
  double ms = 0;
  if (!options.ms.empty()) ms = options.ms[std::min(static_cast<size_t>(config.number), options.ms.size() - 1)];
  const cudaError_t error = cuda_on_cpu::Enqueue(handle->stream, [=, bytes = options.workspace_bytes] {
    cuda_on_cpu::PassTime(std::chrono::duration<double, std::milli>(ms));
    std::fill_n(workspace, bytes, std::byte{0xff});
    Evaluation evaluation(data, scalars);
    for (const Shared& operation : operations) evaluation.Run(*operation);
    return cudaSuccess;
  });
  return error == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
