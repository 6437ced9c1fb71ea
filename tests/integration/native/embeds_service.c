/*
 * A service that embeds Python as CPython's documentation shows, so that sys.executable is itself.
 * argv[1]: a file that gets a line each time it is started; argv[2]: what it runs.
 */
#include <Python.h>

#include <stdio.h>
#include <unistd.h>

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    FILE* log = fopen(argv[1], "a");
    if (!log) return 2;
    fprintf(log, "started %d\n", getpid());
    fclose(log);
    PyConfig config;
    PyConfig_InitPythonConfig(&config);
    config.parse_argv = 0;
    PyConfig_SetBytesString(&config, &config.program_name, argv[0]);
    PyStatus status = Py_InitializeFromConfig(&config);
    if (PyStatus_Exception(status)) Py_ExitStatusException(status);
    PyConfig_Clear(&config);
    const int failed = PyRun_SimpleString(argv[2]);
    return Py_FinalizeEx() != 0 || failed != 0;
}
