//test:plain

package encode

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/yamlfile"
)

func TestATextIsReadAsItWasMeant(t *testing.T) {
	t.Parallel()
	word := rapid.OneOf(
		rapid.StringMatching(`[a-z0-9 ${}.:#'"|>&*!%@,\[\]-]{0,12}`),
		rapid.StringMatching(`[a-z ]{0,5}\n[a-z\t ]{0,5}\n?`),
		rapid.SampledFrom([]string{"", "~", "null", "true", "007", "1e3", "- x", "? y", "a: b", " x", "x ", "\u0085", "\ufeff", "\t", "é\u2028", "<<", "=", "\x7f", "a\r\nb", "select 1\n  from x\nwhere y", "\n", "a\n\nb\n\n"}),
		rapid.String(),
	)
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		if depth == 0 {
			return rapid.Map(word, func(s string) any { return s })
		}
		return rapid.OneOf(
			rapid.Map(word, func(s string) any { return s }),
			rapid.Map(rapid.SliceOfN(value(depth-1), 0, 3), func(items []any) any { return List(items) }),
			rapid.Map(rapid.SliceOfNDistinct(word, 0, 3, rapid.ID[string]), func(keys []string) any {
				var o Object
				for i, key := range keys {
					o = append(o, Pair{key + "k", value(depth - 1).Example(i)})
				}
				return o
			}),
		)
	}
	rapid.Check(t, func(t *rapid.T) {
		o := Object{{"root", value(3).Draw(t, "value")}}
		made, err := Text(o)
		require.NoError(t, err)
		doc, problems := yamlfile.Parse("x", []byte(made))
		require.NoError(t, problems.Err(), "%s", made)
		require.Equal(t, normal(o), back(doc.Root), "%s", made)
	})
}

// normal turns empty values into nil, so that both sides are equal.
func normal(v any) any {
	switch x := v.(type) {
	case Object:
		var o Object
		for _, p := range x {
			o = append(o, Pair{p.Key, normal(p.Value)})
		}
		return o
	case List:
		var l List
		for _, item := range x {
			l = append(l, normal(item))
		}
		return l
	}
	return v
}

func back(n *yamlfile.Node) any {
	switch n.Kind {
	case yamlfile.Map:
		var o Object
		for _, e := range n.Entries {
			o = append(o, Pair{e.Key.Text, back(e.Value)})
		}
		return o
	case yamlfile.List:
		var l List
		for _, item := range n.Items {
			l = append(l, back(item))
		}
		return l
	case yamlfile.Scalar:
	}
	return n.Text
}
