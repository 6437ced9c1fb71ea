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

/* So slow that it is sampled often, however short the cells are there. */
static inline uint64_t load_and_divide(const volatile uint64_t* cells, long count) {
    volatile uint64_t divisor = 3;
    const uint64_t by = divisor;
    uint64_t sum = ~(uint64_t)0;
    for (long i = 0; i < count; ++i) {
        sum += cells[i];
        sum = ~(sum / by) / by;
    }
    return sum;
}

uint64_t load_slowly(const volatile uint64_t* cells, long count) {
    return load_and_divide(cells, count);
}

__attribute__((noinline)) uint64_t load_again(const volatile uint64_t* cells, long count) {
    return load_and_divide(cells, count);
}

/* Each cell gets 0 in `share` of 10,000 rounds, else what it never had: two rounds leave the same
 * in the square of that share. */
__attribute__((noinline)) void renew(volatile uint64_t* cells, long count, uint64_t round,
                                     unsigned share) {
    for (long i = 0; i < count; ++i) {
        uint64_t mixed = (uint64_t)(i + 1) * 0x9E3779B97F4A7C15u + round * 0xC2B2AE3D27D4EB4Fu;
        mixed = (mixed ^ mixed >> 29) * 0xBF58476D1CE4E5B9u;
        cells[i] = (mixed >> 32) % 10000 < share ? 0 : round;
    }
}

void renew_often(volatile uint64_t* cells, long count, uint64_t first, long rounds,
                 unsigned share) {
    for (long round = 0; round < rounds; ++round)
        renew(cells, count, first + (uint64_t)round, share);
}

uint64_t load_often(volatile uint64_t* cells, long count, uint64_t first, long rounds,
                    unsigned share) {
    uint64_t sum = 0;
    for (long round = 0; round < rounds; ++round) {
        renew(cells, count, first + (uint64_t)round, share);
        sum += load_again(cells, count);
    }
    return sum;
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
