// A library whose static objects allocate before anything else of the program runs, and free at the
// end: opened while the program runs, or preloaded, so that it comes before the recorder too.
#include <pthread.h>
#include <sys/mman.h>
#include <cstdlib>
#include <cstring>
#include <ctime>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr size_t large = 64u << 20;
constexpr size_t mapped = 16u << 20;

class Early {
  public:
    Early() : block_(static_cast<char*>(malloc(large))), map_(map()) {
        memset(block_, 1, 1u << 20);
        memcpy(map_, block_, 1u << 20);
        for (auto& small : small_) small = malloc(3000);
    }
    ~Early() {
        release();
        void* late = malloc(5u << 20);
        memcpy(late, "late", 5);
        free(late);
    }
    Early(const Early&) = delete;
    Early& operator=(const Early&) = delete;

    // Whether there was anything left to free.
    bool release() {
        if (!block_) return false;
        free(block_);
        block_ = nullptr;
        munmap(map_, mapped);
        for (auto& small : small_) free(small);
        return true;
    }

  private:
    static void* map() {
        return mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }

    char* block_;
    void* map_;
    void* small_[2000];
};

// A thread from the very beginning, which hands each block on to its next round.
class EarlyThread {
  public:
    EarlyThread() { running_ = pthread_create(&thread_, nullptr, work, this) == 0; }

    int join() {
        if (running_) pthread_join(thread_, nullptr);
        running_ = false;
        return rounds_ > 10;
    }

  private:
    static void* work(void* self) {
        const timespec pause = {0, 500000};
        void* blocks[50] = {};
        auto* me = static_cast<EarlyThread*>(self);
        for (me->rounds_ = 0; me->rounds_ < 500; me->rounds_++) {
            for (auto& block : blocks) {
                free(block);
                block = malloc(40000);
            }
            nanosleep(&pause, nullptr);
        }
        for (auto* block : blocks) free(block);
        return nullptr;
    }

    pthread_t thread_ = {};
    bool running_ = false;
    int rounds_ = 0;
};

Early early;
EarlyThread early_thread;

}  // namespace

EXPORT int early_release() { return early.release(); }

EXPORT int early_join() { return early_thread.join(); }
