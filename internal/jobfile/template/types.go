package template

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/surfin-batch/surfin/internal/calendar"
	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// Fits reports whether a value of type got fits a field of type want: a text takes the text form of any
// value, a float an int.
func Fits(got, want reflect.Type) bool {
	switch {
	case got == nil:
		return false
	case got == want:
		return true
	case want.Kind() == reflect.String:
		return TypeName(got) != ""
	case want.Kind() == reflect.Interface:
		return true
	case want == reflect.TypeFor[time.Duration](), got == reflect.TypeFor[time.Duration]():
		return false
	case want.Kind() == reflect.Bool:
		return got.Kind() == reflect.Bool
	case want.Kind() == reflect.Float64, want.Kind() == reflect.Float32:
		return got == reflect.TypeFor[float64]() || got == reflect.TypeFor[int64]()
	case reflect.Zero(want).CanInt(), reflect.Zero(want).CanUint():
		return got == reflect.TypeFor[int64]()
	}
	return false
}

// TypeName is the name of a Go type in messages; "" for a type that the file has no word for.
func TypeName(t reflect.Type) string {
	switch {
	case t == nil:
		return "null"
	case t == reflect.TypeFor[time.Duration]():
		return "a duration"
	case t == reflect.TypeFor[time.Time]():
		return "a timestamp"
	case t == reflect.TypeFor[row.Date]():
		return "a date"
	case t == reflect.TypeFor[row.Decimal]():
		return "a decimal"
	case t == reflect.TypeFor[registry.Size]():
		return "a size"
	}
	if kind, ok := item.TextKind(t); ok {
		return cmp.Or(map[row.Kind]string{row.JSONKind: "json", row.UUIDKind: "a uuid", row.BytesKind: "bytes"}[kind], "a "+kind.String())
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a bool"
	case reflect.Float32, reflect.Float64:
		return "a float"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "an int"
	default:
		return ""
	}
}

// GoType is the Go type of the values of a parameter.
func GoType(t core.ParameterType) reflect.Type {
	return map[core.ParameterType]reflect.Type{
		core.TypeString:    reflect.TypeFor[string](),
		core.TypePath:      reflect.TypeFor[string](),
		core.TypeInt:       reflect.TypeFor[int64](),
		core.TypeFloat:     reflect.TypeFor[float64](),
		core.TypeDecimal:   reflect.TypeFor[row.Decimal](),
		core.TypeBool:      reflect.TypeFor[bool](),
		core.TypeDate:      reflect.TypeFor[core.Date](),
		core.TypeTimestamp: reflect.TypeFor[time.Time](),
		core.TypeDuration:  reflect.TypeFor[time.Duration](),
	}[t]
}

// Text is the text of a value in a file: the text form of parameters, if it has one.
func Text(x any) string {
	for _, t := range core.ParameterTypes() {
		if text, err := (core.Parameter{Type: t, Value: x}).Canonical(); err == nil {
			return text
		}
	}
	if n, ok := x.(json.Number); ok {
		return n.String()
	}
	if t, ok := x.(time.Time); ok {
		return t.UTC().Format(row.TimestampLayout)
	}
	return fmt.Sprint(x)
}

// Clock is the time zone of a job, with its calendars of business days.
type Clock struct {
	Zone      *time.Location
	Calendars map[string]*calendar.Calendar
}

// AddTo adds the zone and the calendars to the names of an expression.
func (c Clock) AddTo(scope expression.Scope) {
	scope[expression.Calendars] = expression.Var{Calendars: c.Calendars}
	scope[expression.Zone] = expression.Var{Zone: c.Zone}
}

// Values returns today() and now() at a time: the day is a day in the job's time zone.
func (c Clock) Values(now time.Time) map[string]any {
	_, offset := now.In(c.Zone).Zone()
	local := now.Add(time.Duration(offset) * time.Second).UTC()
	days := local.Truncate(24*time.Hour).Unix() / int64(24*time.Hour/time.Second)
	return map[string]any{expression.Today: core.Date(0).AddDays(int(days)), expression.Now: now.UTC().Truncate(time.Microsecond)}
}
