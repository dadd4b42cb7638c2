#include "apps/page.h"

#include <gtest/gtest.h>

#include "apps/pages.h"
#include "apps/report_fields.h"

namespace paceline::apps {
namespace {

constexpr const char* kNasty = "</script><script>alert(1)</script>\"'&<!-- \x01 \xff";

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(Escaped, LeavesNothingThatHtmlReads) {
  EXPECT_EQ(escaped("a < b & \"c\" > 'd'"), "a &lt; b &amp; &quot;c&quot; &gt; &#39;d&#39;");
  EXPECT_EQ(escaped("x\x01y\xffz\n"), "x\xEF\xBF\xBDy\xEF\xBF\xBDz\n");
}

TEST(ScriptJson, CannotEndItsScript) {
  const std::string text = script_json(Json{{"name", kNasty}});
  EXPECT_EQ(text.find('<'), std::string::npos);
  const Json back = Json::parse(text);
  EXPECT_EQ(back["name"].get<std::string>().substr(0, 9), "</script>");
}

TEST(Page, TextFromOutsideOpensNoElement) {
  Page plain("title");
  Page nasty(kNasty);
  for (Page* page : {&plain, &nasty}) {
    const std::string text = page == &plain ? "text" : kNasty;
    page->subtitle(text);
    page->tile(text, text);
    page->heading(text);
    page->paragraph(text);
    page->table({{text}, {{text}}});
    page->figure(text, text, {text, text, {1}, {text}, {{text, {1}}}}, {{text}, {{text}}});
    page->details(text, {{text}, {{text}}});
  }
  const std::string a = plain.html();
  const std::string b = nasty.html();
  EXPECT_EQ(count(a, "<"), count(b, "<"));
  EXPECT_EQ(count(a, "<script"), count(b, "<script"));
  EXPECT_EQ(b.find("alert(1)</script>"), std::string::npos);
}

TEST(Page, AsksNobodyForAnything) {
  Page page("title");
  page.figure("plot", "note", {"x", "y", {1, 2}, {}, {{"line", {1, 2}}}}, {{"x"}, {{"1"}}});
  const std::string html = page.html();
  for (const char* part : {" src=", "@import", "fetch(", "XMLHttpRequest", "url("})
    EXPECT_EQ(html.find(part), std::string::npos) << part;
  EXPECT_NE(html.find("default-src 'none'"), std::string::npos);
  EXPECT_NE(html.find("\"y\":[1.0,2.0]"), std::string::npos);
}

// Rounds: 40 of 100 drafted nothing, 60 drafted one token and 20 of these a second one.
TEST(ModelledSpeed, CutsDeeperDraftsOff) {
  const Json arm{{"rounds", 100}, {"drafted_by_depth", {60, 20}}, {"accepted_by_depth", {50, 10}}};
  const auto speeds = modelled_speed(arm, {1, 1.1, 1.3}, /*draft_cost=*/0.05, 200);
  ASSERT_EQ(speeds.size(), 3u);
  EXPECT_DOUBLE_EQ(*speeds[0], 200);
  EXPECT_DOUBLE_EQ(*speeds[1], 200 * 1.5 / (1 + 0.6 * 0.15));
  EXPECT_DOUBLE_EQ(*speeds[2], 200 * 1.6 / (1 + 0.6 * 0.15 + 0.2 * 0.25));
}

TEST(ModelledSpeed, SaysNothingWithoutRounds) {
  EXPECT_TRUE(modelled_speed(Json{{"rounds", 0}}, {1, 1.1}, 0, 200).empty());
  EXPECT_TRUE(modelled_speed(Json{{"rounds", 9}}, {}, 0, 200).empty());
}

// A report may come from a file that somebody else wrote.
TEST(Pages, StandWhateverTheReportHolds) {
  const Json odd = Json::parse(R"([null, true, 7, -1e300, "text", [], {}, [[]], [null, "a", {}],
      [{"depth": 1e18, "joint_acceptance": {"a": 1}}], [{"depth": -3, "speedup": "fast"}],
      {"rows": [0, -1], "ms": "x", "sizes": [{"sequences": 1}]}])");
  for (const char* command :
       {"bench", "drift", "trace-compare", "parity", "generate", "train", "report"}) {
    const auto empty = page_of(Json{{"command", command}});
    ASSERT_TRUE(empty) << command;
    EXPECT_NE(empty->find("</html>"), std::string::npos);
    for (const Json& value : odd) {
      Json report{{"command", command}};
      for (const char* field : {"arms",
                                "rows",
                                "results",
                                "history",
                                "baseline",
                                "best",
                                "prompts",
                                "by_gap",
                                "gap_histogram",
                                "rank_of_reference",
                                "round_cost",
                                "watched",
                                "bandwidth",
                                "by_category",
                                "batch",
                                "accepted_by_depth",
                                "depths",
                                "configurations",
                                "runs",
                                "unfair",
                                "measures",
                                "noisy_because",
                                "arms_alike",
                                "cyclic",
                                "not_run",
                                "machine_load",
                                "threads",
                                "cpu",
                                "model",
                                "tokens_per_second",
                                "bytes_different",
                                "same_state"})
        report[field] = value;
      const auto page = page_of(report);
      ASSERT_TRUE(page) << command;
      EXPECT_NE(page->find("</html>"), std::string::npos) << command << value.dump();
    }
  }
  EXPECT_FALSE(page_of(Json{{"command", "inspect"}}));
}

TEST(Pages, AMachineThatChangedBetweenRunsIsNamed) {
  for (const Json& same : {Json(false), Json(true), Json(nullptr)}) {
    const auto page = page_of(Json{{"command", "report"}, {"same_state", same}});
    ASSERT_TRUE(page);
    EXPECT_EQ(page->find("machine changed") != std::string::npos, same == false) << same.dump();
  }
}

// Two arms of depth 8: the chain is a point over its depth, the tree a line with a name.
TEST(Pages, ATreeIsNoPointAmongTheChains) {
  const auto arm = [](int depth, const Json& tree, double rate) {
    return Json{{"depth", depth},      {"tree", tree},
                {"rounds", 10},        {"tokens_per_second", rate},
                {"drafter", "lookup"}, {"speedup", rate / 100}};
  };
  const auto page = page_of(Json{
      {"command", "bench"}, {"arms", {arm(0, "auto", 100), arm(8, "auto", 150), arm(8, 15, 222)}}});
  ASSERT_TRUE(page);
  EXPECT_NE(page->find("[100.0,null,null,null,null,null,null,null,150.0]"), std::string::npos);
  EXPECT_NE(page->find("depth 8, tree of 15"), std::string::npos);
}

TEST(ReportFields, MissingOnesCountAsNotMeasured) {
  const Json report{{"speed", 2.5}, {"list", {1, nullptr, "x"}}};
  EXPECT_EQ(shown(number(at(report, "speed")), 1), "2.5");
  EXPECT_EQ(shown(number(at(at(report, "speed"), "deeper")), 1), "-");
  const auto list = numbers(at(report, "list"));
  ASSERT_EQ(list.size(), 3u);
  EXPECT_TRUE(list[0] && !list[1] && !list[2]);
  EXPECT_EQ(counted(1234567), "1,234,567");
  EXPECT_EQ(counted(-1234), "-1,234");
  EXPECT_EQ(base_name("/models/tiny/"), "tiny");
  EXPECT_EQ(base_name("model.gguf"), "model.gguf");
}

}  // namespace
}  // namespace paceline::apps
