/* Rows on their way out: MessagePack by table, in the order in which they were added, cut into frames.

   1. A row is whole or not there: one that fails is taken back.
   2. A frame's limits are kept while rows are appended, so that draining copies and decides nothing. */

#include "hot.h"
#include "state_flags.h"

#include <structmember.h>
#include <string.h>

#define MOST_TABLES 64
#define FRAME_OVERHEAD 128 /* the frame's own array, its tag, the length of its rows */

typedef struct {
    size_t start;
    uint32_t rows;
} frame;

typedef struct row_buffer row_buffer;

struct bp_rows {
    row_buffer *owner;
    char *bytes;
    size_t size, room, row_start;
    frame *frames;
    size_t frame_count, frame_room;
    int failed;
    char tag[64];
    size_t tag_length;
};

struct row_buffer {
    PyObject_HEAD
    PyObject *index; /* table name -> position */
    PyObject *encode;
    PyObject *is_full;
    bp_rows tables[MOST_TABLES];
    int hot[BP_HOT_TABLES];
    int table_count;
    Py_ssize_t rows, most_rows;
    Py_ssize_t most_frame, most_batch;
    char closed, dirty;
    int64_t cuts[BP_CUTS];
    char told[BP_CUTS];
};

static PyTypeObject row_buffer_type;
static PyObject *name_buffer;

/* ---- one row */

static int grown(bp_rows *rows, size_t more)
{
    if (rows->failed) {
        return 0;
    }
    size_t room = rows->room ? rows->room * 2 : 4096;
    while (room < rows->size + more) {
        room *= 2;
    }
    char *bytes = PyMem_RawRealloc(rows->bytes, room);
    if (bytes == NULL) {
        rows->failed = 1;
        return 0;
    }
    rows->bytes = bytes;
    rows->room = room;
    return 1;
}

static inline char *space(bp_rows *rows, size_t more)
{
    if (rows->size + more > rows->room && !grown(rows, more)) {
        return NULL;
    }
    char *at = rows->bytes + rows->size;
    rows->size += more;
    return at;
}

static inline void put_byte(bp_rows *rows, unsigned char byte)
{
    char *at = space(rows, 1);
    if (at != NULL) {
        *at = (char)byte;
    }
}

/* A tag and `bytes` bytes of a number, big-endian. */
static inline void put_wide(bp_rows *rows, unsigned char tag, uint64_t value, int bytes)
{
    char *at = space(rows, 1 + (size_t)bytes);
    if (at == NULL) {
        return;
    }
    *at++ = (char)tag;
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
        *at++ = (char)(value >> shift);
    }
}

void bp_put_nil(bp_rows *rows) { put_byte(rows, 0xC0); }
void bp_put_bool(bp_rows *rows, int value) { put_byte(rows, value ? 0xC3 : 0xC2); }

void bp_put_uint(bp_rows *rows, uint64_t value)
{
    if (value < 0x80) {
        put_byte(rows, (unsigned char)value);
    } else if (value <= 0xFF) {
        put_wide(rows, 0xCC, value, 1);
    } else if (value <= 0xFFFF) {
        put_wide(rows, 0xCD, value, 2);
    } else if (value <= 0xFFFFFFFF) {
        put_wide(rows, 0xCE, value, 4);
    } else {
        put_wide(rows, 0xCF, value, 8);
    }
}

void bp_put_int(bp_rows *rows, int64_t value)
{
    if (value >= 0) {
        bp_put_uint(rows, (uint64_t)value);
    } else if (value >= -32) {
        put_byte(rows, (unsigned char)value);
    } else {
        put_wide(rows, 0xD3, (uint64_t)value, 8);
    }
}

void bp_put_id(bp_rows *rows, int64_t value)
{
    if (value < 0) {
        bp_put_nil(rows);
    } else {
        bp_put_uint(rows, (uint64_t)value);
    }
}

void bp_put_f32(bp_rows *rows, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_wide(rows, 0xCA, bits, 4);
}

void bp_put_f64(bp_rows *rows, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_wide(rows, 0xCB, bits, 8);
}

void bp_put_raw(bp_rows *rows, const void *bytes, Py_ssize_t length)
{
    char *at = space(rows, (size_t)length);
    if (at != NULL && length > 0) {
        memcpy(at, bytes, (size_t)length);
    }
}

void bp_put_str(bp_rows *rows, const char *text, Py_ssize_t length)
{
    if (length < 32) {
        put_byte(rows, (unsigned char)(0xA0 | length));
    } else if (length <= 0xFF) {
        put_wide(rows, 0xD9, (uint64_t)length, 1);
    } else if (length <= 0xFFFF) {
        put_wide(rows, 0xDA, (uint64_t)length, 2);
    } else {
        put_wide(rows, 0xDB, (uint64_t)length, 4);
    }
    bp_put_raw(rows, text, length);
}

void bp_put_text(bp_rows *rows, PyObject *text)
{
    if (text == NULL || text == Py_None) {
        bp_put_nil(rows);
        return;
    }
    Py_ssize_t length = 0;
    const char *utf8 = PyUnicode_AsUTF8AndSize(text, &length);
    if (utf8 == NULL) {
        PyErr_Clear();
        rows->failed = 1;
        return;
    }
    bp_put_str(rows, utf8, length);
}

void bp_put_bin(bp_rows *rows, const void *bytes, Py_ssize_t length)
{
    if (length <= 0xFF) {
        put_wide(rows, 0xC4, (uint64_t)length, 1);
    } else if (length <= 0xFFFF) {
        put_wide(rows, 0xC5, (uint64_t)length, 2);
    } else {
        put_wide(rows, 0xC6, (uint64_t)length, 4);
    }
    bp_put_raw(rows, bytes, length);
}

void bp_put_array(bp_rows *rows, uint32_t length)
{
    if (length < 16) {
        put_byte(rows, (unsigned char)(0x90 | length));
    } else if (length <= 0xFFFF) {
        put_wide(rows, 0xDC, length, 2);
    } else {
        put_wide(rows, 0xDD, length, 4);
    }
}

int bp_row_begin(bp_rows *rows, int fields)
{
    if (rows->owner->closed) {
        return 0;
    }
    rows->row_start = rows->size;
    rows->failed = 0;
    bp_put_array(rows, (uint32_t)fields);
    return 1;
}

static int new_frame(bp_rows *rows, size_t start)
{
    if (rows->frame_count == rows->frame_room) {
        size_t room = rows->frame_room ? rows->frame_room * 2 : 8;
        frame *frames = PyMem_RawRealloc(rows->frames, room * sizeof(frame));
        if (frames == NULL) {
            return 0;
        }
        rows->frames = frames;
        rows->frame_room = room;
    }
    rows->frames[rows->frame_count++] = (frame){start, 0};
    return 1;
}

int bp_row_end(bp_rows *rows)
{
    row_buffer *buffer = rows->owner;
    size_t start = rows->row_start, length = rows->size - start, most = (size_t)buffer->most_frame - FRAME_OVERHEAD;
    if (rows->failed || length > most) {
        PyErr_Format(PyExc_ValueError, "a row of table %s (%zu bytes) could not be kept", rows->tag, length);
        rows->size = start;
        return -1;
    }
    frame *last = rows->frame_count ? &rows->frames[rows->frame_count - 1] : NULL;
    if (last == NULL || last->rows >= (uint32_t)buffer->most_batch || rows->size - last->start > most) {
        if (!new_frame(rows, start)) {
            rows->size = start;
            PyErr_NoMemory();
            return -1;
        }
        last = &rows->frames[rows->frame_count - 1];
    }
    last->rows++;
    buffer->dirty = 1;
    if (++buffer->rows >= buffer->most_rows && !buffer->closed) {
        PyObject *done = PyObject_CallNoArgs(buffer->is_full);
        if (done == NULL) {
            return -1;
        }
        Py_DECREF(done);
    }
    return 0;
}

/* ---- the buffer as Python sees it */

static int buffer_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"tables", "encode", "is_full", "most_rows", "most_frame", "most_batch", NULL};
    row_buffer *buffer = (row_buffer *)self;
    PyObject *tables, *encode, *is_full;
    Py_ssize_t most_rows, most_frame, most_batch;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!OOnnn", keywords, &PyTuple_Type, &tables, &encode, &is_full,
                                     &most_rows, &most_frame, &most_batch)) {
        return -1;
    }
    if (buffer->index != NULL || PyTuple_GET_SIZE(tables) > MOST_TABLES || most_frame <= FRAME_OVERHEAD) {
        PyErr_SetString(PyExc_ValueError, "these tables cannot be buffered");
        return -1;
    }
    buffer->most_rows = most_rows;
    buffer->most_frame = most_frame;
    buffer->most_batch = most_batch;
    buffer->index = PyDict_New();
    if (buffer->index == NULL) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tables); i++) {
        PyObject *name = PyTuple_GET_ITEM(tables, i);
        Py_ssize_t length = 0;
        const char *text = PyUnicode_AsUTF8AndSize(name, &length);
        PyObject *position = PyLong_FromSsize_t(i);
        if (text == NULL || length >= 32 || position == NULL || PyDict_SetItem(buffer->index, name, position) < 0) {
            Py_XDECREF(position);
            if (!PyErr_Occurred()) {
                PyErr_SetString(PyExc_ValueError, "a table's name is at most 31 bytes long");
            }
            return -1;
        }
        Py_DECREF(position);
        bp_rows *rows = &buffer->tables[i];
        rows->owner = buffer;
        memcpy(rows->tag, text, (size_t)length);
        rows->tag_length = (size_t)length;
        buffer->table_count++;
    }
    buffer->encode = Py_NewRef(encode);
    buffer->is_full = Py_NewRef(is_full);
    return 0;
}

static void clear_tables(row_buffer *buffer)
{
    for (int i = 0; i < buffer->table_count; i++) {
        buffer->tables[i].size = 0;
        buffer->tables[i].frame_count = 0;
    }
    buffer->dirty = 0;
}

static void buffer_dealloc(PyObject *self)
{
    row_buffer *buffer = (row_buffer *)self;
    PyObject_GC_UnTrack(self);
    for (int i = 0; i < buffer->table_count; i++) {
        PyMem_RawFree(buffer->tables[i].bytes);
        PyMem_RawFree(buffer->tables[i].frames);
    }
    Py_CLEAR(buffer->index);
    Py_CLEAR(buffer->encode);
    Py_CLEAR(buffer->is_full);
    Py_TYPE(self)->tp_free(self);
}

static int buffer_traverse(PyObject *self, visitproc visit, void *arg)
{
    row_buffer *buffer = (row_buffer *)self;
    Py_VISIT(buffer->index);
    Py_VISIT(buffer->encode);
    Py_VISIT(buffer->is_full);
    return 0;
}

static int buffer_clear(PyObject *self)
{
    row_buffer *buffer = (row_buffer *)self;
    Py_CLEAR(buffer->encode);
    Py_CLEAR(buffer->is_full);
    return 0;
}

static bp_rows *table_named(row_buffer *buffer, PyObject *name)
{
    PyObject *position = buffer->index == NULL ? NULL : PyDict_GetItemWithError(buffer->index, name);
    if (position == NULL) {
        if (!PyErr_Occurred()) {
            PyErr_SetObject(PyExc_KeyError, name);
        }
        return NULL;
    }
    return &buffer->tables[PyLong_AsSsize_t(position)];
}

static PyObject *buffer_add(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    row_buffer *buffer = (row_buffer *)self;
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "add(table, row)");
        return NULL;
    }
    bp_rows *rows = table_named(buffer, args[0]);
    if (rows == NULL) {
        return NULL;
    }
    PyObject *encoded = PyObject_CallOneArg(buffer->encode, args[1]); /* Python: before the row begins */
    if (encoded == NULL) {
        return NULL;
    }
    rows->row_start = rows->size;
    rows->failed = 0;
    bp_put_raw(rows, PyBytes_AS_STRING(encoded), PyBytes_GET_SIZE(encoded));
    Py_DECREF(encoded);
    if (bp_row_end(rows) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static char *put_frame(char *at, bp_rows *rows, size_t index)
{
    frame *one = &rows->frames[index];
    size_t end = index + 1 < rows->frame_count ? rows->frames[index + 1].start : rows->size, length = end - one->start;
    char *size_at = at;
    at += 4;
    char *body = at;
    *at++ = (char)0x92;
    *at++ = (char)(0xA0 | rows->tag_length);
    memcpy(at, rows->tag, rows->tag_length);
    at += rows->tag_length;
    if (one->rows < 16) {
        *at++ = (char)(0x90 | one->rows);
    } else {
        *at++ = (char)0xDC;
        *at++ = (char)(one->rows >> 8);
        *at++ = (char)one->rows;
    }
    memcpy(at, rows->bytes + one->start, length);
    at += length;
    uint32_t size = (uint32_t)(at - body);
    for (int shift = 0; shift < 32; shift += 8) {
        *size_at++ = (char)(size >> shift);
    }
    return at;
}

static PyObject *buffer_drain(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    row_buffer *buffer = (row_buffer *)self;
    size_t most = 0, used = 0;
    for (int i = 0; i < buffer->table_count; i++) {
        most += buffer->tables[i].size + buffer->tables[i].frame_count * FRAME_OVERHEAD;
    }
    PyObject *data = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)most);
    if (data == NULL) {
        return NULL;
    }
    char *start = PyBytes_AS_STRING(data), *at = start;
    for (int i = 0; i < buffer->table_count; i++) {
        for (size_t index = 0; index < buffer->tables[i].frame_count; index++) {
            at = put_frame(at, &buffer->tables[i], index);
        }
    }
    used = (size_t)(at - start);
    clear_tables(buffer);
    if (used != most && _PyBytes_Resize(&data, (Py_ssize_t)used) < 0) {
        return NULL;
    }
    return data;
}

static const struct {
    const char *what, *why;
} CUTS[BP_CUTS] = {
    [BP_CUT_BINDINGS] = {"bindings", "a statement that runs often is recorded at 1-2-5 per decade"},
    [BP_CUT_MODULE_CALLS] = {"module calls", "more calls than are kept of one module, or in one step"},
};

int bp_cut(bp_rows *rows, PyObject *writer, int which)
{
    row_buffer *buffer = rows->owner;
    if (buffer->told[which]) {
        buffer->cuts[which]++;
        buffer->dirty = 1;
        return 0;
    }
    buffer->told[which] = 1;
    PyObject *done = PyObject_CallMethod(writer, "cut", "ss", CUTS[which].what, CUTS[which].why);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

static PyObject *buffer_take_cuts(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    row_buffer *buffer = (row_buffer *)self;
    PyObject *found = PyDict_New();
    for (int i = 0; found != NULL && i < BP_CUTS; i++) {
        PyObject *times = buffer->cuts[i] ? PyLong_FromLongLong(buffer->cuts[i]) : NULL;
        if (times != NULL && PyDict_SetItemString(found, CUTS[i].what, times) < 0) {
            Py_CLEAR(found);
        }
        Py_XDECREF(times);
        buffer->cuts[i] = 0;
    }
    return found;
}

static PyMethodDef buffer_methods[] = {
    {"add", (PyCFunction)(void (*)(void))buffer_add, METH_FASTCALL, "Take a row of a table."},
    {"drain", buffer_drain, METH_NOARGS, "Everything that was taken as frames, table by table; empty afterwards."},
    {"take_cuts", buffer_take_cuts, METH_NOARGS, "What was left out since the last time, and how often."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef buffer_members[] = {
    {"closed", T_BOOL, offsetof(row_buffer, closed), 0, "A cap was reached."},
    {"dirty", T_BOOL, offsetof(row_buffer, dirty), 0, "Something was taken since the last drain."},
    {"rows", T_PYSSIZET, offsetof(row_buffer, rows), READONLY, "Rows taken in all."},
    {NULL, 0, 0, 0, NULL},
};

static PyTypeObject row_buffer_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "backprobe.capture._core.RowBuffer",
    .tp_doc = "Rows on their way out.",
    .tp_basicsize = sizeof(row_buffer),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = PyType_GenericNew,
    .tp_init = buffer_init,
    .tp_dealloc = buffer_dealloc,
    .tp_traverse = buffer_traverse,
    .tp_clear = buffer_clear,
    .tp_methods = buffer_methods,
    .tp_members = buffer_members,
};

/* ---- the rows that the core writes itself: their fields in order, compared with the record's types when it loads */

#define BP_NAMED(name) " " #name

static const struct {
    const char *table;
    const char *fields;
} ROWS[BP_HOT_TABLES] = {
    [BP_STACKS] = {"stacks", "stack site parent"},
    [BP_MODULE_CALLS] = {"module_calls", "module_call module k chain parent site lo hi thread training grad_mode recompute"},
    [BP_MOMENTS] = {"moments", "moment kind time_ns k site thread module_call step grad_mode inference_mode autocast "
                              "stack"},
    [BP_TENSORS] = {"tensors", "tensor shape dtype device layout cls numel size_bytes moment stride storage_offset storage "
                               "storage_bytes view_of special created_by created_how proof site died fqn role"},
    [BP_NODES] = {"nodes", "node type thread first_seen seq site proof module_call born_in born_call grad_order outputs "
                           "variable custom saved_bytes freed_by died custom_site candidates"},
    [BP_TENSOR_NODES] = {"tensor_nodes", "tensor node output_nr proof"},
    [BP_EDGES] = {"edges", "node slot to_node input_nr"},
    [BP_SAVED] = {"saved", "node n name held_by tensor storage size_bytes shape dtype version proof"},
    [BP_BINDINGS] = {"bindings", "binding tensor name site moment function version replaces parents"},
    [BP_SNAPSHOTS] = {"snapshots", "tensor moment" BP_FIRST_FLAGS(BP_NAMED) " grad grad_fn grad_fn_read version "
                                   "grad_id grad_version value grad_stats" BP_LATER_FLAGS(BP_NAMED)},
    [BP_SMALL_VALUES] = {"small_values", "tensor moment of dtype shape elements"},
    [BP_NODE_PASSES] = {"node_passes", "call node output_nr position freed hole grad_output"},
    [BP_LEAF_GRADS] = {"leaf_grads", "n tensor moment kind call site grad_before grad_after version_before version_after"},
    [BP_INPLACE_EVENTS] = {"inplace_events", "n tensor moment version_before version_after done_by site optimizer"},
};

bp_rows *bp_rows_of(PyObject *writer, int table)
{
    PyObject *held = PyObject_GetAttr(writer, name_buffer);
    if (held == NULL) {
        return NULL;
    }
    row_buffer *buffer = (row_buffer *)held;
    bp_rows *rows = NULL;
    if (!PyObject_TypeCheck(held, &row_buffer_type)) {
        PyErr_SetString(PyExc_TypeError, "the writer has no compiled row buffer");
    } else {
        PyObject *name = PyUnicode_FromString(ROWS[table].table);
        rows = name == NULL ? NULL : table_named(buffer, name);
        Py_XDECREF(name);
    }
    Py_DECREF(held); /* the writer holds it */
    return rows;
}

static PyObject *field_names(void)
{
    PyObject *found = PyDict_New();
    for (int i = 0; found != NULL && i < BP_HOT_TABLES; i++) {
        PyObject *text = PyUnicode_FromString(ROWS[i].fields);
        PyObject *names = text == NULL ? NULL : PyUnicode_Split(text, NULL, -1);
        Py_XDECREF(text);
        if (names == NULL || PyDict_SetItemString(found, ROWS[i].table, names) < 0) {
            Py_CLEAR(found);
        }
        Py_XDECREF(names);
    }
    return found;
}

int bp_add_rows(PyObject *module)
{
    name_buffer = PyUnicode_InternFromString("buffer");
    if (name_buffer == NULL || PyModule_AddType(module, &row_buffer_type) < 0) {
        return -1;
    }
    PyObject *fields = field_names();
    if (fields == NULL || PyModule_AddObjectRef(module, "ROW_FIELDS", fields) < 0) {
        Py_XDECREF(fields);
        return -1;
    }
    Py_DECREF(fields);
    return 0;
}
