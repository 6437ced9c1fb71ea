#include "entry_call.h"

#ifdef __has_attribute
#if __has_attribute(no_stack_protector)
__attribute__((no_stack_protector))
#endif
#if __has_attribute(no_profile_instrument_function)
__attribute__((no_profile_instrument_function))
#endif
#endif
__attribute__((noinline, used, section("tachograph_entry"), no_instrument_function,
               no_sanitize("address"), no_sanitize("thread"),
               no_sanitize("undefined"))) int tg_entry_call(void* argument) {
    const struct tg_entry_call_argument* entry = (const struct tg_entry_call_argument*)argument;
    // No code of Python's runs before that of ours does: what fails until then is not for the
    // program.
    PyObject* code = entry->load(entry->code, entry->size);
    PyObject* names = code ? entry->new_dict() : 0;
    if (!names) {
        entry->clear_error();
        entry->release(code);
        return 0;
    }
    PyObject* result = entry->evaluate(code, names, names);
    entry->release(code);
    entry->release(names);
    entry->release(result);
    if (result) return 0;
    // The program is so deep that nothing more can be called.
    if (entry->matches(*entry->recursion_error)) {
        entry->clear_error();
        return 0;
    }
    // Again, when the program has met that: it may have come before the thread was started.
    entry->add_call(entry->again, argument);
    return -1;
}
