package text

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/surfin-batch/surfin/internal/fault"
	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/internal/recordtypes"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

type bound struct {
	*layout
	count span
	sums  []cell
}

type program struct {
	shape
	plan   *recordtypes.Plan
	of     []bound
	typeAt span // 0-0: a record begins with the name of its type
	names  []string
	// the type of records that match no other; nil means that they are invalid items
	any *recordtypes.Type
	// the text at the beginning of a detail, if there is only one type
	record string
}

func compile(cfg *fixedReaderConfig, itemType item.Type) (*program, error) {
	if err := named(itemType, "item"); err != nil {
		return nil, err
	}
	of, err := shapeOf(cfg.Length, cfg.Encoding)
	if err != nil {
		return nil, &registry.ConfigError{Key: "encoding", Err: err}
	}
	p := &program{shape: of}
	var types []*recordtypes.Type
	if cfg.Records == nil {
		types, err = p.one(cfg, itemType.Schema())
	} else {
		types, err = p.several(cfg.Records, cfg.TypeAt, itemType.Schema())
	}
	if err != nil {
		return nil, err
	}
	return p, p.complete(types, itemType.Schema(), true)
}

func (p *program) one(cfg *fixedReaderConfig, schema *row.Schema) ([]*recordtypes.Type, error) {
	l, err := newLayout(cfg.Columns, cfg.Record, p.shape, schema, true)
	if err != nil {
		return nil, err
	}
	total, err := newSums(cfg.Trailer, l, schema)
	if err != nil {
		return nil, err
	}
	if p.record, err = p.marked(cfg.Record); err != nil {
		return nil, &registry.ConfigError{Key: "record", Err: err}
	}
	types := []*recordtypes.Type{{Name: recordtypes.Any, Role: recordtypes.Detail, Fields: fieldsOf(l)}}
	p.of = []bound{{layout: l}}
	if t := cfg.Trailer; t != nil {
		trailer := &recordtypes.Type{Name: t.Begins, Role: recordtypes.Trailer, Label: "the trailer", HasCount: t.Count != ""}
		b := bound{layout: &layout{mark: t.Begins, shape: p.shape}, sums: total.cells}
		if t.Count != "" {
			if b.count, err = spanOf(t.Count); err != nil {
				return nil, &registry.ConfigError{Key: "trailer.count", Err: err}
			}
		}
		for _, c := range total.cells {
			trailer.Sums = append(trailer.Sums, recordtypes.Sum{Name: c.name, Field: c.field})
		}
		types, p.of = append(types, trailer), append(p.of, b)
	}
	return types, nil
}

func fieldsOf(l *layout) []int {
	fields := make([]int, len(l.cells))
	for i, c := range l.cells {
		fields[i] = c.field
	}
	return fields
}

func (p *program) several(records map[string]recordType, typeAt string, schema *row.Schema) ([]*recordtypes.Type, error) {
	var errs []error
	if typeAt != "" {
		var err error
		if p.typeAt, err = spanOf(typeAt); err == nil && p.length > 0 && p.typeAt.last > p.length {
			err = fmt.Errorf("it ends at %d, but a record has %d bytes (length)", p.typeAt.last, p.length)
		}
		if err != nil {
			errs = append(errs, &registry.ConfigError{Key: "type_at", Err: err})
		}
	}
	var types []*recordtypes.Type
	for _, name := range sortedKeys(records) {
		t, b, wrong := p.typeOf(name, records[name], schema)
		types, p.of, errs = append(types, t), append(p.of, b), append(errs, wrong...)
	}
	link := recordtypes.NewLinks(types)
	for i, t := range types {
		kind := records[t.Name]
		for key, err := range link.Bind(t, kind.Of, kind.CountOf) {
			errs = append(errs, &registry.ConfigError{Key: "records." + t.Name + "." + key, Err: err})
		}
		errs = append(errs, p.bindSums(i, types, records, schema)...)
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return types, errors.Join(errs...)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func (p *program) typeOf(name string, kind recordType, schema *row.Schema) (*recordtypes.Type, bound, []error) {
	key := "records." + name
	t := &recordtypes.Type{Name: name, Role: recordtypes.Role(cmp.Or(kind.As, string(recordtypes.Detail)))}
	mark := name
	if p.typeAt.first > 0 || name == recordtypes.Any {
		mark = ""
	}
	b := bound{layout: &layout{shape: p.shape}}
	errs := recordtypes.CheckKeys(t, len(kind.Columns), kind.Of, kind.Count, len(kind.CountOf), len(kind.Sums))
	if _, err := p.marked(name); err != nil || name == "" || strings.ContainsAny(name, "\r\n") {
		errs[""] = fmt.Errorf("a record cannot begin with %q", name)
	}
	var all []error
	for at, err := range errs {
		all = append(all, &registry.ConfigError{Key: strings.TrimSuffix(key+"."+at, "."), Err: err})
	}
	if len(kind.Columns) > 0 {
		l, wrong := bindColumns(kind.Columns, mark, p.shape, schema)
		for _, err := range wrong {
			var of *registry.ConfigError
			if errors.As(err, &of) {
				err = &registry.ConfigError{Key: key + "." + of.Key, Err: of.Err}
			}
			all = append(all, err)
		}
		b.layout = l
		t.Fields = fieldsOf(l)
	}
	if kind.Count != "" {
		var err error
		t.HasCount = true
		if b.count, err = spanOf(kind.Count); err != nil {
			all = append(all, &registry.ConfigError{Key: key + ".count", Err: err})
		}
	}
	return t, b, all
}

func (p *program) bindSums(number int, types []*recordtypes.Type, records map[string]recordType, schema *row.Schema) (errs []error) {
	t := types[number]
	for _, name := range sortedKeys(records[t.Name].Sums) {
		c, err := p.sumOf(types, records, name, records[t.Name].Sums[name], schema)
		if errors.Is(err, errReported) {
			continue
		}
		if err != nil {
			errs = append(errs, &registry.ConfigError{Key: "records." + t.Name + ".sums." + name, Err: err})
			continue
		}
		p.of[number].sums = append(p.of[number].sums, c)
		t.Sums = append(t.Sums, recordtypes.Sum{Name: name, Field: c.field})
	}
	return errs
}

// reported at the column
var errReported = errors.New("its column is wrong")

func (p *program) sumOf(types []*recordtypes.Type, records map[string]recordType, name string, column columnConfig, schema *row.Schema) (cell, error) {
	var like *cell
	declared := false
	for i, t := range types {
		for k := range p.of[i].cells {
			if t.Role == recordtypes.Detail && p.of[i].cells[k].name == name {
				like = &p.of[i].cells[k]
			}
		}
		_, has := records[t.Name].Columns[name]
		declared = declared || has && t.Role == recordtypes.Detail
	}
	if like == nil {
		if declared {
			return cell{}, errReported
		}
		hint := ""
		if near := nearest.Name(name, schema.Names()); near != "" && near != name {
			hint = fmt.Sprintf(" (did you mean %s?)", near)
		}
		return cell{}, fmt.Errorf("no detail has a column %s%s", name, hint)
	}
	if kind := schema.Field(like.field).Kind; kind != row.Int && kind != row.DecimalKind {
		return cell{}, fmt.Errorf("the field is a %s; exact sums need int or decimal", kind)
	}
	if column.Decimals == nil && like.decimals >= 0 {
		column.Decimals = &like.decimals
	}
	if column.Format == "" {
		column.Format = like.form.String()
		if like.form != formText && column.Sign == "" {
			column.Sign = like.sign.String()
		}
	}
	if column.Format == formText.String() {
		column.Pad = "0"
	}
	c, err := cellOf(name, column, p.shape, schema)
	if err == nil && p.length > 0 && c.last > p.length {
		err = fmt.Errorf("it ends at %d, but a record has %d bytes (length)", c.last, p.length)
	}
	return c, err
}

type fieldPlace struct {
	span
	key, what string
}

// overlapping places: of a trailer, and of each written type
func (p *program) collisions(number int, t *recordtypes.Type, writing bool) error {
	b, taken := p.of[number], []fieldPlace{}
	switch {
	case p.typeAt.first > 0 && writing:
		if n := utf8.RuneCountInString(t.Name); n > p.typeAt.width() {
			return fmt.Errorf("type_at: the name is longer than its column %s", p.typeAt)
		}
		taken = append(taken, fieldPlace{p.typeAt, "type_at", "its name"})
	case p.typeAt.first == 0:
		taken = append(taken, fieldPlace{span{1, utf8.RuneCountInString(t.Name)}, "", "its name"})
	}
	if t.HasCount {
		taken = append(taken, fieldPlace{b.count, "count", "count"})
	}
	for _, c := range b.sums {
		taken = append(taken, fieldPlace{c.span, "sums." + c.name, c.name})
	}
	if writing {
		for _, c := range b.cells {
			taken = append(taken, fieldPlace{c.span, "columns." + c.name, c.name})
		}
	}
	slices.SortStableFunc(taken, func(a, b fieldPlace) int { return cmp.Compare(a.first, b.first) })
	for i := 1; i < len(taken); i++ {
		if last := taken[i-1]; taken[i].first <= last.last {
			return fmt.Errorf("%s: it begins at %d, inside %s (%s)", cmp.Or(taken[i].key, last.key), taken[i].first, last.what, last.span)
		}
	}
	return nil
}

func (p *program) complete(types []*recordtypes.Type, schema *row.Schema, reading bool) error {
	plan, wrong := recordtypes.New(schema, types, reading)
	p.plan = plan
	var errs []error
	for _, name := range sortedKeys(wrong) {
		errs = append(errs, &registry.ConfigError{Key: "records." + name, Err: wrong[name]})
	}
	for i, t := range types {
		if err := p.collisions(i, t, !reading); err != nil && (t.Role == recordtypes.Trailer && t.Label == "" || !reading) {
			errs = append(errs, &registry.ConfigError{Key: "records." + t.Name, Err: err})
		}
		raw, err := p.marked(t.Name)
		if err != nil {
			errs = append(errs, err)
		}
		p.names = append(p.names, raw)
		if t.Name == recordtypes.Any {
			p.any = t
		}
	}
	return errors.Join(errs...)
}

// find only reads the first places; nil means no type.
func (p *program) find(record string) *recordtypes.Type {
	best := p.any
	if p.typeAt.first > 0 {
		name, err := p.lineOf(record).read(p.typeAt)
		if err != nil {
			return best
		}
		name = strings.TrimSpace(name)
		for _, t := range p.plan.Types {
			if t.Name == name {
				return t
			}
		}
		return best
	}
	size := -1
	for i, t := range p.plan.Types {
		if name := p.names[i]; t != p.any && len(name) > size && strings.HasPrefix(record, name) {
			best, size = t, len(name)
		}
	}
	return best
}

// bytes of a record that find reads
func (p *program) needed() int {
	if p.typeAt.first > 0 {
		return p.typeAt.last * utf8.UTFMax
	}
	size := 0
	for _, name := range p.names {
		size = max(size, len(name))
	}
	return size
}

type fileRecord struct {
	*program
	line line
	text string
}

func (r *fileRecord) set(text string) { r.line, r.text = r.lineOf(text), text }

func (p *program) binary() bool {
	for _, b := range p.of {
		if slices.ContainsFunc(b.cells, func(c cell) bool { return c.form == formPacked || c.form == formBinary }) {
			return true
		}
	}
	return false
}

func (p *program) shown(raw string) string {
	if p.codec == nil {
		return raw
	}
	return p.codec.textOf(raw, p.binary())
}

func (p *program) bytesOf(text string) (string, error) {
	if p.codec == nil {
		return text, nil
	}
	raw, err := p.codec.bytesOf(text)
	return string(raw), err
}

func (r *fileRecord) Column(t *recordtypes.Type, column int) (row.Value, error) {
	c := &r.of[t.Number()].cells[column]
	v, err := c.parse(r.line, r.plan.Schema)
	if err != nil {
		return v, r.inCell(c, column, fmt.Errorf("%s %s: %w", r.unitOfPositions(), c.span, err))
	}
	return v, nil
}

// inCell adds the place of a column in the text as it is shown.
func (r *fileRecord) inCell(c *cell, column int, err error) error {
	return fault.At(fault.Place{Field: c.name, Column: column + 1, From: r.sizeOf(c.first - 1), To: r.sizeOf(c.last)}, err)
}

// sizeOf is the size of the first places in the text as it is shown.
func (r *fileRecord) sizeOf(places int) int {
	begin := ""
	if places > 0 {
		begin = r.line.at(span{1, places})
	}
	if r.codec == nil {
		return len(begin)
	}
	if strings.HasPrefix(r.shown(r.text), hexMark) {
		return len(hexMark) + 2*len(begin)
	}
	text, _ := r.codec.decode(begin) //nolint:errcheck // the record is shown as its text, so each part has one
	return len(text)
}

// Count implements recordtypes.Record.
func (r *fileRecord) Count(t *recordtypes.Type) (int64, error) {
	at := r.of[t.Number()].count
	said, err := r.line.read(at)
	said = strings.TrimSpace(said)
	n, bad := strconv.ParseInt(said, 10, 64)
	if err = cmp.Or(err, bad); err != nil {
		return 0, fmt.Errorf("at %s (count): %.40q", at, said)
	}
	return n, nil
}

// Sum implements recordtypes.Record.
func (r *fileRecord) Sum(t *recordtypes.Type, sum int) (row.Value, error) {
	c := &r.of[t.Number()].sums[sum]
	v, err := c.parse(r.line, r.plan.Schema)
	if err == nil && v.IsNull() {
		err = errors.New("it is blank")
	}
	if err != nil {
		return v, fmt.Errorf("at %s: %.40q: %w", c.span, r.line.at(c.span), err)
	}
	return v, nil
}

func (r *fileRecord) Raw(t *recordtypes.Type) []byte {
	return []byte(r.line.at(span{1, r.of[t.Number()].width}))
}

func (s shape) unit() string {
	if s.codec == nil {
		return "line"
	}
	return "record"
}

var errNotValid = errors.New("the line is not valid")

// before the columns are read
func (r *fileRecord) fits(t *recordtypes.Type, short bool) error {
	l := r.of[t.Number()].layout
	switch {
	case r.codec == nil && !utf8.ValidString(r.text):
		return errNotValid
	case t == r.any && !strings.HasPrefix(r.text, r.program.record):
		return fmt.Errorf("the %s does not begin with %q (record)", r.unit(), l.mark)
	case l.codec == nil && r.line.size < l.width && !short:
		err := fmt.Errorf("the line has %d characters, but its columns need %d (short: true accepts it)", r.line.size, l.width)
		for i := range l.cells {
			if c := &l.cells[i]; c.last > r.line.size {
				return r.inCell(c, i, err)
			}
		}
		return err
	}
	return nil
}
