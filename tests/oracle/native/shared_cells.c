/* Small functions over the same cells: which of them meets what another one has left there is known
 * to an exhaustive tracer (single_steps.c). */
#include <stdint.h>

typedef volatile uint64_t Cell;

uint64_t fill(Cell* cells, Cell* other, long count, uint64_t value) {
    (void)other;
    for (long i = 0; i < count; ++i) cells[i] = value;
    return 0;
}

/* Every other cell gets the same each time. */
uint64_t number(Cell* cells, Cell* other, long count, uint64_t first) {
    (void)other;
    for (long i = 0; i < count; ++i) cells[i] = (uint64_t)i + (i % 2 ? first : 0);
    return 0;
}

uint64_t total(Cell* cells, Cell* other, long count, uint64_t sum) {
    (void)other;
    for (long i = 0; i + 4 <= count; i += 4) {
        sum += cells[i];
        sum ^= cells[i + 1];
        sum += cells[i + 2];
        sum ^= cells[i + 3];
    }
    return sum;
}

uint64_t peak(Cell* cells, Cell* other, long count, uint64_t most) {
    (void)other;
    for (long i = 0; i < count; ++i) {
        const uint64_t value = cells[i];
        if (value > most) most = value;
    }
    return most;
}

uint64_t scale(Cell* cells, Cell* other, long count, uint64_t factor) {
    (void)other;
    for (long i = 0; i < count; ++i) {
        const uint64_t value = cells[i];
        cells[i] = value * factor;
    }
    return 0;
}

uint64_t copy(Cell* cells, Cell* other, long count, uint64_t unused) {
    (void)unused;
    for (long i = 0; i < count; ++i) other[i] = cells[i];
    return 0;
}
