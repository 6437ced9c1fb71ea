/*
 * A program that has no Python in it when it starts, and loads one later. argv: the library, the
 * interpreter whose packages are to be found, the Python code. The code may call hold().
 */
#include <Python.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIND(name) __typeof__(&name) find_##name = (__typeof__(&name))dlsym(library, #name)

/* Takes a block through the program's own call of malloc, writes to all of it, and keeps it. */
void* hold(size_t size) {
    void* block = malloc(size);
    if (block) memset(block, 1, size);
    return block;
}

int main(int argc, char** argv) {
    if (argc < 4) return 2;
    free(hold(1000));
    void* library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 3;
    }
    FIND(PyConfig_InitPythonConfig);
    FIND(PyConfig_SetBytesString);
    FIND(PyConfig_Clear);
    FIND(PyStatus_Exception);
    FIND(Py_InitializeFromConfig);
    FIND(PyRun_SimpleString);
    FIND(Py_FinalizeEx);
    PyConfig config;
    find_PyConfig_InitPythonConfig(&config);
    config.install_signal_handlers = 0;
    find_PyConfig_SetBytesString(&config, &config.program_name, argv[2]);
    const PyStatus status = find_Py_InitializeFromConfig(&config);
    find_PyConfig_Clear(&config);
    if (find_PyStatus_Exception(status)) return 4;
    if (find_PyRun_SimpleString(argv[3]) != 0) return 5;
    if (find_Py_FinalizeEx() != 0) return 6;
    return 42;
}
