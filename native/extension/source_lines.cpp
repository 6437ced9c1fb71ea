#include "source_lines.h"

#include "line_reader.h"

#include <algorithm>

namespace tachograph {
namespace {

constexpr size_t kLongestPath = 4096;
constexpr uint64_t kDropped = ~uint64_t{1};
constexpr uint64_t kMostEntries = 1u << 20;  // files, or folders, of one unit

// Forms of the entries of a table of files (DWARF 5, 7.5.6).
enum Form : uint64_t {
    kBlock2 = 0x03,
    kBlock4 = 0x04,
    kData2 = 0x05,
    kData4 = 0x06,
    kData8 = 0x07,
    kText = 0x08,
    kBlock = 0x09,
    kBlock1 = 0x0A,
    kData1 = 0x0B,
    kTextAt = 0x0E,
    kNumber = 0x0F,
    kTextElsewhere = 0x1D,
    kData16 = 0x1E,
    kLineTextAt = 0x1F,
};
constexpr uint64_t kContentPath = 1;
constexpr uint64_t kContentFolder = 2;

struct File {
    std::string_view name;
    uint64_t folder = 0;
};

std::string_view text_at(std::string_view section, uint64_t offset) {
    if (offset >= section.size()) return {};
    LineReader reader(section.substr(offset));
    return reader.text();
}

struct Wanted {
    uint64_t address;
    size_t index;
    bool entry;
};

// One unit of .debug_line: a header with names, and a program whose rows it emits.
class Unit {
  public:
    Unit(const DebugSections& sections, std::string_view bytes, bool wide)
        : sections_(sections), reader_(bytes), wide_(wide) {}

    bool read_header() {
        version_ = reader_.number<uint16_t>();
        if (version_ < 2 || version_ > 5) return false;
        if (version_ == 5 &&
            (reader_.number<uint8_t>() != sizeof(uint64_t) || reader_.number<uint8_t>() != 0))
            return false;  // another size of addresses, or segments
        LineReader header(reader_.take(reader_.offset(wide_)));
        least_length_ = header.number<uint8_t>();
        if (version_ >= 4 && header.number<uint8_t>() > 1) return false;  // a VLIW machine
        header.number<uint8_t>();  // whether a row is a statement by itself
        line_base_ = header.number<int8_t>();
        line_range_ = header.number<uint8_t>();
        first_special_ = header.number<uint8_t>();
        if (line_range_ == 0 || first_special_ == 0) return false;
        operands_[0] = 0;
        for (int code = 1; code < first_special_; ++code)
            operands_[code] = header.number<uint8_t>();
        const bool read = version_ == 5 ? read_tables(&header) : read_older_tables(&header);
        return read && !header.failed() && !reader_.failed();
    }

    // Runs the program; what it says of the wanted addresses, sorted, is kept where nothing is yet.
    // `steps` bounds how many of them are looked at: sequences that overlap make no sense.
    void run(const std::vector<Wanted>& wanted, uint64_t* steps,
             std::vector<std::optional<SourceLine>>* found) {
        Row row;
        Row last;
        auto next = wanted.end();
        bool within = false;  // a sequence that is of code that was kept
        // Rows before this address are of no interest: nearly all are.
        uint64_t quiet = 0;
        const auto keep = [&](const Wanted& one, const Row& from) {
            auto& place = (*found)[one.index];
            if (place || from.line == 0) return;
            if (std::string path = path_of(from.file); !path.empty())
                place = SourceLine{std::move(path), from.line};
        };
        const auto emit = [&](bool ends = false) {
            if (!within && row.placed)
                next = std::lower_bound(
                    wanted.begin(), wanted.end(), row.address,
                    [](const Wanted& one, uint64_t address) { return one.address < address; });
            for (; within && next != wanted.end() && next->address < row.address; ++next) {
                if (*steps == 0) return;
                --*steps;
                keep(*next, last);
            }
            // Linkers leave the rows of functions that they drop at 0, or at the last addresses.
            within = row.placed && row.address != 0 && row.address < kDropped;
            last = row;
            // Several rows may have one address: the first one is the function's, before its body.
            for (auto one = next; within && !ends && one != wanted.end() && *steps > 0 &&
                                  one->address == row.address;
                 ++one, --*steps)
                if (one->entry) keep(*one, row);
            quiet = !within ? 0 : next == wanted.end() ? kDropped : next->address;
        };
        // A row is that of all addresses up to the next one: the last of the quiet ones is needed
        // as well.
        const auto moved = [&] {
            if (row.address < quiet)
                last = row;
            else
                emit();
        };
        Advance advances[UINT8_MAX + 1];
        for (int code = first_special_; code <= UINT8_MAX; ++code) {
            const int adjusted = code - first_special_;
            advances[code] = {static_cast<uint32_t>(adjusted / line_range_) * least_length_,
                              line_base_ + adjusted % line_range_};
        }
        while (!reader_.done()) {
            const auto code = reader_.number<uint8_t>();
            if (code >= first_special_) {
                row.address += advances[code].bytes;
                row.line += static_cast<uint32_t>(advances[code].lines);
                moved();
                continue;
            }
            switch (code) {
                case 0: {
                    LineReader extended(reader_.take(reader_.unsigned_leb()));
                    const auto kind = extended.number<uint8_t>();
                    if (kind == 1) {  // the end of a sequence
                        emit(true);
                        row = last = Row{};
                        within = false;
                        quiet = 0;
                    } else if (kind == 2) {
                        row.address = extended.number<uint64_t>();
                        row.placed = !extended.failed();
                        quiet = 0;
                    } else if (kind == 3 && files_.size() < kMostEntries) {
                        const std::string_view name = extended.text();
                        files_.push_back({name, extended.unsigned_leb()});
                    }
                    break;
                }
                case 1:
                    moved();
                    break;
                case 2:
                    row.address += reader_.unsigned_leb() * least_length_;
                    break;
                case 3:
                    row.line += static_cast<uint32_t>(reader_.signed_leb());
                    break;
                case 4:
                    row.file = reader_.unsigned_leb();
                    break;
                case 8:
                    row.address += advances[UINT8_MAX].bytes;
                    break;
                case 9:
                    row.address += reader_.number<uint16_t>();
                    break;
                default:
                    for (int i = 0; i < operands_[code]; ++i) reader_.unsigned_leb();
            }
        }
    }

  private:
    struct Advance {  // of a special opcode
        uint32_t bytes;
        int lines;
    };
    struct Row {
        uint64_t address = 0;
        uint64_t file = 1;
        uint32_t line = 1;
        bool placed = false;  // the program has said where the sequence begins
    };

    bool read_older_tables(LineReader* header) {
        folders_.emplace_back();  // the one that the compiler ran in, which is told elsewhere
        for (;;) {
            const std::string_view folder = header->text();
            if (folder.empty()) break;
            if (folders_.size() >= kMostEntries) return false;
            folders_.push_back(folder);
        }
        files_.emplace_back();  // counted from 1
        while (!header->failed()) {
            File file;
            file.name = header->text();
            if (file.name.empty()) break;
            file.folder = header->unsigned_leb();
            header->unsigned_leb();  // time of modification
            header->unsigned_leb();  // length
            if (files_.size() >= kMostEntries) return false;
            files_.push_back(file);
        }
        return !header->failed();
    }

    bool read_tables(LineReader* header) {
        std::vector<File> folders;
        if (!read_entries(header, &folders) || !read_entries(header, &files_)) return false;
        for (const File& folder : folders) folders_.push_back(folder.name);
        return true;
    }

    bool read_entries(LineReader* header, std::vector<File>* entries) {
        struct Field {
            uint64_t content, form;
        };
        Field fields[UINT8_MAX];
        const auto count = header->number<uint8_t>();
        for (int i = 0; i < count; ++i) {
            const uint64_t content = header->unsigned_leb();
            fields[i] = {content, header->unsigned_leb()};
        }
        const uint64_t most = header->unsigned_leb();
        if (most > kMostEntries || (count == 0 && most > 0)) return false;
        for (uint64_t entry = 0; entry < most; ++entry) {
            File file;
            for (int i = 0; i < count; ++i) {
                std::string_view text;
                uint64_t number = 0;
                if (!read_field(header, fields[i].form, &text, &number)) return false;
                if (fields[i].content == kContentPath) file.name = text;
                if (fields[i].content == kContentFolder) file.folder = number;
            }
            entries->push_back(file);
        }
        return !header->failed();
    }

    bool read_field(LineReader* header, uint64_t form, std::string_view* text, uint64_t* number) {
        switch (form) {
            case kText:
                *text = header->text();
                break;
            case kLineTextAt:
                *text = text_at(sections_.line_text, header->offset(wide_));
                break;
            // In tables that no linker has been over; these names are not read.
            case kTextAt:
            case kTextElsewhere:
                header->offset(wide_);
                break;
            case kData1:
                *number = header->number<uint8_t>();
                break;
            case kData2:
                *number = header->number<uint16_t>();
                break;
            case kData4:
                *number = header->number<uint32_t>();
                break;
            case kData8:
                *number = header->number<uint64_t>();
                break;
            case kData16:
                header->take(16);
                break;
            case kNumber:
                *number = header->unsigned_leb();
                break;
            case kBlock:
                header->take(header->unsigned_leb());
                break;
            case kBlock1:
                header->take(header->number<uint8_t>());
                break;
            case kBlock2:
                header->take(header->number<uint16_t>());
                break;
            case kBlock4:
                header->take(header->number<uint32_t>());
                break;
            default:
                return false;
        }
        return !header->failed();
    }

    std::string path_of(uint64_t number) const {
        if (number >= files_.size()) return {};
        const File& file = files_[number];
        std::string path(file.name);
        const auto lead = [&path](std::string_view folder) {
            if (!path.empty() && path[0] != '/' && !folder.empty())
                path = std::string(folder) + '/' + path;
        };
        if (file.folder < folders_.size()) lead(folders_[file.folder]);
        if (!folders_.empty()) lead(folders_[0]);
        return path.size() > kLongestPath ? std::string() : path;
    }

    const DebugSections& sections_;
    LineReader reader_;
    bool wide_;
    uint16_t version_ = 0;
    uint8_t least_length_ = 1;
    int8_t line_base_ = 0;
    uint8_t line_range_ = 1;
    uint8_t first_special_ = 1;
    uint8_t operands_[256] = {};
    std::vector<std::string_view> folders_;
    std::vector<File> files_;
};

}  // namespace

std::vector<std::optional<SourceLine>> find_source_lines(const DebugSections& sections,
                                                         const std::vector<uint64_t>& addresses,
                                                         const std::vector<uint64_t>& entries) {
    std::vector<std::optional<SourceLine>> found(addresses.size() + entries.size());
    std::vector<Wanted> wanted;
    wanted.reserve(found.size());
    for (const uint64_t address : addresses) wanted.push_back({address, wanted.size(), false});
    for (const uint64_t address : entries) wanted.push_back({address, wanted.size(), true});
    std::sort(wanted.begin(), wanted.end(),
              [](const Wanted& a, const Wanted& b) { return a.address < b.address; });
    uint64_t steps = sections.line.size() + 2 * wanted.size();
    LineReader reader(sections.line);
    while (!reader.done()) {
        constexpr uint32_t kWide = 0xFFFFFFFF;
        uint64_t length = reader.number<uint32_t>();
        const bool wide = length == kWide;
        if (wide) length = reader.number<uint64_t>();
        Unit unit(sections, reader.take(length), wide);
        if (!reader.failed() && unit.read_header()) unit.run(wanted, &steps, &found);
    }
    return found;
}

}  // namespace tachograph
