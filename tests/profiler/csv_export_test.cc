// What we write as CSV, our own importer and other tools must read back: row for row.
#include "profiler/csv_export.h"

#include <gtest/gtest.h>

#include "profiler/csv_import.h"
#include "tests/profiler/testing.h"

namespace reprise::profiler {
namespace {

TEST(ToEventCsv, WritesOneRowAnEvent) {
  EXPECT_EQ(ToEventCsv({Alloc(0, 4096, 7), Mark(2), Free(0, 8)}),
            "event,id,bytes,stream\nalloc,0,4096,7\nmark,2,,\nfree,0,,8\n");
}

TEST(ToEventCsv, HasAColumnForAlignmentsWhereThereAreAny) {
  const std::vector<Event> events{Aligned(0, 4096, 64), Alloc(1, 8, 7), Mark(2), Free(0, 8)};
  EXPECT_EQ(ToEventCsv(events),
            "event,id,bytes,stream,alignment\nalloc,0,4096,0,64\nalloc,1,8,7,\nmark,2,,,\nfree,0,,8,\n");
  EXPECT_EQ(*ParseEventCsv(ToEventCsv(events), "e"), events);
}

TEST(ToEventCsv, IsReadBackByTheImporter) {
  const std::vector<Event> events{Alloc(0, 8), Alloc(1, 9, 3), Mark(1), Free(0), Alloc(2, 10), Free(1, 3)};
  EXPECT_EQ(*ParseEventCsv(ToEventCsv(events), "e"), events);
}

}  // namespace
}  // namespace reprise::profiler
