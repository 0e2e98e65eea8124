package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestATableAlignsWideSignsAndCellsOfSeveralLines(t *testing.T) {
	t.Parallel()
	got := renderTable([]column{{title: "a"}, {title: "num", right: true}, {title: "last"}}, [][]string{
		{"x", "1", "COMPLETED"}, {"日本語", "12345", "FAILED ok"}, {"multi\nline here", "2", "é"}, {"short"},
	})
	require.Equal(t, ""+
		"\x1b[1ma\x1b[m            \x1b[1mnum\x1b[m  \x1b[1mlast\x1b[m\n"+
		"───────────────────────────\n"+
		"x              1  \x1b[32mCOMPLETED\x1b[m\n"+
		"日本語     12345  \x1b[31mFAILED ok\x1b[m\n"+
		"multi          2  é\n"+
		"line here\n"+
		"short\n", got)
}
