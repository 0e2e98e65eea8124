package row

import "strings"

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

func wordOf(f *Field, b bool) string {
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
