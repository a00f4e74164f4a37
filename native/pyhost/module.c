/*
 * module.c - the module directfuse._pyhost: Python file systems as plugins.
 */
#include "pyhost/node.h"

PyTypeObject *df_type_add(PyObject *module, PyType_Spec *spec)
{
    PyTypeObject *type = (PyTypeObject *)PyType_FromSpec(spec);
    if (!type || PyModule_AddType(module, type) < 0)
        return NULL;
    return type;
}

static int prepare(PyObject *module)
{
    if (PyModule_AddFunctions(module, df_thread_methods) < 0 ||
        PyModule_AddFunctions(module, df_run_methods) < 0 ||
        PyModule_AddFunctions(module, df_node_types_methods) < 0)
        return -1;
    if (df_turn_prepare(module) < 0 || df_node_job_prepare(module) < 0 ||
        df_node_poll_prepare(module) < 0 || df_node_session_prepare(module) < 0)
        return -1;
    return df_path_session_prepare(module);
}

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "directfuse._pyhost",
    .m_doc = PyDoc_STR("Python file systems as plugins; directfuse._python is what uses it."),
    .m_size = -1, /* one for the process, as libfuse's sessions are */
};

PyMODINIT_FUNC PyInit__pyhost(void);

PyMODINIT_FUNC PyInit__pyhost(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module && prepare(module) < 0)
        Py_CLEAR(module);
    return module;
}
