// The options that the settings of a process stand for.
#include "spool/settings.h"
#include "check.h"
#include "set_settings.h"
#include "tachograph/api.h"

#include <cstring>

using namespace tachograph;

namespace {

constexpr char kLeast[] = "interval_ns=10000000,segment=1048576";

const tg_options& read(const char* more) {
    tests::set_settings("/spool", "%s%s", kLeast, more);
    CHECK(settings::are_set());
    return settings::options();
}

bool is(const tg_text_option& option, const char* text) {
    return option.length == strlen(text) && memcmp(option.data, text, option.length) == 0;
}

}  // namespace

TEST(settings_that_are_not_set) {
    const tg_options& options = read("");
    CHECK(!settings::unusable());
    CHECK(options.interval_ns == 10'000'000 && options.segment_size == 1 << 20);
    CHECK(options.waits == 0 && options.paused == 0 && options.memory == 0);
    CHECK(options.memory_threshold == 0 && options.native_depth == 0 && options.redundancy == 0);
    CHECK(options.budget_permille == 60 && options.children == 1 && options.rotates == 0);
    CHECK(options.calls == 0 && options.calls_choice == 0 && options.calls_top == 10);
    CHECK(options.calls_budget_percent == 2 && options.calls_period_ns == 1'000'000'000);
    CHECK(options.owner == -1 && options.ignored == 0 && options.memory_at_once == 0);
    CHECK(!options.home.data && !options.place.data && !options.log.data);
    CHECK(options.fd_broker.length == 0);
}

TEST(settings_of_each_kind) {
    const tg_options& options = read(
        ",sampler=native,waits=1,paused=1,memory=1,threshold=65536,budget=1000,native_depth=7"
        ",accesses=both,calls=1,calls_budget=33.3333,calls_period_ns=100000000"
        ",calls_choice=rejects,calls_top=4096,children=0,include=a:b%2c,rotate=1,owner=0"
        ",ignored=2,memory_at_once=1,place=1:2,log=/proc/1/fd/3:4:5,home=/"
        "a%3a,fd_broker=tachograph-1");
    CHECK(!settings::unusable());
    CHECK(options.waits == 1 && options.paused == 1 && options.memory == 1);
    CHECK(options.memory_threshold == 65536 && options.native_depth == 7);
    CHECK(options.redundancy == (TG_REDUNDANT_LOADS | TG_REDUNDANT_STORES));
    CHECK(options.budget_permille == 1000 && options.children == 0 && options.rotates == 1);
    CHECK(options.calls == 1 && options.calls_choice == 1 && options.calls_top == 4096);
    CHECK(options.calls_budget_percent == 33.3333 && options.calls_period_ns == 100'000'000);
    CHECK(options.owner == 0 && options.ignored == 2 && options.memory_at_once == 1);
    CHECK(is(options.home, "/a%3a") && is(options.place, "1:2"));
    CHECK(is(options.log, "/proc/1/fd/3:4:5") && is(options.fd_broker, "tachograph-1"));
    CHECK(!settings::pass_to_children());
}

TEST(settings_that_are_none) {
    constexpr struct {
        const char* text;
        const char* key;
    } kCases[] = {
        {",threshold=", "threshold"},
        {",threshold=-1", "threshold"},
        {",threshold=1x", "threshold"},
        {",threshold=12345678901234567890", "threshold"},
        {",paused=2", "paused"},
        {",paused=", "paused"},
        {",accesses=load", "accesses"},
        {",accesses=loads ", "accesses"},
        {",calls_budget=", "calls_budget"},
        {",calls_budget=1e3", "calls_budget"},
        {",calls_budget=1.2.3", "calls_budget"},
    };
    for (const auto& each : kCases) {
        read(each.text);
        CHECK(settings::unusable() && strcmp(settings::unusable(), each.key) == 0);
    }
    tests::set_settings("/spool", "%s", "segment=1");
    CHECK(strcmp(settings::unusable(), "interval_ns") == 0);
    // One whose name only begins or ends like another's is another.
    tests::set_settings("/spool", "%s", "interval_ns=5,xsegment=1,segments=2");
    CHECK(strcmp(settings::unusable(), "segment") == 0);
}

TEST(settings_from_inside) {
    CHECK(!settings::are_set() && settings::options().children == 1);
    CHECK(settings::set_from_inside("/spool", "interval_ns=5,segment=6,children=0"));
    CHECK(settings::are_set() && settings::are_from_inside() && !settings::unusable());
    CHECK(settings::options().interval_ns == 5 && settings::options().children == 0);
    CHECK(!settings::pass_to_children());
    settings::clear();
    CHECK(!settings::are_set() && !settings::are_from_inside());
    CHECK(settings::options().interval_ns == 0 && settings::options().children == 1);
    static char large[20 * 1024];
    memset(large, 'x', sizeof large - 1);
    CHECK(!settings::set_from_inside(large, "interval_ns=5"));
    CHECK(!settings::set_from_inside("/spool", large) && !settings::are_set());
}
