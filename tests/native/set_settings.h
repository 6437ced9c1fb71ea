// Settings as a recorded process finds them in its environment.
#pragma once

#include "spool/settings.h"

#include <cstdio>

namespace tests {

// `config` is a format of the text of TACHOGRAPH_CONFIG.
template <typename... Values>
void set_settings(const char* folder, const char* config, Values... values) {
    static char spool[600];
    static char text[1000];
    static char format[500];
    snprintf(spool, sizeof spool, "TACHOGRAPH_SPOOL=%s", folder);
    snprintf(format, sizeof format, "TACHOGRAPH_CONFIG=%s", config);
    snprintf(text, sizeof text, format, values...);
    char* environment[] = {spool, text, nullptr};  // our entries are taken out of it
    tachograph::settings::Parent parent;
    tachograph::settings::read_environment(environment, &parent);
}

}  // namespace tests
