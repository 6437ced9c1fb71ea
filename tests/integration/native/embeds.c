/*
 * A program that embeds Python. argv[1]: how; what follows is for Python. Ends with a status of its
 * own.
 */
#include <Python.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Without position independence the program has entries of its own for both, as Debian's python3.
 */
void* (*volatile allocate)(size_t);
void (*volatile release)(void*);

/* One life of the interpreter: it works in a function of that name and says who it is. */
static int live(const char* name) {
    char code[1024];
    snprintf(code, sizeof code,
             "import json, os, sys, time\n"
             "def %s(seconds):\n"
             "    end = time.process_time() + seconds\n"
             "    while time.process_time() < end:\n"
             "        pass\n"
             "%s(0.1)\n"
             "print(json.dumps({'name': '%s', 'pid': os.getpid()}), flush=True)\n",
             name, name, name);
    return PyRun_SimpleString(code);
}

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    allocate = malloc;
    release = free;
    release(allocate(1));
    if (strcmp(argv[1], "main") == 0) return Py_BytesMain(argc - 1, argv + 1);
    const int lives = strcmp(argv[1], "twice") == 0 ? 2 : 1;
    for (int i = 0; i < lives; i++) {
        Py_Initialize();
        if (strcmp(argv[1], "interrupted") == 0) raise(SIGINT);
        if (live(i == 0 ? "in_first_life" : "in_second_life") != 0) return 3;
        if (Py_FinalizeEx() != 0) return 4;
    }
    return 42;
}
