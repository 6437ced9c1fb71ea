// Where large variables lie: the linker sorts sections by name, and so puts them behind the small
// ones. A forked child copies each page that it or its parent stores to; the small ones are on
// three pages then, and not all over the large ones.
#pragma once

#define TG_LARGE_ZEROS __attribute__((section(".bss.large")))
#define TG_LARGE_DATA __attribute__((section(".data.large")))
