#include "sagemaker/output.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

#include <fmt/format.h>

#include "ridgeline/limits.h"
#include "ridgeline/lines_file.h"

namespace ridgeline::sagemaker {
namespace {

using plugin::Failure;

constexpr size_t kBlockBytes = 512;
constexpr size_t kMostFiles = 4096;  // one a node
constexpr size_t kMostArchiveBytes = size_t{256} << 20;

Failure Damaged(const std::string& why) {
  return {Failure::Kind::kInfrastructure, "output.tar.gz cannot be used: " + why};
}

std::string Unpacked(std::string_view packed) {
  z_stream stream{};
  constexpr int kGzip = 16 + MAX_WBITS;
  if (::inflateInit2(&stream, kGzip) != Z_OK) throw Damaged("zlib cannot be started");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string text;
  std::array<char, 1 << 16> part{};
  int state = Z_OK;
  while (state == Z_OK && text.size() <= kMostArchiveBytes) {
    stream.next_out = reinterpret_cast<Bytef*>(part.data());
    stream.avail_out = part.size();
    state = ::inflate(&stream, Z_NO_FLUSH);
    text.append(part.data(), part.size() - stream.avail_out);
  }
  ::inflateEnd(&stream);
  if (state != Z_STREAM_END) throw Damaged(state == Z_OK ? "it holds too much" : "it is cut or damaged");
  return text;
}

bool IsLinesFile(std::string_view name) {
  name.remove_prefix(name.rfind('/') + 1);  // npos + 1 is 0
  return IsLinesFileName(name);
}

}  // namespace

void TakeLines(std::string_view text, plugin::JobOutput& to) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return;  // a line that was not complete when it was copied
    if (end <= kMaxJobLineBytes) to.TakeLine(std::string(text.substr(0, end)));
    text.remove_prefix(end + 1);
  }
}

std::string LinesOfArchive(std::string_view packed) {
  const std::string archive = Unpacked(packed);
  std::string lines;
  for (size_t at = 0; at + kBlockBytes <= archive.size();) {
    const char* const head = archive.data() + at;
    const std::string_view name(head, ::strnlen(head, 100));
    if (name.empty()) break;  // the blocks of zeros at the end
    uint64_t size = 0;
    const char* const digits = std::find_if(head + 124, head + 136, [](char c) { return c != ' '; });
    if (std::from_chars(digits, head + 136, size, 8).ptr == digits) throw Damaged("a file in it has no size");
    at += kBlockBytes;
    if (size > archive.size() - at) throw Damaged("a file in it is cut");
    const char type = head[156];
    if ((type == '0' || type == '\0') && IsLinesFile(name)) lines.append(archive, at, size);
    at += (size + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  }
  return lines;
}

void TakeCopies(const Record& record, Aws& aws, plugin::JobOutput& to) {
  const Place prefix = PlaceOf(record.lines_uri);
  for (const std::string& key : aws.List(prefix, kMostFiles)) {
    if (!IsLinesFile(key)) continue;
    const Answer answer = aws.Get({prefix.bucket, key});
    if (!answer.ok()) throw Aws::ToFailure(answer, fmt::format("read s3://{}/{}", prefix.bucket, key));
    TakeLines(answer.body, to);
  }
}

void TakeArchive(const Record& record, Aws& aws, plugin::JobOutput& to) {
  const Answer answer = aws.Get(PlaceOf(record.output_uri));
  if (answer.http_code == 404) return;
  if (!answer.ok()) throw Aws::ToFailure(answer, "read " + record.output_uri);
  TakeLines(LinesOfArchive(answer.body), to);
}

}  // namespace ridgeline::sagemaker
