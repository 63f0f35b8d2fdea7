#include "engine/ops/cpu/gemm_onednn.h"

#include <fmt/format.h>
#include <omp.h>

#include <array>
#include <string>

#include "base/error.h"
#include "engine/device/cpu/cpu_class.h"

namespace ridgeline::engine {
namespace {

using dnnl::memory;

[[noreturn]] void Throw(const char* what, dnnl_status_t status, const MatmulShape& s) {
  throw Error(ErrorKind::kInternal,
              fmt::format("oneDNN: {} failed for {}{} x {} x {} ({}): status {}", what, DTypeName(s.in),
                          s.trans_a ? " transposed" : "", s.m, s.n, s.k, static_cast<int>(status)));
}

const dnnl::engine& Engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

memory::data_type Type(DType dtype) { return dtype == DType::kBF16 ? memory::data_type::bf16 : memory::data_type::f32; }

memory::desc Stored(int64_t rows, int64_t cols, int64_t stride, bool transposed, DType dtype) {
  return {{rows, cols}, Type(dtype), transposed ? memory::dims{1, stride} : memory::dims{stride, 1}};
}

// oneDNN divides a product among the threads that OpenMP would use, when it is made and when it is run. Its order of
// summing depends on their number.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

// Keeps oneDNN to the requested class of CPU. Call it before oneDNN's first use.
void LimitOneDnn() {
  static const bool limited = [] {
    switch (ThisCpuClass()) {
      case CpuClass::kBaseline:
        return dnnl::set_max_cpu_isa(dnnl::cpu_isa::sse41);
      case CpuClass::kAvx2:
        return dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
      case CpuClass::kAvx512:
        return dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core);
      case CpuClass::kAvx512Bf16:
        return dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core_bf16);
      case CpuClass::kAmx:
        break;
    }
    return dnnl::status::success;
  }() == dnnl::status::success;
  (void)limited;
}

}  // namespace

Matmul::Matmul(const MatmulShape& s) {
  LimitOneDnn();
  const OneThread one;
  try {
    const memory::desc a = Stored(s.m, s.k, s.lda, s.trans_a, s.in);
    const memory::desc b = Stored(s.k, s.n, s.ldb, s.trans_b, s.in);
    const memory::desc c = Stored(s.m, s.n, s.ldc, false, s.out);
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (s.accumulate) {
      dnnl::post_ops post;
      post.append_sum(1);
      attr.set_post_ops(post);
    }
    memory::desc bias;
    if (s.has_bias) bias = Stored(1, s.n, s.n, false, s.bias);
#if DNNL_VERSION_MAJOR < 3
    const dnnl::matmul::desc desc = s.has_bias ? dnnl::matmul::desc(a, b, bias, c) : dnnl::matmul::desc(a, b, c);
    const dnnl::matmul::primitive_desc primitive_desc(desc, attr, Engine());
#else
    const auto primitive_desc = s.has_bias ? dnnl::matmul::primitive_desc(Engine(), a, b, bias, c, attr)
                                           : dnnl::matmul::primitive_desc(Engine(), a, b, c, attr);
#endif
    primitive_ = dnnl::matmul(primitive_desc);
    stream_ = dnnl::stream(Engine());
    const auto place = [](const memory::desc& md) { return memory(md, Engine(), DNNL_MEMORY_NONE); };
    a_ = place(a);
    b_ = place(b);
    c_ = place(c);
    if (s.has_bias) bias_ = place(bias);
    scratch_ = place(primitive_desc.scratchpad_desc());
    scratch_bytes_ = static_cast<int64_t>(primitive_desc.scratchpad_desc().get_size());
  } catch (const dnnl::error& error) {
    Throw("making a product", error.status, s);
  }
}

void Matmul::Run(const void* a, const void* b, void* c, const void* bias, void* scratch) {
  // Uses the C interface, because the C++ one would allocate a map of arguments at every run.
  const auto at = [](dnnl::memory& memory, const void* data) {
    dnnl_memory_set_data_handle(memory.get(), const_cast<void*>(data));
    return memory.get();
  };
  std::array<dnnl_exec_arg_t, 5> args = {{{DNNL_ARG_SRC, at(a_, a)},
                                          {DNNL_ARG_WEIGHTS, at(b_, b)},
                                          {DNNL_ARG_DST, at(c_, c)},
                                          {DNNL_ARG_SCRATCHPAD, at(scratch_, scratch)}}};
  int count = 4;
  if (bias != nullptr) args[static_cast<size_t>(count++)] = {DNNL_ARG_BIAS, at(bias_, bias)};
  const OneThread one;
  const dnnl_status_t status = dnnl_primitive_execute(primitive_.get(), stream_.get(), count, args.data());
  if (status != dnnl_success) {
    throw Error(ErrorKind::kInternal,
                fmt::format("oneDNN: running a product failed: status {}", static_cast<int>(status)));
  }
}

}  // namespace ridgeline::engine
