//test:plain

package yamlfile_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/yamlfile"
)

type values struct {
	yamlfile.At
	Text  string                    `key:"text" main:"true"`
	Int   int                       `key:"int"`
	Float float64                   `key:"float"`
	Bool  bool                      `key:"bool"`
	Wait  time.Duration             `key:"wait" default:"5s"`
	List  []string                  `key:"list" default:"[a, b]"`
	Map   map[string]int            `key:"map"`
	Order yamlfile.OrderedMap[int]  `key:"order"`
	Ptr   *int                      `key:"ptr"`
	Any   any                       `key:"any"`
	Deep  struct{ inner }           `key:"deep"`
	Rest  yamlfile.OrderedMap[bool] `key:"rest" rest:"true"`
}

type inner struct {
	A string `key:"a" required:"true"`
	B int    `key:"b" default:"7"`
}

func decode(t *testing.T, text string) (values, error) {
	t.Helper()
	doc, problems := yamlfile.Parse("f.yaml", []byte(text))
	var v values
	if doc.Root != nil {
		(&yamlfile.Decoder{Collector: problems}).Decode(doc.Root, "values", reflect.ValueOf(&v).Elem())
	}
	return v, problems.Err()
}

func TestScalarsAreReadAsWrittenAndConvertedToTheDeclaredType(t *testing.T) {
	t.Parallel()
	v, err := decode(t, "text: NO\nint: -12\nfloat: 1e3\nbool: true\nwait: 1h\nlist: [007, 2026-11-20, null, ~, 1.0]\nmap: {a: 1}\nany: 0x1f\nptr: 0\ndeep: {a: yes}\n")
	require.NoError(t, err)
	require.Equal(t, "NO", v.Text)
	require.Equal(t, -12, v.Int)
	require.InDelta(t, 1000, v.Float, 0)
	require.True(t, v.Bool)
	require.Equal(t, time.Hour, v.Wait)
	require.Equal(t, []string{"007", "2026-11-20", "null", "~", "1.0"}, v.List)
	require.Equal(t, map[string]int{"a": 1}, v.Map)
	require.Equal(t, "0x1f", v.Any)
	require.Equal(t, 0, *v.Ptr)
	require.Equal(t, inner{A: "yes", B: 7}, v.Deep.inner)
}

func TestWhatIsMissingHasItsDefault(t *testing.T) {
	t.Parallel()
	v, err := decode(t, "just text")
	require.NoError(t, err)
	require.Equal(t, "just text", v.Text)
	require.Equal(t, 5*time.Second, v.Wait)
	require.Equal(t, []string{"a", "b"}, v.List)
	require.Nil(t, v.Ptr)
	require.Equal(t, 7, v.Deep.B)
}

func TestTheRestTakesTheKeysOfNoField(t *testing.T) {
	t.Parallel()
	v, err := decode(t, "int: 3\nz: true\nrest: false\na: true\norder: {y: 2, b: 1}\n")
	require.NoError(t, err)
	require.Equal(t, []string{"z", "rest", "a"}, v.Rest.Names())
	require.Equal(t, []string{"y", "b"}, v.Order.Names())
	require.Equal(t, 3, v.Int)
}

func TestAnchorsAndMergesAreResolved(t *testing.T) {
	t.Parallel()
	v, err := decode(t, "deep: &d {a: &t hello}\nmap: {<<: [{a: 1}, {b: 2}], c: 3}\ntext: *t\n")
	require.NoError(t, err)
	require.Equal(t, "hello", v.Text)
	require.Equal(t, map[string]int{"a": 1, "b": 2, "c": 3}, v.Map)
}

func TestAnAliasCannotStandForMoreThanMemoryHolds(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := range 9 {
		n, m := string(rune('0'+i)), string(rune('1'+i))
		b.WriteString("a" + m + ": &a" + m + " [" + strings.Repeat("*a"+n+", ", 9) + "*a" + n + "]\n")
	}
	doc, problems := yamlfile.Parse("f.yaml", []byte(b.String()))
	require.Nil(t, doc.Root)
	require.ErrorContains(t, problems.Err(), "stands for more than 100000 values")
}

func at(t *testing.T, text string) (line, col int) {
	t.Helper()
	doc, problems := yamlfile.Parse("f.yaml", []byte(text))
	require.NoError(t, problems.Err())
	n := doc.Root.Get("text")
	problems.AddAt(n, strings.IndexByte(n.Text, '!'), "here", "")
	list := problems.Err().(yamlfile.Problems)
	require.Len(t, list, 1)
	return list[0].Line, list[0].Col
}

func TestAPlaceInAScalarIsAPlaceInTheFile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text      string
		line, col int
	}{
		"plain":                         {"text: ab!", 1, 9},
		"plain, not ASCII":              {"text: äöü!", 1, 10},
		"single quotes":                 {"text: 'ab!'", 1, 10},
		"double quotes":                 {"\ntext: \"ab!\"", 2, 10},
		"block":                         {"text: |\n  one\n    two !\n", 3, 9},
		"block, stripped":               {"text: |-\n\n  one\n  !", 4, 3},
		"CRLF":                          {"a: b\r\ntext: |\r\n  one!\r\n", 3, 6},
		"next line":                     {"text:\n  ab!", 2, 5},
		"escape: its start":             {`text: "\t!"`, 1, 7},
		"folded":                        {"text: >\n  one\n  two!", 3, 6},
		"folded, an empty line":         {"text: >-\n  one\n\n  two\n  äö!", 5, 5},
		"plain, two lines":              {"text: one\n  two! # three", 2, 6},
		"quoted, two lines":             {"text: 'one\n  two!'", 2, 6},
		"doubled, two lines: its start": {"text: 'it''s\n  two!'", 1, 7},
		"doubled: its start":            {"text: 'it''s!'", 1, 7},
	} {
		line, col := at(t, c.text)
		require.Equal(t, [2]int{c.line, c.col}, [2]int{line, col}, name)
	}
}

func TestTheCaretIsBelowThePlace(t *testing.T) {
	t.Parallel()
	p := yamlfile.Problem{File: "f", Line: 7, Col: 4, Msg: "wrong", Excerpt: "\tä x: 1"}
	require.Equal(t, "f:7:4: wrong\n    7 | \tä x: 1\n      | \t  ^", p.Error())

	long := strings.Repeat("a", 200) + "!" + strings.Repeat("b", 200)
	text := yamlfile.Problem{File: "f", Line: 1, Col: 201, Excerpt: long}.Error()
	lines := strings.Split(text, "\n")
	require.Less(t, len(lines[1]), 150)
	require.Equal(t, '!', []rune(lines[1])[len([]rune(lines[2]))-1])
}

func TestProblemsAreSortedByPosition(t *testing.T) {
	t.Parallel()
	_, err := decode(t, "text: [x]\nwait: soon\nint: x\n")
	var problems yamlfile.Problems
	require.ErrorAs(t, err, &problems)
	var msgs []string
	for _, p := range problems {
		msgs = append(msgs, p.Msg)
	}
	require.Equal(t, []string{
		"text takes a single value, not a list", `wait: "soon" is not a duration (such as 500ms, 90s, 1h30m)`, `int: "x" is not an int`,
	}, msgs)
}

func TestAValueWithATypeIsNotChangedSilently(t *testing.T) {
	t.Parallel()
	var v struct {
		I int8
		U uint8
		F float64
		S string
		D time.Duration
		B bool
	}
	field := func(i int) reflect.Value { return reflect.ValueOf(&v).Elem().Field(i) }
	set := func(i int, x any) error { return yamlfile.Set(field(i), yamlfile.Value{Typed: x}) }
	require.NoError(t, set(0, int64(127)))
	require.ErrorContains(t, set(0, int64(128)), "out of range")
	require.Error(t, set(0, 1.0))
	require.Error(t, set(0, time.Second), "a duration is no number")
	require.ErrorContains(t, set(1, int64(-1)), "out of range")
	require.NoError(t, set(1, int64(255)))
	require.NoError(t, set(2, int64(3)))
	require.NoError(t, set(3, int64(3)))
	require.NoError(t, set(4, time.Second))
	require.Error(t, set(4, int64(3)), "a number is no duration")
	require.NoError(t, set(5, true))
	require.Error(t, set(5, int64(1)))
	require.Equal(t, "3", v.S)
}
