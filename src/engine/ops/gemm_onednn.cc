#include "engine/ops/gemm_onednn.h"

#include <fmt/format.h>
#include <omp.h>

#include <array>
#include <string>

#include "base/error.h"

namespace ridgeline {
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

// A primitive is made for the number of threads OpenMP would use where it is made.
class ThreadLimit {
 public:
  explicit ThreadLimit(Threading threading) : before_(omp_get_max_threads()) {
    if (threading == Threading::kInside) omp_set_num_threads(1);
  }
  ~ThreadLimit() { omp_set_num_threads(before_); }
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  int before_;
};

}  // namespace

Matmul::Matmul(const MatmulShape& s, Threading threading) {
  const ThreadLimit limit(threading);
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
    const dnnl::matmul::desc desc = s.has_bias ? dnnl::matmul::desc(a, b, bias, c) : dnnl::matmul::desc(a, b, c);
    const dnnl::matmul::primitive_desc primitive_desc(desc, attr, Engine());
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
  // The C interface: the C++ one would allocate a map of arguments at every run.
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
  const dnnl_status_t status = dnnl_primitive_execute(primitive_.get(), stream_.get(), count, args.data());
  if (status != dnnl_success) {
    throw Error(ErrorKind::kInternal,
                fmt::format("oneDNN: running a product failed: status {}", static_cast<int>(status)));
  }
}

CpuIsa EffectiveCpuIsa() {
  const dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
  if (isa == dnnl_cpu_isa_avx512_core_amx) return CpuIsa::kAmx;
  if (isa == dnnl_cpu_isa_avx512_core_bf16) return CpuIsa::kAvx512Bf16;
  if (isa == dnnl_cpu_isa_avx512_core || isa == dnnl_cpu_isa_avx512_core_vnni) return CpuIsa::kAvx512;
  return CpuIsa::kOther;
}

void Sgemm(const MatmulShape& s, const float* a, const float* b, float* c) {
  const dnnl_status_t status = dnnl_sgemm(s.trans_a ? 'T' : 'N', s.trans_b ? 'T' : 'N', s.m, s.n, s.k, 1, a, s.lda, b,
                                          s.ldb, s.accumulate ? 1 : 0, c, s.ldc);
  if (status != dnnl_success) Throw("sgemm", status, s);
}

}  // namespace ridgeline
