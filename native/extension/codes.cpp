#include "codes.h"

#include "dicts.h"
#include "reading.h"

#include <Python.h>

#include <atomic>
#include <initializer_list>

namespace tachograph {
namespace {

constexpr uint8_t kCodeRecord = 5;
constexpr size_t kCodeHeader = 40;  // bytes before the texts
constexpr size_t kMostCharacters = 4096;
constexpr size_t kMostLineTable = 256 * 1024;
constexpr size_t kMostCopy = 512;
constexpr uint64_t kMostEnd = 64;  // bytes of a line table
constexpr size_t kMostTemplateLines = 64 * 1024;
constexpr char kTemplateLines[] = "debug_info";  // Jinja's name for them
constexpr char kPythonFile[] = ".py";

constexpr size_t kGenerations = 1 << 16;
constexpr size_t kRemembered = 1 << 13;

// What a code object that was met says, by its identity. Two threads may write one place at a time,
// so the identity is kept mixed with the content: of two halves that do not belong together no
// identity comes out (Hyatt and Mann, A lockless transposition table, 2002).
struct Remembered {
    std::atomic<uint64_t> check;
    std::atomic<uint64_t> content;
};

struct State {
    std::atomic<uint32_t> deaths[kGenerations];  // of code objects, by hash of the address
    Remembered remembered[kRemembered];
};
State g;

uint64_t mix(uint64_t h, uint64_t value) {
    h ^= value + 0x9E3779B97F4A7C15ull + (h << 6) + (h >> 2);
    h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9ull;
    return h ^ (h >> 27);
}

std::atomic<uint32_t>& deaths_at(const void* code) {
    return g
        .deaths[(reinterpret_cast<uintptr_t>(code) >> 4) * 0x9E3779B1u >> 8 & (kGenerations - 1)];
}

template <typename T>
void put(uint8_t* record, size_t offset, T value) {
    memcpy(record + offset, &value, sizeof value);
}

// Before what comes to be at that address.
void on_death(const void* code) {
    deaths_at(code).fetch_add(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
}

}  // namespace

void watch_code_deaths() { tg_watch_code_deaths(on_death); }

// What dies from now on is not told: what is remembered may be of code that is gone.
void unwatch_code_deaths() {
    tg_unwatch_code_deaths();
    for (Remembered& place : g.remembered) place.check.store(0, std::memory_order_relaxed);
}

// Where the parts of a code object's record are.
struct Codes::Content {
    Text filename;
    Text qualname;
    const uint8_t* lines = nullptr;
    uint64_t line_bytes = 0;
    bool stored() const { return line_bytes <= kMostLineTable; }
    size_t stored_bytes() const { return stored() ? line_bytes : 0; }
};

bool Codes::intern(const uint8_t* code, const uint8_t* frame, uint32_t* id) const {
    uint8_t copy[kMostCopy];
    uint64_t here;
    if (at_->code_instructions > sizeof copy || !api_->read(copy, code, at_->code_instructions) ||
        !identity(code, copy, &here))
        return false;
    Remembered& place = g.remembered[here & (kRemembered - 1)];
    uint64_t content = place.content.load(std::memory_order_relaxed);
    if ((place.check.load(std::memory_order_relaxed) ^ content) != here) {
        if (!hash_content(copy, &content)) return false;
        place.content.store(content, std::memory_order_relaxed);
        place.check.store(content ^ here, std::memory_order_relaxed);
    }
    int emit = 0;
    *id = api_->intern_code(content, &emit);
    if (!emit) return true;
    const bool written = write(*id, copy, find_template_lines(code, copy, frame));
    api_->code_written(*id, written ? 1 : 0);
    return true;
}

bool Codes::identity(const uint8_t* code, const uint8_t* copy, uint64_t* found) const {
    // Behind the copy: if that is of a younger object, the death of the older one is counted.
    std::atomic_thread_fence(std::memory_order_acquire);
    uint64_t h =
        mix(reinterpret_cast<uint64_t>(code), deaths_at(code).load(std::memory_order_relaxed));
    h = mix(h, field<uint64_t>(copy, at_->code_units));
    h = mix(h, field<uint32_t>(copy, at_->code_first_line));
    h = mix(h, field<uint64_t>(copy, at_->code_filename));
    h = mix(h, field<uint64_t>(copy, at_->code_qualname));
    const auto* line_table = field<const uint8_t*>(copy, at_->code_line_table);
    h = mix(h, reinterpret_cast<uint64_t>(line_table));
    *found = h;
    return deaths_told_ || (add_text(field<const uint8_t*>(copy, at_->code_filename), found) &&
                            add_text(field<const uint8_t*>(copy, at_->code_qualname), found) &&
                            add_line_table(line_table, found));
}

bool Codes::add_text(const uint8_t* string, uint64_t* h) const {
    Text text;
    if (!find_text(api_, string, kMostCharacters, &text)) return false;
    if (text.shape.hash == -1) return hash_bytes(text.data, text.bytes(), h);
    *h = mix(*h, static_cast<uint64_t>(text.shape.hash));
    return true;
}

// Both ends of it: functions that differ have lines that differ.
bool Codes::add_line_table(const uint8_t* bytes, uint64_t* h) const {
    uint64_t size = 0;
    if (!api_->read(&size, bytes + at_->bytes_size, sizeof size)) return false;
    const uint64_t first = size < kMostEnd ? size : kMostEnd;
    const uint64_t last = size - first < kMostEnd ? size - first : kMostEnd;
    *h = mix(*h, size);
    return hash_bytes(bytes + at_->bytes_data, first, h) &&
           hash_bytes(bytes + at_->bytes_data + size - last, last, h);
}

// The list of interpreters may change under us; a new one runs nothing before it is in it.
bool Codes::deaths_are_told() const {
    const uint8_t* interpreter = nullptr;
    const uint8_t* next = nullptr;
    return at_->code_deaths_told &&
           load(api_, static_cast<const uint8_t*>(tg_runtime()), at_->runtime_interpreters,
                &interpreter) &&
           plausible(interpreter) && load(api_, interpreter, at_->interpreter_next, &next) && !next;
}

bool Codes::find_content(const uint8_t* copy, Content* found) const {
    const auto* file = field<const uint8_t*>(copy, at_->code_filename);
    const auto* name = field<const uint8_t*>(copy, at_->code_qualname);
    const auto* line_table = field<const uint8_t*>(copy, at_->code_line_table);
    found->lines = line_table + at_->bytes_data;
    return find_text(api_, file, kMostCharacters, &found->filename) &&
           find_text(api_, name, kMostCharacters, &found->qualname) &&
           api_->read(&found->line_bytes, line_table + at_->bytes_size, sizeof found->line_bytes);
}

bool Codes::hash_content(const uint8_t* copy, uint64_t* found) const {
    Content content;
    if (!find_content(copy, &content)) return false;
    uint64_t h =
        mix(field<uint32_t>(copy, at_->code_first_line), field<uint32_t>(copy, at_->code_flags));
    for (const Text& text : {content.filename, content.qualname}) {
        if (!hash_bytes(text.data, text.bytes(), &h)) return false;
        h = mix(h, text.shape.width);
    }
    if (!hash_bytes(content.lines, content.stored_bytes(), &h)) return false;
    *found = mix(h, content.line_bytes);
    return true;
}

bool Codes::hash_bytes(const uint8_t* data, size_t length, uint64_t* h) const {
    uint64_t words[64];
    *h = mix(*h, length);
    while (length > 0) {
        const size_t part = length < sizeof words ? length : sizeof words;
        words[(part - 1) / sizeof(uint64_t)] = 0;
        if (!api_->read(words, data, part)) return false;
        for (size_t at = 0; at * sizeof(uint64_t) < part; ++at) *h = mix(*h, words[at]);
        data += part;
        length -= part;
    }
    return true;
}

// Lines of a template as pairs of numbers, "1=12&3=14". Frames of another thread may have gone
// since they were collected: what is not in a frame of this code belongs to another.
Text Codes::find_template_lines(const uint8_t* code, const uint8_t* copy,
                                const uint8_t* frame) const {
    constexpr size_t kSuffix = sizeof kPythonFile - 1;
    Text file;
    if (!find_text(api_, field<const uint8_t*>(copy, at_->code_filename), kMostCharacters, &file))
        return {};
    char suffix[kSuffix];
    if (file.shape.width == 1 && file.shape.length >= kSuffix &&
        api_->read(suffix, file.data + file.shape.length - kSuffix, kSuffix) &&
        memcmp(suffix, kPythonFile, kSuffix) == 0)
        return {};
    const uint8_t* globals = nullptr;
    uintptr_t runs = 0;
    if (!load(api_, frame, at_->frame_globals, &globals) ||
        !load(api_, frame, at_->frame_code, &runs) ||
        (runs & ~at_->code_tag_mask) != reinterpret_cast<uintptr_t>(code))
        return {};
    size_t place = 0;
    const uint8_t* value = Dict(api_, at_, globals).find(kTemplateLines, &place);
    const void* type = nullptr;
    Text found;
    if (!plausible(value) || !load(api_, value, at_->object_type, &type) ||
        type != &PyUnicode_Type || !find_text(api_, value, kMostTemplateLines + 1, &found) ||
        !are_template_lines(found))
        return {};
    return found;
}

bool Codes::are_template_lines(const Text& text) const {
    if (text.shape.width != 1 || text.shape.length > kMostTemplateLines) return false;
    uint8_t part[64];
    for (size_t at = 0; at < text.shape.length; at += sizeof part) {
        const size_t rest = text.shape.length - at;
        const size_t length = rest < sizeof part ? rest : sizeof part;
        if (!api_->read(part, text.data + at, length)) return false;
        for (size_t i = 0; i < length; ++i)
            if ((part[i] < '0' || part[i] > '9') && part[i] != '=' && part[i] != '&') return false;
    }
    return true;
}

bool Codes::write(uint32_t id, const uint8_t* copy, const Text& template_lines) const {
    Content content;
    if (!find_content(copy, &content)) return false;
    const Text &filename = content.filename, &qualname = content.qualname;
    const size_t lines = content.stored_bytes();
    uint64_t ticket = 0;
    uint8_t* record = api_->reserve(
        kCodeRecord,
        kCodeHeader + filename.bytes() + qualname.bytes() + lines + template_lines.bytes(),
        &ticket);
    if (!record) return false;
    put(record, 8, id);
    put(record, 12, field<int32_t>(copy, at_->code_first_line));
    put(record, 16, field<uint32_t>(copy, at_->code_flags));
    put(record, 20, content.stored() ? static_cast<uint32_t>(lines) : TG_NONE);
    put(record, 24, static_cast<uint32_t>(filename.shape.length));
    put(record, 28, static_cast<uint8_t>(filename.shape.width));
    put(record, 29, static_cast<uint8_t>(qualname.shape.width));
    put(record, 32, static_cast<uint32_t>(qualname.shape.length));
    put(record, 36, static_cast<uint32_t>(template_lines.bytes()));
    uint8_t* at = record + kCodeHeader;
    bool whole = api_->read(at, filename.data, filename.bytes()) != 0;
    at += filename.bytes();
    whole = whole && api_->read(at, qualname.data, qualname.bytes()) != 0;
    at += qualname.bytes();
    whole = whole && (lines == 0 || api_->read(at, content.lines, lines) != 0);
    at += lines;
    whole = whole && (template_lines.bytes() == 0 ||
                      api_->read(at, template_lines.data, template_lines.bytes()) != 0);
    api_->commit(record, ticket, whole ? 1 : 0);
    return whole;
}

}  // namespace tachograph
