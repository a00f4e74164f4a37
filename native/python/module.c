/*
 * module.c - the module directfuse._fast: the hot calls of the package, called without cffi.
 */
#include "python/fast.h"

struct df_fast df_fast;

PyObject *df_fast_import(const char *module_name, const char *name)
{
    PyObject *module = PyImport_ImportModule(module_name);
    PyObject *value = module ? PyObject_GetAttrString(module, name) : NULL;
    Py_XDECREF(module);
    return value;
}

static int64_t this_interpreter(void)
{
    return PyInterpreterState_GetID(PyInterpreterState_Get());
}

bool df_fast_is_first(void)
{
    return this_interpreter() == df_fast.interpreter;
}

PyObject *df_fast_own(PyObject *first, const char *module_name, const char *name)
{
    if (DF_LIKELY(df_fast_is_first()))
        return Py_NewRef(first);
    return df_fast_import(module_name, name);
}

static int find_encoding(void)
{
    PyObject *function = df_fast_import("sys", "getfilesystemencoding");
    PyObject *name = function ? PyObject_CallFunctionObjArgs(function, NULL) : NULL;
    df_fast.utf8 = name && PyUnicode_CompareWithASCIIString(name, "utf-8") == 0;
    Py_XDECREF(function);
    Py_XDECREF(name);
    return name ? 0 : -1;
}

static int prepare_constants(void)
{
    df_fast.interpreter = this_interpreter();
    df_fast.stat_result = (PyTypeObject *)df_fast_import("os", "stat_result");
    df_fast.unsupported = df_fast_import("io", "UnsupportedOperation");
    df_fast.follow_symlinks = PyUnicode_InternFromString("follow_symlinks");
    df_fast.name = PyUnicode_InternFromString("name");
    df_fast.dot = PyUnicode_InternFromString(".");
    if (!df_fast.stat_result || !df_fast.unsupported || !df_fast.follow_symlinks || !df_fast.name ||
        !df_fast.dot)
        return -1;
    return find_encoding();
}

static int prepare(PyObject *module)
{
    PyMethodDef *tables[] = {df_stat_methods,   df_fdio_methods,    df_open_methods,
                             df_vector_methods, df_scandir_methods, df_open_file_methods,
                             df_batch_methods,  df_gil_methods,     df_listener_methods,
                             df_error_methods,  df_attempt_methods};
    for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
        if (PyModule_AddFunctions(module, tables[i]) < 0)
            return -1;
    }
    if (prepare_constants() < 0 || df_ascii_prepare() < 0 || df_stat_prepare() < 0 ||
        df_fdio_prepare() < 0 || df_open_prepare() < 0 || df_vector_prepare() < 0 ||
        df_open_file_prepare() < 0 || df_unclosed_prepare() < 0)
        return -1;
    if (df_file_type_prepare(module) < 0 || df_scandir_prepare(module) < 0 ||
        df_dir_entry_prepare(module) < 0 || df_dormant_prepare(module) < 0)
        return -1;
    return df_mapping_prepare(module);
}

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "directfuse._fast",
    .m_doc = PyDoc_STR("The hot calls of directfuse; directfuse re-exports what is public."),
    .m_size = -1, /* one for the process, as the core is: no isolated subinterpreters */
};

PyMODINIT_FUNC PyInit__fast(void);

PyMODINIT_FUNC PyInit__fast(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module && prepare(module) < 0)
        Py_CLEAR(module);
    return module;
}
