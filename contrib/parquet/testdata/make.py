# Writes the files of the tests, and what pyarrow and DuckDB read from them:
#   pip install pyarrow duckdb; python make.py
import base64, datetime as dt, decimal, json, struct
import duckdb, pyarrow as pa, pyarrow.parquet as pq

D = decimal.Decimal
UTC = dt.timezone.utc
when = dt.datetime(2026, 2, 28, 23, 59, 59, 123456)
old = dt.datetime(1815, 6, 18, 11, 35, 0, 1)
n38 = D("12345678901234567890123456789012345.678")

def column(kind, values):
    return pa.array(values, kind)

# Each column: its arrow type, three values and a null.
cases = {
    "b": (pa.bool_(), [True, False, True, None]),
    "i8": (pa.int8(), [-128, 127, 0, None]),
    "i16": (pa.int16(), [-32768, 32767, 0, None]),
    "i32": (pa.int32(), [-2**31, 2**31 - 1, 0, None]),
    "i64": (pa.int64(), [-2**63, 2**63 - 1, 0, None]),
    "u8": (pa.uint8(), [0, 255, 1, None]),
    "u16": (pa.uint16(), [0, 65535, 1, None]),
    "u32": (pa.uint32(), [0, 2**32 - 1, 1, None]),
    "u64": (pa.uint64(), [0, 2**64 - 1, 1, None]),
    "f16": (pa.float16(), [1.5, -0.25, 65504.0, None]),
    "f32": (pa.float32(), [0.1, -1e30, 0.0, None]),
    "f64": (pa.float64(), [0.1, -1e300, 0.0, None]),
    "s": (pa.string(), ["häß \"<&>\"\n", "", "日本", None]),
    "bin": (pa.binary(), [b"\x00\xff", b"", b"abc", None]),
    "fixed": (pa.binary(4), [b"abcd", b"\x00\x01\x02\x03", b"\xff" * 4, None]),
    "d5": (pa.decimal128(5, 2), [D("-999.99"), D("999.99"), D("0.01"), None]),
    "d18": (pa.decimal128(18, 6), [D("-999999999999.999999"), D("1.5"), D("0"), None]),
    "d38": (pa.decimal128(38, 3), [n38, -n38, D("0.001"), None]),
    "day": (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(2026, 2, 28), None]),
    "ms": (pa.timestamp("ms"), [when.replace(microsecond=123000), old.replace(microsecond=0), when.replace(microsecond=0), None]),
    "us": (pa.timestamp("us"), [when, old, when, None]),
    "ns": (pa.timestamp("ns"), [when, old, when, None]),
    "ms_utc": (pa.timestamp("ms", "UTC"), [when.replace(microsecond=123000, tzinfo=UTC), old.replace(microsecond=0, tzinfo=UTC), when.replace(microsecond=0, tzinfo=UTC), None]),
    "us_utc": (pa.timestamp("us", "UTC"), [when.replace(tzinfo=UTC), old.replace(tzinfo=UTC), when.replace(tzinfo=UTC), None]),
    "ns_utc": (pa.timestamp("ns", "UTC"), [when.replace(tzinfo=UTC), old.replace(tzinfo=UTC), when.replace(tzinfo=UTC), None]),
    "ints": (pa.list_(pa.int32()), [[1, None, 3], [], [2**31 - 1], None]),
    "texts": (pa.list_(pa.string()), [["a", ""], [], [None], None]),
    "prices": (pa.list_(pa.decimal128(9, 2)), [[D("1.50")], [], [D("-0.01"), None], None]),
    "times": (pa.list_(pa.timestamp("us", "UTC")), [[when.replace(tzinfo=UTC)], [], [None], None]),
    "struct": (pa.struct([("name", pa.string()), ("n", pa.int64()), ("d", pa.decimal128(9, 2))]),
               [{"name": "Ann", "n": 1, "d": D("1.50")}, {"name": None, "n": None, "d": None}, {"name": "\"", "n": -1, "d": D("0.00")}, None]),
    "map": (pa.map_(pa.string(), pa.list_(pa.int32())), [[("a", [1, 2]), ("b", []), ("c", None)], [], [("z", [None])], None]),
    "nested": (pa.list_(pa.list_(pa.int32())), [[[1], [], None, [2, 3]], [], [[4]], None]),
    "people": (pa.list_(pa.struct([("name", pa.string()), ("tags", pa.list_(pa.string()))])),
               [[{"name": "Ann", "tags": ["x", "y"]}, None, {"name": None, "tags": []}], [], [{"name": "Bob", "tags": None}], None]),
}

def text(v, kind):
    """The text that our reader has for a value."""
    if v is None:
        return None
    if pa.types.is_timestamp(kind):
        v = v.to_pydatetime() if hasattr(v, "to_pydatetime") else v
        v = v.astimezone(UTC) if v.tzinfo else v.replace(tzinfo=UTC)
        s = v.strftime("%Y").zfill(4) + v.strftime("-%m-%dT%H:%M:%S")
        return s + (".%06d" % v.microsecond).rstrip("0").rstrip(".") + "Z"
    if pa.types.is_date(kind):
        return v.isoformat()
    if pa.types.is_decimal(kind):
        return format(v, "f")
    if pa.types.is_boolean(kind):
        return "true" if v else "false"
    if pa.types.is_float32(kind):  # its shortest text
        return next(s for s in ("%.*g" % (n, v) for n in range(1, 10)) if struct.pack("f", float(s)) == struct.pack("f", v))
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return base64.b64encode(v).decode()
    return v

def plain(v, kind):
    """A value as JSON."""
    if v is None:
        return None
    if pa.types.is_list(kind):
        return [plain(e, kind.value_type) for e in v]
    if pa.types.is_struct(kind):
        return {f.name: plain(v[f.name], f.type) for f in kind}
    if pa.types.is_map(kind):
        return {k: plain(e, kind.item_type) for k, e in v}
    if pa.types.is_decimal(kind):
        return float(v)
    if pa.types.is_boolean(kind) or pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return v
    return text(v, kind)

def say(table, path):
    rows = table.to_pylist()
    with open(path, "w") as out:
        for r in rows:
            out.write(json.dumps({f.name: plain(r[f.name], f.type) if pa.types.is_nested(f.type) else
                                  None if r[f.name] is None else str(text(r[f.name], f.type)) for f in table.schema}, ensure_ascii=False) + "\n")

table = pa.table({name: column(kind, values) for name, (kind, values) in cases.items()})
big = pa.concat_tables([table] * 25)
pq.write_table(big, "pyarrow.parquet", row_group_size=30, data_page_size=200, version="2.6", compression="zstd")
pq.write_table(table, "pyarrow2.parquet", data_page_version="2.0", version="2.6", compression="snappy", use_dictionary=False)
pq.write_table(table.select(["us_utc", "ns_utc", "s"]), "int96.parquet", use_deprecated_int96_timestamps=True, compression="gzip")
pq.write_table(table, "old.parquet", version="1.0", compression="brotli", use_compliant_nested_type=False, store_decimal_as_integer=True)
pq.write_table(table.select(["i64"]), "lz4.parquet", compression="lz4")
say(big, "pyarrow.jsonl")

con = duckdb.connect()
con.execute("""copy (select * from (values
    (1, 'Ann'::varchar, 12.50::decimal(9,2), 1e10::decimal(38,0), timestamp '2026-02-28 23:59:59.123456', timestamptz '2026-02-28 23:59:59.123456+00', date '2026-02-28', uuid '01234567-89ab-cdef-0123-456789abcdef', [1, 2, null], {'a': 1, 'b': ['x']}, map {'k': 1.5::double}, 18446744073709551615::ubigint, '\\x00\\xff'::blob, '{"a": [1, null]}'::json),
    (2, null, null, null, null, null, null, null, null, null, null, null, null, null)
    ) t(id, name, price, big, seen, seen_utc, day, key, ints, who, by_key, u, bin, doc)) to 'duckdb.parquet' (format parquet, compression zstd)""")
con.execute("""copy (select 1 as id, time '12:00:00' as t, interval 1 day as i) to 'unusable.parquet' (format parquet)""")
