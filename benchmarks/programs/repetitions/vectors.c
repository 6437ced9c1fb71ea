#include <math.h>
#include <stdlib.h>
typedef struct {
    long rows, cols;
    double* cells;
} grid;
grid* grid_new(long r, long c) {
    grid* g = malloc(sizeof *g);
    g->rows = r;
    g->cols = c;
    g->cells = calloc(r * c, 8);
    return g;
}
void grid_fill(grid* g, long seed) {
    for (long i = 0; i < g->rows * g->cols; i++)
        g->cells[i] = (double)((i * 2654435761u + seed * 40503u) % 100003);
}
double grid_get(grid* g, long i, long j) {
    if (i < 0 || i >= g->rows || j < 0 || j >= g->cols) return NAN;
    return g->cells[i * g->cols + j];
}
double grid_sum(grid* g) {
    double s = 0;
    for (long i = 0; i < g->rows * g->cols; i++) s += g->cells[i];
    return s;
}
void crc_table(unsigned* t, unsigned poly) {
    for (unsigned n = 0; n < 4096; n++) {
        unsigned c = n;
        for (int k = 0; k < 8; k++) c = c & 1 ? poly ^ (c >> 1) : c >> 1;
        t[n] = c;
    }
}
unsigned crc_run(unsigned* t, const char* p, long n) {
    unsigned c = ~0u;
    for (long i = 0; i < n; i++) c = t[(c ^ (unsigned char)p[i]) & 255] ^ (c >> 8);
    return ~c;
}
double vec_norm(double* x, long n) {
    double s = 0;
    for (long i = 0; i < n; i++) s += x[i] * x[i];
    return sqrt(s);
}
double vec_dot(double* x, double* y, long n) {
    double s = 0;
    for (long i = 0; i < n; i++) s += x[i] * y[i];
    return s;
}
void convolve(double* o, double* x, long n, double* k, long m) {
    for (long i = 0; i < n; i++) {
        double s = 0;
        for (long j = 0; j < m; j++) s += x[i + j] * k[j];
        o[i] = s;
    }
}
