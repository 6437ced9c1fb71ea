// The two sources of events.
#pragma once

#include "calls/watching.h"

namespace tachograph::calls {

const Events* monitoring_events();  // CPython 3.12 and later, else nullptr
const Events* evaluation_events();  // 3.11, else nullptr

}  // namespace tachograph::calls
