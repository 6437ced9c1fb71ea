// What objects and frames refer to by name: local variables and attributes.
#include "compat_internal.h"

#include <structmember.h>

#if PY_VERSION_HEX >= 0x030E0000
// The lowest bits of a reference are tags; with both set it is a number and no object.
#define TG_OBJECT(reference) \
    (((reference).bits & 3) == 3 ? NULL : (PyObject*)((reference).bits & ~(uintptr_t)3))
#else
#define TG_OBJECT(reference) (reference)
#endif

void tg_visit_locals(PyThreadState* tstate, tg_visit_local visit, void* context) {
#if PY_VERSION_HEX >= 0x030D0000
    const struct _PyInterpreterFrame* frame = tstate->current_frame;
#else
    const struct _PyInterpreterFrame* frame = tstate->cframe->current_frame;
#endif
    for (; frame; frame = frame->previous) {
#if PY_VERSION_HEX >= 0x030E0000
        PyObject* code = TG_OBJECT(frame->f_executable);
#else
        PyObject* code = (PyObject*)frame->TG_FRAME_CODE;
#endif
        if (!code || !PyCode_Check(code)) continue;
        const int variables = ((PyCodeObject*)code)->co_nlocalsplus;
        for (int i = 0; i < variables; ++i) {
            PyObject* value = TG_OBJECT(frame->localsplus[i]);
            if (value && visit(value, code, i, context) != 0) return;
        }
    }
}

PyObject* tg_name_of_local(PyObject* code, int variable) {
    PyObject* names = ((PyCodeObject*)code)->co_localsplusnames;
    return variable < PyTuple_GET_SIZE(names) ? PyTuple_GET_ITEM(names, variable) : NULL;
}

PyObject* tg_inline_attribute(PyObject* owner, PyObject* value) {
    PyTypeObject* type = Py_TYPE(owner);
    PyDictValues* values = NULL;
#if PY_VERSION_HEX >= 0x030D0000
    if ((type->tp_flags & Py_TPFLAGS_INLINE_VALUES) && _PyObject_InlineValues(owner)->valid)
        values = _PyObject_InlineValues(owner);
#elif PY_VERSION_HEX >= 0x030C0000
    if ((type->tp_flags & Py_TPFLAGS_MANAGED_DICT) &&
        _PyDictOrValues_IsValues(*_PyObject_DictOrValuesPointer(owner)))
        values = _PyDictOrValues_GetValues(*_PyObject_DictOrValuesPointer(owner));
#else
    if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) values = *_PyObject_ValuesPointer(owner);
#endif
    PyDictKeysObject* keys = ((PyHeapTypeObject*)type)->ht_cached_keys;
    if (!values || !keys || keys->dk_kind == DICT_KEYS_GENERAL) return NULL;
    const PyDictUnicodeEntry* entries = DK_UNICODE_ENTRIES(keys);
    for (Py_ssize_t i = 0; i < keys->dk_nentries; ++i)
        if (values->values[i] == value) return entries[i].me_key;
    return NULL;
}

PyObject* tg_dict_of(PyObject* owner) {
    PyTypeObject* type = Py_TYPE(owner);
    if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) {
#if PY_VERSION_HEX >= 0x030D0000
        return (PyObject*)_PyObject_ManagedDictPointer(owner)->dict;
#elif PY_VERSION_HEX >= 0x030C0000
        const PyDictOrValues either = *_PyObject_DictOrValuesPointer(owner);
        return _PyDictOrValues_IsValues(either) ? NULL : _PyDictOrValues_GetDict(either);
#else
        return *_PyObject_ManagedDictPointer(owner);
#endif
    }
    if (type->tp_dictoffset <= 0) return NULL;
    return *(PyObject**)(void*)((char*)owner + type->tp_dictoffset);
}

const uint8_t* tg_attribute_values(const uint8_t* object,
                                   int (*read)(void* to, const void* from, size_t size)) {
    const PyDictObject* dict = NULL;
    PyDictObject copy;
#if PY_VERSION_HEX >= 0x030D0000
    const uint8_t* type = NULL;
    unsigned long flags = 0;
    PyDictValues values;
    if (!read(&type, object + offsetof(PyObject, ob_type), sizeof type) ||
        !read(&flags, type + offsetof(PyTypeObject, tp_flags), sizeof flags))
        return NULL;
    const uint8_t* inline_values = object + sizeof(PyObject);
    if ((flags & Py_TPFLAGS_INLINE_VALUES) && read(&values, inline_values, sizeof values) &&
        values.valid)
        return inline_values + offsetof(PyDictValues, values);
    if (!read(&dict, object - 3 * sizeof(void*), sizeof dict)) return NULL;
#elif PY_VERSION_HEX >= 0x030C0000
    PyDictOrValues either;
    if (!read(&either, object - 3 * sizeof(void*), sizeof either)) return NULL;
    if (_PyDictOrValues_IsValues(either))
        return (const uint8_t*)_PyDictOrValues_GetValues(either)->values;
    dict = (const PyDictObject*)either.dict;
#else
    const uint8_t* values = NULL;
    if (!read(&values, object - 4 * sizeof(void*), sizeof values)) return NULL;
    if (values) return values;
    if (!read(&dict, object - 3 * sizeof(void*), sizeof dict)) return NULL;
#endif
    if (!dict || !read(&copy, dict, sizeof copy) || copy.ob_base.ob_type != &PyDict_Type ||
        !copy.ma_values)
        return NULL;
    return (const uint8_t*)copy.ma_values->values;
}

size_t tg_slot_offset(const uint8_t* descriptor,
                      int (*read)(void* to, const void* from, size_t size)) {
    PyMemberDescrObject copy;
    PyMemberDef member;
    if (!read(&copy, descriptor, sizeof copy) || Py_TYPE(&copy) != &PyMemberDescr_Type ||
        !read(&member, copy.d_member, sizeof member) || member.type != T_OBJECT_EX ||
        member.offset <= 0)
        return 0;
    return (size_t)member.offset;
}
