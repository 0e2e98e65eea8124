package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	pq "github.com/parquet-go/parquet-go"

	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/internal/sqlvalue"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// target is a column that is written.
type target struct {
	field          *row.Field
	kind           row.Kind // of an element, of a list
	optional, list bool
	about          string
	leaf           pq.Node
	width          int // of a value of fixed length
	// put appends a value that is not null to the journal, in the form of the leaf's physical type.
	put func(dst []byte, v row.Value) ([]byte, error)
}

// targets are the columns of an item, in its order.
func targets(schema *row.Schema, declared map[string]string) ([]*target, error) {
	list, names := make([]*target, schema.Len()), map[string]bool{}
	var errs []error
	for i := range list {
		f := schema.Field(i)
		c := &target{field: f, kind: f.Kind, optional: f.Nullable}
		if elem, is := f.Kind.Elem(); is {
			c.kind, c.list = elem, true
		}
		if err := c.choose(declared[f.Name]); err != nil {
			errs = append(errs, &registry.ConfigError{Key: "columns", Err: fmt.Errorf("%s: %w", f.Name, err)})
		}
		if name := f.Source(); name == "" || names[name] {
			errs = append(errs, &registry.ConfigError{Key: "columns", Err: fmt.Errorf("%s: the file would have two columns %q, or one without a name", f.Name, name)})
		}
		names[f.Source()], list[i] = true, c
	}
	for name := range declared {
		if schema.Index(name) < 0 {
			errs = append(errs, &registry.ConfigError{Key: "columns." + name, Err: fmt.Errorf("the item has no field %s%s", name, nearest.Hint(name, schema.Names()))})
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return list, errors.Join(errs...)
}

// choose selects the type of the column.
func (c *target) choose(declared string) error {
	c.about = c.kind.String()
	switch {
	case c.kind == row.DecimalKind:
		return c.chooseDecimal(declared)
	case declared == "int32" && c.kind == row.Int:
		c.leaf, c.put, c.about = pq.Int(32), putInt32, declared
		return nil
	case declared == "local" && c.kind == row.Timestamp:
		c.leaf, c.put, c.about = pq.TimestampAdjusted(pq.Microsecond, false), putLocal(c.field.Zone), "local timestamp"
		return nil
	case declared != "":
		return fmt.Errorf("%q is no type for a field of type %s: decimal(PRECISION,SCALE) is for decimal, int32 for int, local for timestamp", declared, c.field.Type())
	}
	switch c.kind {
	case row.Int:
		c.leaf, c.put = pq.Int(64), func(dst []byte, v row.Value) ([]byte, error) { return binary.AppendVarint(dst, v.Int()), nil }
	case row.Float:
		c.leaf, c.put = pq.Leaf(pq.DoubleType), func(dst []byte, v row.Value) ([]byte, error) {
			return binary.LittleEndian.AppendUint64(dst, math.Float64bits(v.Float())), v.Finite() // a reader would refuse it
		}
	case row.Bool:
		c.leaf, c.put = pq.Leaf(pq.BooleanType), func(dst []byte, v row.Value) ([]byte, error) {
			if v.Bool() {
				return append(dst, 1), nil
			}
			return append(dst, 0), nil
		}
	case row.DateKind:
		c.leaf, c.put = pq.Date(), func(dst []byte, v row.Value) ([]byte, error) {
			return binary.AppendVarint(dst, int64(v.Date())), nil
		}
	case row.Timestamp:
		c.leaf, c.put = pq.Timestamp(pq.Microsecond), func(dst []byte, v row.Value) ([]byte, error) {
			return binary.AppendVarint(dst, v.Time().UnixMicro()), nil
		}
	case row.UUIDKind:
		c.leaf, c.width, c.put = pq.UUID(), len(row.UUID{}), func(dst []byte, v row.Value) ([]byte, error) {
			id := v.UUID()
			return append(dst, id[:]...), nil
		}
	default:
		return c.chooseText()
	}
	return nil
}

func (c *target) chooseText() error {
	switch c.kind {
	case row.String:
		c.leaf, c.put = pq.String(), func(dst []byte, v row.Value) ([]byte, error) {
			if !utf8.ValidString(v.Str()) {
				return dst, errors.New("the text is not valid UTF-8")
			}
			return putText(dst, v.Str()), nil
		}
	case row.BytesKind:
		c.leaf, c.put = pq.Leaf(pq.ByteArrayType), func(dst []byte, v row.Value) ([]byte, error) { return putText(dst, v.Bytes()), nil }
	case row.JSONKind:
		c.leaf, c.put = pq.JSON(), func(dst []byte, v row.Value) ([]byte, error) { return putText(dst, string(v.JSON())), nil }
	default:
		return fmt.Errorf("a file has no type for a field of type %s", c.field.Type())
	}
	c.leaf = pq.Encoded(c.leaf, &pq.Plain) // which every reader knows
	return nil
}

func putText(dst []byte, text string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

func putInt32(dst []byte, v row.Value) ([]byte, error) {
	n := v.Int()
	if n < math.MinInt32 || n > math.MaxInt32 {
		return dst, errors.New("it does not fit in 32 bits: declare the column without int32")
	}
	return binary.AppendVarint(dst, n), nil
}

// putLocal writes the reading of a clock.
func putLocal(zone *time.Location) func(dst []byte, v row.Value) ([]byte, error) {
	if zone == nil {
		zone = time.UTC
	}
	return func(dst []byte, v row.Value) ([]byte, error) {
		t := v.Time().In(zone)
		wall := time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
		if back, err := row.LocalTime(wall, zone); err != nil || !back.Equal(t) {
			return dst, errors.New("a local time cannot tell it from the same time of the clock an hour before: declare the column without local")
		}
		return binary.AppendVarint(dst, wall.UnixMicro()), nil
	}
}

func (c *target) chooseDecimal(declared string) error {
	precision, scale := mostDigits, -1
	if c.field.Scale != nil {
		scale = *c.field.Scale
	}
	if declared != "" {
		found := regexp.MustCompile(`^decimal\((\d{1,3}), *(\d{1,3})\)$`).FindStringSubmatch(declared)
		if found == nil {
			return fmt.Errorf("%q is no type for a decimal: write decimal(PRECISION,SCALE)", declared)
		}
		precision, _ = strconv.Atoi(found[1]) //nolint:errcheck // digits
		scale, _ = strconv.Atoi(found[2])     //nolint:errcheck // digits
	}
	switch {
	case scale < 0:
		return fmt.Errorf("a column of decimals has a fixed number of digits: give the field a scale, or write columns: {%s: 'decimal(18,2)'}", c.field.Name)
	case precision < 1 || precision > mostDigits || scale > precision:
		return fmt.Errorf("decimal(%d,%d): a column has 1 to %d digits, and no more of them after the point", precision, scale, mostDigits)
	}
	c.about = fmt.Sprintf("decimal(%d,%d)", precision, scale)
	var of pq.Type
	switch {
	case precision <= 9:
		of = pq.Int32Type
	case precision <= 18:
		of = pq.Int64Type
	default:
		c.width = widthOf(precision)
		of = pq.FixedLenByteArrayType(c.width)
	}
	c.leaf = pq.Decimal(scale, precision, of)
	c.put = func(dst []byte, v row.Value) ([]byte, error) {
		return putDecimal(dst, v.Decimal(), precision, scale, c.width)
	}
	return nil
}

// widthOf returns how many bytes hold all numbers of so many digits.
func widthOf(precision int) int {
	most := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(precision)), nil)
	return (most.BitLen() + 8) / 8
}

func putDecimal(dst []byte, d row.Decimal, precision, scale, width int) ([]byte, error) {
	filled, err := d.Round(scale, row.RoundHalfUp)
	switch {
	case err != nil:
		return dst, err
	case !filled.Equal(d):
		return dst, fmt.Errorf("it has more than the column's %d digits after the point", scale)
	case filled.Digits() > precision:
		return dst, fmt.Errorf("it has more than the column's %d digits", precision)
	}
	var short [48]byte
	text := filled.AppendText(short[:0])
	digits := slices.DeleteFunc(text, func(c byte) bool { return c == '.' })
	if width == 0 {
		n, err := strconv.ParseInt(string(digits), 10, 64)
		return binary.AppendVarint(dst, n), err
	}
	n, ok := new(big.Int).SetString(string(digits), 10)
	if !ok {
		return dst, fmt.Errorf("%s is no number", digits)
	}
	if n.Sign() < 0 { // two's complement
		n.Add(n, new(big.Int).Lsh(big.NewInt(1), uint(8*width)))
	}
	return append(dst, n.FillBytes(make([]byte, width))...), nil
}

// append appends a value to the journal.
func (c *target) append(dst []byte, v row.Value) ([]byte, error) {
	switch {
	case v.IsNull() && c.optional:
		return append(dst, 0), nil
	case v.Kind() != c.field.Kind:
		return dst, sqlvalue.Misfit(c.field, sqlvalue.Quote(v))
	}
	if c.optional {
		dst = append(dst, 1)
	}
	var err error
	if !c.list {
		if dst, err = c.put(dst, v); err != nil {
			return dst, row.FieldError(c.field.Name, err)
		}
		return dst, nil
	}
	elements := v.Elements()
	dst = binary.AppendUvarint(dst, uint64(len(elements)))
	for i, e := range elements {
		if e.IsNull() {
			dst = append(dst, 0)
			continue
		}
		if dst, err = c.put(append(dst, 1), e); err != nil {
			return dst, row.FieldError(c.field.Name, &row.ElementError{Index: i, Err: err})
		}
	}
	return dst, nil
}

// A position has limits (rule D4). A checksum stands for the rest.
const maxColumnsText = 512

func columnsText(columns []*target) string {
	texts := make([]string, len(columns))
	for i, c := range columns {
		texts[i] = strconv.Quote(c.field.Source()) + " "
		if c.list {
			texts[i] += "list of "
		}
		if texts[i] += c.about; c.optional {
			texts[i] += " null"
		}
	}
	text := strings.Join(texts, ", ")
	if len(text) <= maxColumnsText {
		return text
	}
	return fmt.Sprintf("%s… (%d, checksum %08x)", strings.ToValidUTF8(text[:maxColumnsText], ""), len(columns), crc32.ChecksumIEEE([]byte(text)))
}

// orderedGroup is a node that keeps the order of its fields: the library's sorts them.
type orderedGroup struct {
	pq.Group
	fields []pq.Field
}

func (g orderedGroup) Fields() []pq.Field { return g.fields }

func (g orderedGroup) GoType() reflect.Type { return reflect.TypeFor[struct{}]() }

type orderedField struct {
	pq.Node
	name string
}

func (c orderedField) Name() string { return c.name }

func (c orderedField) Value(base reflect.Value) reflect.Value { return base }

func schemaOf(columns []*target) *pq.Schema {
	root := orderedGroup{fields: make([]pq.Field, len(columns))}
	for i, c := range columns {
		n := c.leaf
		if c.list {
			n = pq.List(pq.Optional(n))
		}
		if c.optional {
			n = pq.Optional(n)
		}
		root.fields[i] = orderedField{n, c.field.Source()}
	}
	return pq.NewSchema("schema", root)
}
