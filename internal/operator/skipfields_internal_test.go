package operator

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/fault"
	"github.com/surfin-batch/surfin/internal/itemextra"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

func cut(text string) (fields []itemextra.Field) {
	for at := 0; ; {
		value, _, more := strings.Cut(text[at:], ",")
		fields = append(fields, itemextra.Field{Name: fmt.Sprint("c", len(fields)+1), Text: value, From: at, To: at + len(value)})
		if at += len(value) + 1; !more {
			return fields
		}
	}
}

func TestTheFieldsOfATextHaveTheirCharactersAndTheMistake(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		place fault.Place
		cut   bool
		want  string
	}{
		{"é,öö,x", fault.Place{Column: 2, From: 2, To: 4}, false, "é 0-1, öö 2-4!, x 5-6"},
		{"é,öö,x", fault.Place{From: 3, To: 4}, false, "é 0-1, öö 2-4!, x 5-6"},
		{"é,öö,x,y", fault.Place{Column: 3, From: 5, To: 8}, false, "é 0-1, öö 2-4, x 5-6!, y 7-8!"},
		{"é", fault.Place{Field: "note", Column: 2, From: 1, To: 1}, false, "é 0-1,  1-1!"},
		{"é,öö,x", fault.Place{}, true, "é 0-1, öö 2-4"},
	} {
		skipped := &core.SkippedItem{Fault: c.place, Truncated: c.cut, Raw: &item.RawText{Text: c.text, Length: int64(len(c.text))}}
		if c.cut {
			skipped.Raw.Length++
		}
		view := &SkipView{}
		view.addFields(cut(c.text), skipped)
		var got []string
		for _, f := range view.Fields {
			got = append(got, fmt.Sprintf("%s %d-%d", f.Text, f.From, f.To)+strings.Repeat("!", map[bool]int{true: 1}[f.Bad]))
		}
		require.Equal(t, c.want, strings.Join(got, ", "))
		require.Equal(t, c.cut, view.MoreFields)
	}
	view, wide := &SkipView{}, strings.Repeat("x,", 40_000)
	view.addFields(cut(wide), &core.SkippedItem{Raw: &item.RawText{Text: wide, Length: int64(len(wide))}})
	require.Len(t, view.Fields, shownFields)
	require.True(t, view.MoreFields)
	view.HideFields()
	require.Equal(t, SkipView{NoFields: "a secret in it is masked"}, *view)
}
