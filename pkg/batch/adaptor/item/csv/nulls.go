package csv

import (
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// bareNulls are the texts for null in a field without quotes (rule D11b).
func bareNulls(f *row.Field, ofFile []string) []string {
	isText := f.Kind == row.String || f.Kind == row.BytesKind
	switch {
	case f.Nulls == nil && ofFile == nil && isText && f.Nullable:
		return []string{""}
	case ofFile == nil:
		return f.Nulls
	}
	nulls := slices.Clone(f.Nulls)
	if f.Nulls == nil && !isText {
		nulls = []string{""}
	}
	for _, text := range ofFile {
		if text != "" || !isText || f.Nullable {
			nulls = append(nulls, text)
		}
	}
	return nulls
}

// A text such as \N means null only without quotes.
func quotedNulls(f *row.Field) []string {
	if f.Nulls == nil || f.Kind != row.String && f.Kind != row.BytesKind {
		return f.Nulls
	}
	return slices.DeleteFunc(slices.Clone(f.Nulls), func(text string) bool { return strings.HasPrefix(text, `\`) })
}
