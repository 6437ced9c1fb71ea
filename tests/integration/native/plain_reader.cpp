// A reader of complete recordings in C++, written from SPEC.md alone. Only JSON and Parquet are
// needed.
//
// plain_reader RECORDING OPCODES: prints what expected.json has as `derived`. Exit status 2:
// refused. Build against libarrow and libparquet, such as those that come with pyarrow.
#include <arrow/api.h>
#include <arrow/io/file.h>
#include <parquet/arrow/reader.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <regex>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

// ------------------------------------------------------------ JSON, integers to 64 bits
struct Json {
    std::map<std::string, Json> members;
    std::vector<Json> items;
    std::string text;  // of a string, and of a number as it is written
    bool is_text = false;

    const Json* find(const std::string& key) const {
        const auto at = members.find(key);
        return at == members.end() ? nullptr : &at->second;
    }
    std::optional<int64_t> number(const std::string& key) const {
        const Json* found = find(key);
        if (!found || found->is_text || found->text.empty() || found->text == "null") return {};
        return std::stoll(found->text);
    }
    std::string string(const std::string& key) const {
        const Json* found = find(key);
        return found && found->is_text ? found->text : "";
    }
};

struct Parser {
    const std::string& from;
    size_t at = 0;

    char next() {
        while (at < from.size() && isspace(static_cast<unsigned char>(from[at]))) ++at;
        if (at == from.size()) throw std::runtime_error("JSON ends too early");
        return from[at];
    }
    std::string quoted() {
        std::string found;
        for (++at; at < from.size() && from[at] != '"'; ++at) {
            // Escapes are kept as they are: no key and no value that is looked at has one.
            if (from[at] == '\\') found += from[at++];
            found += from[at];
        }
        ++at;
        return found;
    }
    Json value() {
        Json found;
        if (next() == '"') {
            found.is_text = true;
            found.text = quoted();
        } else if (next() == '{' || next() == '[') {
            const char end = next() == '{' ? '}' : ']';
            ++at;
            while (next() != end) {
                std::string key;
                if (end == '}') {
                    key = quoted();
                    if (next() != ':') throw std::runtime_error("JSON lacks a colon");
                    ++at;
                }
                if (end == '}')
                    found.members[key] = value();
                else
                    found.items.push_back(value());
                if (next() == ',') ++at;
            }
            ++at;
        } else {
            const size_t start = at;
            at = from.find_first_of(",]} \n\r\t", at);
            found.text = from.substr(start, at - start);
        }
        return found;
    }
};

Json read_json(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error("no " + path);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    return Parser{text}.value();
}

// ------------------------------------------------------------ Parquet
struct Table {
    int64_t rows = 0;
    std::map<std::string, std::vector<std::optional<int64_t>>> numbers;
    std::map<std::string, std::vector<std::optional<std::string>>> texts;

    // A column that is missing has unknown values only.
    std::optional<int64_t> number(const std::string& name, int64_t row) const {
        const auto found = numbers.find(name);
        return found == numbers.end() ? std::nullopt : found->second[row];
    }
    std::optional<std::string> text(const std::string& name, int64_t row) const {
        const auto found = texts.find(name);
        return found == texts.end() ? std::nullopt : found->second[row];
    }
};

template <typename T>
T good(arrow::Result<T> result) {
    if (!result.ok()) throw std::runtime_error(result.status().ToString());
    return std::move(result).ValueUnsafe();
}

Table read_table(const std::string& path) {
    auto reader = good(parquet::arrow::OpenFile(good(arrow::io::ReadableFile::Open(path)),
                                                arrow::default_memory_pool()));
    const std::shared_ptr<arrow::Table> whole = good(reader->ReadTable());
    Table found;
    found.rows = whole->num_rows();
    for (int number = 0; number < whole->num_columns(); ++number) {
        const std::string name = whole->field(number)->name();
        const auto kind = whole->field(number)->type()->id();
        for (const auto& chunk : whole->column(number)->chunks()) {
            for (int64_t row = 0; row < chunk->length(); ++row) {
                if (kind == arrow::Type::STRING || kind == arrow::Type::BINARY) {
                    const auto& strings = static_cast<const arrow::BinaryArray&>(*chunk);
                    found.texts[name].push_back(
                        chunk->IsNull(row) ? std::nullopt : std::optional(strings.GetString(row)));
                } else if (kind == arrow::Type::BOOL || arrow::is_integer(kind)) {
                    std::optional<int64_t> value;
                    if (!chunk->IsNull(row)) {
                        const std::string shown = good(chunk->GetScalar(row))->ToString();
                        value = shown == "true" ? 1
                                : shown == "false"
                                    ? 0
                                    : static_cast<int64_t>(kind == arrow::Type::UINT64
                                                               ? std::stoull(shown)
                                                               : std::stoll(shown));
                    }
                    found.numbers[name].push_back(value);
                }  // a column of another type is none that this reader knows
            }
        }
    }
    return found;
}

// ------------------------------------------------------------ "Line tables"
std::optional<int64_t> line_of(const std::string& table, int64_t first, int64_t instruction) {
    size_t at = 0;
    const auto varint = [&] {
        uint64_t value = 0;
        for (int shift = 0; at < table.size(); shift += 6) {
            const auto byte = static_cast<uint8_t>(table[at++]);
            value |= static_cast<uint64_t>(byte & 63) << shift;
            if (!(byte & 64)) break;
        }
        return value;
    };
    int64_t line = first, located = first, units = 0;
    while (at < table.size()) {
        const auto head = static_cast<uint8_t>(table[at++]);
        const int form = head >> 3 & 15;
        if (form < 10) {
            at += 1;
        } else if (form < 13) {
            line += form - 10;
            at += 2;
        } else if (form < 15) {
            const uint64_t delta = varint();
            line +=
                delta & 1 ? -static_cast<int64_t>(delta >> 1) : static_cast<int64_t>(delta >> 1);
            for (int more = form == 14 ? 3 : 0; more > 0; --more) varint();
        }
        if (form != 15) located = line;
        units += (head & 7) + 1;
        if (2 * units > instruction) return located >= 1 ? std::optional(located) : std::nullopt;
    }
    return {};
}

// ------------------------------------------------------------ the recording
using Sums = std::map<std::string, double>;
using Place = std::pair<std::optional<std::string>, std::optional<int64_t>>;

// "Recommended attribution": the names, as regular expressions that match at the beginning.
const std::regex kLoopOrCollector(
    R"(_PyEval_EvalFrameDefault|_TAIL_CALL_|_?PyGC_|_Py_RunGC|gc_|visit_(decref|reachable|m)"
    R"(ove|add_to|strongly|all|clear)|\w*_?traverse\b|update_refs\b|subtract_refs\b|(deduce)"
    R"(|move|handle)_\w*(unreachable|finalizers|weakrefs)|untrack_(tuples|dicts)\b|mark_\w+)"
    R"(|delete_garbage\b|finalize_garbage\b|PyObject_IS_GC\b|type_is_gc\b|_PyDict_MaybeUntr)"
    R"(ack\b|_PyTuple_MaybeUntrack\b|_PyObject_VisitInstanceAttributes\b|PyObject_VisitMana)"
    R"(gedDict\b|_PyObject_VisitManagedDict\b)");
const std::regex kMachinery(
    R"(_?PyEval_|_PyFunction_Vectorcall|_PyFrame|_?PyObject_Call|_?PyObject_Vectorcall|_PyO)"
    R"(bject_MakeTpCall|_?PyVectorcall|_PyThreadState_(Push|Pop)Frame|_PyStack_|_Py_CheckFu)"
    R"(nctionResult|_Py_Specialize|_PyEvalFrame|_PyCode|method_vectorcall\b|object_vacall\b)"
    R"(|initialize_locals\b|clear_(thread|gen)_frame\b|slot_tp_(call|init|new)\b|type_call\)"
    R"(b|vectorcall_(method|maybe)\b|specialize\b)");
const std::regex kLibrary(
    R"((libc|libm|libpthread|librt|libdl|ld-linux[\w-]*|ld-musl[\w-]*)(-[\d.]+)?\.so(\.\d+))"
    R"(*$|\[vdso\]$)");
const std::regex kHooked(
    R"((malloc|calloc|realloc|reallocarray|free|free_sized|free_aligned_sized|posix_memalig)"
    R"(n|aligned_alloc|memalign|valloc|pvalloc|mmap|mmap64|munmap|mremap|(__)?mem(cpy|move|)"
    R"(pcpy)(_chk)?)$)");

bool begins(const std::string& text, const std::regex& with) {
    return std::regex_search(text, with, std::regex_constants::match_continuous);
}

struct Recording {
    Json manifest, opcodes;
    std::map<std::string, Table> tables;
    std::map<Place, Sums> lines;

    Recording(const std::string& path, const std::string& known)
        : manifest(read_json(path + "/manifest.json")) {
        if (manifest.string("format_version").rfind("1.", 0) != 0)
            throw std::runtime_error("another major version");
        const std::string state = manifest.string("state");
        if (state != "complete" && state != "recovered")
            throw std::runtime_error("the state is " + state);
        opcodes = read_json(known);
        for (const auto& [name, told] : manifest.find("tables")->members) {
            tables[name] = read_table(path + "/" + name + ".parquet");
            if (tables[name].rows != told.number("rows"))
                throw std::runtime_error(name + " has other rows");
        }
    }

    Place place(std::optional<int64_t> stack) {
        const auto code = stack ? tables["stacks"].number("code", *stack) : std::nullopt;
        if (!code) return {};
        const Table& codes = tables["codes"];
        const auto table = codes.text("line_table", *code);
        const auto first = codes.number("first_line", *code);
        const auto instruction = tables["stacks"].number("instruction", *stack);
        return {
            tables["files"].text("path", *codes.number("file", *code)),
            table && first && instruction ? line_of(*table, *first, *instruction) : std::nullopt};
    }

    void add(std::optional<int64_t> stack, const char* name, std::optional<int64_t> amount) {
        if (amount) lines[place(stack)][name] += static_cast<double>(*amount);
    }

    // "Recommended attribution": whose the rest of a sample's time is.
    const char* whose(int64_t row, int64_t process) {
        const Table &cpu = tables["cpu"], &frames = tables["native_frames"],
                    &modules = tables["modules"];
        const auto frame = cpu.number("native_frame", row);
        if (!frame) return "unknown_ns";
        const int64_t state = *cpu.number("stack_state", row);
        std::string opcode = "unknown";
        const std::string version =
            tables["processes"].text("python_version", process).value_or("");
        const Json* classes =
            opcodes.find(version.substr(0, version.find('.', version.find('.') + 1)));
        if (const auto number = cpu.number("opcode", row);
            number && (state == 0 || state == 3) && classes) {
            opcode = "other";
            for (const auto& [name, members] : classes->members)
                for (const auto& [_, value] : members.members)
                    if (value.text == std::to_string(*number)) opcode = name;
        }
        const auto module = frames.number("module", *frame);
        bool interpreter = false;
        for (int64_t each = 0; module && each < modules.rows; ++each)
            interpreter |= modules.number("interpreter", each) == 1 &&
                           modules.number("process", each) == modules.number("process", *module) &&
                           modules.text("path", each) == modules.text("path", *module);
        const std::string symbol = frames.text("symbol", *frame).value_or("");
        std::string name = module ? modules.text("path", *module).value_or("") : "";
        name = name.substr(name.rfind('/') + 1);
        const bool ours = name.rfind("libtachograph", 0) == 0;
        if (ours ? begins(symbol, kHooked) : begins(name, kLibrary))
            return opcode == "internal" ? "python_ns" : "native_ns";
        if (!interpreter && !ours) return "native_ns";
        if (begins(symbol, kLoopOrCollector)) return "python_ns";
        if (opcode == "native_call") return "native_ns";
        if (begins(symbol, kMachinery)) return "python_ns";
        if (opcode == "any_call") return "native_ns";
        return opcode == "unknown" && state != 1 ? "unknown_ns" : "python_ns";
    }

    // "Weights".
    void add_samples() {
        const Table &cpu = tables["cpu"], &threads = tables["threads"];
        const Json* parameters = manifest.find("parameters");
        const auto interval = parameters->number("interval_ns");
        const bool reweighted = parameters->string("schedule") == "stationary" && interval;
        const Json none, *told = manifest.find("window"), *window = told ? told : &none;
        const bool later =
            window->number("number").value_or(0) > window->number("first").value_or(0);
        std::map<std::pair<int64_t, int64_t>, int> of_signal;
        for (int64_t row = 0; row < cpu.rows; ++row)
            ++of_signal[{*threads.number("process", *cpu.number("thread", row)),
                         *cpu.number("time_ns", row)}];
        std::set<int64_t> seen;
        for (int64_t row = 0; row < cpu.rows; ++row) {
            const int64_t thread = *cpu.number("thread", row),
                          process = *threads.number("process", thread);
            const int64_t origin = *cpu.number("origin", row),
                          measured = *cpu.number("cpu_ns", row);
            const bool by_signal = origin == 2 || origin == 3;
            auto weight = static_cast<double>(measured);
            auto system = static_cast<double>(cpu.number("system_ns", row).value_or(0));
            const bool first = seen.insert(thread).second;
            const bool here = !later || threads.number("start_ns", thread).value_or(0) >
                                            *window->number("start_ns");
            if (by_signal) {
                weight /= of_signal[{process, *cpu.number("time_ns", row)}];
            } else if (reweighted && first && here && origin == 0) {
                weight = static_cast<double>(*interval * (*cpu.number("overruns", row) + 1));
                system = std::min(
                    weight, system * weight / static_cast<double>(std::max<int64_t>(measured, 1)));
            }
            Sums& sums = lines[place(cpu.number("stack", row))];
            sums["cpu_ns"] += weight;
            if (by_signal) continue;
            sums["kernel_ns"] += system;
            sums[whose(row, process)] += weight - system;
        }
    }

    void add_all() {
        add_samples();
        for (int64_t row = 0; row < tables["waits"].rows; ++row)
            add(tables["waits"].number("stack", row), "wait_ns",
                tables["waits"].number("off_cpu_ns", row));
        const Table& blocks = tables["allocations"];
        for (int64_t row = 0; row < blocks.rows; ++row) {
            add(blocks.number("stack", row), "allocated_bytes", blocks.number("weight_bytes", row));
            if (blocks.number("followed", row) == 1 && !blocks.number("freed_ns", row))
                add(blocks.number("stack", row), "held_bytes", blocks.number("weight_bytes", row));
        }
        for (int64_t row = 0; row < tables["copies"].rows; ++row)
            add(tables["copies"].number("stack", row), "copied_bytes",
                tables["copies"].number("bytes", row));
    }

    std::map<int64_t, int64_t> held() {
        std::map<int64_t, int64_t> found;
        const auto ends = [](const std::string& name, const std::string& end) {
            return name.size() > end.size() &&
                   name.compare(name.size() - end.size(), end.size(), end) == 0;
        };
        for (const auto& [name, values] : tables["memory"].numbers)
            for (size_t row = 0; row < values.size(); ++row)
                found[*tables["memory"].number("process", static_cast<int64_t>(row))] +=
                    (ends(name, "_allocated_bytes") - ends(name, "_freed_bytes")) *
                    values[row].value_or(0);
        return found;
    }
};

void print(const Sums& sums, const char* between) {
    for (const auto& [name, amount] : sums) {
        if (amount == 0) continue;
        printf("%s\"%s\": %lld", between, name.c_str(), static_cast<long long>(amount));
        between = ", ";
    }
}

}  // namespace

int main(int, char** arguments) try {
    Recording recording(arguments[1], arguments[2]);
    recording.add_all();
    Sums totals;
    for (const auto& [_, sums] : recording.lines)
        for (const auto& [name, amount] : sums) totals[name] += amount;
    printf("{\"totals\": {");
    print(totals, "");
    printf("}, \"lines\": [");
    const char* between = "";
    for (const auto& [place, sums] : recording.lines) {
        printf("%s{\"file\": ", between);
        place.first ? printf("\"%s\"", place.first->c_str()) : printf("null");
        place.second ? printf(", \"line\": %lld", static_cast<long long>(*place.second))
                     : printf(", \"line\": null");
        print(sums, ", ");
        printf("}");
        between = ", ";
    }
    printf("], \"held\": [");
    between = "";
    for (const auto& [process, bytes] : recording.held()) {
        printf("%s{\"process\": %lld, \"bytes\": %lld}", between, static_cast<long long>(process),
               static_cast<long long>(bytes));
        between = ", ";
    }
    printf("]}\n");
    return 0;
} catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 2;
}
