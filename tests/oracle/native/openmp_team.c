// Work of an OpenMP team: so many steps for each of its threads, in a parallel region.
#include <stdint.h>

void team(int threads, int64_t steps) {
#pragma omp parallel num_threads(threads)
    {
        volatile double x = 1.0;
        for (int64_t step = 0; step < steps; ++step) x = x * 1.0000001 + 1e-9;
    }
}
