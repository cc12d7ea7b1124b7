/* The plain scanner in C: rows of the plainest shape become columns, in one pass over their bytes.

   It reads what `importer.excel.plain_scan` reads and answers None to everything else, so that the exact scanner
   takes it. What it takes it checks: every byte of a run belongs to a construct named below, in its place.

     run   = { row }
     row   = <row r="N" END  { cell } </row>          END: up to the next "<", judged once by the caller (expat)
     cell  = <c r="AN" END                            an END of "/>" closes: nothing may follow
             [ <f END text </f> ] <v>text</v> </c>
           | <c r="AN" END <is><t>text</t></is></c>   also <t xml:space="preserve">
           | <c r="AN" END </c>
     text  = UTF-8 that XML 1.0 (2.2) allows, without CR and "]]>"; entities are the five named ones

   Columns leave as Arrow arrays (the C data interface), so no Python object is made for a cell. Cells that are missing
   in a row are null. The lock of the interpreter is given up while bytes are read. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

/* ---------------------------------------------------------------- Arrow C data interface (its specification) */

#define ARROW_FLAG_NULLABLE 2

struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

/* An array waiting to be taken by its consumer: up to three buffers and the list of lengths that a view array ends with. */
typedef struct {
    PyObject_HEAD
    const char *format;
    int64_t length;
    int64_t null_count;
    void *validity;
    void *values;
    void *data;
    int64_t data_length;
} ArrayObject;

typedef struct {
    const void *buffers[4];
    int64_t lengths[1];
    void *owned[3];
} ArrayBuffers;

static void release_schema(struct ArrowSchema *schema) { schema->release = NULL; }

static void release_array(struct ArrowArray *array)
{
    ArrayBuffers *held = array->private_data;
    for (int i = 0; i < 3; i++)
        PyMem_RawFree(held->owned[i]);
    PyMem_RawFree(held);
    array->release = NULL;
}

static void destroy_schema_capsule(PyObject *capsule)
{
    struct ArrowSchema *schema = PyCapsule_GetPointer(capsule, "arrow_schema");
    if (schema->release)
        schema->release(schema);
    PyMem_RawFree(schema);
}

static void destroy_array_capsule(PyObject *capsule)
{
    struct ArrowArray *array = PyCapsule_GetPointer(capsule, "arrow_array");
    if (array->release)
        array->release(array);
    PyMem_RawFree(array);
}

static void Array_dealloc(ArrayObject *self)
{
    PyMem_RawFree(self->validity);
    PyMem_RawFree(self->values);
    PyMem_RawFree(self->data);
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *Array_arrow(ArrayObject *self, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs))
{
    if (self->values == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "the array was taken already");
        return NULL;
    }
    struct ArrowSchema *schema = PyMem_RawCalloc(1, sizeof *schema);
    struct ArrowArray *array = PyMem_RawCalloc(1, sizeof *array);
    ArrayBuffers *held = PyMem_RawCalloc(1, sizeof *held);
    if (schema == NULL || array == NULL || held == NULL) {
        PyMem_RawFree(schema);
        PyMem_RawFree(array);
        PyMem_RawFree(held);
        return PyErr_NoMemory();
    }
    schema->format = self->format;
    schema->name = "";
    schema->flags = ARROW_FLAG_NULLABLE;
    schema->release = release_schema;
    int view = strcmp(self->format, "vu") == 0;
    held->owned[0] = self->validity;
    held->owned[1] = self->values;
    held->owned[2] = self->data;
    held->buffers[0] = self->validity;
    held->buffers[1] = self->values;
    held->buffers[2] = self->data;
    held->buffers[3] = held->lengths;
    held->lengths[0] = self->data_length;
    array->length = self->length;
    array->null_count = self->null_count;
    array->n_buffers = view ? 4 : 2;
    array->buffers = held->buffers;
    array->release = release_array;
    array->private_data = held;
    self->validity = self->values = self->data = NULL;
    PyObject *schema_capsule = PyCapsule_New(schema, "arrow_schema", destroy_schema_capsule);
    if (schema_capsule == NULL) {
        PyMem_RawFree(schema);
        array->release(array);
        PyMem_RawFree(array);
        return NULL;
    }
    PyObject *array_capsule = PyCapsule_New(array, "arrow_array", destroy_array_capsule);
    if (array_capsule == NULL) {
        Py_DECREF(schema_capsule);
        array->release(array);
        PyMem_RawFree(array);
        return NULL;
    }
    return Py_BuildValue("(NN)", schema_capsule, array_capsule);
}

static PyMethodDef Array_methods[] = {
    {"__arrow_c_array__", (PyCFunction)(void (*)(void))Array_arrow, METH_VARARGS | METH_KEYWORDS,
     "Hand the array over (Arrow PyCapsule interface); once."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot Array_slots[] = {
    {Py_tp_dealloc, Array_dealloc},
    {Py_tp_methods, Array_methods},
    {Py_tp_doc, "A column on its way to a frame."},
    {0, NULL},
};

static PyType_Spec Array_spec = {
    .name = "importer.excel._scanner.Array",
    .basicsize = sizeof(ArrayObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = Array_slots,
};

/* ---------------------------------------------------------------- what is read */

enum { TAG_NUMBER, TAG_SHARED, TAG_TEXT, TAG_BOOL, TAG_ERROR, TAG_ISO }; /* importer.excel.raw_cells.Tag */

enum { HIGH = 1, BAD = 2, AMP = 4, BRACKET = 8 };

static unsigned char classes[256];

typedef struct {
    char *bytes;
    uint32_t length;
    int32_t style;
    uint32_t alike; /* the first end with this tag and style */
    uint8_t tag, is_inline, closed;
} CellEnd;

typedef struct {
    char *bytes;
    uint32_t length;
    uint8_t hidden, closed;
} RowEnd;

typedef struct {
    uint32_t start, length; /* of the text, in the run */
    uint32_t row;           /* which of the rows that hold something */
    uint16_t column;
    uint16_t end; /* index of its CellEnd */
    uint8_t amp;  /* whether an entity stands in it */
} Cell;

typedef struct {
    PyObject_HEAD
    PyTypeObject *array_type;
    PyObject *judge_cell, *judge_row, *judge_formula;
    CellEnd *cell_ends;
    RowEnd *row_ends;
    RowEnd *formula_ends;
    uint32_t cell_end_count, row_end_count, formula_end_count;
    uint32_t most_rows, most_columns, most_characters, most_tag_bytes;
} ScannerObject;

#define MOST_ENDS 1000

typedef struct {
    const char *base, *at, *stop;
    Cell *cells;
    size_t cell_count, cell_room;
    int32_t *rows;
    size_t row_count, row_room;
    uint64_t seen_cells, formulas, hidden;
    uint32_t last_row;
    int failed; /* a Python error is set */
} Run;

static int starts(const Run *run, const char *word, size_t length)
{
    return (size_t)(run->stop - run->at) >= length && memcmp(run->at, word, length) == 0;
}

#define STARTS(run, word) starts(run, word, sizeof(word) - 1)

static int take(Run *run, const char *word, size_t length)
{
    if (!starts(run, word, length))
        return 0;
    run->at += length;
    return 1;
}

#define TAKE(run, word) take(run, word, sizeof(word) - 1)

/* Whether bytes are UTF-8 (Unicode 15, table 3-7) without U+FFFE and U+FFFF. */
static int sound_utf8(const unsigned char *s, const unsigned char *e)
{
    while (s < e) {
        if (*s < 0x80) {
            s++;
        } else if (*s >= 0xc2 && *s <= 0xdf) {
            if (e - s < 2 || (s[1] & 0xc0) != 0x80)
                return 0;
            s += 2;
        } else if ((*s & 0xf0) == 0xe0) {
            if (e - s < 3 || (s[1] & 0xc0) != 0x80 || (s[2] & 0xc0) != 0x80)
                return 0;
            if ((*s == 0xe0 && s[1] < 0xa0) || (*s == 0xed && s[1] > 0x9f))
                return 0;
            if (*s == 0xef && s[1] == 0xbf && s[2] >= 0xbe)
                return 0;
            s += 3;
        } else if (*s >= 0xf0 && *s <= 0xf4) {
            if (e - s < 4 || (s[1] & 0xc0) != 0x80 || (s[2] & 0xc0) != 0x80 || (s[3] & 0xc0) != 0x80)
                return 0;
            if ((*s == 0xf0 && s[1] < 0x90) || (*s == 0xf4 && s[1] > 0x8f))
                return 0;
            s += 4;
        } else {
            return 0;
        }
    }
    return 1;
}

static const struct {
    const char *name;
    size_t length;
    char stands_for;
} entities[] = {{"&amp;", 5, '&'}, {"&lt;", 4, '<'}, {"&gt;", 4, '>'}, {"&quot;", 6, '"'}, {"&apos;", 6, '\''}};

/* Length of the text with its entities decoded; -1 when one is none of the five. Writes it where `to` is not null. */
static int64_t decode(const char *s, const char *e, char *to)
{
    int64_t length = 0;
    while (s < e) {
        if (*s != '&') {
            if (to)
                to[length] = *s;
            length++;
            s++;
            continue;
        }
        size_t i = 0, known = sizeof entities / sizeof *entities;
        for (; i < known; i++)
            if ((size_t)(e - s) >= entities[i].length && memcmp(s, entities[i].name, entities[i].length) == 0)
                break;
        if (i == known)
            return -1;
        if (to)
            to[length] = entities[i].stands_for;
        length++;
        s += entities[i].length;
    }
    return length;
}

/* Read character data up to the next "<": its class bits, or -1 when only a parser should judge it. */
static int read_text(Run *run, uint32_t *start, uint32_t *length)
{
    const char *end = memchr(run->at, '<', run->stop - run->at);
    if (end == NULL)
        return -1;
    unsigned char seen = 0;
    for (const char *s = run->at; s < end; s++)
        seen |= classes[(unsigned char)*s];
    if (seen & BAD)
        return -1;
    if ((seen & HIGH) && !sound_utf8((const unsigned char *)run->at, (const unsigned char *)end))
        return -1;
    if (seen & BRACKET)
        for (const char *s = run->at; s + 2 < end; s++)
            if (s[0] == ']' && s[1] == ']' && s[2] == '>')
                return -1;
    if ((seen & AMP) && decode(run->at, end, NULL) < 0)
        return -1;
    *start = (uint32_t)(run->at - run->base);
    *length = (uint32_t)(end - run->at);
    run->at = end;
    return seen;
}

/* The rest of a tag, up to the next "<". */
static int read_end(const ScannerObject *self, Run *run, const char **start, uint32_t *length)
{
    const char *end = memchr(run->at, '<', run->stop - run->at);
    if (end == NULL)
        end = run->stop; /* a row that is closed at once may end the run */
    if ((size_t)(end - run->at) > self->most_tag_bytes)
        return 0;
    *start = run->at;
    *length = (uint32_t)(end - run->at);
    run->at = end;
    return 1;
}

static char *copied(const char *start, uint32_t length)
{
    char *copy = PyMem_RawMalloc(length ? length : 1);
    if (copy)
        memcpy(copy, start, length);
    return copy;
}

/* Ask the caller about a tag that was not seen before. The answer is a tuple of ints, or None. */
static int judge(PyObject *judge, const char *start, uint32_t length, const char *format, int *a, int *b, int *c, int *d)
{
    PyObject *answer = PyObject_CallFunction(judge, "y#", start, (Py_ssize_t)length);
    if (answer == NULL)
        return -1;
    int known = 0;
    if (answer != Py_None)
        known = PyArg_ParseTuple(answer, format, a, b, c, d) ? 1 : -1;
    Py_DECREF(answer);
    return known;
}

static int find_cell_end(ScannerObject *self, Run *run, const char *start, uint32_t length, uint32_t guess)
{
    if (guess < self->cell_end_count && self->cell_ends[guess].length == length &&
        memcmp(self->cell_ends[guess].bytes, start, length) == 0)
        return (int)guess;
    for (uint32_t i = 0; i < self->cell_end_count; i++)
        if (self->cell_ends[i].length == length && memcmp(self->cell_ends[i].bytes, start, length) == 0)
            return (int)i;
    if (self->cell_end_count == MOST_ENDS)
        return -1;
    int tag = 0, style = 0, is_inline = 0, closed = 0;
    PyGILState_STATE state = PyGILState_Ensure();
    int known = judge(self->judge_cell, start, length, "iiii", &tag, &style, &is_inline, &closed);
    char *bytes = known > 0 ? copied(start, length) : NULL;
    if (known < 0)
        run->failed = 1;
    PyGILState_Release(state);
    if (bytes == NULL)
        return -1;
    CellEnd *end = &self->cell_ends[self->cell_end_count];
    *end = (CellEnd){bytes, length, style, 0, (uint8_t)tag, (uint8_t)is_inline, (uint8_t)closed};
    while (self->cell_ends[end->alike].tag != end->tag || self->cell_ends[end->alike].style != end->style)
        end->alike++;
    return (int)self->cell_end_count++;
}

static RowEnd *find_row_end(ScannerObject *self, Run *run, const char *start, uint32_t length, int formula)
{
    RowEnd *ends = formula ? self->formula_ends : self->row_ends;
    uint32_t *count = formula ? &self->formula_end_count : &self->row_end_count;
    for (uint32_t i = 0; i < *count; i++)
        if (ends[i].length == length && memcmp(ends[i].bytes, start, length) == 0)
            return &ends[i];
    if (*count == MOST_ENDS)
        return NULL;
    int hidden = 0, closed = 0, unused = 0;
    PyGILState_STATE state = PyGILState_Ensure();
    int known = judge(formula ? self->judge_formula : self->judge_row, start, length, "ii", &hidden, &closed, &unused, &unused);
    char *bytes = known > 0 ? copied(start, length) : NULL;
    if (known < 0)
        run->failed = 1;
    PyGILState_Release(state);
    if (bytes == NULL)
        return NULL;
    ends[*count] = (RowEnd){bytes, length, (uint8_t)hidden, (uint8_t)closed};
    return &ends[(*count)++];
}

static int grow(void **items, size_t *room, size_t size)
{
    size_t wanted = *room ? *room * 2 : 4096;
    void *more = PyMem_RawRealloc(*items, wanted * size);
    if (more == NULL)
        return 0;
    *items = more;
    *room = wanted;
    return 1;
}

/* `<f` was read: the rest of the formula. Its text matters to nobody, but it has to be sound. */
static int read_formula(ScannerObject *self, Run *run)
{
    const char *start;
    uint32_t length, text, text_length;
    /* The opening ends at the first ">" (none may stand in the attributes of a formula that is judged sound). */
    const char *end = memchr(run->at, '>', run->stop - run->at);
    if (end == NULL || (size_t)(end - run->at) > self->most_tag_bytes)
        return 0;
    start = run->at;
    length = (uint32_t)(end + 1 - run->at);
    if (memchr(start, '<', length) != NULL)
        return 0;
    run->at = end + 1;
    RowEnd *known = find_row_end(self, run, start, length, 1);
    if (known == NULL)
        return 0;
    if (known->closed)
        return 1;
    if (read_text(run, &text, &text_length) < 0 || text_length > self->most_characters)
        return 0;
    return TAKE(run, "</f>");
}

/* `<c r="` was read: the rest of a cell. 0: not plain. */
static int read_cell(ScannerObject *self, Run *run, const char *digits, size_t digit_count, uint32_t *guess)
{
    uint32_t column = 0, letters = 0;
    while (run->at < run->stop && *run->at >= 'A' && *run->at <= 'Z' && letters < 4) {
        column = column * 26 + (uint32_t)(*run->at - 'A') + 1;
        letters++;
        run->at++;
    }
    if (letters == 0 || letters > 3 || column > self->most_columns)
        return 0;
    if (!take(run, digits, digit_count) || !TAKE(run, "\""))
        return 0;
    const char *start;
    uint32_t length;
    if (!read_end(self, run, &start, &length))
        return 0;
    int found = find_cell_end(self, run, start, length, *guess);
    if (found < 0)
        return 0;
    *guess = (uint32_t)found;
    const CellEnd end = self->cell_ends[found];
    run->seen_cells++;
    if (end.closed)
        return 1;
    Cell cell = {.row = (uint32_t)run->row_count, .column = (uint16_t)(column - 1), .end = (uint16_t)found};
    int seen, formula = 0;
    if (STARTS(run, "<f") && !STARTS(run, "<fo")) {
        run->at += 2;
        if (!read_formula(self, run))
            return 0;
        formula = 1;
    }
    if (TAKE(run, "<v>")) {
        seen = read_text(run, &cell.start, &cell.length);
        if (seen < 0 || cell.length > self->most_characters || !TAKE(run, "</v></c>"))
            return 0;
        if (formula && cell.length == 0)
            return 0; /* never calculated, or a calculated "": the exact scanner tells */
    } else if (!formula && end.is_inline && (TAKE(run, "<is><t>") || TAKE(run, "<is><t xml:space=\"preserve\">"))) {
        seen = read_text(run, &cell.start, &cell.length);
        if (seen < 0 || cell.length > self->most_characters || !TAKE(run, "</t></is></c>"))
            return 0;
    } else {
        return !formula && TAKE(run, "</c>");
    }
    run->formulas += (uint64_t)formula;
    if (cell.length == 0)
        return 1; /* blank */
    cell.amp = (seen & AMP) != 0;
    if (run->cell_count == run->cell_room && !grow((void **)&run->cells, &run->cell_room, sizeof(Cell)))
        return 0;
    run->cells[run->cell_count++] = cell;
    return 1;
}

/* Read all rows; 0: not plain (or no memory, or a Python error). */
static int read_rows(ScannerObject *self, Run *run)
{
    uint32_t guesses[64] = {0};
    while (run->at < run->stop) {
        if (!TAKE(run, "<row r=\""))
            return 0;
        const char *digits = run->at;
        uint32_t number = 0;
        while (run->at < run->stop && *run->at >= '0' && *run->at <= '9' && run->at - digits < 8)
            number = number * 10 + (uint32_t)(*run->at++ - '0');
        size_t digit_count = (size_t)(run->at - digits);
        if (digit_count == 0 || digit_count > 7 || *digits == '0' || !TAKE(run, "\""))
            return 0;
        if (number <= run->last_row || number > self->most_rows)
            return 0;
        run->last_row = number;
        const char *start;
        uint32_t length;
        if (!read_end(self, run, &start, &length))
            return 0;
        RowEnd *end = find_row_end(self, run, start, length, 0);
        if (end == NULL)
            return 0;
        run->hidden += end->hidden;
        if (end->closed)
            continue;
        size_t before = run->cell_count, place = 0;
        while (TAKE(run, "<c r=\"")) {
            if (!read_cell(self, run, digits, digit_count, &guesses[place & 63]))
                return 0;
            place++;
        }
        if (!TAKE(run, "</row>"))
            return 0;
        if (run->cell_count > before) {
            if (run->row_count == run->row_room && !grow((void **)&run->rows, &run->row_room, sizeof *run->rows))
                return 0;
            run->rows[run->row_count++] = (int32_t)number;
        }
    }
    return 1;
}

/* ---------------------------------------------------------------- columns */

static int sound_number(const char *s, const char *e)
{
    const char *begin;
    size_t whole, broken = 0;
    if (s < e && (*s == '+' || *s == '-'))
        s++;
    for (begin = s; s < e && *s >= '0' && *s <= '9'; s++)
        ;
    whole = (size_t)(s - begin);
    if (s < e && *s == '.') {
        for (begin = ++s; s < e && *s >= '0' && *s <= '9'; s++)
            ;
        broken = (size_t)(s - begin);
        if (whole == 0 && broken == 0)
            return 0;
    } else if (whole == 0) {
        return 0;
    }
    if (s < e && (*s == 'e' || *s == 'E')) {
        s++;
        if (s < e && (*s == '+' || *s == '-'))
            s++;
        for (begin = s; s < e && *s >= '0' && *s <= '9'; s++)
            ;
        if (s == begin || s - begin > 5)
            return 0;
    }
    return s == e;
}

static int sound(uint8_t tag, const char *s, uint32_t length)
{
    if (tag == TAG_NUMBER)
        return sound_number(s, s + length);
    if (tag == TAG_BOOL)
        return length == 1 && (*s == '0' || *s == '1');
    if (tag != TAG_SHARED || length > 9 || (length > 1 && *s == '0')) /* 007 is no index as Excel writes it */
        return 0;
    for (uint32_t i = 0; i < length; i++)
        if (s[i] < '0' || s[i] > '9')
            return 0;
    return length > 0;
}

typedef struct {
    unsigned char *views; /* 16 bytes each: length, then the text, or its first four bytes, buffer 0 and the place */
    unsigned char *validity;
    unsigned char *data;
    size_t data_length, data_room;
    int64_t set;
} Texts;

static int texts_make(Texts *texts, size_t count, int nullable)
{
    memset(texts, 0, sizeof *texts);
    texts->views = PyMem_RawCalloc(count ? count : 1, 16);
    if (nullable)
        texts->validity = PyMem_RawCalloc((count + 7) / 8 + 1, 1);
    return texts->views != NULL && (!nullable || texts->validity != NULL);
}

static void texts_free(Texts *texts)
{
    PyMem_RawFree(texts->views);
    PyMem_RawFree(texts->validity);
    PyMem_RawFree(texts->data);
}

static int texts_put(Texts *texts, size_t at, const char *s, uint32_t length, int amp)
{
    unsigned char *view = texts->views + at * 16;
    unsigned char small[12];
    uint32_t written = length;
    if (texts->validity)
        texts->validity[at / 8] |= (unsigned char)(1u << (at % 8));
    texts->set++;
    if (amp)
        written = (uint32_t)decode(s, s + length, NULL);
    if (written <= 12) {
        memset(small, 0, sizeof small);
        if (amp)
            decode(s, s + length, (char *)small);
        else
            memcpy(small, s, length);
        memcpy(view, &written, 4);
        memcpy(view + 4, small, 12);
        return 1;
    }
    while (texts->data_length + written > texts->data_room) {
        size_t room = texts->data_room ? texts->data_room * 2 : 65536;
        unsigned char *more = PyMem_RawRealloc(texts->data, room);
        if (more == NULL)
            return 0;
        texts->data = more;
        texts->data_room = room;
    }
    unsigned char *to = texts->data + texts->data_length;
    if (amp)
        decode(s, s + length, (char *)to);
    else
        memcpy(to, s, length);
    uint32_t buffer = 0, place = (uint32_t)texts->data_length;
    memcpy(view, &written, 4);
    memcpy(view + 4, to, 4);
    memcpy(view + 8, &buffer, 4);
    memcpy(view + 12, &place, 4);
    texts->data_length += written;
    return 1;
}

static PyObject *array_of(ScannerObject *self, const char *format, size_t length, int64_t nulls, void *validity, void *values,
                          void *data, size_t data_length)
{
    ArrayObject *array = PyObject_New(ArrayObject, self->array_type);
    if (array == NULL) {
        PyMem_RawFree(validity);
        PyMem_RawFree(values);
        PyMem_RawFree(data);
        return NULL;
    }
    array->format = format;
    array->length = (int64_t)length;
    array->null_count = nulls;
    array->validity = validity;
    array->values = values;
    array->data = data;
    array->data_length = (int64_t)data_length;
    return (PyObject *)array;
}

static PyObject *array_of_texts(ScannerObject *self, Texts *texts, size_t count)
{
    if (texts->data == NULL)
        texts->data = PyMem_RawMalloc(1);
    return array_of(self, "vu", count, texts->validity ? (int64_t)count - texts->set : 0, texts->validity, texts->views,
                    texts->data, texts->data_length);
}

/* What is known of a column before it is built. */
typedef struct {
    uint32_t last_row; /* the row of the last cell, plus 1 */
    uint32_t end;      /* the CellEnd that most cells are like: those of the column itself */
    uint32_t votes;    /* for it, while they are counted (Boyer and Moore) */
    uint32_t count;    /* cells like it */
    uint32_t place;    /* among the columns that are used */
    uint8_t used;      /* whether the column has a cell */
    uint8_t sound;     /* every text of the cells like it has the shape of its tag */
} ColumnFacts;

/* Whether a cell is told apart, because most of its column have another tag or format. */
static int apart(const ScannerObject *self, const ColumnFacts *facts, const Cell *cell)
{
    return self->cell_ends[cell->end].alike != facts[cell->column].end;
}

/* Cells as they come, in five arrays: row, column, tag, style, text. `facts` null: all; else those told apart. */
static PyObject *cells_of(ScannerObject *self, const Run *run, const ColumnFacts *facts)
{
    size_t count = 0;
    for (size_t i = 0; i < run->cell_count; i++)
        count += facts == NULL || apart(self, facts, &run->cells[i]);
    size_t room = count ? count : 1;
    int32_t *rows = PyMem_RawMalloc(room * 4), *columns = PyMem_RawMalloc(room * 4), *styles = PyMem_RawMalloc(room * 4);
    uint8_t *tags = PyMem_RawMalloc(room);
    Texts texts;
    int made = texts_make(&texts, count, 0) && rows && columns && styles && tags;
    size_t at = 0;
    for (size_t i = 0; made && i < run->cell_count; i++) {
        const Cell *cell = &run->cells[i];
        if (facts != NULL && !apart(self, facts, cell))
            continue;
        const CellEnd *end = &self->cell_ends[cell->end];
        rows[at] = run->rows[cell->row];
        columns[at] = cell->column;
        styles[at] = end->style;
        tags[at] = end->tag;
        made = texts_put(&texts, at, run->base + cell->start, cell->length, cell->amp);
        at++;
    }
    if (!made) {
        PyMem_RawFree(rows);
        PyMem_RawFree(columns);
        PyMem_RawFree(styles);
        PyMem_RawFree(tags);
        texts_free(&texts);
        return PyErr_NoMemory();
    }
    PyObject *parts[5] = {
        array_of(self, "i", count, 0, NULL, rows, NULL, 0),   array_of(self, "i", count, 0, NULL, columns, NULL, 0),
        array_of(self, "C", count, 0, NULL, tags, NULL, 0),   array_of(self, "i", count, 0, NULL, styles, NULL, 0),
        array_of_texts(self, &texts, count),
    };
    for (int i = 0; i < 5; i++)
        if (parts[i] == NULL) {
            for (int k = 0; k < 5; k++)
                Py_XDECREF(parts[k]);
            return NULL;
        }
    return Py_BuildValue("(NNNNN)", parts[0], parts[1], parts[2], parts[3], parts[4]);
}

/* Look at every column. Returns how many are used; -1 where a row has a cell twice. */
static int64_t look(const ScannerObject *self, const Run *run, ColumnFacts *facts, int *mixed)
{
    int64_t used = 0;
    for (size_t i = 0; i < run->cell_count; i++) {
        const Cell *cell = &run->cells[i];
        ColumnFacts *column = &facts[cell->column];
        uint32_t end = self->cell_ends[cell->end].alike;
        if (!column->used) {
            column->used = column->sound = 1;
            used++;
        } else if (column->last_row == cell->row + 1) {
            return -1;
        }
        column->last_row = cell->row + 1;
        if (column->votes == 0)
            column->end = end;
        column->votes += column->end == end ? 1 : (uint32_t)-1;
    }
    *mixed = 0;
    for (size_t i = 0; i < run->cell_count; i++) {
        const Cell *cell = &run->cells[i];
        ColumnFacts *column = &facts[cell->column];
        if (apart(self, facts, cell)) {
            *mixed = 1;
            continue;
        }
        column->count++;
        if (column->sound && !sound(self->cell_ends[cell->end].tag, run->base + cell->start, cell->length))
            column->sound = 0;
    }
    return used;
}

static void column_free(Texts *texts, uint32_t **indexes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        texts_free(&texts[i]);
        PyMem_RawFree(indexes[i]);
    }
}

/* The columns over all rows, each with the cells of the tag and format that most have, as (column, tag, style, sound, array).
   Shared strings whose indexes are sound leave as UInt32. */
static PyObject *columns_of(ScannerObject *self, const Run *run, ColumnFacts *facts, size_t used)
{
    Texts *texts = PyMem_RawCalloc(used ? used : 1, sizeof *texts);
    uint32_t **indexes = PyMem_RawCalloc(used ? used : 1, sizeof *indexes);
    PyObject *list = NULL;
    uint32_t place = 0;
    int made = texts != NULL && indexes != NULL;
    for (uint32_t c = 0; made && c < self->most_columns; c++) {
        ColumnFacts *column = &facts[c];
        if (!column->used)
            continue;
        int nullable = column->count < run->row_count;
        if (self->cell_ends[column->end].tag == TAG_SHARED && column->sound) {
            indexes[place] = PyMem_RawCalloc(run->row_count ? run->row_count : 1, 4);
            texts[place].validity = nullable ? PyMem_RawCalloc(run->row_count / 8 + 1, 1) : NULL;
            made = indexes[place] != NULL && (!nullable || texts[place].validity != NULL);
        } else {
            made = texts_make(&texts[place], run->row_count, nullable);
        }
        column->place = place++;
    }
    for (size_t i = 0; made && i < run->cell_count; i++) {
        const Cell *cell = &run->cells[i];
        const ColumnFacts *column = &facts[cell->column];
        if (apart(self, facts, cell))
            continue;
        const char *s = run->base + cell->start;
        if (indexes[column->place] != NULL) {
            uint32_t index = 0;
            for (uint32_t k = 0; k < cell->length; k++)
                index = index * 10 + (uint32_t)(s[k] - '0');
            indexes[column->place][cell->row] = index;
            if (texts[column->place].validity)
                texts[column->place].validity[cell->row / 8] |= (unsigned char)(1u << (cell->row % 8));
        } else {
            made = texts_put(&texts[column->place], cell->row, s, cell->length, cell->amp);
        }
    }
    if (made)
        list = PyList_New(0);
    else
        PyErr_NoMemory();
    for (uint32_t c = 0; list != NULL && c < self->most_columns; c++) {
        const ColumnFacts *column = &facts[c];
        if (!column->used)
            continue;
        const CellEnd *end = &self->cell_ends[column->end];
        Texts *held = &texts[column->place];
        PyObject *array;
        if (indexes[column->place] != NULL)
            array = array_of(self, "I", run->row_count, (int64_t)run->row_count - column->count, held->validity,
                             indexes[column->place], NULL, 0);
        else
            array = array_of_texts(self, held, run->row_count);
        indexes[column->place] = NULL;
        memset(held, 0, sizeof *held);
        PyObject *item = array == NULL ? NULL : Py_BuildValue("(iiiiN)", (int)c, end->tag, end->style, column->sound, array);
        if (item == NULL || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    if (texts != NULL && indexes != NULL)
        column_free(texts, indexes, used);
    PyMem_RawFree(texts);
    PyMem_RawFree(indexes);
    return list;
}

/* ---------------------------------------------------------------- shared strings */

/* `<si><t>text</t></si>`, `<si><t xml:space="preserve">text</t></si>`, `<si><t/></si>`, `<si/>`, one after the other:
   all texts as one array, or None when anything else stands among them. */
static PyObject *strings(PyObject *module, PyObject *args)
{
    Py_buffer piece;
    unsigned int most_characters;
    if (!PyArg_ParseTuple(args, "y*I:strings", &piece, &most_characters))
        return NULL;
    Run run = {.base = piece.buf, .at = piece.buf, .stop = (const char *)piece.buf + piece.len};
    Texts texts;
    size_t count = 0, room = 4096;
    int plain = piece.len <= UINT32_MAX / 2, made = texts_make(&texts, room, 0);
    Py_BEGIN_ALLOW_THREADS
    while (plain && made && run.at < run.stop) {
        uint32_t start = 0, length = 0;
        int seen = 0;
        if (TAKE(&run, "<si><t>") || TAKE(&run, "<si><t xml:space=\"preserve\">")) {
            seen = read_text(&run, &start, &length);
            plain = seen >= 0 && length <= most_characters && TAKE(&run, "</t></si>");
        } else {
            plain = TAKE(&run, "<si><t/></si>") || TAKE(&run, "<si/>");
        }
        if (!plain)
            break;
        if (count == room) {
            unsigned char *more = PyMem_RawRealloc(texts.views, room * 2 * 16);
            made = more != NULL;
            if (!made)
                break;
            texts.views = more;
            room *= 2;
        }
        made = texts_put(&texts, count++, run.base + start, length, (seen & AMP) != 0);
    }
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&piece);
    if (!plain || !made) {
        texts_free(&texts);
        if (!made)
            return PyErr_NoMemory();
        Py_RETURN_NONE;
    }
    ScannerObject holder = {.array_type = (PyTypeObject *)PyObject_GetAttrString(module, "Array")};
    if (holder.array_type == NULL) {
        texts_free(&texts);
        return NULL;
    }
    PyObject *array = array_of_texts(&holder, &texts, count);
    Py_DECREF(holder.array_type);
    return array;
}

/* ---------------------------------------------------------------- the scanner as Python sees it */

static PyObject *answer(ScannerObject *self, Run *run, Py_ssize_t most_places)
{
    ColumnFacts *facts = PyMem_RawCalloc(self->most_columns, sizeof *facts);
    if (facts == NULL || (run->rows == NULL && (run->rows = PyMem_RawMalloc(sizeof *run->rows)) == NULL)) {
        PyMem_RawFree(facts);
        return PyErr_NoMemory();
    }
    int mixed;
    int64_t used = look(self, run, facts, &mixed);
    PyObject *columns = NULL, *others = NULL, *rows = NULL;
    if (used < 0 || used * (int64_t)run->row_count > (int64_t)most_places) {
        others = cells_of(self, run, NULL);
    } else {
        columns = columns_of(self, run, facts, (size_t)used);
        if (columns != NULL && mixed)
            others = cells_of(self, run, facts);
        rows = columns == NULL ? NULL : array_of(self, "i", run->row_count, 0, NULL, run->rows, NULL, 0);
        if (rows != NULL)
            run->rows = NULL; /* now the array's */
    }
    PyMem_RawFree(facts);
    if (PyErr_Occurred()) {
        Py_XDECREF(columns);
        Py_XDECREF(others);
        Py_XDECREF(rows);
        return NULL;
    }
    PyObject *none = Py_None;
    return Py_BuildValue("(OOOKKKI)", rows ? rows : none, columns ? columns : none, others ? others : none,
                         (unsigned long long)run->seen_cells, (unsigned long long)run->formulas,
                         (unsigned long long)run->hidden, run->last_row);
}

static PyObject *Scanner_scan(ScannerObject *self, PyObject *args)
{
    Py_buffer piece;
    unsigned int last_row;
    Py_ssize_t most_places;
    if (!PyArg_ParseTuple(args, "y*In:scan", &piece, &last_row, &most_places))
        return NULL;
    if (piece.len > UINT32_MAX / 2) {
        PyBuffer_Release(&piece);
        Py_RETURN_NONE;
    }
    Run run = {.base = piece.buf, .at = piece.buf, .stop = (const char *)piece.buf + piece.len, .last_row = last_row};
    int plain;
    Py_BEGIN_ALLOW_THREADS
    plain = read_rows(self, &run);
    Py_END_ALLOW_THREADS
    PyObject *result = NULL;
    if (!run.failed) {
        if (plain) {
            result = answer(self, &run, most_places);
        } else {
            result = Py_None;
            Py_INCREF(result);
        }
    }
    PyMem_RawFree(run.cells);
    PyMem_RawFree(run.rows);
    PyBuffer_Release(&piece);
    return result;
}

static PyObject *Scanner_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"judge_cell", "judge_row", "judge_formula", "rows", "columns", "characters", "tag_bytes", NULL};
    PyObject *judge_cell, *judge_row, *judge_formula;
    unsigned int rows, columns, characters, tag_bytes;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOIIII:Scanner", names, &judge_cell, &judge_row, &judge_formula, &rows,
                                     &columns, &characters, &tag_bytes))
        return NULL;
    if (columns > 65535) {
        PyErr_SetString(PyExc_ValueError, "columns are at most 65,535");
        return NULL;
    }
    ScannerObject *self = (ScannerObject *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    PyObject *module = PyType_GetModule(type);
    self->array_type = module == NULL ? NULL : (PyTypeObject *)PyObject_GetAttrString(module, "Array");
    self->judge_cell = Py_NewRef(judge_cell);
    self->judge_row = Py_NewRef(judge_row);
    self->judge_formula = Py_NewRef(judge_formula);
    self->most_rows = rows;
    self->most_columns = columns;
    self->most_characters = characters;
    self->most_tag_bytes = tag_bytes;
    self->cell_ends = PyMem_RawCalloc(MOST_ENDS, sizeof *self->cell_ends);
    self->row_ends = PyMem_RawCalloc(MOST_ENDS, sizeof *self->row_ends);
    self->formula_ends = PyMem_RawCalloc(MOST_ENDS, sizeof *self->formula_ends);
    if (self->array_type == NULL || !self->cell_ends || !self->row_ends || !self->formula_ends) {
        Py_DECREF(self);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static int Scanner_traverse(ScannerObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->array_type);
    Py_VISIT(self->judge_cell);
    Py_VISIT(self->judge_row);
    Py_VISIT(self->judge_formula);
    return 0;
}

static int Scanner_clear(ScannerObject *self)
{
    Py_CLEAR(self->judge_cell);
    Py_CLEAR(self->judge_row);
    Py_CLEAR(self->judge_formula);
    return 0;
}

static void Scanner_dealloc(ScannerObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Scanner_clear(self);
    Py_CLEAR(self->array_type);
    for (uint32_t i = 0; i < self->cell_end_count; i++)
        PyMem_RawFree(self->cell_ends[i].bytes);
    for (uint32_t i = 0; i < self->row_end_count; i++)
        PyMem_RawFree(self->row_ends[i].bytes);
    for (uint32_t i = 0; i < self->formula_end_count; i++)
        PyMem_RawFree(self->formula_ends[i].bytes);
    PyMem_RawFree(self->cell_ends);
    PyMem_RawFree(self->row_ends);
    PyMem_RawFree(self->formula_ends);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef Scanner_methods[] = {
    {"scan", (PyCFunction)Scanner_scan, METH_VARARGS,
     "scan(run, last_row, most_places) -> None, or (rows, columns, others, cells, formulas, hidden, last_row)"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot Scanner_slots[] = {
    {Py_tp_new, Scanner_new},
    {Py_tp_dealloc, Scanner_dealloc},
    {Py_tp_traverse, Scanner_traverse},
    {Py_tp_clear, Scanner_clear},
    {Py_tp_methods, Scanner_methods},
    {Py_tp_doc, "Scans runs of whole rows of one sheet part."},
    {0, NULL},
};

static PyType_Spec Scanner_spec = {
    .name = "importer.excel._scanner.Scanner",
    .basicsize = sizeof(ScannerObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = Scanner_slots,
};

static int execute(PyObject *module)
{
    for (int i = 0; i < 0x20; i++)
        classes[i] = i == '\t' || i == '\n' ? 0 : BAD;
    for (int i = 0x80; i < 0x100; i++)
        classes[i] = HIGH;
    classes['&'] = AMP;
    classes[']'] = BRACKET;
    PyObject *array = PyType_FromModuleAndSpec(module, &Array_spec, NULL);
    if (array == NULL || PyModule_AddObjectRef(module, "Array", array) < 0) {
        Py_XDECREF(array);
        return -1;
    }
    Py_DECREF(array);
    PyObject *scanner = PyType_FromModuleAndSpec(module, &Scanner_spec, NULL);
    if (scanner == NULL || PyModule_AddObjectRef(module, "Scanner", scanner) < 0) {
        Py_XDECREF(scanner);
        return -1;
    }
    Py_DECREF(scanner);
    return 0;
}

static PyMethodDef module_methods[] = {
    {"strings", strings, METH_VARARGS, "strings(piece, most_characters) -> None, or the texts of plain shared strings"},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, execute}, {0, NULL}};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "importer.excel._scanner",
    .m_doc = "The plain scanner in C; see the head of _scanner.c.",
    .m_size = 0,
    .m_methods = module_methods,
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__scanner(void) { return PyModuleDef_Init(&module_definition); }
