// The page of cpprunctl report, and what it leaves out.
#include "launcher/report/report_page.hpp"

#include <gmock/gmock.h>

#include "common/limits/tools.hpp"

namespace cpprun::ctl {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ReportPage, TextStaysText) {
  ReportPage page("job <b>");
  page.add("Log", "<script>alert(1)</script> & \x1b[31m", 1000);
  page.add("Nothing", "", 1000);
  const std::string html = page.html();
  EXPECT_THAT(html, HasSubstr("<h1>job &lt;b&gt;</h1>"));
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt; &amp; </pre>"));
  EXPECT_THAT(html, Not(HasSubstr("<script>")));
  EXPECT_THAT(html, Not(HasSubstr("Nothing")));
}

TEST(ReportPage, LongTextsKeepTheirEnd) {
  ReportPage page("job");
  page.add("Log", std::string(50, 'a') + "\nthe end\n", 20);
  EXPECT_THAT(page.html(), HasSubstr("... the beginning is left out\nthe end\n"));
  EXPECT_THAT(page.html(), Not(HasSubstr("aaa")));
}

TEST(ReportPage, HasALimit) {
  ReportPage page("job");
  for (int i = 0; i < 20; ++i) page.add("Log", std::string(1 << 20, 'a'), 1 << 20);
  EXPECT_LT(page.html().size(), limits::kReportBytes + 10'000);
  EXPECT_THAT(page.html(), HasSubstr("left out: the report is full"));
}

TEST(ReportPage, CommandsKeepNoSecrets) {
  EXPECT_EQ(masked_command({"cpprun", "--nnodes=2", "t.py", "--api-key=abc", "--token", "abc",
                            "--lr", "0.1", "HF_TOKEN=abc"}),
            "cpprun --nnodes=2 t.py --api-key=*** --token *** --lr 0.1 HF_TOKEN=***");
}

TEST(ReportPage, OnlyVariablesOfTheJobAreShown) {
  EXPECT_EQ(shown_variables({"PET_NNODES=2", "HOME=/root", "NCCL_DEBUG=INFO", "WANDB_API_KEY=x",
                             "CPPRUN_ADMIN_TOKEN=x", "CPPRUN_SECRET=x", "CUDA_VISIBLE_DEVICES=0"}),
            "CUDA_VISIBLE_DEVICES=0\nNCCL_DEBUG=INFO\nPET_NNODES=2");
}

}  // namespace
}  // namespace cpprun::ctl
