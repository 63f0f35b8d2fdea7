// Properties of products that only CUDA has: which are native and which emulated, what cuBLASLt is asked for, and how
// its failures are handled. gemm_test.cc has the properties of products on every device.
#ifdef RIDGELINE_CUDA_TESTS
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "engine/device/cuda/runtime.h"
#include "engine/ops/cuda/gemm_epilogue.h"
#include "engine/ops/cuda/kernels.h"
#include "engine/ops/elementwise.h"
#include "engine/ops/gemm.h"
#include "engine/ops/quantize.h"
#include "engine/precision/reference.h"
#include "tests/engine/device/cuda_machine.h"
#include "tests/engine/ops/op_runner.h"
#include "tests/engine/ops/product_error.h"

namespace ridgeline::engine {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kWorkspace = int64_t{1} << 20;  // as much as the fake uses

// A device with products on it. Every storage has memory of its own.
class Device {
 public:
  explicit Device(int compute_capability, uint64_t seed = 0) : trace({compute_capability, kWorkspace}) {
    cuda_machine::ResetMachine({.major = compute_capability / 10, .minor = compute_capability % 10, .seed = seed});
    CheckCuda(cudaStreamCreate(&stream_), "cudaStreamCreate");
    libraries_ = LibrariesHere();
  }
  ~Device() {
    cudaStreamDestroy(stream_);
    cudaFree(slab_);
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  Trace trace;

  Tensor Make(DType dtype, int64_t rows, int64_t cols, const std::vector<float>& values) {
    const Tensor tensor = trace.Persistent(dtype, rows, cols, Category::kData);
    for (const float value : values) {
      if (dtype == DType::kF32) Put(tensor, value);
      if (dtype == DType::kBF16) Put(tensor, Bf16Bits(value));
      if (dtype == DType::kF16) Put(tensor, ToFp16(value));
    }
    return tensor;
  }
  QuantizedTensor MakeQuantized(const ReferenceTensor& from) {
    const QuantizedTensor q = NewQuantized(trace, from.quantizer, from.outer, from.inner, Category::kData, true);
    const auto put = [&](const Tensor& to, const void* data, size_t bytes) {
      const auto* begin = static_cast<const std::byte*>(data);
      contents_[to.storage].assign(begin, begin + bytes);
    };
    put(q.codes, from.codes.data(), from.codes.size());
    if (q.scales.defined()) put(q.scales, from.scales.data(), from.scales.size());
    if (q.tensor_scale.defined()) put(q.tensor_scale, &from.tensor_scale, sizeof from.tensor_scale);
    return q;
  }

  void UseLibraries(const CublasLt& (*cublaslt)()) { libraries_.cublaslt = cublaslt; }
  // Returns how many other calls were done in products: with `with_epilogues`, those that the library supports.
  int Run(bool with_epilogues = false) {
    CudaKernelTable table;
    AddGemmCuda(table);
    AddElementwiseCuda(table);
    int64_t bytes = 0;
    for (const Storage& storage : trace.storages()) {
      offsets_.push_back(bytes);
      bytes += AlignUp(storage.bytes);
    }
    void* memory = nullptr;
    CheckCuda(cudaMalloc(&memory, static_cast<size_t>(bytes)), "cudaMalloc");
    slab_ = static_cast<std::byte*>(memory);
    for (const auto& [storage, contents] : contents_) {
      CheckCuda(cudaMemcpy(slab_ + offsets_[static_cast<size_t>(storage)], contents.data(), contents.size(),
                           cudaMemcpyHostToDevice),
                "cudaMemcpy");
    }
    const CudaRun run = {slab_, offsets_.data(), stream_, 132, 0, &libraries_};
    const std::vector<OpCall>& calls = trace.calls();
    std::vector<std::shared_ptr<KernelState>> states;
    for (const OpCall& call : calls) {
      const CudaKernel& kernel = table.at(call.op);
      states.push_back(kernel.prepare == nullptr ? nullptr : kernel.prepare(call, run));
    }
    std::vector<bool> is_done(calls.size());
    for (size_t i = 0; with_epilogues && i < calls.size(); ++i) {
      for (size_t other = 0; other < calls.size(); ++other) {
        const CudaEpilogue epilogue = GemmEpilogue(calls[i], calls[other], run);
        std::shared_ptr<KernelState> both = epilogue.work.empty() ? nullptr : epilogue.prepare();
        if (both == nullptr) continue;
        states[i] = std::move(both);
        is_done[other] = true;
      }
    }
    for (size_t i = 0; i < states.size(); ++i) {
      if (!is_done[i]) table.at(calls[i].op).run(calls[i], run, states[i].get());
    }
    CheckCuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    return static_cast<int>(std::ranges::count(is_done, true));
  }
  std::vector<std::byte> Bytes(const Tensor& tensor) const {
    std::vector<std::byte> bytes(static_cast<size_t>(trace.storages()[static_cast<size_t>(tensor.storage)].bytes));
    CheckCuda(cudaMemcpy(bytes.data(), slab_ + offsets_[static_cast<size_t>(tensor.storage)], bytes.size(),
                         cudaMemcpyDeviceToHost),
              "cudaMemcpy");
    return bytes;
  }
  float Read(const Tensor& tensor, int64_t row, int64_t col) const {
    const std::vector<std::byte> bytes = Bytes(tensor);
    const int64_t at = tensor.offset + row * tensor.row_stride + col;
    if (tensor.dtype == DType::kF32) return reinterpret_cast<const float*>(bytes.data())[at];
    const uint16_t bits = reinterpret_cast<const uint16_t*>(bytes.data())[at];
    return tensor.dtype == DType::kBF16 ? Bf16Value(bits) : FromFp16(bits);
  }

 private:
  template <typename T>
  void Put(const Tensor& tensor, T value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    std::vector<std::byte>& contents = contents_[tensor.storage];
    contents.insert(contents.end(), bytes, bytes + sizeof value);
  }

  CudaLibraries libraries_;
  cudaStream_t stream_ = nullptr;
  std::byte* slab_ = nullptr;
  std::vector<int64_t> offsets_;
  std::map<StorageId, std::vector<std::byte>> contents_;
};

constexpr Quantizer kE4M3{Format::kE4M3, Scaling::kCurrent};
constexpr Quantizer kE5M2{Format::kE5M2, Scaling::kDelayed};
constexpr Quantizer kMxfp8{Format::kE4M3, Scaling::kBlock32};
constexpr Quantizer kNvfp4{Format::kE2M1, Scaling::kBlock16};
constexpr Quantizer kNvfp4Weight{Format::kE2M1, Scaling::kBlock16x16};

enum class How { kNative, kEmulated };

struct QuantizedCase {
  const char* name;
  Quantizer a, b;
  int64_t m, n, k;
  DType out;
  bool accumulate, bias;
  int pad = 0;  // elements after each row of c
  DType bias_dtype = DType::kF32;
};

How HowRecorded(const Trace& trace) {
  const Tensor& a = trace.calls().back().operands(kQuantizedGemm).scratch.a;
  return a.defined() && a.dtype == DType::kBF16 ? How::kEmulated : How::kNative;
}

// Compares with double precision, like gemm_test.cc; returns c's bytes.
std::vector<std::byte> CheckQuantized(int compute_capability, const QuantizedCase& t, How how, uint64_t seed = 0) {
  SCOPED_TRACE(testing::Message() << t.name << " " << t.m << " x " << t.n << " x " << t.k << " on "
                                  << compute_capability << " seed " << seed);
  if (!CanBe(compute_capability)) return {};
  Device device(compute_capability, seed);
  const ReferenceTensor a = QuantizeReference(t.a, NormalFloats(t.m * t.k, 1), t.m, t.k, 32);
  const ReferenceTensor b = QuantizeReference(t.b, NormalFloats(t.n * t.k, 2, 0.02F), t.n, t.k, 512);
  const int64_t width = t.n + t.pad;
  const std::vector<float> before = NormalFloats(t.m * width, 3);
  const std::vector<float> bias = NormalFloats(t.n, 4);
  const Tensor c = device.Make(t.out, t.m, width, before).Cols(0, t.n);
  const Tensor bias_row = t.bias ? device.Make(t.bias_dtype, 1, t.n, bias) : Tensor{};
  Gemm(device.trace, device.MakeQuantized(a), device.MakeQuantized(b), c, t.accumulate, bias_row);
  EXPECT_EQ(HowRecorded(device.trace), how);
  device.Run();
  const std::vector<float> da = DequantizeReference(a);
  const std::vector<float> db = DequantizeReference(b);
  const int64_t terms = t.a.PaddedInner(t.k);
  const std::vector<std::byte> bytes = device.Bytes(c);
  for (int64_t row = 0; row < t.m; row += 3) {
    for (int64_t col = 0; col < t.n; ++col) {
      const double added_bias = t.bias ? Rounded(bias[static_cast<size_t>(col)], t.bias_dtype) : 0.0;
      const double added = t.accumulate ? Rounded(before[static_cast<size_t>(row * width + col)], t.out) : 0.0;
      double product = 0;
      double size = std::abs(added_bias + added);
      for (int64_t i = 0; i < terms; ++i) {
        const double term = static_cast<double>(da[static_cast<size_t>(row * terms + i)]) *
                            static_cast<double>(db[static_cast<size_t>(col * terms + i)]);
        product += term;
        size += std::abs(term);
      }
      const auto at = static_cast<size_t>(row * width + col);
      float got = 0;
      if (t.out == DType::kF32) {
        got = reinterpret_cast<const float*>(bytes.data())[at];
      } else {
        const uint16_t bits = reinterpret_cast<const uint16_t*>(bytes.data())[at];
        got = t.out == DType::kBF16 ? Bf16Value(bits) : FromFp16(bits);
      }
      const double rounding = RoundingError(t.out, 2, product, added, added_bias);
      EXPECT_NEAR(got, product + added + added_bias, rounding + kCodesSumError * size + 1e-6)
          << "row " << row << " col " << col;
      if (testing::Test::HasFailure()) return bytes;
    }
  }
  return bytes;
}

TEST(QuantizedGemmOnCuda, IsNativeWhereTensorCoresHaveItAndEmulatedElsewhere) {
  const auto check = [](const QuantizedCase& t, int first_native) {
    for (const int capability : {80, 89, 90, 100, 120}) {
      CheckQuantized(capability, t, capability >= first_native ? How::kNative : How::kEmulated);
      if (testing::Test::HasFailure()) return;
    }
  };
  constexpr int kNever = 1000;
  constexpr auto kF32 = DType::kF32;
  constexpr auto kBF16 = DType::kBF16;
  check({"e4m3 e4m3", kE4M3, kE4M3, 64, 96, 128, kBF16, false, true, 0, kBF16}, 89);
  check({"e5m2 e4m3", kE5M2, kE4M3, 64, 96, 128, kBF16, false, false}, 89);
  check({"e5m2 e4m3", kE5M2, kE4M3, 48, 32, 64, kF32, true, false}, 89);
  check({"e5m2 e5m2", kE5M2, kE5M2, 64, 96, 128, kBF16, false, false}, kNever);
  check({"mxfp8", kMxfp8, kMxfp8, 160, 144, 224, kBF16, false, true, 0, kBF16}, 100);
  check({"mxfp8", kMxfp8, kMxfp8, 160, 144, 300, kF32, true, false}, 100);
  check({"nvfp4", kNvfp4, kNvfp4Weight, 160, 96, 224, kBF16, false, true, 0, kBF16}, 100);
  check({"nvfp4", kNvfp4, kNvfp4, 64, 160, 192, kF32, true, false}, 100);
  // Sizes that tensor cores do not support.
  check({"e4m3 e4m3", kE4M3, kE4M3, 64, 97, 128, kBF16, false, true, 0, kBF16}, kNever);
  check({"e4m3 e5m2", kE4M3, kE5M2, 7, 5, 3, kF32, true, true, 0, kF32}, kNever);
  check({"mxfp8", kMxfp8, kMxfp8, 33, 50, 450, kBF16, true, true, 0, kBF16}, kNever);
  check({"nvfp4", kNvfp4, kNvfp4Weight, 64, 96, 208, kBF16, true, true, 0, kBF16}, kNever);
  check({"e4m3 e4m3", kE4M3, kE4M3, 64, 96, 128, kBF16, true, false, 3}, kNever);
  check({"e4m3 e4m3", kE4M3, kE4M3, 64, 96, 128, kBF16, true, false, 8}, 89);
}

// Our own kernel adds a bias of another dtype than the library's, and converts sums of bf16 numbers to fp16.
TEST(QuantizedGemmOnCuda, AddsWhatTheLibraryDoesNot) {
  for (const DType bias : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const DType out : {DType::kF32, DType::kBF16, DType::kF16}) {
      for (const bool accumulate : {false, true}) {
        CheckQuantized(90, {"e4m3 e4m3", kE4M3, kE4M3, 32, 48, 64, out, accumulate, true, 0, bias}, How::kNative);
        CheckQuantized(90, {"mxfp8", kMxfp8, kMxfp8, 32, 48, 64, out, accumulate, true, 5, bias}, How::kEmulated);
        CheckQuantized(100, {"nvfp4", kNvfp4, kNvfp4, 32, 64, 64, out, accumulate, true, 0, bias}, How::kNative);
      }
    }
  }
}

TEST(QuantizedGemmOnCuda, HasTheSameBitsInEveryOrder) {
  for (const auto& [capability, how] : {std::pair{90, How::kEmulated}, {100, How::kNative}}) {
    const QuantizedCase nvfp4 = {"nvfp4", kNvfp4, kNvfp4Weight, 320, 96, 1024, DType::kBF16, true, false};
    const std::vector<std::byte> first = CheckQuantized(capability, nvfp4, how);
    for (const uint64_t seed : {1, 2}) EXPECT_EQ(CheckQuantized(capability, nvfp4, how, seed), first);
  }
}

// If one scale served all 32 elements, only rows and blocks outside the first tiles would show it.
TEST(QuantizedGemmOnCuda, TilesScalesOfManyTiles) {
  CheckQuantized(100, {"mxfp8", kMxfp8, kMxfp8, 272, 400, 640, DType::kF32, false, false}, How::kNative);
  CheckQuantized(100, {"nvfp4", kNvfp4, kNvfp4, 416, 288, 480, DType::kF32, false, false}, How::kNative);
}

// Every dtype of a, c and the bias, with views at every offset.
TEST(GemmOnCuda, MultipliesEveryCombinationOfDTypes) {
  constexpr DType kDTypes[] = {DType::kF32, DType::kBF16, DType::kF16};
  constexpr int64_t kM = 9, kN = 20, kK = 33;
  for (const DType in : kDTypes) {
    for (const DType out : kDTypes) {
      for (const DType bias : kDTypes) {
        for (const int64_t offset : {0, 1, 4}) {
          SCOPED_TRACE(std::string(DTypeName(in)) + " to " + std::string(DTypeName(out)) + " bias " +
                       std::string(DTypeName(bias)) + " offset " + std::to_string(offset));
          Device device(CapabilityOr(90));
          const int64_t pad = 2 * offset;
          const std::vector<float> a = NormalFloats(kM * (kK + pad), 1);
          const std::vector<float> b = NormalFloats(kN * (kK + pad), 2);
          const std::vector<float> before = NormalFloats(kM * (kN + pad), 3);
          const std::vector<float> added = NormalFloats(kN, 4);
          const Tensor c = device.Make(out, kM, kN + pad, before).Cols(offset, kN);
          Gemm(device.trace, device.Make(in, kM, kK + pad, a).Cols(offset, kK), Trans::kNo,
               device.Make(in, kN, kK + pad, b).Cols(offset, kK), Trans::kYes, c, true,
               device.Make(bias, 1, kN, added));
          device.Run();
          for (const auto& [row, col] : {std::pair<int64_t, int64_t>{0, 0}, {kM - 1, kN - 1}, {4, 7}}) {
            double sum =
                static_cast<double>(Rounded(before[static_cast<size_t>(row * (kN + pad) + offset + col)], out)) +
                static_cast<double>(Rounded(added[static_cast<size_t>(col)], bias));
            for (int64_t i = 0; i < kK; ++i) {
              sum += static_cast<double>(Rounded(a[static_cast<size_t>(row * (kK + pad) + offset + i)], in)) *
                     static_cast<double>(Rounded(b[static_cast<size_t>(col * (kK + pad) + offset + i)], in));
            }
            EXPECT_NEAR(device.Read(c, row, col), sum, 1e-4 + (out == DType::kF32 ? 0 : std::abs(sum) / 128));
          }
        }
      }
    }
  }
}

// On a GPU this test shows whether its library defines GELU's gradient and the sums of an operand in the same way.
TEST(GemmOnCuda, EpiloguesAreThePassesInWhosePlaceTheyAre) {
  constexpr int64_t kTokens = 64, kIn = 48, kOut = 32;
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const bool in_out : {false, true}) {
      SCOPED_TRACE(std::string(DTypeName(dtype)) + (in_out ? " (in, out)" : " (out, in)"));
      std::vector<float> numbers[2];
      for (const bool with_epilogues : {false, true}) {
        Device device(CapabilityOr(90));
        const auto make = [&](DType of, int64_t rows, int64_t cols, uint32_t seed) {
          return device.Make(of, rows, cols, NormalFloats(rows * cols, seed));
        };
        const Tensor dy = make(dtype, kTokens, kOut, 1), x = make(dtype, kTokens, kIn, 2);
        const Tensor before = make(dtype, kTokens, kIn, 3), dx = make(dtype, kTokens, kIn, 4);
        const Tensor weight = in_out ? make(dtype, kIn, kOut, 5) : make(dtype, kOut, kIn, 5);
        const Tensor dweight = in_out ? make(dtype, kIn, kOut, 6) : make(dtype, kOut, kIn, 6);
        const Tensor dbias = make(dtype, 1, kOut, 7);
        Gemm(device.trace, dy, Trans::kNo, weight, in_out ? Trans::kYes : Trans::kNo, dx);
        GeluBackward(device.trace, dx, before, dx);
        ColumnSum(device.trace, dy, dbias, false);
        Gemm(device.trace, in_out ? x : dy, Trans::kYes, in_out ? dy : x, Trans::kNo, dweight);
        const int done = device.Run(with_epilogues);
        EXPECT_LE(done, with_epilogues ? 2 : 0);
        if (kEmulatedMachine) {
          EXPECT_EQ(done, with_epilogues ? 2 : 0);
        }
        for (const Tensor& t : {dx, dweight, dbias}) {
          for (int64_t row = 0; row < t.rows; row += 5) {
            for (int64_t col = 0; col < t.cols; col += 3) {
              numbers[with_epilogues].push_back(device.Read(t, row, col));
            }
          }
        }
      }
      const double rounding = dtype == DType::kF32 ? 1e-4 : 1.0 / 64;
      for (size_t i = 0; i < numbers[0].size(); ++i) {
        ASSERT_NEAR(numbers[1][i], numbers[0][i], rounding * (1 + std::abs(numbers[0][i]))) << i;
      }
    }
  }
}

#ifdef RIDGELINE_CUDA_ON_CPU

// A bias's gradient is the sum of fp32 numbers, even if the product rounds them.
TEST(GemmOnCuda, DoesNotAddUpWhatItRoundsToTf32) {
  constexpr int64_t kRows = 32, kColumns = 16;
  for (const bool tf32 : {false, true}) {
    Device device(90);
    const auto make = [&](int64_t rows, uint32_t seed) {
      return device.Make(DType::kF32, rows, kColumns, NormalFloats(rows * kColumns, seed));
    };
    const Tensor dy = make(kRows, 1);
    ColumnSum(device.trace, dy, make(1, 2), false);
    Gemm(device.trace, dy, Trans::kYes, make(kRows, 3), Trans::kNo, make(kColumns, 4), false, {}, tf32);
    EXPECT_EQ(device.Run(true), tf32 ? 0 : 1);
  }
}

// Records a product with a bias, and one whose codes and scales are converted to other forms.
void RecordOfEachKind(Device& device) {
  const Tensor x = device.Make(DType::kBF16, 16, 32, NormalFloats(16 * 32, 1));
  const Tensor w = device.Make(DType::kBF16, 48, 32, NormalFloats(48 * 32, 2));
  const Tensor bias = device.Make(DType::kBF16, 1, 48, NormalFloats(48, 3));
  const Tensor y = device.Make(DType::kBF16, 16, 48, NormalFloats(16 * 48, 4));
  Gemm(device.trace, x, Trans::kNo, w, Trans::kYes, y, false, bias);
  const QuantizedTensor q = device.MakeQuantized(QuantizeReference(kNvfp4, NormalFloats(32 * 64, 5), 32, 64));
  Gemm(device.trace, q, q, device.Make(DType::kF32, 32, 32, NormalFloats(32 * 32, 6)), true);
}

TEST(GemmOnCuda, SaysWhichCallFailedAndGivesEverythingBack) {
  LibraryWatch& watch = ThisWatch();
  std::map<std::string, int> failures;
  for (int call = 1;; ++call) {
    watch = {.fails_at = call};
    bool failed = false;
    {
      Device device(100);
      device.UseLibraries(WatchedCublasLt);
      RecordOfEachKind(device);
      try {
        device.Run();
      } catch (const Error& error) {
        failed = true;
        EXPECT_THAT(error.message(), HasSubstr("cuBLASLt: "));
        EXPECT_THAT(error.message(), HasSubstr("execution failed"));
        EXPECT_EQ(error.kind(), ErrorKind::kInfrastructure);
      }
    }
    EXPECT_EQ(watch.alive, 0) << watch.failed;
    EXPECT_EQ(cuda_machine::AllocatedBytes(), 0U);
    EXPECT_EQ(failed, !watch.failed.empty());
    if (!failed) break;
    ++failures[watch.failed];
  }
  EXPECT_GT(failures["cublasLtMatmulDescSetAttribute"], 10);
  EXPECT_EQ(failures["cublasLtMatmul"], 2);
  EXPECT_EQ(failures["cublasLtCreate"], 1);
  EXPECT_EQ(failures.size(), 8U);
}

TEST(GemmOnCuda, GivesEverythingBackWhereTheRuntimeFails) {
  LibraryWatch& watch = ThisWatch();
  watch = {};
  int64_t call = 1;
  for (bool failed = true; failed; ++call) {
    failed = false;
    {
      Device device(100);
      device.UseLibraries(WatchedCublasLt);
      RecordOfEachKind(device);
      cuda_machine::FailCall(cuda_machine::CallsMade() + call, cudaErrorUnknown);
      try {
        device.Run();
      } catch (const Error& error) {
        failed = true;
        EXPECT_EQ(error.kind(), ErrorKind::kInfrastructure) << error.message();
      }
    }
    EXPECT_EQ(watch.alive, 0) << call;
    EXPECT_EQ(cuda_machine::AllocatedBytes(), 0U) << call;
    EXPECT_EQ(cuda_machine::OpenHandles(), 0) << call;
  }
  EXPECT_GT(call, 15);
}

TEST(GemmOnCuda, SharesOneAlgorithmAmongProductsOfOneShape) {
  const auto calls = [](int products) {
    ThisWatch() = {};
    Device device(90);
    device.UseLibraries(WatchedCublasLt);
    const Tensor x = device.Make(DType::kBF16, 16, 32, NormalFloats(16 * 32, 1));
    const Tensor y = device.Make(DType::kBF16, 16, 16, NormalFloats(16 * 16, 2));
    for (int i = 0; i < products; ++i) Gemm(device.trace, x, Trans::kNo, x, Trans::kYes, y);
    device.Run();
    return ThisWatch().calls;
  };
  // Each call: three layouts, a description with two attributes, the product itself. Once: the handle, the preference
  // with its six attributes, and the heuristics.
  EXPECT_EQ(calls(5), 5 * 7 + 9);
}

#endif

// The trace of a described device contains its products' scratch; a CPU's trace has none.
TEST(GemmOnCuda, AsksForTheWorkspaceThatTheDeviceWants) {
  const auto bytes = [](const DeviceDescription& device) {
    Trace trace(device);
    const Tensor x = trace.Temporary(DType::kBF16, 16, 32, Category::kActivations);
    const Tensor y = trace.Temporary(DType::kBF16, 16, 16, Category::kActivations);
    const int64_t before = static_cast<int64_t>(trace.storages().size());
    Gemm(trace, x, Trans::kNo, x, Trans::kYes, y);
    int64_t sum = 0;
    for (size_t i = static_cast<size_t>(before); i < trace.storages().size(); ++i) sum += trace.storages()[i].bytes;
    return sum;
  };
  EXPECT_EQ(bytes({}), 0);
  EXPECT_EQ(bytes(CudaDevice(90)), 32 << 20);
  EXPECT_EQ(bytes(CudaDevice(80)), 4 << 20);
}

// This function says whether a device multiplies the codes itself.
TEST(GemmOnCuda, SaysWhichCodesItMultiplies) {
  const auto format = [](const Quantizer& quantizer) {
    Trace trace;
    const QuantizedTensor q = NewQuantized(trace, quantizer, 32, 32, Category::kData);
    Gemm(trace, q, q, trace.Temporary(DType::kF32, 32, 32, Category::kData));
    return trace.calls().back().cost.format;
  };
  EXPECT_EQ(format(kE4M3), MathFormat::kFp8);
  EXPECT_EQ(format(kMxfp8), MathFormat::kMxfp8);
  EXPECT_EQ(format(kNvfp4Weight), MathFormat::kFp4);
  Trace trace;
  const Tensor x = trace.Temporary(DType::kF32, 32, 32, Category::kData);
  for (const bool tf32 : {false, true}) {
    Gemm(trace, x, Trans::kNo, x, Trans::kYes, trace.Temporary(DType::kF32, 32, 32, Category::kData), false, {}, tf32);
    EXPECT_EQ(trace.calls().back().cost.format, tf32 ? MathFormat::kTF32 : MathFormat::kF32);
  }
}

TEST(GemmOnCuda, RefusesCodesThatWereRecordedForCpus) {
  Trace trace;
  const QuantizedTensor q = NewQuantized(trace, kE4M3, 16, 16, Category::kData);
  Gemm(trace, q, q, trace.Temporary(DType::kF32, 16, 16, Category::kData));
  CudaKernelTable table;
  AddGemmCuda(table);
  EXPECT_THROW(table.at(&kQuantizedGemm).prepare(trace.calls().back(), CudaRun{}), Error);
}

}  // namespace
}  // namespace ridgeline::engine
#endif
