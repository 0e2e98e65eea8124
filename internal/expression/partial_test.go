package expression_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/expression"
)

func TestWhatIsNotKnownYetMattersOnlyWhereTheAnswerDependsOnIt(t *testing.T) {
	t.Parallel()
	scope := expression.Scope{
		"yes": of[bool](), "no": of[bool](), "n": of[int64](), "text": of[string](), "null": orNull[int64](),
		"x": of[bool](), "i": of[int64](), "s": of[string](), "maybe": orNull[int64](), "tags": of[[]string](),
	}
	vars := map[string]any{"yes": true, "no": false, "n": int64(3), "text": "abc"}
	notYet := []string{"x", "i", "s", "maybe", "tags"}
	unknown := func(path string) bool { return slices.Contains(notYet, path) }
	type unknownAnswer struct{}
	for text, want := range map[string]any{
		"yes": true, "n + 1": int64(4), "x": unknownAnswer{}, "tags": unknownAnswer{}, "!x": unknownAnswer{}, "!no": true,
		// Logic.
		"no && x": false, "x && no": false, "yes && x": unknownAnswer{}, "x && yes": unknownAnswer{},
		"yes || x": true, "x || yes": true, "no || x": unknownAnswer{}, "x || no": unknownAnswer{},
		"x && x": unknownAnswer{}, "!(x && no)": true, "no && x || yes": true, "x && no || x": unknownAnswer{},
		"(x || yes) && n == 3": true, "no and x": false, "x or yes": true,
		// A part that may fail before the answer is known.
		"10 / i > 1 && no": unknownAnswer{}, "no && 10 / i > 1": false, "int(s) > 1 || yes": unknownAnswer{},
		"-i > 1 && no": unknownAnswer{}, "s matches 'a' && no": unknownAnswer{}, "x && 1 / (n - 3) > 1": unknownAnswer{},
		// A part that needs the value.
		"i > 3": unknownAnswer{}, "n < i": unknownAnswer{}, "i + n == 3": unknownAnswer{}, "upper(s) == 'A'": unknownAnswer{},
		"s contains 'a'": unknownAnswer{}, "text contains s": unknownAnswer{}, "i == i": unknownAnswer{},
		"maybe == nil": unknownAnswer{}, "maybe ?? 3": unknownAnswer{}, "null ?? i": unknownAnswer{}, "null ?? n": int64(3),
		"maybe != nil && maybe > 3": unknownAnswer{}, "maybe != nil && maybe > 3 && no": false,
		// Alternatives.
		"yes ? n : i": int64(3), "no ? n : i": unknownAnswer{}, "x ? n : 3": int64(3), "x ? n : 4": unknownAnswer{},
		"x ? i : 3": unknownAnswer{}, "10 / i > 1 ? 3 : n": unknownAnswer{},
		// Lists.
		"n in [i, 3]": true, "n in [i, 4]": unknownAnswer{}, "i in [1, 2]": unknownAnswer{}, "n in [10 / i, 3.0]": unknownAnswer{},
		"n in 1..i": unknownAnswer{}, "n in 1..4": true,
		// Names of the expression.
		"let a = i; no && a > 3": false, "let a = i; a > 3": unknownAnswer{}, "let a = 10 / i; no && a > 3": unknownAnswer{},
		"let a = i; let b = n; b == 3 || a > 3": true,
	} {
		p, err := expression.Compile(text, scope)
		require.NoError(t, err, text)
		got, known, err := p.Try(vars, unknown)
		require.NoError(t, err, text)
		if want == any(unknownAnswer{}) {
			require.False(t, known, "%s is %v", text, got)
			continue
		}
		require.True(t, known, text)
		require.Equal(t, want, got, text)
	}
	p, err := expression.Compile("1 / (n - 3) > 1 && x", scope)
	require.NoError(t, err)
	_, known, err := p.Try(vars, unknown)
	require.False(t, known)
	require.ErrorContains(t, err, "division by zero")
}

func TestWhatIsKnownIsWhatEverySetOfValuesSays(t *testing.T) {
	t.Parallel()
	scope := expression.Scope{"a": of[bool](), "b": of[bool](), "i": of[int64](), "j": of[int64]()}
	var condition func(depth int) *rapid.Generator[string]
	condition = func(depth int) *rapid.Generator[string] {
		leaves := rapid.SampledFrom([]string{"a", "b", "true", "false", "i > 1", "i == j", "j in [i, 1]", "4 / i > 1", "j % i == 0", "i in 0..j"})
		if depth == 0 {
			return leaves
		}
		inner := condition(depth - 1)
		return rapid.OneOf(leaves, rapid.Custom(func(rt *rapid.T) string {
			x, y, z := inner.Draw(rt, "x"), inner.Draw(rt, "y"), inner.Draw(rt, "z")
			return rapid.SampledFrom([]string{
				"(" + x + " && " + y + ")", "(" + x + " || " + y + ")", "!(" + x + ")", "(" + x + " ? " + y + " : " + z + ")",
			}).Draw(rt, "form")
		}))
	}
	rapid.Check(t, func(rt *rapid.T) {
		text := condition(3).Draw(rt, "text")
		p, err := expression.Compile(text, scope)
		if err != nil { // constant parts that fail
			return
		}
		values := func() map[string]any {
			return map[string]any{
				"a": rapid.Bool().Draw(rt, "a"), "b": rapid.Bool().Draw(rt, "b"),
				"i": rapid.Int64Range(0, 2).Draw(rt, "i"), "j": rapid.Int64Range(0, 2).Draw(rt, "j"),
			}
		}
		vars := values()
		hidden := rapid.SliceOf(rapid.SampledFrom([]string{"a", "b", "i", "j"})).Draw(rt, "hidden")
		tried, known, err := p.Try(vars, func(path string) bool { return slices.Contains(hidden, path) })
		if err != nil || !known {
			if len(hidden) == 0 {
				_, live := p.Eval(vars)
				require.Equal(rt, live, err, text)
			}
			return
		}
		for range 8 {
			others := values()
			for name := range vars {
				if !slices.Contains(hidden, name) {
					others[name] = vars[name]
				}
			}
			got, err := p.Eval(others)
			require.NoError(rt, err, "%s with %v", text, others)
			require.Equal(rt, got, tried, "%s with %v", text, others)
		}
	})
}
