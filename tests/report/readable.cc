#include "tests/report/readable.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <vector>

#include "tests/report/xml.h"

namespace ridgeline::report {
namespace {

struct Box {
  double left, top, right, bottom;
  std::string text;
};

// The positions of text, assuming that characters are 0.55 em wide and 0.75 em high, like sans-serif digits and
// letters.
std::vector<Box> TextBoxes(const Elements& elements) {
  std::vector<Box> boxes;
  for (const auto& shape : elements.shapes) {
    if (shape.name != "text" || shape.text.empty()) continue;
    const double size = shape.Number("font-size");
    const double width = 0.55 * size * static_cast<double>(shape.text.size());
    const std::string anchor = shape.Attribute("text-anchor");
    const double left = shape.Number("x") - (anchor == "middle" ? width / 2 : anchor == "end" ? width : 0);
    boxes.push_back({left, shape.Number("y") - 0.75 * size, left + width, shape.Number("y"), shape.text});
  }
  return boxes;
}

}  // namespace

void ExpectReadable(const std::string& svg) {
  const Elements elements = ParseXml(svg);
  double width = 0;
  double height = 0;
  ASSERT_EQ(std::sscanf(svg.c_str() + svg.find("viewBox"), "viewBox=\"0 0 %lf %lf\"", &width, &height), 2);
  const std::vector<Box> boxes = TextBoxes(elements);
  for (size_t i = 0; i < boxes.size(); ++i) {
    const Box& a = boxes[i];
    EXPECT_TRUE(a.left >= 0 && a.right <= width && a.top >= 0 && a.bottom <= height) << a.text << " leaves the frame";
    for (size_t j = i + 1; j < boxes.size(); ++j) {
      const Box& b = boxes[j];
      EXPECT_FALSE(a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
          << a.text << " and " << b.text << " overlap";
    }
  }
  for (const auto& shape : elements.shapes) {
    if (shape.name != "rect" || shape.Attribute("x").empty()) continue;
    EXPECT_GE(shape.Number("x"), 0);
    EXPECT_GE(shape.Number("y"), 0);
    EXPECT_LE(shape.Number("x") + shape.Number("width"), width);
    EXPECT_LE(shape.Number("y") + shape.Number("height"), height);
  }
}

size_t Words(const std::string& text) {
  size_t words = 0;
  for (size_t i = 0; i < text.size(); ++i) words += text[i] != ' ' && (i == 0 || text[i - 1] == ' ') ? 1 : 0;
  return words;
}

}  // namespace ridgeline::report
