#include "engine/ops/cuda/cudnn_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "engine/device/cuda/runtime.h"

namespace ridgeline::engine {

CudnnDescriptor::CudnnDescriptor(const Cudnn& cudnn, cudnnBackendDescriptorType_t type) : cudnn_(&cudnn) {
  cudnnBackendDescriptor_t raw = nullptr;
  CheckCudnn(cudnn, cudnn.cudnnBackendCreateDescriptor(type, &raw), "creating a descriptor");
  raw_ = {raw, [destroy = cudnn.cudnnBackendDestroyDescriptor](void* descriptor) { destroy(descriptor); }};
}

CudnnDescriptor& CudnnDescriptor::SetRaw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                         size_t count, const void* values) {
  CheckCudnn(*cudnn_, cudnn_->cudnnBackendSetAttribute(raw_.get(), name, type, static_cast<int64_t>(count), values),
             "setting an attribute");
  return *this;
}
CudnnDescriptor& CudnnDescriptor::Set(cudnnBackendAttributeName_t name, int64_t value) {
  return SetRaw(name, CUDNN_TYPE_INT64, 1, &value);
}
CudnnDescriptor& CudnnDescriptor::Set(cudnnBackendAttributeName_t name, bool value) {
  return SetRaw(name, CUDNN_TYPE_BOOLEAN, 1, &value);
}
CudnnDescriptor& CudnnDescriptor::Set(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
  return SetRaw(name, CUDNN_TYPE_DATA_TYPE, 1, &value);
}
CudnnDescriptor& CudnnDescriptor::Set(cudnnBackendAttributeName_t name, cudnnPointwiseMode_t value) {
  return SetRaw(name, CUDNN_TYPE_POINTWISE_MODE, 1, &value);
}
CudnnDescriptor& CudnnDescriptor::Set(cudnnBackendAttributeName_t name, cudnnReduceTensorOp_t value) {
  return SetRaw(name, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &value);
}
CudnnDescriptor& CudnnDescriptor::Set(cudnnBackendAttributeName_t name, cudnnBackendHeurMode_t value) {
  return SetRaw(name, CUDNN_TYPE_HEUR_MODE, 1, &value);
}
CudnnDescriptor& CudnnDescriptor::Set(cudnnBackendAttributeName_t name, cudnnHandle_t value) {
  return SetRaw(name, CUDNN_TYPE_HANDLE, 1, &value);
}
CudnnDescriptor& CudnnDescriptor::Set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value) {
  const cudnnBackendDescriptor_t raw = value.raw();
  return SetRaw(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
}
CudnnDescriptor& CudnnDescriptor::Set(cudnnBackendAttributeName_t name, std::string_view text) {
  return SetRaw(name, CUDNN_TYPE_CHAR, text.size(), text.data());
}
CudnnDescriptor& CudnnDescriptor::Set(cudnnBackendAttributeName_t name, std::span<const int64_t> values) {
  return SetRaw(name, CUDNN_TYPE_INT64, values.size(), values.data());
}
CudnnDescriptor& CudnnDescriptor::Set(cudnnBackendAttributeName_t name, std::span<void* const> pointers) {
  return SetRaw(name, CUDNN_TYPE_VOID_PTR, pointers.size(), pointers.data());
}
CudnnDescriptor& CudnnDescriptor::Set(cudnnBackendAttributeName_t name, const std::vector<CudnnDescriptor>& values) {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const CudnnDescriptor& value : values) raw.push_back(value.raw());
  return SetRaw(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, raw.size(), raw.data());
}
CudnnDescriptor& CudnnDescriptor::Finalize() {
  CheckCudnn(*cudnn_, TryToFinalize(), "finalizing a descriptor");
  return *this;
}
cudnnStatus_t CudnnDescriptor::TryToFinalize() { return cudnn_->cudnnBackendFinalize(raw_.get()); }

int64_t CudnnDescriptor::Int(cudnnBackendAttributeName_t name) const {
  int64_t count = 0;
  int64_t value = 0;
  CheckCudnn(*cudnn_, cudnn_->cudnnBackendGetAttribute(raw_.get(), name, CUDNN_TYPE_INT64, 1, &count, &value),
             "reading an attribute");
  return value;
}
std::string CudnnDescriptor::Text(cudnnBackendAttributeName_t name) const {
  std::string text;
  int64_t length = 0;
  const auto read = [&](char* to) {
    CheckCudnn(*cudnn_,
               cudnn_->cudnnBackendGetAttribute(raw_.get(), name, CUDNN_TYPE_CHAR, static_cast<int64_t>(text.size()),
                                                &length, to),
               "reading a text");
  };
  read(nullptr);  // without a buffer, it returns the length
  text.resize(static_cast<size_t>(length));
  read(text.data());
  if (const size_t end = text.find('\0'); end != text.npos) text.resize(end);
  return text;
}
bool CudnnDescriptor::HasNote(cudnnBackendNumericalNote_t note) const {
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
  int64_t count = 0;
  CheckCudnn(*cudnn_,
             cudnn_->cudnnBackendGetAttribute(raw_.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                              std::ssize(notes), &count, notes.data()),
             "reading an engine's notes");
  const auto end = notes.begin() + std::min<int64_t>(count, std::ssize(notes));
  return std::find(notes.begin(), end, note) != end;
}
std::vector<CudnnDescriptor> CudnnDescriptor::Descriptors(cudnnBackendAttributeName_t name,
                                                          cudnnBackendDescriptorType_t type, int64_t most) const {
  std::vector<CudnnDescriptor> descriptors;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int64_t i = 0; i < most; ++i) raw.push_back(descriptors.emplace_back(*cudnn_, type).raw());
  int64_t count = 0;
  CheckCudnn(
      *cudnn_,
      cudnn_->cudnnBackendGetAttribute(raw_.get(), name, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, &count, raw.data()),
      "reading descriptors");
  descriptors.erase(descriptors.begin() + std::min(most, count), descriptors.end());
  return descriptors;
}

CudnnTensor CudnnGraph::Add(int64_t id, cudnnDataType_t type, const CudnnDims& dims, const CudnnDims& strides,
                            bool is_virtual, bool by_value) {
  CudnnDescriptor descriptor(cudnn_, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  descriptor.Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id)
      .Set(CUDNN_ATTR_TENSOR_DATA_TYPE, type)
      .Set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span<const int64_t>(dims))
      .Set(CUDNN_ATTR_TENSOR_STRIDES, std::span<const int64_t>(strides))
      .Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, int64_t{16})
      .Set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, is_virtual)
      .Set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, by_value)
      .Finalize();
  return {descriptor, dims, strides};
}
CudnnTensor CudnnGraph::Stored(int64_t id, cudnnDataType_t type, const CudnnDims& dims, const CudnnDims& strides) {
  return Add(id, type, dims, strides, false, false);
}
CudnnTensor CudnnGraph::Scalar(int64_t id) {
  return Add(id, CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1}, false, true);
}
CudnnTensor CudnnGraph::Virtual(cudnnDataType_t type, const CudnnDims& dims, const CudnnDims& strides) {
  return Add(next_virtual_++, type, dims, strides, true, false);
}

void CudnnGraph::Matmul(const CudnnTensor& a, const CudnnTensor& b, const CudnnTensor& c) {
  CudnnDescriptor math(cudnn_, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  math.Set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT).Finalize();
  operations_.emplace_back(cudnn_, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
      .Set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a.descriptor)
      .Set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b.descriptor)
      .Set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, c.descriptor)
      .Set(CUDNN_ATTR_OPERATION_MATMUL_DESC, math)
      .Finalize();
}

CudnnDescriptor CudnnGraph::Math(cudnnPointwiseMode_t mode, cudnnDataType_t type) const {
  CudnnDescriptor math(cudnn_, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  math.Set(CUDNN_ATTR_POINTWISE_MODE, mode).Set(CUDNN_ATTR_POINTWISE_MATH_PREC, type);
  return math;
}
void CudnnGraph::Unary(cudnnPointwiseMode_t mode, const CudnnTensor& x, const CudnnTensor& y) {
  operations_.emplace_back(cudnn_, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, Math(mode).Finalize())
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x.descriptor)
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y.descriptor)
      .Finalize();
}
CudnnTensor CudnnGraph::Unary(cudnnPointwiseMode_t mode, const CudnnTensor& x) {
  CudnnTensor y = Virtual(CUDNN_DATA_FLOAT, x.dims);
  Unary(mode, x, y);
  return y;
}
void CudnnGraph::Binary(cudnnPointwiseMode_t mode, const CudnnTensor& x, const CudnnTensor& b, const CudnnTensor& y) {
  operations_.emplace_back(cudnn_, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, Math(mode).Finalize())
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x.descriptor)
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b.descriptor)
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y.descriptor)
      .Finalize();
}
CudnnTensor CudnnGraph::Binary(cudnnPointwiseMode_t mode, const CudnnTensor& x, const CudnnTensor& b,
                               cudnnDataType_t type) {
  CudnnTensor y = Virtual(type, x.dims);
  Binary(mode, x, b, y);
  return y;
}

void CudnnGraph::Reduce(cudnnReduceTensorOp_t mode, const CudnnTensor& x, const CudnnTensor& y) {
  CudnnDescriptor math(cudnn_, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  math.Set(CUDNN_ATTR_REDUCTION_OPERATOR, mode).Set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT).Finalize();
  operations_.emplace_back(cudnn_, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)
      .Set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, math)
      .Set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x.descriptor)
      .Set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y.descriptor)
      .Finalize();
}

CudnnTensor CudnnGraph::Transposed(const CudnnTensor& x, cudnnDataType_t type) {
  CudnnTensor y = Virtual(type, {x.dims[0], x.dims[1], x.dims[3], x.dims[2]},
                          {x.strides[0], x.strides[1], x.strides[3], x.strides[2]});
  operations_.emplace_back(cudnn_, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR)
      .Set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x.descriptor)
      .Set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y.descriptor)
      .Finalize();
  return y;
}

CudnnTensor CudnnGraph::Index(const CudnnTensor& x, int64_t axis) {
  CudnnTensor index = Virtual(CUDNN_DATA_INT32, x.dims);
  operations_.emplace_back(cudnn_, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
           Math(CUDNN_POINTWISE_GEN_INDEX).Set(CUDNN_ATTR_POINTWISE_AXIS, axis).Finalize())
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x.descriptor)
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, index.descriptor)
      .Finalize();
  return index;
}
CudnnTensor CudnnGraph::LowerTriangle(const CudnnTensor& x, const CudnnTensor& otherwise) {
  const CudnnTensor row = Index(x, 2);
  const CudnnTensor col = Index(x, 3);
  const CudnnTensor inside = Virtual(CUDNN_DATA_BOOLEAN, x.dims);
  operations_.emplace_back(cudnn_, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, Math(CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN).Finalize())
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, row.descriptor)
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, col.descriptor)
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, inside.descriptor)
      .Finalize();
  CudnnTensor y = Virtual(CUDNN_DATA_FLOAT, x.dims);
  operations_.emplace_back(cudnn_, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, Math(CUDNN_POINTWISE_BINARY_SELECT).Finalize())
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x.descriptor)
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, otherwise.descriptor)
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, inside.descriptor)
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y.descriptor)
      .Finalize();
  return y;
}

CudnnDevice::CudnnDevice(const Cudnn& cudnn, std::string_view json)
    : described_(CudnnDescriptor(cudnn, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR)
                     .Set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, json)
                     .Finalize()) {}

std::string CudnnDevice::Describe(const Cudnn& cudnn) const {
  CudnnDescriptor device = described_ ? *described_
                                      : CudnnDescriptor(cudnn, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR)
                                            .Set(CUDNN_ATTR_DEVICEPROP_HANDLE, handle_)
                                            .Finalize();
  return device.Text(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
}

CudnnPlan::CudnnPlan(CudnnDescriptor plan, const CudnnDescriptor& engine)
    : plan_(std::move(plan)),
      workspace_bytes_(plan_.Int(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)),
      engine_(engine.Int(CUDNN_ATTR_ENGINE_GLOBAL_INDEX)),
      repeats_(!engine.HasNote(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) {}

std::vector<CudnnPlan> CudnnPlan::Make(const CudnnGraph& graph, const CudnnDevice& device, const Needs& needs,
                                       std::string& why) {
  constexpr int64_t kMostProposals = 16;  // it makes at most four for attention
  const Cudnn& cudnn = graph.cudnn();
  cudnnStatus_t machines = CUDNN_STATUS_SUCCESS;
  const auto add = [&](const std::string& words) { why += (why.empty() ? "" : "; ") + words; };
  const auto refused = [&](cudnnStatus_t status) {
    if (!device.described_) CheckLost();  // a lost device refuses everything, with whichever status
    if (IsOfMachine(status)) machines = status;
    add(CudnnWords(cudnn, status));
  };
  why.clear();
  CudnnDescriptor whole(cudnn, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  whole.Set(CUDNN_ATTR_OPERATIONGRAPH_OPS, graph.operations());
  if (!device.described_) whole.Set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, device.handle_);
  CudnnDescriptor heuristic(cudnn, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  if (device.described_) heuristic.Set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *device.described_);
  cudnnStatus_t status = whole.TryToFinalize();
  if (status == CUDNN_STATUS_SUCCESS) {
    heuristic.Set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, whole).Set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_HEUR_MODE_A);
    status = heuristic.TryToFinalize();
  }
  if (status != CUDNN_STATUS_SUCCESS) {
    refused(status);
    CheckCudnn(cudnn, machines, "making a plan");
    return {};
  }

  std::vector<CudnnPlan> plans;
  for (const CudnnDescriptor& proposal :
       heuristic.Descriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, kMostProposals)) {
    if (plans.size() == needs.most_plans) break;
    CudnnDescriptor made(cudnn, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    made.Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, proposal);
    if (device.described_) {
      made.Set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *device.described_);
    } else {
      made.Set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, device.handle_);
    }
    if (const cudnnStatus_t built = made.TryToFinalize(); built != CUDNN_STATUS_SUCCESS) {
      refused(built);
      continue;
    }
    const auto engines = proposal.Descriptors(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
    CudnnPlan plan(made, engines.at(0));
    if (plan.workspace_bytes() > needs.most_workspace_bytes) {
      add(fmt::format("a plan wants {} bytes and may have {}", plan.workspace_bytes(), needs.most_workspace_bytes));
    } else if (needs.repeats && !plan.repeats()) {
      add(fmt::format("cuDNN's engine {} gives other bits at every run", plan.engine()));
    } else {
      plans.push_back(std::move(plan));
    }
  }
  if (!plans.empty()) return plans;
  CheckCudnn(cudnn, machines, "building a plan");
  if (why.empty()) why = "cuDNN proposes nothing";
  return plans;
}

void CudnnPlan::Run(cudnnHandle_t handle, std::span<const int64_t> ids, std::span<void* const> data,
                    void* workspace) const {
  const Cudnn& cudnn = plan_.cudnn();
  CudnnDescriptor pack(cudnn, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids)
      .Set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, data)
      .Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, std::span<void* const>(&workspace, 1))
      .Finalize();
  CheckCudnn(cudnn, cudnn.cudnnBackendExecute(handle, plan_.raw(), pack.raw()), "starting a plan");
}

}  // namespace ridgeline::engine
