package row

import (
	"errors"
	"fmt"
	"strings"
)

// prepare checks the settings, once.
func prepare(f *Field) (err error) {
	if f.elem, err = elementOf(f); err != nil {
		return err
	}
	if err := checkMisfits(f); err != nil {
		return err
	}
	if err := errors.Join(checkNumber(f), checkExact(f), checkWords(f)); err != nil {
		return fmt.Errorf("field %q: %w", f.Name, err)
	}
	f.layout, err = fieldLayout(f)
	f.epoch = epochUnit(f.Format)
	return err
}

func elementOf(f *Field) (*Field, error) {
	kind, ok := f.Kind.Elem()
	if !ok {
		if f.Separator != "" {
			return nil, fmt.Errorf("field %q: a separator is for lists, not for %s: write type: list of string, or omit it", f.Name, f.Kind)
		}
		return nil, nil
	}
	e := Field{
		Name: f.Name, Kind: kind, Nullable: true, Format: f.Format, Scale: f.Scale, Zone: f.Zone, Hidden: f.Hidden, Nulls: []string{},
		Trues: f.Trues, Falses: f.Falses, DecimalSeparator: f.DecimalSeparator, ThousandsSeparator: f.ThousandsSeparator, TrailingMinus: f.TrailingMinus,
	}
	if f.Coerce != CoerceError {
		e.Coerce = CoerceConvert
	}
	if f.Separator != "" && (f.Separator == f.DecimalSeparator || f.Separator == f.ThousandsSeparator) {
		return nil, fmt.Errorf("field %q: the list and its numbers have the same separator: %q", f.Name, f.Separator)
	}
	return &e, prepare(&e)
}

// Refuses Default, Coerce and Zone without effect.
func checkMisfits(f *Field) error {
	switch {
	case !f.Default.IsNull() && f.Default.kind != f.Kind:
		return fmt.Errorf("field %q: its default is %s, not %s", f.Name, article(f.Default.kind), article(f.Kind))
	case !f.Default.IsNull() && f.Nullable:
		return fmt.Errorf("field %q has a default, so it is never null: its type is %s", f.Name, f.Kind)
	case f.Coerce == CoerceDefault && f.Default.IsNull():
		return fmt.Errorf("field %q: coerce is default, but it has no default", f.Name)
	case f.Coerce == CoerceNull && !f.Nullable:
		return fmt.Errorf("field %q: coerce is null, so its type must allow null (%s null)", f.Name, f.Kind)
	case f.Zone != nil && !f.Kind.IsList() && f.Kind != Timestamp && !(f.Kind == DateKind && epochUnit(f.Format) != 0):
		return fmt.Errorf("field %q: a zone is for timestamp, and for a date that is counted (epoch), not for %s", f.Name, f.Kind)
	case f.Optional && !f.Nullable && f.Default.IsNull():
		return fmt.Errorf("field %q is optional, so its type must allow null (%s null)", f.Name, f.Kind)
	}
	return nil
}

// Refuses settings of numbers only, and ambiguous ones.
func checkNumber(f *Field) error {
	if f.Kind.IsList() {
		return nil
	}
	isNumber := f.Kind == DecimalKind || f.Kind == Float || f.Kind == Int
	separated := f.numbers().separated()
	switch {
	case f.Scale != nil && f.Kind != DecimalKind:
		return fmt.Errorf("scale is for decimal, not for %s", f.Kind)
	case f.Scale != nil && (*f.Scale < 0 || *f.Scale > MaxScale):
		return fmt.Errorf("scale is %d (allowed: 0 to %d)", *f.Scale, MaxScale)
	case f.TrailingMinus && !isNumber:
		return fmt.Errorf("trailing_minus is for decimal, float and int, not for %s", f.Kind)
	case separated && !isNumber:
		return fmt.Errorf("decimal_separator and thousands_separator are for decimal, float and int, not for %s", f.Kind)
	case f.DecimalSeparator != "" && f.Kind == Int:
		return errors.New("decimal_separator is for decimal and float, not for int")
	case separated && f.numbers().point() == f.ThousandsSeparator:
		return fmt.Errorf("decimal_separator and thousands_separator are both %q", f.ThousandsSeparator)
	case strings.ContainsAny(f.DecimalSeparator+f.ThousandsSeparator, "0123456789+-eE"):
		return errors.New("a separator must not contain a digit, sign or exponent")
	}
	return nil
}

func checkExact(f *Field) error {
	if f.Exact && (f.Coerce != CoerceError || !f.Default.IsNull()) {
		return errors.New("exact contradicts coerce and default, which change the source's values: remove exact, or remove them")
	}
	return nil
}

func checkWords(f *Field) error {
	kind, _ := f.Kind.Elem()
	switch {
	case !f.HasWords():
		return nil
	case kind != Bool:
		return fmt.Errorf("true and false are words for a bool, not for %s: write type: bool, or omit them", f.Kind)
	}
	meaning := map[string]bool{"true": true, "false": false}
	for i, word := range append(append([]string(nil), f.Trues...), f.Falses...) {
		key, is := strings.ToLower(word), i < len(f.Trues)
		if strings.TrimSpace(word) == "" || strings.TrimSpace(word) != word {
			return errors.New("a word for true or false must not be empty or start or end with a blank")
		}
		if other, known := meaning[key]; known && other != is {
			return fmt.Errorf("%q means both true and false: remove it from one of them", word)
		}
		meaning[key] = is
	}
	return nil
}

func fieldLayout(f *Field) (string, error) {
	if f.Format == "" || f.Kind.IsList() || epochUnit(f.Format) != 0 && (f.Kind == DateKind || f.Kind == Timestamp) {
		return "", nil
	}
	switch {
	case f.Kind == BytesKind && f.Format != formatBase64 && f.Format != formatHex:
		return "", fmt.Errorf("field %q: format %q is not a format of bytes: write %s or %s", f.Name, f.Format, formatBase64, formatHex)
	case f.Kind == BytesKind:
		return "", nil
	case f.Kind != DateKind && f.Kind != Timestamp:
		return "", fmt.Errorf("field %q: format is for date, timestamp and bytes, not for %s", f.Name, f.Kind)
	}
	layout, err := Layout(f.Format)
	if err != nil {
		return "", fmt.Errorf("field %q: %w", f.Name, err)
	}
	return layout, nil
}
