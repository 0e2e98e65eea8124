package expression_test

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

func anInt() *rapid.Generator[int64] {
	return rapid.OneOf(
		rapid.Int64(), rapid.Int64Range(-9, 9),
		rapid.SampledFrom([]int64{math.MinInt64, math.MinInt64 + 1, math.MaxInt64, math.MaxInt64 - 1, 1 << 32, -1 << 31, 1<<53 + 1}),
	)
}

func aFloat() *rapid.Generator[float64] {
	return rapid.OneOf(
		rapid.Float64(), rapid.Float64Range(-100, 100),
		rapid.SampledFrom([]float64{0, 1, -1, 0.1, math.MaxFloat64, math.SmallestNonzeroFloat64, 1 << 53}),
	)
}

func pair[A, B any]() expression.Scope { return expression.Scope{"a": of[A](), "b": of[B]()} }

func TestIntArithmeticIsExactOrAnError(t *testing.T) {
	t.Parallel()
	exact := map[string]func(a, b *big.Int) *big.Int{
		"a + b":  func(a, b *big.Int) *big.Int { return new(big.Int).Add(a, b) },
		"a - b":  func(a, b *big.Int) *big.Int { return new(big.Int).Sub(a, b) },
		"a * b":  func(a, b *big.Int) *big.Int { return new(big.Int).Mul(a, b) },
		"-a":     func(a, _ *big.Int) *big.Int { return new(big.Int).Neg(a) },
		"abs(a)": func(a, _ *big.Int) *big.Int { return new(big.Int).Abs(a) },
		"div(a, b)": func(a, b *big.Int) *big.Int {
			if b.Sign() == 0 {
				return nil
			}
			return new(big.Int).Quo(a, b)
		},
		"a % b": func(a, b *big.Int) *big.Int {
			if b.Sign() == 0 {
				return nil
			}
			return new(big.Int).Rem(a, b)
		},
	}
	for text, rule := range exact {
		p, err := expression.Compile(text, pair[int64, int64]())
		require.NoError(t, err)
		rapid.Check(t, func(rt *rapid.T) {
			a, b := anInt().Draw(rt, "a"), anInt().Draw(rt, "b")
			got, err := p.Eval(map[string]any{"a": a, "b": b})
			want := rule(big.NewInt(a), big.NewInt(b))
			if want == nil || !want.IsInt64() {
				require.Error(rt, err, "%s of %d and %d", text, a, b)
				return
			}
			require.NoError(rt, err)
			require.Equal(rt, want.Int64(), got)
		})
	}
}

func TestAnIntMeetsAFloatAsAFloat(t *testing.T) {
	t.Parallel()
	rules := map[string]func(a, b float64) float64{
		"a + b": func(a, b float64) float64 { return a + b },
		"a - b": func(a, b float64) float64 { return a - b },
		"a * b": func(a, b float64) float64 { return a * b },
		"a / b": func(a, b float64) float64 { return a / b },
	}
	for text, rule := range rules {
		mixed, err := expression.Compile(text, pair[int64, float64]())
		require.NoError(t, err)
		floats, err := expression.Compile(text, pair[float64, float64]())
		require.NoError(t, err)
		rapid.Check(t, func(rt *rapid.T) {
			a, b := anInt().Draw(rt, "a"), aFloat().Draw(rt, "b")
			want := rule(float64(a), b)
			for p, first := range map[*expression.Program]any{mixed: a, floats: float64(a)} {
				got, err := p.Eval(map[string]any{"a": first, "b": b})
				_, exact := row.FloatOf(a)
				if math.IsInf(want, 0) || math.IsNaN(want) || (p == mixed && !exact) {
					require.Error(rt, err)
					continue
				}
				require.NoError(rt, err)
				require.Equal(rt, want+0, got, "without a negative zero")
			}
		})
	}
}

func TestTheQuotientOfTwoIntsIsTheNearestFloatAndNeverAWrongInt(t *testing.T) {
	t.Parallel()
	p, err := expression.Compile("a / b", pair[int64, int64]())
	require.NoError(t, err)
	big53 := rapid.Int64Range(1<<53-9, 1<<53+9)
	rapid.Check(t, func(rt *rapid.T) {
		a, b := rapid.OneOf(anInt(), big53).Draw(rt, "a"), rapid.OneOf(anInt(), big53, rapid.Int64Range(-3, 3)).Draw(rt, "b")
		got, err := p.Eval(map[string]any{"a": a, "b": b})
		if b == 0 {
			require.ErrorContains(rt, err, "division by zero")
			return
		}
		want := big.NewRat(0, 1).SetFrac(big.NewInt(a), big.NewInt(b))
		near, exact := want.Float64()
		if want.IsInt() && !exact {
			require.ErrorContains(rt, err, "write div(a, b)")
			return
		}
		require.NoError(rt, err)
		require.Equal(rt, near, got)
	})
}

func TestAnIntAndAFloatAreComparedByTheirValues(t *testing.T) {
	t.Parallel()
	scope := pair[int64, float64]()
	vars := map[string]any{"a": int64(9007199254740993), "b": 9007199254740992.0}
	for text, want := range map[string]any{
		"9007199254740993 == 9007199254740992.0": false,
		"9007199254740993 > 9007199254740992.0":  true,
		"9007199254740992 == 9007199254740992.0": true,
		"a == b":                                 false,
		"b < a":                                  true,
		"a in [b, 1]":                            false,
		"b in [1, 9007199254740993]":             false,
		"1.0 in [1, 2]":                          true,
		"min(a, b)":                              9007199254740992.0,
		"max(a, 1, b) == a ? 1 : 2":              nil,
		"a ?? b":                                 nil,
		"a * 1.5":                                nil,
		"b > 0 ? a : b":                          nil,
		"a / 1":                                  nil,
		"float(a) * 0.5":                         4503599627370496.0,
		"string(float(a))":                       "9007199254740992",
		"string(1000000.0)":                      "1000000",
		"string(-0.0)":                           "0",
		"div(a, 1) == a":                         true,
		"a / 3 == 3002399751580331.0":            true,
		"-9007199254740993 < -(b + 0.0)":         true,
	} {
		p, err := expression.Compile(text, scope)
		if want == nil && err == nil {
			_, err = p.Eval(vars)
		}
		if want == nil {
			require.ErrorContains(t, err, "which has 53 bits", text)
			continue
		}
		require.NoError(t, err, text)
		got, err := p.Eval(vars)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	_, err := expression.Compile("b * 9007199254740993", scope)
	var wrong *expression.Error
	require.ErrorAs(t, err, &wrong, "a literal is the author's mistake, seen at load")
	require.Equal(t, 4, wrong.Offset)
}

func TestComparisonsAgreeWithGo(t *testing.T) {
	t.Parallel()
	for op, holds := range map[string]func(c int) bool{
		"==": func(c int) bool { return c == 0 }, "!=": func(c int) bool { return c != 0 },
		"<": func(c int) bool { return c < 0 }, "<=": func(c int) bool { return c <= 0 },
		">": func(c int) bool { return c > 0 }, ">=": func(c int) bool { return c >= 0 },
	} {
		check := func(scope expression.Scope, draw func(rt *rapid.T) (a, b any, order int)) {
			p, err := expression.Compile("a "+op+" b", scope)
			require.NoError(t, err)
			rapid.Check(t, func(rt *rapid.T) {
				a, b, order := draw(rt)
				got, err := p.Eval(map[string]any{"a": a, "b": b})
				require.NoError(rt, err)
				require.Equal(rt, holds(order), got)
			})
		}
		check(pair[int64, int64](), func(rt *rapid.T) (any, any, int) {
			a, b := anInt().Draw(rt, "a"), anInt().Draw(rt, "b")
			return a, b, cmp.Compare(a, b)
		})
		check(pair[int64, float64](), func(rt *rapid.T) (any, any, int) {
			a, b := anInt().Draw(rt, "a"), aFloat().Draw(rt, "b")
			return a, b, new(big.Float).SetInt64(a).Cmp(big.NewFloat(b))
		})
		check(pair[string, string](), func(rt *rapid.T) (any, any, int) {
			a, b := rapid.String().Draw(rt, "a"), rapid.String().Draw(rt, "b")
			return a, b, cmp.Compare(a, b)
		})
		check(pair[row.Date, row.Date](), func(rt *rapid.T) (any, any, int) {
			a, b := rapid.Int32Range(-9999, 9999).Draw(rt, "a"), rapid.Int32Range(-9999, 9999).Draw(rt, "b")
			return row.Date(a), row.Date(b), cmp.Compare(a, b)
		})
		check(pair[time.Time, time.Time](), func(rt *rapid.T) (any, any, int) {
			a, b := rapid.Int64Range(-1e15, 1e15).Draw(rt, "a"), rapid.Int64Range(-1e15, 1e15).Draw(rt, "b")
			return time.UnixMicro(a), time.UnixMicro(b), cmp.Compare(a, b)
		})
	}
}

func TestRoundingAgreesWithExactDecimals(t *testing.T) {
	t.Parallel()
	p, err := expression.Compile("round(a, b)", pair[float64, int64]())
	require.NoError(t, err)
	half := big.NewRat(1, 2)
	rapid.Check(t, func(rt *rapid.T) {
		x := float64(rapid.Int64Range(-1e12, 1e12).Draw(rt, "digits")) / math.Pow10(rapid.IntRange(0, 8).Draw(rt, "scale"))
		places := rapid.Int64Range(0, 9).Draw(rt, "places")
		got, err := p.Eval(map[string]any{"a": x, "b": places})
		require.NoError(rt, err)
		// The decimal text of x, scaled, rounded half away from zero.
		exact, ok := new(big.Rat).SetString(strconv.FormatFloat(x, 'f', -1, 64))
		require.True(rt, ok)
		scale := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(places), nil))
		scaled := new(big.Rat).Add(new(big.Rat).Mul(new(big.Rat).Abs(exact), scale), half)
		whole := new(big.Int).Quo(scaled.Num(), scaled.Denom())
		want, _ := new(big.Rat).Quo(new(big.Rat).SetInt(whole), scale).Float64()
		require.Equal(rt, math.Copysign(want, x), got, "round(%v, %d)", x, places) //nolint:testifylint // exact on purpose
	})
}

func TestDatesCountDays(t *testing.T) {
	t.Parallel()
	p, err := expression.Compile("a + b - b == a and (a + b) - a == b", pair[row.Date, int64]())
	require.NoError(t, err)
	rapid.Check(t, func(rt *rapid.T) {
		v, err := p.Eval(map[string]any{
			"a": row.Date(rapid.Int32Range(-100000, 100000).Draw(rt, "a")), "b": rapid.Int64Range(-100000, 100000).Draw(rt, "b"),
		})
		require.NoError(rt, err)
		require.Equal(rt, true, v)
	})
}

// truth is a random condition with its own interpretation, which fails if a null is used. The static check
// promises that this never happens.
type truth struct {
	text string
	eval func(null map[string]bool) (bool, error)
}

var errNullUsed = errors.New("a null was used")

func aTruth(depth int) *rapid.Generator[truth] {
	return rapid.Custom(func(t *rapid.T) truth {
		name := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "name")
		kinds := 3
		if depth > 0 {
			kinds = 7
		}
		sub := func(label string) truth { return aTruth(depth-1).Draw(t, label) }
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return truth{name + " == nil", func(null map[string]bool) (bool, error) { return null[name], nil }}
		case 1:
			return truth{"nil != " + name, func(null map[string]bool) (bool, error) { return !null[name], nil }}
		case 2: // x is 1 where it is not null
			return truth{name + " > 0", func(null map[string]bool) (bool, error) {
				if null[name] {
					return false, errNullUsed
				}
				return true, nil
			}}
		case 3:
			a := sub("not")
			return truth{"not (" + a.text + ")", func(null map[string]bool) (bool, error) { v, err := a.eval(null); return !v, err }}
		case 4:
			c, a, b := sub("if"), sub("then"), sub("else")
			return truth{fmt.Sprintf("((%s) ? (%s) : (%s))", c.text, a.text, b.text), func(null map[string]bool) (bool, error) {
				v, err := c.eval(null)
				if err != nil || !v {
					if err != nil {
						return false, err
					}
					return b.eval(null)
				}
				return a.eval(null)
			}}
		case 5:
			a, b := sub("left"), sub("right")
			return truth{fmt.Sprintf("(%s) and (%s)", a.text, b.text), func(null map[string]bool) (bool, error) {
				if v, err := a.eval(null); err != nil || !v {
					return false, err
				}
				return b.eval(null)
			}}
		default:
			a, b := sub("left"), sub("right")
			return truth{fmt.Sprintf("(%s) or (%s)", a.text, b.text), func(null map[string]bool) (bool, error) {
				if v, err := a.eval(null); err != nil || v {
					return v, err
				}
				return b.eval(null)
			}}
		}
	})
}

func TestWhatTheNullCheckAcceptsNeverUsesANull(t *testing.T) {
	t.Parallel()
	accepted := 0
	rapid.Check(t, func(rt *rapid.T) {
		c := aTruth(3).Draw(rt, "condition")
		p, err := expression.Compile(c.text, expression.Scope{"x": orNull[int64](), "y": orNull[int64]()})
		if err != nil {
			require.ErrorContains(rt, err, "may be null")
			return
		}
		accepted++
		for _, null := range []map[string]bool{{}, {"x": true}, {"y": true}, {"x": true, "y": true}} {
			want, err := c.eval(null)
			require.NoError(rt, err, "%s with nulls %v", c.text, null)
			vars := map[string]any{}
			for _, name := range []string{"x", "y"} {
				if !null[name] {
					vars[name] = int64(1)
				}
			}
			got, err := p.Eval(vars)
			require.NoError(rt, err)
			require.Equal(rt, want, got, "%s with nulls %v", c.text, null)
		}
	})
	require.Positive(t, accepted)
}

func TestAnyTextGivesAProgramOrAnErrorWithin(t *testing.T) {
	t.Parallel()
	words := rapid.SampledFrom([]string{
		"params", ".", "year", "note", "ü", "1", "2.5", "'a'", "nil", "true", "(", ")", "[", "]", "{", "}", ",", ";", ":", "?", "??", "?.",
		"+", "-", "*", "/", "%", "**", "==", "<", "and", "or", "not", "in", "..", "matches", "let", "=", "if", "else", "|", "#", "date", "len",
		"round", "filter", "max", "today", "::", "\"", "`", "0x", "1e999", "99999999999999999999", "\x00", "/*", "//",
	})
	rapid.Check(t, func(rt *rapid.T) {
		text := ""
		for _, w := range rapid.SliceOfN(words, 0, 14).Draw(rt, "words") {
			text += w + rapid.SampledFrom([]string{"", " "}).Draw(rt, "space")
		}
		p, err := expression.Compile(text, scope())
		var at *expression.Error
		if errors.As(err, &at) {
			require.GreaterOrEqual(rt, at.Offset, 0)
			require.LessOrEqual(rt, at.Offset, len(text))
			return
		}
		require.NoError(rt, err)
		_, err = p.Eval(vars())
		var failed *expression.EvalError
		if err != nil {
			require.ErrorAs(rt, err, &failed)
		}
	})
}
