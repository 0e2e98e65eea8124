package row

import (
	"errors"
	"fmt"
	"strings"
)

// HasWords reports whether the field has words for true or false.
func (f *Field) HasWords() bool { return f.Trues != nil || f.Falses != nil }

func (f *Field) parseWord(text string) (Value, error) {
	plain := strings.TrimSpace(text)
	for _, word := range f.Trues {
		if strings.EqualFold(word, plain) {
			return BoolValue(true), nil
		}
	}
	for _, word := range f.Falses {
		if strings.EqualFold(word, plain) {
			return BoolValue(false), nil
		}
	}
	why := "only true and false are"
	if f.HasWords() {
		why = "only true, false, " + strings.Join(append(append([]string(nil), f.Trues...), f.Falses...), ", ") + " are"
	} else if _, ok := convert(Bool, plain); ok {
		why += "; coerce: convert accepts it"
	}
	return Value{}, f.misfit(text, why)
}

func (f *Field) word(b bool) string {
	switch {
	case b && len(f.Trues) > 0:
		return f.Trues[0]
	case b:
		return "true"
	case len(f.Falses) > 0:
		return f.Falses[0]
	}
	return "false"
}

func (f *Field) checkWords() error {
	kind := f.Kind
	if elem, ok := kind.Elem(); ok {
		kind = elem
	}
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
