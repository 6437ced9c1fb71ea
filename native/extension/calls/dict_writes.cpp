#include "calls/dict_writes.h"

namespace tachograph::calls {
namespace {

#if PY_VERSION_HEX < 0x030E0000 && !defined(Py_GIL_DISABLED)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
uint64_t number_of(PyObject* dict) {
    return reinterpret_cast<const PyDictObject*>(dict)->ma_version_tag;
}
#pragma GCC diagnostic pop
#else
uint64_t number_of(PyObject*) { return 0; }
#endif

// Neither allocates nor releases anything: the key is there.
uint64_t write_once(PyObject* dict, bool flipped) {
    PyDict_SetItem(dict, Py_None, flipped ? Py_True : Py_False);
    return number_of(dict);
}

}  // namespace

bool DictWrites::prepare() {
    if (!dict_) dict_ = PyDict_New();
    if (!dict_) {
        PyErr_Clear();
        return false;
    }
    write_once(dict_, true);
    const uint64_t first = write_once(dict_, false);
    step_ = write_once(dict_, true) - first;
    flipped_ = true;
    return step_ > 0;
}

uint64_t DictWrites::look() {
    flipped_ = !flipped_;
    const uint64_t number = write_once(dict_, flipped_);
    const uint64_t steps = (number - last_) / step_;
    last_ = number;
    return steps > 0 ? steps - 1 : 0;
}

void DictWrites::begin(Moment now, const Uncalled& counted) {
    begun_ = step_ > 0;
    if (!begun_) return;
    row_ = Function{};
    row_.code = dict_;
    row_.since = now;
    row_.counted_until = counted;
    look();
    Functions::begin_unnamed(&row_, now);
}

void DictWrites::pass() {
    if (begun_) row_.calls += static_cast<int64_t>(look());
}

uint64_t DictWrites::pass_counted() {
    if (!begun_) return 0;
    const uint64_t writes = look();
    row_.calls += static_cast<int64_t>(writes);
    return writes;
}

void DictWrites::write(Functions* functions, Moment now, const Uncalled& counted) {
    if (!begun_) return;
    pass();
    row_.add_uncounted(counted);
    // They are numbered all the time.
    row_.watched_ns = now.ns - row_.since.ns;
    row_.watched_cpu_ns = now.cpu_ns - row_.since.cpu_ns;
    functions->write_unnamed(&row_, now);
}

}  // namespace tachograph::calls
