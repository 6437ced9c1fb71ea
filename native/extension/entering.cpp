#include "entering.h"

#include "compat.h"
#include "entry_call.h"
#include "read_clock.h"

#include <marshal.h>

#include <dirent.h>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <utility>
#include <vector>

namespace tachograph::entering {
namespace {

constexpr size_t kComparedCode = 64;
constexpr int64_t kLongestStopNs = 1'000'000'000;
constexpr int kNotStopped = -1;
constexpr size_t kPublished = 128;  // the beginning of the runtime, which says what version it is

std::vector<pid_t> threads_of(pid_t pid) {
    std::vector<pid_t> found;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", static_cast<int>(pid));
    DIR* folder = opendir(path);
    if (!folder) return found;
    while (const dirent* entry = readdir(folder))
        if (const int tid = atoi(entry->d_name); tid > 0) found.push_back(tid);
    closedir(folder);
    return found;
}

// Dead, but listed: a main thread that left the others behind.
bool has_ended(pid_t pid, pid_t tid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", static_cast<int>(pid),
             static_cast<int>(tid));
    FILE* file = fopen(path, "re");
    if (!file) return true;
    char text[512];
    const size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = '\0';
    const char* name_end = strrchr(text, ')');
    return !name_end || strlen(name_end) < 3 || name_end[2] == 'Z' || name_end[2] == 'X';
}

// All threads of a process, stopped until this is destroyed. If this process ends before, the
// kernel lets them go on.
class Stopped {
  public:
    explicit Stopped(pid_t pid) : pid_(pid), outcome_(stop()) {}
    Stopped(const Stopped&) = delete;
    Stopped& operator=(const Stopped&) = delete;
    ~Stopped() {
        const std::map<pid_t, int> all = threads_;
        for (const auto& [tid, signal] : all) {
            // Only a stopped one can be let go.
            if (signal == kNotStopped && !wait_for_stop(tid, kLongestStopNs)) continue;
            ptrace(PTRACE_DETACH, tid, nullptr, static_cast<long>(threads_[tid]));
        }
    }
    Outcome outcome() const { return outcome_; }

    // Into a page that is mapped for reading alone, as debuggers write breakpoints: it becomes the
    // process's own.
    bool poke(uintptr_t address, const std::string& text) const {
        for (size_t at = 0; at <= text.size(); at += sizeof(long)) {
            long word = 0;
            memcpy(&word, text.c_str() + at, std::min(sizeof word, text.size() - at));
            if (ptrace(PTRACE_POKEDATA, threads_.begin()->first, address + at, word) != 0)
                return false;
        }
        return true;
    }

  private:
    pid_t pid_;
    // With the signal that each was about to get, which it gets when it goes on.
    std::map<pid_t, int> threads_;
    Outcome outcome_;

    Outcome stop() {
        for (bool found = true; found;) {
            found = false;
            const std::vector<pid_t> listed = threads_of(pid_);
            if (listed.empty()) return Outcome::gone;
            for (const pid_t tid : listed) {
                if (threads_.count(tid) != 0 || has_ended(pid_, tid)) continue;
                if (ptrace(PTRACE_SEIZE, tid, nullptr, nullptr) != 0) {
                    if (errno == ESRCH || has_ended(pid_, tid)) continue;
                    return Outcome::not_allowed;
                }
                found = true;
                threads_[tid] = kNotStopped;
                // No signal is sent: nothing of it is left that could be seen later.
                ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr);
            }
            for (auto each = threads_.begin(); each != threads_.end();) {
                const pid_t tid = (each++)->first;
                if (threads_[tid] == kNotStopped && !wait_for_stop(tid, kLongestStopNs) &&
                    threads_.count(tid) != 0)
                    return Outcome::busy;
            }
        }
        return threads_.empty() ? Outcome::gone : Outcome::done;
    }

    // False if it has not stopped in that time; one that ends meanwhile is forgotten.
    bool wait_for_stop(pid_t tid, int64_t patience_ns) {
        const int64_t limit = now() + patience_ns;
        for (;;) {
            int status = 0;
            const pid_t found = waitpid(tid, &status, __WALL | WNOHANG);
            if (found == tid && WIFSTOPPED(status)) {
                // Without an event it is about to get a signal.
                threads_[tid] = (status >> 16) != 0 ? 0 : WSTOPSIG(status);
                return true;
            }
            if (found == tid || (found < 0 && errno == ECHILD)) {
                threads_.erase(tid);
                return false;
            }
            if (now() > limit) return false;
            const timespec moment{0, 50'000};
            nanosleep(&moment, nullptr);
        }
    }
};

bool copy_from(pid_t pid, uintptr_t address, void* to, size_t size) {
    const iovec here{to, size};
    const iovec there{reinterpret_cast<void*>(address), size};
    return process_vm_readv(pid, &here, 1, &there, 1, 0) == static_cast<ssize_t>(size);
}

bool copy_to(pid_t pid, uintptr_t address, const void* from, size_t size) {
    const iovec here{const_cast<void*>(from), size};
    const iovec there{reinterpret_cast<void*>(address), size};
    return process_vm_writev(pid, &here, 1, &there, 1, 0) == static_cast<ssize_t>(size);
}

template <typename T>
bool get(pid_t pid, uintptr_t address, T* to) {
    return copy_from(pid, address, to, sizeof *to);
}

template <typename T>
bool put(pid_t pid, uintptr_t address, T value) {
    return copy_to(pid, address, &value, sizeof value);
}

int nothing(void*) { return 0; }

const void* own_function() { return dlsym(RTLD_DEFAULT, "PyRun_SimpleString"); }

template <typename T>
uintptr_t address_of(T* it) {
    return reinterpret_cast<uintptr_t>(it);
}

constexpr size_t aligned(size_t size) { return (size + 15) & ~size_t{15}; }

size_t entry_code_size() { return static_cast<size_t>(tg_entry_code_ends - tg_entry_code_begins); }

// The code of tg_entry_call and, behind it, its argument.
size_t entry_size() { return aligned(entry_code_size()) + sizeof(tg_entry_call_argument); }

// The functions that it calls, of this process; and an exception that it knows.
std::array<uintptr_t, 8> called_by_entry() {
    return {address_of(&PyMarshal_ReadObjectFromString),
            address_of(&PyDict_New),
            address_of(&PyEval_EvalCode),
            address_of(&Py_DecRef),
            address_of(&PyErr_Clear),
            address_of(&Py_AddPendingCall),
            address_of(&PyErr_ExceptionMatches),
            address_of(&PyExc_RecursionError)};
}

// What is to be at `places.code`.
std::string entry_image(const Places& places, size_t size) {
    const auto called = called_by_entry();
    uintptr_t there[called.size()];
    for (size_t i = 0; i < called.size(); ++i)
        there[i] = called[i] - address_of(own_function()) + places.function;
    tg_entry_call_argument argument{};
    static_assert(offsetof(tg_entry_call_argument, again) == sizeof there);
    memcpy(&argument, there, sizeof there);
    argument.again = reinterpret_cast<int (*)(void*)>(places.code);
    argument.code = reinterpret_cast<const char*>(places.text);
    argument.size = static_cast<Py_ssize_t>(size);
    std::string image(tg_entry_code_begins, entry_code_size());
    image.resize(aligned(image.size()));
    image.append(reinterpret_cast<const char*>(&argument), sizeof argument);
    return image;
}

// The queue of a process: this one, which has the GIL, or one whose threads are stopped.
class Queue {
  public:
    Queue(pid_t pid, const tg_pending_calls& layout, const Places& places)
        : pid_(pid), layout_(layout), places_(places) {}

    // Whether it is there, and the process has it where this one has.
    bool find() {
        int initialized = 0;
        if (!get(pid_, places_.runtime + layout_.runtime_initialized, &initialized) ||
            !get(pid_, places_.runtime + layout_.runtime_main, &interpreter_) || initialized != 1 ||
            interpreter_ == 0)
            return false;
        queue_ = (layout_.in_interpreter ? interpreter_ : places_.runtime) + layout_.queue;
        uintptr_t breaker_in = interpreter_;
        if (layout_.runtime_main_tstate != 0 &&
            (!get(pid_, places_.runtime + layout_.runtime_main_tstate, &breaker_in) ||
             breaker_in == 0))
            return false;
        breaker_ = breaker_in + layout_.breaker;
        uint8_t code[kComparedCode];
        return copy_from(pid_, places_.function, code, sizeof code) &&
               memcmp(code, own_function(), sizeof code) == 0 && read();
    }

    // A thread that is between two writes holds the lock.
    bool is_locked() const {
        uintptr_t lock = queue_ + layout_.lock;
        uint8_t bytes[8] = {};
        uint8_t free[8] = {};
        if (layout_.lock_is_pointer) {
            free[0] = 1;  // of a semaphore
            if (!get(pid_, lock, &lock) || lock == 0) return true;
        }
        return !copy_from(pid_, lock, bytes, layout_.lock_size) ||
               memcmp(bytes, free, layout_.lock_size) != 0;
    }

    bool is_empty() const { return first_ == last_ && to_do_ == 0; }
    bool is_to_do() const { return to_do_ != 0; }
    int last() const { return last_; }

    bool has(int index, uintptr_t function, uintptr_t argument) const {
        uintptr_t there[2] = {};
        return get(pid_, call(index), &there[0]) &&
               get(pid_, call(index) + layout_.call_argument, &there[1]) && there[0] == function &&
               there[1] == argument;
    }

    // The first call in it is ours.
    bool has_ours() const {
        return first_ == 0 && last_ >= 1 &&
               (has(0, places_.function, places_.text) ||
                (places_.code != 0 && has(0, places_.code, entry_argument())));
    }

    // Where the queue begins is as good as any other place while it is empty.
    bool add(bool has_entry) const {
        const uintptr_t function = has_entry ? places_.code : places_.function;
        const uintptr_t argument = has_entry ? entry_argument() : places_.text;
        return put(pid_, call(0), function) &&
               put(pid_, call(0) + layout_.call_argument, argument) &&
               (layout_.call_flags == 0 ||
                put(pid_, call(0) + layout_.call_flags, layout_.call_flag)) &&
               put(pid_, queue_ + layout_.first, 0) && put(pid_, queue_ + layout_.last, 1) &&
               put(pid_, queue_ + layout_.to_do, 1) && wake();
    }

    bool take_back() const {
        if (last_ == 1)
            return put(pid_, queue_ + layout_.to_do, 0) && put(pid_, queue_ + layout_.last, 0);
        // Others are behind it. This one does what happens at such moments anyway.
        const uintptr_t harmless = reinterpret_cast<uintptr_t>(&PyErr_CheckSignals) -
                                   reinterpret_cast<uintptr_t>(own_function()) + places_.function;
        return put(pid_, call(0), harmless);
    }

    // The main thread looks at the queue when it next runs Python.
    bool wake() const {
        uintptr_t bits = 0;
        if (!copy_from(pid_, breaker_, &bits, layout_.breaker_size)) return false;
        bits |= layout_.breaker_bits;
        return copy_to(pid_, breaker_, &bits, layout_.breaker_size);
    }

    bool is_awake() const {
        uintptr_t bits = 0;
        return copy_from(pid_, breaker_, &bits, layout_.breaker_size) &&
               (bits & layout_.breaker_bits) != 0;
    }

    bool read() {
        return get(pid_, queue_ + layout_.first, &first_) &&
               get(pid_, queue_ + layout_.last, &last_) &&
               get(pid_, queue_ + layout_.to_do, &to_do_) && first_ >= 0 && last_ >= 0 &&
               first_ < layout_.count && last_ < layout_.count;
    }

  private:
    uintptr_t entry_argument() const { return places_.code + aligned(entry_code_size()); }
    uintptr_t call(int index) const {
        return queue_ + layout_.calls + static_cast<size_t>(index) * layout_.call_size;
    }

    pid_t pid_;
    const tg_pending_calls& layout_;
    Places places_;
    uintptr_t interpreter_ = 0;
    uintptr_t queue_ = 0;
    uintptr_t breaker_ = 0;
    int first_ = 0;
    int last_ = 0;
    int to_do_ = 0;
};

// Does `step` with the queue of a process while its threads are stopped.
template <typename Step>
Outcome with_queue(pid_t pid, const Places& places, const Step& step) {
    const tg_pending_calls* layout = tg_pending_calls_of_runtime();
    if (!layout) return Outcome::other;
    const Stopped stopped(pid);
    if (stopped.outcome() != Outcome::done) return stopped.outcome();
    Queue queue(pid, *layout, places);
    if (!queue.find()) return Outcome::other;
    return queue.is_locked() ? Outcome::busy : step(queue, stopped);
}

// Whether the process has our function, or has it now. That of another version of tachograph stays:
// it may run at this moment. What this process has there has not been changed.
bool has_entry(pid_t pid, const Places& places, size_t size, const Stopped& stopped) {
    if (places.code == 0 || size + sizeof(long) > places.room) return false;
    const std::string image = entry_image(places, size);
    const size_t code = image.size() - sizeof(tg_entry_call_argument::size);
    std::string there(image.size(), '\0');
    if (!copy_from(pid, places.code, there.data(), there.size())) return false;
    if (there == image) return true;
    const bool is_ours = there.compare(0, code, image, 0, code) == 0;
    const uintptr_t here = places.code - places.function + address_of(own_function());
    const bool is_unused =
        memcmp(there.data(), reinterpret_cast<const void*>(here), there.size()) == 0;
    return (is_ours || is_unused) && stopped.poke(places.code, image);
}

// The unused ends of the last pages of parts of the interpreter's file that are not mapped for
// writing: nothing is ever put there.
int find_room(dl_phdr_info* info, size_t, void* context) {
    Places& places = *static_cast<Places*>(context);
    std::vector<std::pair<uintptr_t, uintptr_t>> parts;
    std::vector<std::pair<uintptr_t, bool>> ends;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr) & part = info->dlpi_phdr[i];
        if (part.p_type != PT_LOAD) continue;
        const uintptr_t start = info->dlpi_addr + part.p_vaddr;
        parts.emplace_back(start, start + part.p_memsz);
        if ((part.p_flags & PF_W) == 0 && part.p_filesz == part.p_memsz)
            ends.emplace_back(start + part.p_memsz, (part.p_flags & PF_X) != 0);
    }
    const auto holds = [&](uintptr_t address) {
        return std::any_of(parts.begin(), parts.end(), [&](const auto& part) {
            return part.first <= address && address < part.second;
        });
    };
    if (!holds(places.function)) return 0;
    const auto called = called_by_entry();
    const bool holds_called = std::all_of(called.begin(), called.end(), holds);
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    for (const auto& [end, is_code] : ends) {
        uintptr_t from = aligned(end);
        const uintptr_t to = (end + page - 1) & ~(page - 1);
        const bool is_shared = std::any_of(parts.begin(), parts.end(), [&](const auto& part) {
            return part.first >= end && (part.first & ~(page - 1)) < to;
        });
        if (is_shared || from >= to) continue;
        if (is_code && places.code == 0 && holds_called &&
            to - from > entry_size() + sizeof(long)) {
            places.code = from;
            from += aligned(entry_size() + sizeof(long));
        }
        if (from >= to || to - from <= places.room) continue;
        places.text = from;
        places.room = to - from;
    }
    return 1;
}

}  // namespace

const char* name(Outcome outcome) {
    switch (outcome) {
        case Outcome::done:
            return "done";
        case Outcome::made:
            return "made";
        case Outcome::busy:
            return "busy";
        case Outcome::gone:
            return "gone";
        case Outcome::not_allowed:
            return "not allowed";
        case Outcome::other:
            return "other";
        case Outcome::too_long:
            return "too long";
    }
    return "other";
}

std::optional<Places> own_places() {
    const tg_pending_calls* layout = tg_pending_calls_of_runtime();
    const void* function = own_function();
    if (!layout || !function) return std::nullopt;
    Places places;
    places.runtime = reinterpret_cast<uintptr_t>(tg_runtime());
    places.function = reinterpret_cast<uintptr_t>(function);
    dl_iterate_phdr(find_room, &places);
    Queue queue(getpid(), *layout, places);
    if (!queue.find() || queue.is_locked()) return std::nullopt;
    const int before = queue.last();
    static char argument;  // its address alone is used
    if (Py_AddPendingCall(nothing, &argument) != 0) return std::nullopt;
    const bool is_there = queue.read() && queue.is_to_do() && !queue.is_locked() &&
                          queue.last() == (before + 1) % layout->count &&
                          queue.has(before, reinterpret_cast<uintptr_t>(&nothing),
                                    reinterpret_cast<uintptr_t>(&argument));
    unsigned long main_thread = 0;
    memcpy(&main_thread,
           reinterpret_cast<const char*>(places.runtime) + layout->runtime_main_thread,
           sizeof main_thread);
    // Up to 3.12 other threads leave it to the main thread to see that.
    const bool is_seen = queue.is_awake() || main_thread != pthread_self();
    if (!is_there || !is_seen) return std::nullopt;
    return places;
}

Outcome add(pid_t pid, const Places& places, const std::string& code, const std::string& simple) {
    if (simple.size() + sizeof(long) > places.room) return Outcome::too_long;
    return with_queue(pid, places, [&](const Queue& queue, const Stopped& stopped) {
        if (!queue.is_empty()) {
            // Up to 3.12 a call that another thread has added, as greenlet's do when they end, does
            // not wake a main thread that is alone: it would stay for as long as that one is busy.
            if (queue.is_to_do() && !queue.is_awake()) queue.wake();
            return Outcome::busy;
        }
        const bool has = has_entry(pid, places, code.size(), stopped);
        return stopped.poke(places.text, has ? code : simple) && queue.add(has) ? Outcome::done
                                                                                : Outcome::other;
    });
}

Outcome remind(pid_t pid, const Places& places) {
    return with_queue(pid, places, [](const Queue& queue, const Stopped&) {
        if (!queue.has_ours()) return Outcome::made;
        return queue.wake() ? Outcome::done : Outcome::other;
    });
}

Outcome take_back(pid_t pid, const Places& places) {
    return with_queue(pid, places, [](const Queue& queue, const Stopped&) {
        if (!queue.has_ours()) return Outcome::made;
        return queue.take_back() ? Outcome::done : Outcome::other;
    });
}

uintptr_t own_runtime() {
    return tg_remote_script_of_runtime() ? reinterpret_cast<uintptr_t>(tg_runtime()) : 0;
}

bool has_several_interpreters(pid_t pid, uintptr_t runtime) {
    const tg_remote_script* layout = tg_remote_script_of_runtime();
    uintptr_t newest = 0;
    uintptr_t main = 0;
    return layout && get(pid, runtime + layout->runtime_newest, &newest) &&
           get(pid, runtime + layout->runtime_main, &main) && newest != main;
}

Outcome run_in_main(pid_t pid, uintptr_t runtime, const std::string& path) {
    const tg_remote_script* layout = tg_remote_script_of_runtime();
    if (!layout) return Outcome::other;
    if (path.size() >= layout->path_size) return Outcome::too_long;
    const Stopped stopped(pid);
    if (stopped.outcome() != Outcome::done) return stopped.outcome();
    char ours[kPublished];
    char theirs[kPublished];
    memcpy(ours, tg_runtime(), sizeof ours);
    uintptr_t interpreter = 0;
    uintptr_t thread = 0;
    uintptr_t bits = 0;
    int enabled = 0;
    const bool is_it = copy_from(pid, runtime, theirs, sizeof theirs) &&
                       memcmp(ours, theirs, sizeof ours) == 0 &&
                       get(pid, runtime + layout->runtime_main, &interpreter) && interpreter != 0 &&
                       get(pid, interpreter + layout->enabled, &enabled) &&
                       get(pid, interpreter + layout->main_thread, &thread) && thread != 0 &&
                       get(pid, thread + layout->breaker, &bits);
    if (!is_it) return Outcome::other;
    if (enabled != 1) return Outcome::not_allowed;
    const bool done = copy_to(pid, thread + layout->path, path.c_str(), path.size() + 1) &&
                      put(pid, thread + layout->pending, 1) &&
                      put(pid, thread + layout->breaker, bits | layout->breaker_bits);
    return done ? Outcome::done : Outcome::other;
}

}  // namespace tachograph::entering
