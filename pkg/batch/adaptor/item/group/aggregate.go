package group

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/nearest"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

type aggregate struct {
	field    row.Field
	function string
	program  *expression.ItemProgram // nil means count()
	between  string
}

const (
	count = "count"
	sum   = "sum"
	least = "min"
	most  = "max"
	first = "first"
	last  = "last"
	join  = "join"
	list  = "list"
)

func functions() []string { return []string{count, sum, least, most, first, last, join, list} }

// NAME: FUNCTION(EXPRESSION) over rows
func newAggregate(e registry.NamedExpression, rows item.Type) (aggregate, error) {
	call := regexp.MustCompile(`^\s*([A-Za-z_]\w*)\s*\(`)
	found := call.FindStringSubmatchIndex(e.Text)
	trimmed := strings.TrimRight(e.Text, " \t\n")
	if found == nil || !strings.HasSuffix(trimmed, ")") {
		return aggregate{}, &expression.Error{Msg: "a field of a group is one of " + strings.Join(functions(), ", ") + " of the rows: write first(...)"}
	}
	a := aggregate{function: e.Text[found[2]:found[3]], field: row.Field{Name: e.Name}}
	inner, offset := trimmed[found[1]:len(trimmed)-1], found[1]
	if a.function == join {
		separator := regexp.MustCompile(`,\s*(?:'([^']*)'|"([^"]*)")\s*$`)
		at := separator.FindStringSubmatchIndex(inner)
		if at == nil {
			return a, &expression.Error{Offset: offset, Msg: "join needs a separator: join(" + inner + ", ', ')"}
		}
		for _, part := range [][]int{at[2:4], at[4:6]} {
			if part[0] >= 0 {
				a.between = inner[part[0]:part[1]]
			}
		}
		inner = inner[:at[0]]
	}
	if strings.TrimSpace(inner) == "" {
		if a.function != count {
			return a, &expression.Error{Offset: offset, Msg: a.function + " needs an expression over item"}
		}
		a.field.Kind = row.Int
		return a, nil
	}
	var err error
	a.program, err = expression.CompileItem(registry.Expression{Text: inner, Env: e.Env}, rows)
	var wrong *expression.Error
	if errors.As(err, &wrong) {
		moved := *wrong
		moved.Offset += offset
		return a, &moved
	}
	if err != nil {
		return a, err
	}
	return a, a.check(offset)
}

func (a *aggregate) check(offset int) error {
	kind, nullable := a.program.Kind(), a.program.Nullable()
	wrong := func(format string, args ...any) error {
		return &expression.Error{Offset: offset, Msg: fmt.Sprintf(format, args...)}
	}
	if kind == row.Null {
		return wrong("this is always null")
	}
	a.field.Kind, a.field.Nullable = kind, nullable
	switch a.function {
	case count:
		a.field.Kind, a.field.Nullable = row.Int, false
	case sum:
		if a.field.Nullable = false; kind != row.Int && kind != row.Float && kind != row.DecimalKind {
			return wrong("sum needs numbers, not values of type %s", kind)
		}
	case least, most:
		switch kind {
		case row.Bool:
			return wrong("%s needs values with an order, not bools: write %s(... ? 1 : 0)", a.function, a.function)
		case row.JSONKind:
			return wrong("%s needs values with an order, not json: write json_get(...)", a.function)
		default:
			if kind.IsList() {
				return wrong("%s needs values with an order, not lists: write %s(%s(...))", a.function, a.function, a.function)
			}
		}
	case first, last:
	case join:
		if a.field.Nullable = false; kind != row.String {
			return wrong("join needs texts, not values of type %s: write string(...)", kind)
		}
	case list:
		a.field.Kind, a.field.Nullable = row.String, false
	default:
		return &expression.Error{Msg: "there is no function " + a.function + " of groups" + nearest.Hint(a.function, functions()) + "; allowed: " + strings.Join(functions(), ", ")}
	}
	return nil
}

type accumulator struct {
	*aggregate
	n     int64
	value row.Value
	text  bytes.Buffer
}

// add returns how much the text grew.
func (a *accumulator) add(f *expression.Frame) (grown int, err error) {
	if a.program == nil {
		a.n++
		return 0, nil
	}
	v, err := a.program.Eval(f)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", a.field.Name, err)
	}
	if v.IsNull() && a.function != first && a.function != last && a.function != list {
		return 0, nil
	}
	a.n++
	before := a.text.Len()
	switch a.function {
	case sum:
		a.value, err = plus(a.value, v)
	case least:
		if a.value.IsNull() || row.Compare(v, a.value) < 0 {
			a.value = v
		}
	case most:
		if a.value.IsNull() || row.Compare(v, a.value) > 0 {
			a.value = v
		}
	case first:
		if a.n == 1 {
			a.value = v
		}
	case last:
		a.value = v
	case join:
		if a.n > 1 {
			a.text.WriteString(a.between)
		}
		a.text.WriteString(v.Str())
	case list:
		err = a.append(v)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", a.field.Name, err)
	}
	return a.text.Len() - before, err
}

func (a *accumulator) append(v row.Value) error {
	if a.n > 1 {
		a.text.WriteByte(',')
	}
	switch v.Kind() {
	case row.Null:
		a.text.WriteString("null")
		return nil
	case row.Int, row.Bool, row.DecimalKind, row.JSONKind:
		a.text.Write(v.AppendText(nil))
		return nil
	case row.Float:
		if err := v.Finite(); err != nil {
			return err
		}
		a.text.Write(v.AppendText(nil))
		return nil
	default:
		if v.Kind().IsList() {
			a.text.Write(v.AppendText(nil))
			return nil
		}
	}
	text, err := json.Marshal(v.String())
	if err == nil {
		a.text.Write(text)
	}
	return err
}

func (a *accumulator) result() row.Value {
	switch {
	case a.function == count:
		return row.IntValue(a.n)
	case a.function == join:
		return row.StringValue(a.text.String())
	case a.function == list:
		return row.StringValue("[" + a.text.String() + "]")
	case a.function == sum && a.n == 0 && a.field.Kind == row.Float:
		return row.FloatValue(0)
	case a.function == sum && a.n == 0 && a.field.Kind == row.DecimalKind:
		return row.DecimalValue(row.Decimal{})
	case a.function == sum && a.n == 0:
		return row.IntValue(0)
	}
	return a.value
}

var errOverflow = errors.New("the sum is larger than an int")

// a is null before the first
func plus(a, b row.Value) (row.Value, error) {
	switch {
	case a.IsNull():
		return b, nil
	case b.Kind() == row.Float:
		return row.FloatValue(a.Float() + b.Float()), nil
	case b.Kind() == row.DecimalKind:
		total, err := a.Decimal().Add(b.Decimal())
		return row.DecimalValue(total), err
	}
	x, y := a.Int(), b.Int()
	if y > 0 && x > math.MaxInt64-y || y < 0 && x < math.MinInt64-y {
		return a, errOverflow
	}
	return row.IntValue(x + y), nil
}
