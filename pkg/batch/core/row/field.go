package row

import (
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/fault"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

// Field is a schema's typed column.
type Field struct {
	Name     string
	Kind     Kind
	Nullable bool
	// From is the source's name (CSV header, JSON key); empty means Name.
	From string
	// Format is a date's or timestamp's [Layout], or epoch, epoch_ms, epoch_us since 1970-01-01 UTC; empty
	// means ISO 8601. Bytes: hex or base64 (default).
	Format string
	// Scale is the digits after a decimal's point: fewer are filled, more invalid. nil accepts any.
	Scale *int
	// Separators of a decimal, float or int; empty means "." and none. Thousands may lack, and are not
	// written.
	DecimalSeparator, ThousandsSeparator string
	// TrailingMinus allows 12.50-, written as -12.50.
	TrailingMinus bool
	// Additional texts of a bool in any case; the first is written.
	Trues, Falses []string
	// Separator of a list's elements; empty means a JSON array. Other settings apply to elements.
	Separator string
	// Zone for times without offset, and for Format; nil means UTC.
	Zone *time.Location
	// Default if the source has none; null means none.
	Default Value
	// Coerce is the treatment of a value that does not fit.
	Coerce Coerce
	// Nulls are read as null. nil means "" except for string and bytes.
	Nulls []string
	// Exact makes a text that is not written back the same (see Returns) an invalid item.
	Exact bool
	// Optional lets the source lack it: null, or Default.
	Optional bool
	// Hidden keeps values out of errors: fields are redacted.
	Hidden bool

	layout string
	epoch  int64
	elem   *Field
}

// Missing is the Default or null; else an invalid item.
func (f *Field) Missing() (Value, error) {
	if !f.Default.IsNull() {
		return f.Default, nil
	}
	return Value{}, f.Check(Value{})
}

// Known returns the value, or the replacement of one of Nulls.
func (f *Field) Known(v Value) (Value, error) {
	if v.IsNull() || f.Nulls != nil && f.IsNull(v.String()) {
		return f.Missing()
	}
	return v, nil
}

// Source is the name in the source.
func (f *Field) Source() string {
	if f.From != "" {
		return f.From
	}
	return f.Name
}

// Type is as in a job file: "int null".
func (f *Field) Type() string {
	if f.Nullable {
		return f.Kind.String() + " null"
	}
	return f.Kind.String()
}

// Check reports a misfit as an invalid item.
func (f *Field) Check(v Value) error {
	if v.kind == f.Kind || (v.kind == Null && f.Nullable) {
		return nil
	}
	if v.kind == Null {
		return f.unfit("null", "the field is not nullable")
	}
	return f.misfit(v.String(), "it is "+article(v.kind))
}

// IsNull reports whether the field reads text as null.
func (f *Field) IsNull(text string) bool {
	if f.Kind == JSONKind && isJSONNull(text) {
		return true
	}
	if f.Nulls == nil {
		return text == "" && f.Kind != String && f.Kind != BytesKind
	}
	return slices.Contains(f.Nulls, text)
}

func (f *Field) misfit(text, why string) error { return f.unfit(quoteShort(text), why) }

// null has none.
func (f *Field) unfit(shown, why string) error {
	if why != "" {
		why = " (" + why + ")"
	}
	return exception.InvalidItem("", exception.ClassParse, fault.Named(f.Name, "%s is not %s%s", f.Quoted(shown), article(f.Kind), why))
}

// Quoted is the text, or a replacement if hidden.
func (f *Field) Quoted(text string) string {
	if f.Hidden {
		return "the value"
	}
	return text
}
