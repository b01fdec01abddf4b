/* The compiled scan: upper bounds of cosines from one-byte codes, and the products that scores are made of.
 *
 * perdure.vectors.coding says what a bound is. A dot product of codes is an exact integer, so the vector
 * instructions used for it change nothing; bounds choose which rows are scored and are never published.
 *
 * perdure.vectors.cosine says in which order products are added up; the bits are the same here. Compile
 * without any option that lets the compiler reorder sums.
 *
 * The arguments are checked and held as buffers, then the interpreter lock is released for long work.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>
#include <stdlib.h>

#define CODES_STEP 64            /* a row's codes are padded with zeros to a multiple of this */
#define STRIDE_MAX (1 << 16)     /* 2^16 * 127^2 is below 2^31, and so is 2^16 * 255 * 127 */
#define LONG_WORK (1 << 16)      /* numbers from which the interpreter lock is released: it costs a little */
#define GROUP 32                 /* bounds of which the greatest is given apart: a multiple of TOGETHER */
#define TOGETHER 4               /* rows that share what is loaded of the query */
#define FETCH_BYTES 4096         /* how far ahead codes are asked for, or a group of rows where that is more */

#if defined(__GNUC__) && defined(__x86_64__)
#define HAVE_X86 1
#include <immintrin.h>
#define FETCH(address) __builtin_prefetch(address)
#else
#define FETCH(address) (void)(address)
#endif

typedef struct {
    const int8_t *codes;
    int16_t *wide; /* the same as 16-bit numbers */
    int32_t sum;
    Py_ssize_t stride;
} Query;

typedef void (*Dots)(const int8_t *const row[TOGETHER], const Query *query, int32_t out[TOGETHER]);

static void dots_portable(const int8_t *const row[TOGETHER], const Query *query, int32_t out[TOGETHER])
{
    int each;
    for (each = 0; each < TOGETHER; each++) {
        const int8_t *codes = row[each];
        int32_t sum = 0;
        Py_ssize_t i;
        for (i = 0; i < query->stride; i++) sum += codes[i] * query->wide[i];
        out[each] = sum;
    }
}

#ifdef HAVE_X86
#define AVX2 __attribute__((target("avx2")))
#define VNNI __attribute__((target("avx512f,avx512bw,avx512vnni")))

AVX2 static inline int32_t total_avx2(__m256i sums)
{
    __m128i half = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(half, _mm_shuffle_epi32(half, 0xb1)));
}

AVX2 static void dots_avx2(const int8_t *const row[TOGETHER], const Query *query, int32_t out[TOGETHER])
{
    __m256i sums[TOGETHER];
    Py_ssize_t i;
    int each;
    for (each = 0; each < TOGETHER; each++) sums[each] = _mm256_setzero_si256();
    for (i = 0; i < query->stride; i += 16) {
        __m256i part = _mm256_loadu_si256((const __m256i *)(query->wide + i));
        for (each = 0; each < TOGETHER; each++) {
            __m256i codes = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(row[each] + i)));
            sums[each] = _mm256_add_epi32(sums[each], _mm256_madd_epi16(codes, part));
        }
    }
    for (each = 0; each < TOGETHER; each++) out[each] = total_avx2(sums[each]);
}

/* The instruction multiplies unsigned by signed: codes are raised by 128, which adds 128 times the query's sum. */
VNNI static void dots_vnni(const int8_t *const row[TOGETHER], const Query *query, int32_t out[TOGETHER])
{
    const __m512i raise = _mm512_set1_epi8((char)0x80);
    __m512i sums[TOGETHER];
    Py_ssize_t i;
    int each;
    for (each = 0; each < TOGETHER; each++) sums[each] = _mm512_setzero_si512();
    for (i = 0; i < query->stride; i += 64) {
        __m512i part = _mm512_loadu_si512(query->codes + i);
        for (each = 0; each < TOGETHER; each++) {
            __m512i codes = _mm512_xor_si512(_mm512_loadu_si512(row[each] + i), raise);
            sums[each] = _mm512_dpbusd_epi32(sums[each], codes, part);
        }
    }
    for (each = 0; each < TOGETHER; each++) out[each] = _mm512_reduce_add_epi32(sums[each]) - 128 * query->sum;
}
#endif

static Dots dots = dots_portable;

typedef struct {
    const int8_t *codes;
    const float *scales, *errors;
    const int64_t *places; /* NULL: places 0, 1, ... of out_count */
    float *out, *peaks;
    Py_ssize_t count, out_count;
    Query query;
    double factor, share, rest;
} Scan;

static inline int64_t place_of(const Scan *scan, Py_ssize_t i) { return scan->places ? scan->places[i] : (int64_t)i; }

static int places_fit(const Scan *scan)
{
    Py_ssize_t i;
    for (i = 0; scan->places && i < scan->out_count; i++)
        if (scan->places[i] < 0 || scan->places[i] >= (int64_t)scan->count) return 0;
    return 1;
}

/* Ask for the codes of some rows: the processor itself looks ahead within a page of memory only. */
static void fetch(const Scan *scan, Py_ssize_t from)
{
    Py_ssize_t i, byte, stop = scan->out_count - from < TOGETHER ? scan->out_count : from + TOGETHER;
    for (i = from; i < stop; i++) {
        const int8_t *row = scan->codes + place_of(scan, i) * scan->query.stride;
        for (byte = 0; byte < scan->query.stride; byte += 64) FETCH(row + byte);
    }
}

static void run(const Scan *scan)
{
    Py_ssize_t i, stride = scan->query.stride, ahead = FETCH_BYTES / stride / TOGETHER * TOGETHER + TOGETHER;
    float peak = 0;
    for (i = 0; i < scan->out_count; i += TOGETHER) {
        const int8_t *row[TOGETHER];
        int32_t product[TOGETHER];
        Py_ssize_t each, some = scan->out_count - i < TOGETHER ? scan->out_count - i : TOGETHER;
        for (each = 0; each < TOGETHER; each++)
            row[each] = scan->codes + place_of(scan, i + (each < some ? each : 0)) * stride;
        fetch(scan, i + ahead);
        dots(row, &scan->query, product);
        for (each = 0; each < some; each++) {
            int64_t place = place_of(scan, i + each);
            float bound = (float)(scan->factor * scan->scales[place] * product[each] +
                                  scan->share * scan->errors[place] + scan->rest);
            scan->out[i + each] = bound;
            if ((i + each) % GROUP == 0 || bound > peak) peak = bound;
            scan->peaks[(i + each) / GROUP] = peak;
        }
    }
}

static const char *fit(Scan *scan, const Py_buffer *codes, const Py_buffer *query, const Py_buffer *scales,
                       const Py_buffer *errors, const Py_buffer *places, const Py_buffer *out,
                       const Py_buffer *peaks)
{
    scan->query.stride = query->len;
    if (query->len < CODES_STEP || query->len > STRIDE_MAX || query->len % CODES_STEP)
        return "query must be padded to a multiple of 64 codes";
    scan->count = codes->len / query->len;
    if (codes->len % query->len) return "codes must be whole rows as long as the query";
    if (scales->len / 4 < scan->count || errors->len / 4 < scan->count) return "a scale or an error is missing";
    scan->out_count = out->len / 4;
    if (places->obj ? places->len / 8 != scan->out_count : scan->count != scan->out_count)
        return "out must have one bound for each place";
    if (peaks->len / 4 != (scan->out_count + GROUP - 1) / GROUP) return "peaks must have one for each 32 bounds";
    scan->codes = codes->buf;
    scan->scales = scales->buf;
    scan->errors = errors->buf;
    scan->places = places->obj ? places->buf : NULL;
    scan->out = out->buf;
    scan->peaks = peaks->buf;
    return NULL;
}

static int start(Scan *scan, const int8_t *codes)
{
    Query *query = &scan->query;
    Py_ssize_t i;
    if (!places_fit(scan)) {
        PyErr_SetString(PyExc_ValueError, "a place is outside of the codes");
        return -1;
    }
    query->codes = codes;
    query->sum = 0;
    query->wide = malloc((size_t)query->stride * sizeof *query->wide);
    if (!query->wide) {
        PyErr_NoMemory();
        return -1;
    }
    for (i = 0; i < query->stride; i++) query->sum += query->wide[i] = codes[i];
    if (scan->out_count * query->stride < LONG_WORK) {
        run(scan);
    } else {
        Py_BEGIN_ALLOW_THREADS
        run(scan);
        Py_END_ALLOW_THREADS
    }
    free(query->wide);
    return 0;
}

static PyObject *scan_upper_bounds(PyObject *Py_UNUSED(module), PyObject *args)
{
    Scan scan;
    Py_buffer codes, query, scales, errors, out, peaks, places = {0};
    PyObject *wanted;
    const char *problem;
    int failed = 1;
    if (!PyArg_ParseTuple(args, "y*y*y*y*Ow*w*(ddd)", &codes, &query, &scales, &errors, &wanted, &out, &peaks,
                          &scan.factor, &scan.share, &scan.rest))
        return NULL;
    if (wanted == Py_None || !PyObject_GetBuffer(wanted, &places, PyBUF_SIMPLE)) {
        problem = fit(&scan, &codes, &query, &scales, &errors, &places, &out, &peaks);
        if (problem)
            PyErr_SetString(PyExc_ValueError, problem);
        else
            failed = start(&scan, query.buf);
        if (places.obj) PyBuffer_Release(&places);
    }
    PyBuffer_Release(&codes);
    PyBuffer_Release(&query);
    PyBuffer_Release(&scales);
    PyBuffer_Release(&errors);
    PyBuffer_Release(&out);
    PyBuffer_Release(&peaks);
    if (failed) return NULL;
    Py_RETURN_NONE;
}

/* ---- products --------------------------------------------------------------------------------- */

typedef struct {
    const float *vectors;
    const double *query;
    const int64_t *places;
    double *out;
    Py_ssize_t dimension, count, out_count;
    double *room; /* half a vector's products */
} Products;

static Py_ssize_t half_of(Py_ssize_t width)
{
    Py_ssize_t half = 1;
    while (half * 2 < width) half *= 2;
    return half;
}

static double fold(const float *vector, const double *query, Py_ssize_t width, double *room)
{
    Py_ssize_t i, half = half_of(width);
    if (width == 1) return query[0] * vector[0];
    for (i = 0; i < width - half; i++) room[i] = query[i] * vector[i] + query[half + i] * vector[half + i];
    for (; i < half; i++) room[i] = query[i] * vector[i];
    while (half > 1) {
        half /= 2;
        for (i = 0; i < half; i++) room[i] += room[half + i];
    }
    return room[0];
}

static void fold_all(const Products *work)
{
    Py_ssize_t i, at;
    for (i = 0; i < work->out_count; i++) {
        const float *next = work->vectors + work->places[i + 1 < work->out_count ? i + 1 : i] * work->dimension;
        for (at = 0; at < work->dimension; at += 16) FETCH(next + at);
        work->out[i] =
            fold(work->vectors + work->places[i] * work->dimension, work->query, work->dimension, work->room);
    }
}

static const char *fit_products(Products *work, const Py_buffer *vectors, const Py_buffer *query,
                                const Py_buffer *places, const Py_buffer *out)
{
    Py_ssize_t i;
    work->dimension = query->len / 8;
    if (!work->dimension || vectors->len % (work->dimension * 4)) return "vectors must be whole rows as long as the query";
    work->count = vectors->len / (work->dimension * 4);
    work->out_count = out->len / 8;
    if (places->len / 8 != work->out_count) return "out must have one product for each place";
    work->vectors = vectors->buf;
    work->query = query->buf;
    work->places = places->buf;
    work->out = out->buf;
    for (i = 0; i < work->out_count; i++)
        if (work->places[i] < 0 || work->places[i] >= (int64_t)work->count) return "a place is outside of the vectors";
    return NULL;
}

static int start_products(Products *work)
{
    work->room = malloc((size_t)half_of(work->dimension) * sizeof *work->room);
    if (!work->room) {
        PyErr_NoMemory();
        return -1;
    }
    if (work->out_count * work->dimension < LONG_WORK) {
        fold_all(work);
    } else {
        Py_BEGIN_ALLOW_THREADS
        fold_all(work);
        Py_END_ALLOW_THREADS
    }
    free(work->room);
    return 0;
}

static PyObject *scan_products(PyObject *Py_UNUSED(module), PyObject *args)
{
    Products work;
    Py_buffer vectors, query, places, out;
    const char *problem;
    int failed = 1;
    if (!PyArg_ParseTuple(args, "y*y*y*w*", &vectors, &query, &places, &out)) return NULL;
    problem = fit_products(&work, &vectors, &query, &places, &out);
    if (problem)
        PyErr_SetString(PyExc_ValueError, problem);
    else
        failed = start_products(&work);
    PyBuffer_Release(&vectors);
    PyBuffer_Release(&query);
    PyBuffer_Release(&places);
    PyBuffer_Release(&out);
    if (failed) return NULL;
    Py_RETURN_NONE;
}

/* ---- the module ------------------------------------------------------------------------------- */

static int scan_exec(PyObject *Py_UNUSED(module))
{
#ifdef HAVE_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vnni"))
        dots = dots_vnni;
    else if (__builtin_cpu_supports("avx2"))
        dots = dots_avx2;
#endif
    return 0;
}

static PyMethodDef scan_functions[] = {
    {"upper_bounds", scan_upper_bounds, METH_VARARGS, NULL},
    {"products", scan_products, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot scan_slots[] = {{Py_mod_exec, (void *)scan_exec}, {0, NULL}};

static struct PyModuleDef scan_module = {
    PyModuleDef_HEAD_INIT, "_scan", "The compiled scan of vectors.", 0, scan_functions, scan_slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__scan(void) { return PyModuleDef_Init(&scan_module); }
