/* Loads and stores of which a known share meets the value of the time before, each in a call of its
 * own. */
#include <stdint.h>
#include <stdlib.h>

uint64_t load_all(const volatile uint64_t* cells, long count) {
    uint64_t sum = 0;
    /* Several in a row: a sample is met with the next one ahead of it. */
    for (long i = 0; i + 4 <= count; i += 4) {
        sum += cells[i];
        sum ^= cells[i + 1];
        sum += cells[i + 2];
        sum ^= cells[i + 3];
    }
    return sum;
}

/* Changes the cells that are not to be as they were. */
void change(volatile uint64_t* cells, const uint8_t* changes, long count, uint64_t fresh) {
    for (long i = 0; i < count; ++i)
        if (changes[i]) cells[i] = fresh;
}

void store_all(volatile uint64_t* cells, const uint8_t* changes, long count, uint64_t fresh) {
    for (long i = 0; i < count; ++i) cells[i] = 7 + changes[i] * fresh;
}

uint64_t use_and_free(long count) {
    volatile uint64_t* cells = malloc(count * sizeof *cells);
    uint64_t sum = 0;
    if (!cells) return 0;
    for (long i = 0; i < count; ++i) cells[i] = 7;
    for (long i = 0; i < count; ++i) sum += cells[i];
    free((void*)cells);
    return sum;
}
