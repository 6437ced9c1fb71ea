#include "reading.h"

namespace tachograph {

bool find_text(const tg_api* api, const uint8_t* string, size_t most, Text* text) {
    alignas(8) uint8_t header[128];
    if (tg_unicode_header > sizeof header || !api->read(header, string, tg_unicode_header))
        return false;
    if (!tg_unicode_shape_of(header, &text->shape)) return false;
    if (text->shape.length > most) text->shape.length = most;
    text->data = string + text->shape.data;
    return true;
}

bool is_text(const tg_api* api, const uint8_t* string, const char* wanted, size_t length) {
    Text text;
    uint8_t copy[32];
    return length <= sizeof copy && plausible(string) &&
           find_text(api, string, length + 1, &text) && text.shape.length == length &&
           text.shape.width == 1 && api->read(copy, text.data, length) &&
           memcmp(copy, wanted, length) == 0;
}

}  // namespace tachograph
